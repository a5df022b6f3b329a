//! A reduction that lacks a barrier: two warps leave a number each thread in shared memory, and the
//! first adds those of the second to its own, before they may be there.
//!
//! On a GPU the sums are nearly always right. `cargo run -p sparserl-emulator --example race` says
//! in which line they need not be.

#![allow(clippy::print_stdout, reason = "it is there to show something")]

use std::error::Error;

use sparserl_emulator::launch::{Argument, Launch, Options, Report};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;

const THREADS: u32 = 64;

/// The kernel, with or without `bar.sync 0;` where it belongs.
fn reduction(barrier: &str) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry reduce(.param .u64 reduce_param_0)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 numbers[256];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, numbers;
    add.s32 %r2, %r2, %r1;
    st.shared.u32 [%r2], %r0;
    {barrier}
    setp.gt.u32 %p1, %r0, 31;
    @%p1 bra END;
    ld.shared.u32 %r3, [%r2+128];
    add.s32 %r4, %r3, %r0;
    ld.param.u64 %rd1, [reduce_param_0];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r4;
    END: ret;
}}
"
    )
}

/// The sums of the first warp, and what is said of the launch.
fn launch(ptx: &str, seed: u64) -> Result<(Vec<u32>, Report), Box<dyn Error>> {
    let kernel = Module::parse(ptx)?.kernel("reduce")?;
    let mut memory = Memory::new();
    let sums = memory.uninitialised("sums", 32 * 4);
    let launch = Launch {
        grid: [1, 1, 1],
        block: [THREADS, 1, 1],
        dynamic_shared: 0,
        arguments: vec![Argument::Buffer(sums)],
    };
    let report = run(&kernel, &launch, &mut memory, &Options { seed, ..Options::default() })?;
    let bytes = memory.bytes(sums);
    let (words, _) = bytes.as_chunks::<4>();
    Ok((words.iter().map(|word| u32::from_le_bytes(*word)).collect(), report))
}

fn main() -> Result<(), Box<dyn Error>> {
    for (name, barrier) in [("with the barrier", "bar.sync 0;"), ("without it", "")] {
        // Another seed is another order in which warps and lanes take turns.
        let (sums, report) = launch(&reduction(barrier), 1)?;
        println!("{name}: 1 + 33 = {}, 31 + 63 = {}", sums[1], sums[31]);
        for finding in &report.findings {
            println!("  {finding}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sparserl_emulator::finding::FindingKind;

    use super::*;

    #[test]
    fn the_race_is_found_in_every_order_and_only_without_the_barrier() {
        for seed in 0..6 {
            let (sums, report) = launch(&reduction("bar.sync 0;"), seed).unwrap();
            assert!(sums.iter().zip(0..).all(|(sum, i)| *sum == 2 * i + 32));
            assert_eq!(report.findings, []);
            let (_, report) = launch(&reduction(""), seed).unwrap();
            let race = |kind| report.findings.iter().any(|finding| finding.kind == kind);
            assert!(race(FindingKind::Race), "seed {seed}: {:?}", report.findings);
        }
        main().unwrap();
    }
}
