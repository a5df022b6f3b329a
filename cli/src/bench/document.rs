//! The totals of a benchmark, for programs.

use std::collections::BTreeSet;

use serde::Serialize;
use sparserl_core::results::{ByRegime, ByRival, Counts, Spread, ValueSource};
use sparserl_core::task::Task;

use super::results::{BenchResults, Case, Skipped};
use super::totals::{self, TaskTotals};
use crate::text;

/// What `report --json` prints.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    started: &'a str,
    updated: &'a str,
    /// Names of the GPUs.
    devices: BTreeSet<&'a str>,
    /// Names and versions of the opponents' libraries.
    libraries: BTreeSet<&'a str>,
    /// Of each source of values and task: all matrices first, then each kind of them.
    totals: Vec<Totals<'a>>,
    skipped: &'a [Skipped],
}

#[derive(Serialize)]
struct Totals<'a> {
    task: Task,
    values: ValueSource,
    /// `all`, `real` or `generated: FAMILY`.
    matrices: String,
    cases: usize,
    /// What became of the candidates.
    counts: Counts,
    /// The opponent's time over ours.
    speedups: ByRegime<ByRival<Option<Spread>>>,
    /// Matrices without a right candidate.
    failures: Vec<&'a str>,
}

impl<'a> Document<'a> {
    /// Of results.
    pub(crate) fn new(results: &'a BenchResults) -> Self {
        let baselines = results.cases.iter().flat_map(|case| &case.opponents.baselines);
        let of_task = |totals: TaskTotals<'a>| {
            let kinds = totals.by_kind();
            let all = ("all".to_owned(), totals);
            [all].into_iter().chain(kinds).map(Totals::new).collect::<Vec<_>>()
        };
        Self {
            started: &results.started,
            updated: &results.updated,
            devices: results.devices.iter().map(|device| device.name.as_str()).collect(),
            libraries: baselines.map(|baseline| baseline.library.as_str()).collect(),
            totals: totals::by_task(results).into_iter().flat_map(of_task).collect(),
            skipped: &results.skipped,
        }
    }

    /// The text, with a line break at its end.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        text::json(self)
    }
}

impl<'a> Totals<'a> {
    fn new((matrices, totals): (String, TaskTotals<'a>)) -> Self {
        let outcomes = totals.cases.iter().flat_map(|case| &case.candidates);
        let name = |case: &'a Case| case.matrix.identity.name.as_str();
        Self {
            task: totals.task,
            values: totals.values,
            matrices,
            cases: totals.cases.len(),
            counts: Counts::of(outcomes.map(|candidate| &candidate.outcome)),
            speedups: ByRegime::of(|regime| ByRival::of(|rival| totals.spread(regime, rival))),
            failures: totals.failures().into_iter().map(name).collect(),
        }
    }
}
