//! The results as Markdown tables, as the README has them.

use std::fmt::Write;

use sparserl_core::outcome::Regime;
use sparserl_core::results::{Rival, Spread, ValueSource};

use super::results::{BenchResults, Case};
use super::totals::{self, TaskTotals, ratio};
use crate::matrix_source::MatrixSource;

/// Whether a case is of a kind.
type IsKind = fn(&Case) -> bool;

/// A table for each source of values and kind of matrix: all of them, real ones, generated ones.
/// Under each, every loss against the best.
pub(crate) fn tables(results: &BenchResults) -> String {
    let mut text = String::new();
    for values in [ValueSource::Random, ValueSource::File] {
        let totals = totals::by_task(results);
        let totals: Vec<_> = totals.into_iter().filter(|t| t.values == values).collect();
        if totals.is_empty() {
            continue;
        }
        let kinds: [(&str, IsKind); 3] = [
            ("All matrices", |_| true),
            ("Real matrices", |case| !is_generated(case)),
            ("Generated matrices", is_generated),
        ];
        for (kind, is) in kinds {
            let mut some = totals.clone();
            some.iter_mut().for_each(|totals| totals.cases.retain(|case| is(case)));
            some.retain(|totals| !totals.cases.is_empty());
            if !some.is_empty() {
                let _ = writeln!(text, "{kind}, values: {}\n\n{}", values.name(), table(&some));
            }
        }
        let _ = writeln!(text, "Losses against the best, cold (warm):\n");
        for totals in &totals {
            let _ = writeln!(text, "- {}: {}", totals.task, losses(totals));
        }
        text.push('\n');
    }
    text
}

fn is_generated(case: &Case) -> bool {
    MatrixSource::family_of(&case.matrix.identity.name).is_some()
}

fn table(tasks: &[TaskTotals<'_>]) -> String {
    let mut header = "| task | matrices |".to_owned();
    for regime in Regime::ALL {
        for rival in Rival::ALL {
            let _ = write!(header, " {}, vs {} |", regime.name(), rival.name());
        }
    }
    let columns = header.matches('|').count() - 1;
    let mut text = format!("{header}\n|{}\n", "---|".repeat(columns));
    for totals in tasks {
        let _ = write!(text, "| {} | {} |", totals.task, totals.cases.len());
        for regime in Regime::ALL {
            for rival in Rival::ALL {
                let _ = write!(text, " {} |", cell(totals.spread(regime, rival)));
            }
        }
        text.push('\n');
    }
    text
}

/// The geometric mean and the least.
fn cell(spread: Option<Spread>) -> String {
    let of = |Spread { geomean, least, .. }| format!("{geomean:.2} ({least:.2})");
    spread.map_or_else(|| "–".to_owned(), of)
}

fn losses(totals: &TaskTotals<'_>) -> String {
    let mut losses: Vec<(f64, String)> = Vec::new();
    for case in &totals.cases {
        let [cold, warm] =
            [Regime::Cold, Regime::Warm].map(|regime| ratio(case, regime, Rival::Best));
        let least = cold.into_iter().chain(warm).min_by(f64::total_cmp);
        if let Some(least) = least.filter(|&least| least < 1.0) {
            let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |r| format!("{r:.2}"));
            losses.push((
                least,
                format!("{} {} ({})", case.matrix.identity.name, shown(cold), shown(warm)),
            ));
        }
    }
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    if losses.is_empty() {
        return "none".to_owned();
    }
    losses.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}
