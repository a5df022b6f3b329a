//! How well programs are chosen, on matrices whose families nobody has learned from.
//!
//! ```text
//! matrix, task ─► each Chooser ─► picks ─┐
//!                  search ─► oracle ─────┴─► all timed in turn once more ─► CaseResult ─► Table
//! ```
//!
//! The oracle is the fastest program of a [search](Contest) that starts from all picks. What choosers
//! and oracle are compared by is measured afterwards, all in turn: who won because a sample was
//! lucky gains nothing by it. A program that several choosers pick is measured once.

mod contest;
mod experience;
mod learned;
mod nearest;
mod portfolio;
mod replay;
mod result;
mod table;
#[cfg(test)]
mod tests;
mod trees;

pub use contest::Contest;
pub use experience::{Experience, PastCase};
pub use learned::{LearnedChooser, Picking};
pub use nearest::NearestWinners;
pub use portfolio::FixedPortfolio;
pub use replay::{ReplayError, replay};
pub use result::{CaseResult, Picks, ResultError, TimedProgram};
pub use table::Table;
pub use trees::{ExtraTrees, TreesError};

use sparserl_core::decode::{CostRanker, Policy as _, PolicyError, PolicyInput, diverse_search};
use sparserl_core::language::{Mask, Program};

/// Chooses programs for a matrix and task without measuring anything.
pub trait Chooser: Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &str;

    /// At most `count` programs, each offered by the mask and none twice, what it finds best first.
    ///
    /// # Errors
    /// When it fails.
    fn choose(&self, input: &PolicyInput<'_>, count: usize) -> Result<Vec<Program>, PolicyError>;
}

/// Chooses what the cost model finds fastest, of different layouts and mappings.
#[derive(Clone, Copy, Debug)]
pub struct CostChooser;

impl Chooser for CostChooser {
    fn name(&self) -> &str {
        "cost model"
    }

    fn choose(&self, input: &PolicyInput<'_>, count: usize) -> Result<Vec<Program>, PolicyError> {
        let mut ranker = CostRanker.read(input)?;
        let found = diverse_search(&mut *ranker, Mask::legal(&input.stats, input.task), count)?;
        Ok(found.into_iter().map(|hypothesis| hypothesis.program).collect())
    }
}
