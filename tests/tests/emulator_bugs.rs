//! The emulator finds each bug planted in `tests/emulator/bugs` where it is, and nothing else.
//! Needs no GPU.

#![allow(clippy::print_stderr)]

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use libtest_mimic::Trial;
use sparserl_emulator::launch::Options;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_tests::emulated::{self, Case};
use sparserl_tests::trials;

/// Orders of execution that are tried.
const SEEDS: u64 = 4;
/// Instructions of a warp; what ends takes fewer.
const BUDGET: u64 = 200_000;

fn main() -> ExitCode {
    trials::run(plan())
}

fn plan() -> Result<Vec<Trial>> {
    let compilers = Compilers::discover()
        .context("these tests need NVRTC: run tests/install-nvrtc.sh first")?;
    let compilers = Arc::new(compilers);
    let cases = emulated::load("bugs")?.into_iter().map(|case| {
        let compilers = Arc::clone(&compilers);
        Trial::test(case.name.clone(), move || trials::outcome(find(&case, &compilers)))
    });
    Ok(cases.collect())
}

fn find(case: &Case, compilers: &Compilers) -> Result<()> {
    let kernel = case.compile(compilers)?;
    for seed in 0..SEEDS {
        let (report, _) =
            case.run(&kernel, &Options { seed, budget: BUDGET, ..Options::default() })?;
        case.check_findings(&report.findings).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}
