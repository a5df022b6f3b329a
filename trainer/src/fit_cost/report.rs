//! What a fit came to.

use std::collections::BTreeSet;
use std::fmt;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::{Deserialize, Serialize};
use sparserl_core::layout::CostConstants;
use sparserl_core::outcome::Regime;

use super::score::{CaseScore, Scores};
use super::terms::{CaseTerms, Terms};
use super::{fit, held_out};

/// Constants, what they were fitted to, and how well they rank programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the recordings' folder.
    pub recordings: String,
    /// Matrices.
    pub matrices: usize,
    /// Programs that were measured, each once for a matrix, task and GPU.
    pub programs: usize,
    /// The constants that the fit began with.
    pub present: CostConstants,
    /// The constants that fit all cases best.
    pub fitted: CostConstants,
    /// Scores by regime and task; for each regime, after its tasks, of all of them together.
    pub scores: Vec<TaskScores>,
}

/// Scores of the cases of one task and regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskScores {
    /// How programs were timed: `cold` or `warm`.
    pub regime: String,
    /// What was computed; absent for all tasks together.
    pub task: Option<String>,
    /// Scores with the constants that the fit began with.
    pub present: Scores,
    /// Scores with constants that were fitted without the families of a case's matrix.
    pub held_out: Scores,
    /// Scores with the constants that were fitted to these very cases.
    pub fitted: Scores,
}

impl Report {
    /// Fits to all, and to all but each family. `fitted` is told how many of these fits are done,
    /// and of how many.
    #[must_use]
    pub fn new(
        recordings: String,
        terms: &Terms,
        present: CostConstants,
        fitted: impl Fn(usize, usize) + Sync,
    ) -> Self {
        let cases: Vec<&CaseTerms> = terms.cases.iter().collect();
        let to_all = fit(&cases, &present);
        let with = |constants: &CostConstants| -> Vec<(&CaseTerms, CaseScore)> {
            cases.iter().map(|&case| (case, CaseScore::of(case, constants))).collect()
        };
        let scored = [with(&present), held_out(&cases, &present, fitted), with(&to_all)];
        let tasks: BTreeSet<String> = cases.iter().map(|case| case.task.to_string()).collect();
        let mut scores = Vec::new();
        for regime in Regime::ALL {
            for task in tasks.iter().map(Some).chain([None]) {
                let [present, held_out, fitted] = scored.each_ref().map(|scored| {
                    let of_task = scored.iter().filter(|(case, _)| {
                        case.regime == regime
                            && task.is_none_or(|task| case.task.to_string() == *task)
                    });
                    Scores::of(of_task.map(|(_, score)| score))
                });
                let (Some(present), Some(held_out), Some(fitted)) = (present, held_out, fitted)
                else {
                    continue;
                };
                let (regime, task) = (regime.name().to_owned(), task.cloned());
                scores.push(TaskScores { regime, task, present, held_out, fitted });
            }
        }
        let (matrices, programs) = (terms.matrices, terms.programs);
        Self { recordings, matrices, programs, present, fitted: to_all, scores }
    }

    fn constants(&self) -> Table {
        let rows = CostConstants::NAMES.iter().zip(self.present.to_array());
        let rows = rows.zip(self.fitted.to_array()).map(|((name, present), fitted)| {
            let change = 100.0 * (fitted / present - 1.0);
            [(*name).to_owned(), number(present), number(fitted), format!("{change:+.0} %")]
        });
        table(["constant", "present", "fitted", "change"], rows)
    }

    fn scores(&self) -> Table {
        let rows = self.scores.iter().map(|scores| {
            let TaskScores { regime, task, present, held_out, fitted: _ } = scores;
            let both = |value: fn(&Scores) -> Option<f64>, digits: usize| {
                let [present, held_out] = [present, held_out].map(|scores| {
                    value(scores).map_or("–".to_owned(), |value| format!("{value:.digits$}"))
                });
                format!("{present} → {held_out}")
            };
            [
                format!("{regime}, {}", task.as_deref().unwrap_or("all")),
                present.cases.to_string(),
                both(|scores| Some(scores.objective), 5),
                both(|scores| Some(scores.first_pick), 3),
                both(|scores| Some(scores.least_first_pick), 3),
                both(|scores| scores.rank_correlation, 3),
            ]
        });
        table(["regime, task", "cases", "objective", "first pick", "least", "Spearman"], rows)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { recordings, matrices, programs, .. } = self;
        writeln!(f, "{recordings}: {programs} programs on {matrices} matrices")?;
        writeln!(f, "{}", self.constants())?;
        writeln!(f, "Present → held out: fitted without the families of a case's matrix.")?;
        write!(f, "{}", self.scores())
    }
}

fn number(constant: f64) -> String {
    match constant {
        0.01..1e4 => format!("{constant:.2}"),
        _ => format!("{constant:.2e}"),
    }
}

/// A table of numbers, but for the first column, which names the rows.
fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
