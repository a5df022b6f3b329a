//! `bench`: how much faster than cuSPARSE and other libraries the best of several candidates is, on
//! many matrices.
//!
//! ```text
//! matrix_source ─► measure (search ─► make ─► instrument) ─► results ─► totals ─┬─► terminal
//!                                                                                  └─► report (charts), markdown, document
//! ```
//!
//! A matrix that cannot be read and a case that cannot be measured are noted as skipped, the run
//! goes on, and its exit code is 3. Losses, wrong candidates and cases without a right one are
//! results: they are listed, and the exit code stays 0.

mod charts;
mod document;
mod markdown;
mod measure;
mod names;
mod plausible;
mod report;
mod results;
mod terminal;
mod totals;

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::bail;
use sparserl_gpu::compare::Opponents;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::store::recording::Recorder;
use sparserl_gpu::worker::Protocol;
use sparserl_onnx_models::OpenedPolicy;

use crate::args::{BenchArgs, ReportArgs};
use crate::instrument::Instrument;
use crate::matrix_source::{self, MatrixSource};
use crate::policy;
use crate::progress::Progress;
use crate::{console, gpu, recordings, whole_file};
use document::Document;
use measure::{Bench, steps_per_matrix};
use results::{BenchResults, Generator, RESULTS, Settings, Store};

const REPORT: &str = "report.html";

/// Measures, and writes `results.json` and `report.html`.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let mut sources = Vec::new();
    for argument in &args.matrices {
        sources.extend(MatrixSource::parse(argument)?);
    }
    if !args.resume {
        results::check_free(&args.output)?;
    }
    let matrices = args.matrices.iter().map(|argument| matrix_source::label(argument)).collect();
    let settings = Settings {
        matrices,
        tasks: args.tasks(),
        budget: args.budget(),
        values: args.values.into(),
    };
    let policy = policy::open(&args.policy)?;
    let evaluators = open(&args.devices, &args.opponents.opponents()?)?;
    let devices = evaluators.iter().map(|evaluator| evaluator.facts().clone()).collect();
    let store = Store::open(
        &args.output,
        BenchResults::new(Generator::with(&policy), devices, settings),
        args.resume,
    )?;
    let recorder = recordings::open(args.record.as_deref())?;
    let print = |line: &str| match args.json {
        true => Ok(()),
        false => console::print(&format!("{line}\n")),
    };
    let results = measure(&sources, &policy, evaluators, store, recorder, !args.json, &print)?;
    finish(&results, args)
}

/// Opens the GPUs with these numbers.
fn open(devices: &[u32], opponents: &Opponents) -> anyhow::Result<Vec<GpuEvaluator>> {
    let compilers = gpu::compilers()?;
    let open = |&device| gpu::open(&compilers, device, Protocol::full(), opponents.clone());
    devices.iter().map(open).collect()
}

/// Measures every matrix and task, each matrix with the first evaluator that is free; `shown` says
/// whether progress may be shown.
fn measure<E: Instrument + Send>(
    sources: &[MatrixSource],
    policy: &OpenedPolicy,
    evaluators: Vec<E>,
    store: Store,
    recorder: Option<Recorder>,
    shown: bool,
    print: &(dyn Fn(&str) -> anyhow::Result<()> + Sync),
) -> anyhow::Result<BenchResults> {
    let settings = store.asked().clone();
    let steps = sources.len() * steps_per_matrix(settings.tasks.len());
    let progress = Progress::new(steps, shown);
    let print = |line: &str| progress.suspend(|| print(line));
    let (store, next) = (Mutex::new(store), AtomicUsize::new(0));
    let running = AtomicUsize::new(evaluators.len());
    let recorder = recorder.map(Mutex::new);
    thread::scope(|scope| {
        let run = |evaluator| {
            let (store, recorder) = (&store, recorder.as_ref());
            let (settings, progress, print, running) = (&settings, &progress, &print, &running);
            let bench = Bench {
                policy,
                evaluator,
                store,
                recorder,
                settings,
                progress,
                print,
                running,
                failures: 0,
            };
            let next = &next;
            scope.spawn(move || bench.run(sources, next))
        };
        let running: Vec<_> = evaluators.into_iter().map(run).collect();
        let ended = running.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            // As if it had happened here.
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<anyhow::Result<()>>()
    })?;
    Ok(store.into_inner().unwrap_or_else(PoisonError::into_inner).into_results())
}

/// Makes the report anew from the results of an earlier run.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let results = BenchResults::read(&args.results)?;
    if args.markdown {
        return console::print(&markdown::tables(&results));
    }
    if args.json {
        return console::print(&Document::new(&results).json()?);
    }
    let at = |path: &Path| path.canonicalize().ok();
    if at(&args.output).is_some_and(|output| at(&args.results) == Some(output)) {
        let shown = args.output.display();
        bail!("{shown}: is what the report is made of; name another file with --output");
    }
    whole_file::write(&args.output, report::html(&results)?.as_bytes())
}

/// Says what came out and writes the report.
fn finish(results: &BenchResults, args: &BenchArgs) -> anyhow::Result<()> {
    let folder = &args.output;
    if args.json {
        console::print(&results.json()?)?;
        return complete(results, folder);
    }
    console::print(&terminal::summary(results))?;
    let completed = complete(results, folder);
    console::print(&format!("written: {}: {RESULTS}, {REPORT}\n", folder.join("").display()))?;
    completed
}

/// Writes the report; an error where something was skipped.
fn complete(results: &BenchResults, folder: &Path) -> anyhow::Result<()> {
    whole_file::write(&folder.join(REPORT), report::html(results)?.as_bytes())?;
    match results.skipped.len() {
        0 => Ok(()),
        skipped => {
            let noun = if skipped == 1 { "matrix or case was" } else { "matrices or cases were" };
            bail!("{skipped} {noun} skipped; {} says why", folder.join(RESULTS).display())
        }
    }
}

#[cfg(test)]
mod tests;
