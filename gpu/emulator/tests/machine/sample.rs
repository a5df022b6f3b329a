//! Some blocks of grids and some pages of buffers that are too large to run and to hold.

use sparserl_emulator::finding::FindingKind::{self, *};
use sparserl_emulator::launch::{Argument, Launch, LaunchError, Options, Report, Sample};
use sparserl_emulator::machine::run_sample;
use sparserl_emulator::memory::{BufferId, Memory};
use sparserl_emulator::ptx::Module;

use crate::source;

/// Rows of `y`, of 128 words.
const ROWS: u32 = 40_000_000;
const WORDS: usize = 128;

/// A block for each row writes its number into it. `place` leaves in `%rd3` the number of the word
/// that a thread writes, of its row in `%r1` and its column in `%r0`.
fn rows(place: &str) -> String {
    let after = "shl.b64 %rd3, %rd3, 2; add.s64 %rd3, %rd3, %rd0; st.global.u32 [%rd3], %r1;";
    source(&format!("{place} {after}"))
}

const WIDE: &str = "mul.wide.u32 %rd3, %r1, 128; cvt.u64.u32 %rd4, %r0; add.s64 %rd3, %rd3, %rd4;";
const SIGNED: &str = "shl.b32 %r4, %r1, 7; add.s32 %r4, %r4, %r0; cvt.s64.s32 %rd3, %r4;";
const UNSIGNED: &str = "shl.b32 %r4, %r1, 7; add.s32 %r4, %r4, %r0; cvt.u64.u32 %rd3, %r4;";

struct Run {
    memory: Memory,
    y: BufferId,
    report: Report,
}

fn run(text: &str, grid: [u32; 3], blocks: &[u32], most: u64) -> Result<Run, LaunchError> {
    let kernel = Module::parse(text).unwrap().kernel("k").unwrap();
    let mut memory = Memory::new();
    let y = memory.uninitialised_pages("y", ROWS as usize * WORDS * 4);
    let launch = Launch {
        grid,
        block: [128, 1, 1],
        dynamic_shared: 0,
        arguments: vec![Argument::Buffer(y)],
    };
    let blocks = blocks.iter().map(|&block| [block, 0, 0]).collect();
    let sample = Sample { blocks, instructions: most };
    let report = run_sample(&kernel, &launch, &mut memory, &Options::default(), &sample)?;
    Ok(Run { memory, y, report })
}

fn of_rows(place: &str, blocks: &[u32]) -> Run {
    run(&rows(place), [ROWS, 1, 1], blocks, 1_000_000).unwrap()
}

fn kinds(report: &Report) -> Vec<FindingKind> {
    report.findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_few_rows_of_many_are_written() {
    let found = of_rows(WIDE, &[ROWS - 1, 0, 33_554_432]);
    assert_eq!(found.report.findings, []);
    assert_eq!(found.report.counters.warps, 3 * 4);
    let element = |row: u32| {
        let offset = (row as usize * WORDS + 77) * 4;
        found.memory.element(found.y, offset, 4)
    };
    for row in [0, 33_554_432, ROWS - 1] {
        assert_eq!(element(row), Some(row.into()));
    }
    assert_eq!(element(1), None);
    let bytes: usize = found.memory.touched(found.y).iter().map(ExactSizeIterator::len).sum();
    assert_eq!(bytes, 3 * 512);
}

#[test]
fn a_signed_index_wraps_to_before_the_buffer() {
    let found = of_rows(SIGNED, &[0, 16_777_215, 16_777_216]);
    assert_eq!(kinds(&found.report), [OutOfBounds]);
    let finding = &found.report.findings[0];
    assert_eq!(finding.block, [16_777_216, 0, 0]);
    let place = &finding.address.as_ref().unwrap().place;
    assert_eq!(place, "y - 8589934592 of 20480000000 bytes");
}

#[test]
fn an_unsigned_index_wraps_onto_what_another_block_writes() {
    let found = of_rows(UNSIGNED, &[0, 33_554_432]);
    assert_eq!(kinds(&found.report), [Race, AddressOverflow]);
    let text = found.report.findings[0].to_string();
    assert!(text.contains("(33554432,0,0)") && text.contains("block (0,0,0)"), "{text}");
}

#[test]
fn enough_instructions_are_enough() {
    let all: Vec<u32> = (0..1000).collect();
    let found = run(&rows(WIDE), [ROWS, 1, 1], &all, 1000).unwrap();
    assert_eq!(found.report.findings, []);
    assert!((32..200).contains(&found.report.counters.warps));
    let endless = source("L: add.u32 %r4, %r4, 1; bra L;");
    let found = run(&endless, [ROWS, 1, 1], &all, 1000).unwrap();
    assert_eq!(kinds(&found.report), [GivenUp]);
}

#[test]
fn more_memory_than_there_is_room_for_gives_a_launch_up() {
    // A word of every fourth KB.
    let body = "mul.wide.u32 %rd3, %r0, 4096; add.s64 %rd3, %rd3, %rd0; mov.u32 %r4, 0;
        L: st.global.u32 [%rd3], %r4; add.s64 %rd3, %rd3, 524288; add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, 5000; @%p1 bra L;";
    let found = run(&source(body), [1, 1, 1], &[0], 1_000_000).unwrap();
    assert_eq!(kinds(&found.report), [GivenUp]);
    let text = found.report.findings[0].to_string();
    assert!(text.contains("more memory than races are looked for in"), "{text}");
}

#[test]
fn blocks_that_there_are_not_are_refused() {
    let refusal = |blocks: &[u32]| run(&rows(WIDE), [5, 1, 1], blocks, 10).err().unwrap();
    assert_eq!(refusal(&[0, 5]).to_string(), "a block [5, 0, 0]: the grid has [5, 1, 1] blocks");
    let cluster = rows(WIDE)
        .replace("{\n            .reg .pred", ".reqnctapercluster 2, 1, 1 {\n .reg .pred");
    let cluster = cluster.replace("sm_80", "sm_90");
    let refusal = run(&cluster, [4, 1, 1], &[0, 1], 10).err().unwrap();
    assert_eq!(refusal.to_string(), "some blocks of a grid: those of `k` form clusters");
}
