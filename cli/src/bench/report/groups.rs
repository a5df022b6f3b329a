//! The figures of kinds of matrices apart: real ones, and each generated family.

use std::collections::BTreeMap;

use maud::{Markup, html};
use sparserl_core::outcome::Regime;
use sparserl_core::results::Rival;

use super::{optional, ratio_text};
use crate::bench::results::Case;
use crate::bench::source::MatrixSource;
use crate::bench::totals::TaskTotals;

/// A table of each task's kinds.
pub(super) fn groups(tasks: &[TaskTotals<'_>]) -> Markup {
    html! {
        p { "Geometric means of the ratios, and the least of them. The values that were multiplied stand "
            "with the task where they are the file's own; else they are drawn at random." }
        div.wide { table {
            thead {
                tr {
                    th.words rowspan="2" { "Task" }
                    th.words rowspan="2" { "Matrices" }
                    th rowspan="2" { "Cases" }
                    @for rival in [Rival::Best, Rival::Default] { @for regime in Regime::ALL {
                        th colspan="2" { (regime.name()) " vs " (rival.name()) }
                    } }
                }
                tr { @for _ in 0..2 * Regime::ALL.len() { th { "mean" } th { "least" } } }
            }
            tbody { @for totals in tasks {
                @let groups = of(totals);
                @for (index, (name, group)) in groups.iter().enumerate() { tr {
                    @if index == 0 { td.left rowspan=(groups.len()) { (totals.name()) } }
                    td.left { (name) }
                    td { (group.cases.len()) }
                    @for rival in [Rival::Best, Rival::Default] { @for regime in Regime::ALL {
                        @let spread = group.spread(regime, rival);
                        td { (optional(spread.as_ref(), |spread| ratio_text(spread.geomean))) }
                        td { (optional(spread.as_ref(), |spread| ratio_text(spread.least))) }
                    } }
                } }
            } }
        } }
    }
}

/// The cases of a task by kind: real matrices first.
fn of<'a>(totals: &TaskTotals<'a>) -> Vec<(String, TaskTotals<'a>)> {
    let mut kinds: BTreeMap<Option<String>, Vec<&'a Case>> = BTreeMap::new();
    for &case in &totals.cases {
        kinds.entry(family(&case.matrix.name)).or_default().push(case);
    }
    let named = |(family, cases): (Option<String>, _)| {
        let name =
            family.map_or_else(|| "real".to_owned(), |family| format!("generated: {family}"));
        (name, TaskTotals { cases, ..totals.clone() })
    };
    kinds.into_iter().map(named).collect()
}

/// The family of a generated matrix.
fn family(name: &str) -> Option<String> {
    let is_generated = MatrixSource::is_family(name);
    is_generated.then(|| name.split(':').next().unwrap_or(name).to_owned())
}
