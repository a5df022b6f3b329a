//! Kernels as strangers write them, judged as `verify --emulate` does: the right ones of
//! `tests/emulator/foreign/right` pass, and those of `tests/emulator/foreign/launched`, simple ones
//! with launches as people write them; those of `tests/emulator/foreign/remarked` pass with a
//! remark, that NaN spreads or what follows `// SAYS:`; the wrong ones of
//! `tests/emulator/foreign/wrong` are told wrong, with a line that is marked `// BUG` where there
//! is one, and so are those of `tests/emulator/foreign/half` in half precision. Of those of
//! `tests/emulator/foreign/told` a finding says the words that follow each `// SAYS:`, with the
//! lines of what is wrong. Those of `tests/emulator/foreign/vast` are judged where dense operands
//! have more than 2³² elements: wrong ones are told wrong, right ones pass where the input has as
//! many, and are refused without a finding where the output has. Needs no GPU.
//!
//! Sources are compiled by processes that run this very program.

#![allow(clippy::print_stderr)]

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use half::{bf16, f16};
use libtest_mimic::Trial;
use sparserl_core::matrix::{Csr, Scalar, generate};
use sparserl_core::outcome::{Outcome, Violation};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::pool::CompilePool;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError, EmulatorEvaluator, Judgement};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::serve::serve;
use sparserl_tests::trials;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, role)) = words.split_first().filter(|(first, _)| *first == "serve") {
        return if serve(role).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    trials::run(plan())
}

fn plan() -> Result<Vec<Trial>> {
    let command = ServerCommand::this_program(["serve"])?;
    let processes = NonZeroUsize::new(2).context("two is more than none")?;
    let pool = CompilePool::start(command, processes, None)
        .context("these tests need NVRTC: run tests/install-nvrtc.sh first")?;
    let options = EmulationOptions::default();
    let emulator = EmulatorEvaluator::open(Arc::new(pool), Architecture::Sm90, options)?;
    let emulator = Arc::new(emulator);
    let mut trials = Vec::new();
    let sets = [
        ("right", is_right as fn(&_, &_) -> _),
        ("launched", is_right),
        ("remarked", is_remarked),
        ("wrong", is_wrong),
        ("told", is_told_why),
        ("half/right", is_right_in_half),
        ("half/wrong", is_wrong_in_half),
        ("vast/right", is_vastly_right),
        ("vast/wrong", is_vastly_wrong),
    ];
    for (set, check) in sets {
        for (name, source) in sources(set)? {
            let emulator = Arc::clone(&emulator);
            trials.push(Trial::test(format!("{set}::{name}"), move || {
                trials::outcome(check(&source, &emulator))
            }));
        }
    }
    Ok(trials)
}

/// Names and texts of the sources of a set.
fn sources(set: &str) -> Result<Vec<(String, String)>> {
    let folder = sparserl_tests::root().join("tests/emulator/foreign").join(set);
    let files = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    let read = |path: &Path| -> Result<_> {
        let name = path.file_stem().context("a file without name")?.to_string_lossy().into_owned();
        Ok((name, std::fs::read_to_string(path)?))
    };
    paths.iter().map(|path| read(path).with_context(|| path.display().to_string())).collect()
}

/// 300 rows of up to 12 entries, some of them empty.
fn matrix() -> Result<Csr<f32>> {
    Ok(generate::hyper_sparse(300, 280, 1500, 7).cast()?)
}

/// Judged with all elements of one type.
fn judge<T: Scalar>(source: &str, emulator: &EmulatorEvaluator) -> Result<Judgement> {
    let kernel = RawKernel::parse(source, None)?;
    let task = Task::new(Operation::SpMV, T::DTYPE);
    Ok(emulator.judge(matrix()?.cast::<T>()?.view(), Candidate::uncompiled(&kernel, task))?)
}

/// Judged with elements of 16 bits, of the type whose header it includes.
fn judge_in_half(source: &str, emulator: &EmulatorEvaluator) -> Result<Judgement> {
    match source.contains("cuda_bf16.h") {
        true => judge::<bf16>(source, emulator),
        false => judge::<f16>(source, emulator),
    }
}

fn is_right(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    let judgement = judge::<f32>(source, emulator)?;
    ensure!(judgement.remark.is_none(), "{:?}", judgement.remark);
    is_told_right(&judgement)
}

/// Right, with a remark of these words: without any, that NaN and infinity spread from rows of the
/// input that a row does not name.
fn is_remarked(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    let judgement = judge::<f32>(source, emulator)?;
    is_told_right(&judgement)?;
    let remark = judgement.remark.context("there is no remark")?;
    let words = source.lines().find_map(|line| line.strip_prefix("// SAYS: "));
    ensure!(remark.contains(words.unwrap_or("NaN or infinity in x spreads").trim()), "{remark}");
    Ok(())
}

fn is_right_in_half(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    is_told_right(&judge_in_half(source, emulator)?)
}

fn is_wrong(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    is_told_wrong(source, &judge::<f32>(source, emulator)?)
}

fn is_told_why(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    let judgement = match source.contains("const double*") {
        true => judge::<f64>(source, emulator)?,
        false => judge::<f32>(source, emulator)?,
    };
    ensure!(!judgement.outcome.is_right(), "it passes for right");
    let told: Vec<String> = judgement.findings.iter().map(ToString::to_string).collect();
    let says: Vec<&str> =
        source.lines().filter_map(|line| line.strip_prefix("// SAYS: ")).collect();
    ensure!(!says.is_empty(), "nothing to say");
    for words in says {
        let is_said = told.iter().any(|text| text.contains(words.trim()));
        ensure!(is_said, "nothing says `{words}`: {told:#?}");
    }
    Ok(())
}

fn is_wrong_in_half(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    is_told_wrong(source, &judge_in_half(source, emulator)?)
}

/// Of that many rows of 128 elements, a fifth lies beyond 2³².
const VAST: usize = 5 << 23;
/// The sizes of matrices with so many columns or rows, and their entries.
const WIDE: [usize; 3] = [50, VAST, 2_000];
const TALL: [usize; 3] = [VAST, 50, 500_000];

fn judge_vast(
    source: &str,
    emulator: &EmulatorEvaluator,
    [rows, cols, entries]: [usize; 3],
) -> Result<Result<Judgement, EmulatorError>> {
    let matrix: Csr<f32> = generate::hyper_sparse(rows, cols, entries, 7).cast()?;
    let columns = NonZeroU32::new(128).context("more than none")?;
    let task = Task::new(Operation::SpMM { columns }, Dtype::F32);
    let kernel = RawKernel::parse(source, None)?;
    Ok(emulator.judge(matrix.view(), Candidate::uncompiled(&kernel, task)))
}

fn is_vastly_right(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    is_told_right(&judge_vast(source, emulator, WIDE)??)?;
    match judge_vast(source, emulator, TALL)? {
        Err(EmulatorError::Launch { ran, .. }) if ran > 0 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(judgement) => bail!("{}", judgement.outcome),
    }
}

fn is_vastly_wrong(source: &str, emulator: &EmulatorEvaluator) -> Result<()> {
    let of_input = judge_vast(source, emulator, WIDE)??;
    match of_input.outcome.is_right() {
        true => is_told_wrong(source, &judge_vast(source, emulator, TALL)??),
        false => is_told_wrong(source, &of_input),
    }
}

fn is_told_right(judgement: &Judgement) -> Result<()> {
    ensure!(judgement.outcome.is_right(), "{}", judgement.outcome);
    Ok(())
}

fn is_told_wrong(source: &str, judgement: &Judgement) -> Result<()> {
    ensure!(!judgement.outcome.is_right(), "it passes for right");
    let marked: BTreeSet<u32> = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.contains("// BUG"))
        .map(|l| l.0)
        .collect();
    let told = judgement.findings.iter().filter_map(|finding| Some(finding.source.as_ref()?.line));
    if !marked.is_empty() && !told.into_iter().any(|line| marked.contains(&line)) {
        bail!("told wrong without a line of the bug: {}", judgement.outcome);
    }
    // Such a kernel is right in a first launch, which is said of it.
    let keeps_state = Violation::KeepsState;
    let is_told = matches!(judgement.outcome, Outcome::WrongResult { violation, .. } if violation == keeps_state);
    ensure!(is_told || !source.contains("// KEEPS STATE"), "{}", judgement.outcome);
    Ok(())
}
