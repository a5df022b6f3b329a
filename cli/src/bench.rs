//! `bench`: how much faster than cuSPARSE the best of several candidates is, on many matrices.
//!
//! ```text
//! source ─► measure (search ─► evaluator ─► figures) ─► results ─► totals ─┬─► terminal
//!                                                                          └─► report (charts)
//! ```
//!
//! A matrix that cannot be read and a case that cannot be measured are noted as skipped, the run goes
//! on, and its exit code is 1. Losses, wrong candidates and cases without a right one are results:
//! they are listed, and the exit code stays 0.

mod charts;
mod evaluator;
mod figures;
mod measure;
mod report;
mod results;
mod source;
mod terminal;
mod totals;
mod whole_file;

use std::fmt::Display;
use std::path::Path;

use anyhow::bail;
use sparserl_core::outcome::Evaluator;

use crate::args::{BenchArgs, ReportArgs};
use crate::console;
use crate::progress::Progress;
use measure::{Bench, steps_per_matrix};
use results::{RESULTS, Results, Settings, Store};
use source::MatrixSource;

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
    let settings =
        Settings { matrices: args.matrices.clone(), tasks: args.tasks(), budget: args.budget() };
    let (evaluator, devices) = evaluator::open(&args.devices)?;
    let store = Store::open(&args.output, Results::new(devices, settings), args.resume)?;
    let print = |line: &str| console::print(&format!("{line}\n"));
    let results = measure(&sources, evaluator, store, true, &print)?;
    finish(&results, &args.output)
}

/// Measures every matrix and task; `shown` says whether progress may be shown.
fn measure<E: Evaluator<Error: Display>>(
    sources: &[MatrixSource],
    evaluator: E,
    store: Store,
    shown: bool,
    print: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Results> {
    let settings = store.results().settings.clone();
    let steps = sources.len() * steps_per_matrix(settings.tasks.len());
    let progress = Progress::new(steps, shown);
    let print = |line: &str| progress.suspend(|| print(line));
    Bench { evaluator, store, settings: &settings, progress: &progress, print: &print }.run(sources)
}

/// Makes the report anew from the results of an earlier run.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let results = Results::read(&args.results)?;
    whole_file::write(&args.output, report::html(&results)?.as_bytes())
}

/// Says what came out and writes the report.
fn finish(results: &Results, folder: &Path) -> anyhow::Result<()> {
    console::print(&terminal::summary(results))?;
    let completed = complete(results, folder);
    console::print(&format!("written: {}: {RESULTS}, {REPORT}\n", folder.join("").display()))?;
    completed
}

/// Writes the report; an error where something was skipped.
fn complete(results: &Results, folder: &Path) -> anyhow::Result<()> {
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
