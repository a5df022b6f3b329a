//! The emulator runs the kernels of `tests/emulator/kernels` with right results and finds nothing
//! wrong with them. Needs no GPU.

#![allow(clippy::print_stderr)]

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use sparserl_emulator::launch::Options;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_tests::emulated::{self, Case};
use sparserl_tests::trials;

/// Orders of execution that are tried.
const SEEDS: u64 = 4;
/// Instructions of a warp.
const BUDGET: u64 = 2_000_000;

fn main() -> ExitCode {
    trials::run(plan())
}

fn plan() -> Result<Vec<Trial>> {
    let compilers = Compilers::discover()
        .context("these tests need NVRTC: run tests/install-nvrtc.sh first")?;
    let compilers = Arc::new(compilers);
    let cases = emulated::load("kernels")?.into_iter().map(|case| {
        let compilers = Arc::clone(&compilers);
        Trial::test(case.name.clone(), move || trials::outcome(run(&case, &compilers)))
    });
    let fingerprints = Trial::test("fingerprints", || trials::outcome(check_fingerprints()));
    Ok(cases.chain([fingerprints]).collect())
}

fn run(case: &Case, compilers: &Compilers) -> Result<()> {
    let kernel = case.compile(compilers)?;
    for seed in 0..SEEDS {
        let (report, contents) =
            case.run(&kernel, &Options { seed, budget: BUDGET, ..Options::default() })?;
        let place = || format!("seed {seed}");
        case.check_findings(&report.findings).with_context(place)?;
        case.check_result(&contents).with_context(place)?;
    }
    Ok(())
}

/// Whether the data are those of `tests/sanitizer`.
fn check_fingerprints() -> Result<()> {
    let mut made = String::new();
    for set in ["bugs", "kernels"] {
        for case in emulated::load(set)? {
            made.push_str(&format!("{set}/{} {:016x}\n", case.name, case.fingerprint()));
        }
    }
    let path = sparserl_tests::root().join("tests/sanitizer/fingerprints.txt");
    let recorded = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let strange = made.lines().filter(|line| !recorded.lines().any(|recorded| recorded == *line));
    let strange: Vec<_> = strange.collect();
    let are_same = made.lines().count() == recorded.lines().count() && strange.is_empty();
    ensure!(
        are_same,
        "data differ from those of `side_by_side.py --fingerprints`: {}",
        strange.join(", ")
    );
    Ok(())
}
