//! What a trace tells of where values come from and go to.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::collections::BTreeSet;

use sparserl_emulator::code::Kernel;
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::{run, run_traced};
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;
use sparserl_emulator::trace::Trace;

/// A word of `x` for each lane, one more to the lane before, from there by shared memory to `y`.
/// Only the first four lanes add what they read from `n`, which nobody else needs.
const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    .shared .align 4 .b8 kept[128];
    ld.param.u64 %rd0, [k_param_0];
    ld.param.u64 %rd1, [k_param_1];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd0, %rd2;
    add.s64 %rd4, %rd1, %rd2;
    ld.global.u32 %r1, [%rd3];
    add.s32 %r2, %r1, 1;
    shfl.sync.down.b32 %r3, %r2, 1, 31, -1;
    shl.b32 %r4, %r0, 2;
    mov.u32 %r5, kept;
    add.s32 %r5, %r5, %r4;
    st.shared.u8 [%r5], %r3;
    bar.warp.sync -1;
    ld.shared.u8 %r6, [%r5];
    st.global.u32 [%rd4], %r6;
    setp.gt.u32 %p1, %r0, 3;
    @%p1 bra END;
    st.global.u32 [%rd4], %r0;
    END: ret;
}";

fn traced() -> (Kernel, Trace, [u64; 2]) {
    let kernel = Module::parse(TEXT).unwrap().kernel("k").unwrap();
    let launch = |memory: &mut Memory| {
        let words: Vec<u8> = (0..32_u32).flat_map(|n| (n * 20).to_le_bytes()).collect();
        let (x, y) = (memory.input("x", &words), memory.uninitialised("y", 128));
        let arguments = vec![Argument::Buffer(x), Argument::Buffer(y)];
        let launch = Launch { grid: [1; 3], block: [32, 1, 1], dynamic_shared: 0, arguments };
        (launch, [x, y])
    };
    let mut memory = Memory::new();
    let (of, [x, y]) = launch(&mut memory);
    let (report, trace) = run_traced(&kernel, &of, &mut memory, &Options::default()).unwrap();
    let mut plain = Memory::new();
    let (of, _) = launch(&mut plain);
    assert_eq!(report, run(&kernel, &of, &mut plain, &Options::default()).unwrap());
    assert_eq!(memory.bytes(y), plain.bytes(y), "the same launch");
    (kernel, trace, [memory.address(x), memory.address(y)])
}

fn line_of(text: &str) -> u32 {
    1 + TEXT.lines().position(|line| line.contains(text)).unwrap() as u32
}

#[test]
fn a_value_is_followed_back_to_what_was_read() {
    let (kernel, trace, [x, y]) = traced();
    let write = trace.last_write(&kernel, y + 40..y + 44).unwrap();
    let line = |counter: u32| kernel.code[counter as usize].ptx_line;
    assert_eq!(
        (line(write.counter), write.moment.lane),
        (line_of("st.global.u32 [%rd4], %r6"), 10)
    );
    let steps = trace.slice(&kernel, &[write.moment]);
    let by_value = steps.iter().filter(|step| step.value != 0 && !step.cuts);
    let read: Vec<u64> = by_value
        .flat_map(|step| trace.reads(&kernel, step))
        .map(|(_, place, _)| place)
        .filter(|place| (x..x + 128).contains(place))
        .collect();
    assert_eq!(read, [x + 44], "of the next lane alone");
    // 221 does fit a byte.
    assert!(steps.iter().all(|step| !step.cuts));
    let lines: Vec<u32> = steps.iter().map(|step| line(step.counter)).collect();
    assert!(lines.contains(&line_of("add.s32 %r2")) && lines.contains(&line_of("st.shared.u8")));
    assert!(!lines.contains(&line_of("setp")));
}

#[test]
fn numbers_that_were_cut_off_are_told() {
    let (kernel, trace, [_, y]) = traced();
    // 20 · 20 + 1 does not.
    let write = trace.last_write(&kernel, y + 76..y + 80).unwrap();
    let steps = trace.slice(&kernel, &[write.moment]);
    let cut: Vec<_> = steps.iter().filter(|step| step.cuts).collect();
    assert_eq!(cut.len(), 1);
    assert_eq!(kernel.code[cut[0].counter as usize].ptx_line, line_of("st.shared.u8"));
    assert_eq!(cut[0].value, 1 << 19);
}

#[test]
fn a_value_is_followed_to_where_it_was_used_last() {
    let (kernel, trace, [x, y]) = traced();
    let line = |counter: u32| kernel.code[counter as usize].ptx_line;
    let last_use = |lane: u64| {
        let (read, _) = trace.accesses(&kernel, x + 4 * lane..x + 4 * lane + 4).next().unwrap();
        let last = *trace.carriers(&kernel, read.moment).last().unwrap();
        (line(trace.place_of(last).unwrap().0), last.lane)
    };
    assert_eq!(last_use(11), (line_of("st.global.u32 [%rd4], %r6"), 10));
    // The first lane's goes nowhere.
    assert_eq!(last_use(0).0, line_of("add.s32 %r2"));
    // What was stored over it does not come from x.
    let write = trace.last_write(&kernel, y..y + 4).unwrap();
    assert_eq!(line(write.counter), line_of("st.global.u32 [%rd4], %r0"));
}

#[test]
fn a_thread_turns_away_where_it_can_come_to_a_store_no_more() {
    let (kernel, trace, [x, _]) = traced();
    let last = line_of("st.global.u32 [%rd4], %r0");
    let store = kernel.code.iter().position(|at| at.ptx_line == last).unwrap() as u32;
    let turn = |lane: u64| {
        let (read, _) = trace.accesses(&kernel, x + 4 * lane..x + 4 * lane + 4).next().unwrap();
        let turn = trace.turns_away(&kernel, read.moment, &BTreeSet::from([store]))?;
        Some(kernel.code[trace.place_of(turn)?.0 as usize].ptx_line)
    };
    assert_eq!(turn(2), None);
    assert_eq!(turn(9), Some(line_of("bra END")));
}
