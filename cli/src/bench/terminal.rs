//! What a benchmark says on a terminal.

use std::fmt::Write;

use sparserl_core::outcome::Regime;
use sparserl_core::results::{Figures, Rival};

use super::results::{BenchResults, Case};
use super::totals::{self, TaskTotals, ratio};
use crate::text::{table, time, times};

/// A case in one line.
pub(crate) fn case_line(case: &Case) -> String {
    let mut line = format!("{} {}: ", case.matrix.identity.name, case.task);
    let Some(chosen) = &case.chosen else {
        let _ = write!(line, "no right candidate ({})", totals::outcomes_text([case]));
        return line;
    };
    let start = line.len();
    for &regime in chosen.by.regimes() {
        let Some(figures) = chosen.figures(regime) else { continue };
        line.push_str(if line.len() > start { "; " } else { "" });
        compare(&mut line, regime, figures);
    }
    line
}

/// Adds a time and what it is against the opponents'.
fn compare(line: &mut String, regime: Regime, figures: &Figures) {
    let _ = write!(line, "{} {}", time(figures.seconds), regime.name());
    for rival in Rival::ALL {
        match figures.against(rival) {
            Some(found) => {
                let name = match rival {
                    Rival::Default => "DEFAULT".to_owned(),
                    Rival::Best => format!("best ({})", found.algorithm),
                };
                let loss = if found.ratio < 1.0 { " LOSS" } else { "" };
                let _ = write!(line, ", {} vs {name}{loss}", times(found.ratio));
            }
            None => {
                let _ = write!(line, ", no {}", rival.name());
            }
        }
    }
}

/// The table at the end, and under it what a mean would hide.
pub(crate) fn summary(results: &BenchResults) -> String {
    let tasks = totals::by_task(results);
    let mut header = vec!["task".to_owned(), "cases".to_owned()];
    for regime in Regime::ALL {
        for rival in Rival::ALL {
            header.push(format!("{}, vs {}", regime.name(), rival.name()));
        }
    }
    header.push("losses".to_owned());
    let rows = tasks.iter().map(|totals| {
        let mut row = vec![totals.name(), totals.cases.len().to_string()];
        for regime in Regime::ALL {
            row.extend(Rival::ALL.map(|rival| spread(totals, regime, rival)));
        }
        row.push(totals.losses().len().to_string());
        row
    });
    let mut text = String::new();
    if !tasks.is_empty() {
        let _ = writeln!(text, "\n{}", table(header, rows));
        text.push_str(
            "Time of the opponent over ours: geometric mean, and the least of all cases.\n",
        );
        text.push_str(
            "DEFAULT is what cuSPARSE does unasked, without analysis; best is the quickest of all opponents, \
             after analysis.\n",
        );
        let _ = writeln!(text, "Candidates: {}.", totals::outcomes_text(&results.cases));
    }
    for totals in &tasks {
        for case in totals.losses() {
            let _ = writeln!(
                text,
                "loss: {} {}: {}",
                case.matrix.identity.name,
                case.task,
                ratios(case)
            );
        }
        for case in totals.failures() {
            let ends = totals::outcomes_text([case]);
            let _ = writeln!(
                text,
                "no right candidate: {} {}: {ends}",
                case.matrix.identity.name, case.task
            );
        }
        for case in totals.unrivalled() {
            let _ = writeln!(text, "no baseline ran: {} {}", case.matrix.identity.name, case.task);
        }
    }
    text
}

/// `2.10× (least 0.91×)`, with the number of cases where it is not all of them.
fn spread(totals: &TaskTotals<'_>, regime: Regime, rival: Rival) -> String {
    let Some(spread) = totals.spread(regime, rival) else { return "–".to_owned() };
    let mut text = format!("{}, least {}", times(spread.geomean), times(spread.least));
    if spread.matrices != totals.cases.len() {
        let _ = write!(text, " ({} of {})", spread.matrices, totals.cases.len());
    }
    text
}

/// The ratios of a case, regime by regime.
pub(crate) fn ratios(case: &Case) -> String {
    let mut texts = Vec::new();
    for regime in Regime::ALL {
        for rival in Rival::ALL {
            if let Some(ratio) = ratio(case, regime, rival) {
                texts.push(format!("{} vs {} {}", times(ratio), rival.name(), regime.name()));
            }
        }
    }
    texts.join(", ")
}
