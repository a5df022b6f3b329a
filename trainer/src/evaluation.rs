//! How well programs are chosen, on matrices whose families nobody has learned from.
//!
//! ```text
//! matrix, task ─► each Chooser ─► picks for each regime ─┐
//!                  search ─► oracle of each regime ──────┴─► all timed in turn once more ─► CaseResult
//!                                                                                              └─► Table
//! ```
//!
//! The oracle of a regime is the fastest program of a [search](Contest) that starts from all picks,
//! and from the fastest of what was recorded of the matrix before. What choosers and oracle are
//! compared by is measured afterwards, all in turn: who won because a sample was lucky gains
//! nothing by it. A program that several choosers pick is measured once.
//!
//! Where programs of a dataset are chosen from, it is known, too, how good the speeds are that are
//! predicted of all of them:
//!
//! ```text
//! replay ─► Replayed ─► PredictedCase ─► Calibration
//! ```
//!
//! How often what a policy writes is right is another question, which needs no times:
//!
//! ```text
//! matrix, task ─► Sampling: each policy, masked and free ─► judged, each program once
//!                                                 └─► SampledCase ─► SampledTable (pass@k)
//! ```

mod archived;
mod calibration;
mod contest;
mod differences;
mod experience;
mod nearest;
mod portfolio;
mod ratios;
mod replay;
mod result;
mod sampled;
mod sampling;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod trees;

pub use archived::{ARCHIVED, archive_cases, read_archived};
pub use calibration::{
    Calibration, CalibrationTable, Errors, PredictedCase, PredictedProgram, PredictedSpeed,
};
pub use contest::{Contest, Contestants};
pub use differences::{Difference, Ratio};
pub use experience::{Experience, PastCase};
pub use nearest::NearestWinners;
pub use portfolio::FixedPortfolio;
pub use replay::{COST_MODEL, ReplayError, Replayed, likeliest, replay};
pub use result::{CaseResult, Oracle, Picks, ResultError, TimedProgram, read_cases};
pub use sampled::{Sampled, SampledCase, SampledRow, SampledTable, WhichTokens};
pub use sampling::{NamedPolicy, SIDE_BY_SIDE, Sampling};
pub use table::Table;
pub use trees::{ExtraTrees, TreesError};

use sparserl_core::decode::Choice;
use sparserl_core::language::Program;
use sparserl_core::outcome::{Objective, Regime};

/// The regimes that choosers are compared in, each as an objective of its own.
pub const ONE_REGIME: [(Objective, Regime); 2] =
    [(Objective::Cold, Regime::Cold), (Objective::Warm, Regime::Warm)];

/// Programs whose order is all that is known of them.
fn in_order(programs: impl IntoIterator<Item = Program>) -> Vec<Choice> {
    let places = (0_u32..).map(|place| -f64::from(place));
    programs.into_iter().zip(places).map(|(program, score)| Choice { program, score }).collect()
}
