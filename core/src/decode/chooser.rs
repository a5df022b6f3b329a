use alloc::vec::Vec;

use super::{
    CostRanker, Hypothesis, Policy as _, PolicyError, PolicyInput, beam_search, diverse_search,
};
use crate::language::{Mask, Program};
use crate::timing::Objective;

/// A program that is offered for a matrix and task.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The program.
    pub program: Program,
    /// How good the chooser finds it, higher being better; comparable among its choices for one
    /// matrix and task only.
    pub score: f64,
}

impl From<Hypothesis> for Choice {
    /// Scored by how likely it is.
    fn from(Hypothesis { program, log_probability }: Hypothesis) -> Self {
        Self { program, score: log_probability }
    }
}

/// Chooses programs for a matrix and task without measuring anything.
pub trait Chooser: Send + Sync {
    /// What it is called in results.
    fn name(&self) -> &str;

    /// At most `count` programs, each offered by the mask and none twice, in the order in which
    /// they should be measured: the first is what it finds best for the objective, a later one may
    /// be there because it differs from those before it.
    ///
    /// # Errors
    /// When it fails.
    fn choose(
        &self,
        input: &PolicyInput<'_>,
        objective: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError>;
}

/// Chooses what the cost model finds fastest, of different layouts and mappings; scores are
/// log-probabilities of the [`CostRanker`]. The cost model knows one time of a program, so that all
/// objectives are the same to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostChooser;

impl Chooser for CostChooser {
    fn name(&self) -> &str {
        "cost model"
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        _: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let mut ranker = CostRanker.read(input)?;
        let mask = Mask::legal(&input.stats, input.task);
        let mut found = diverse_search(&mut *ranker, mask, count)?;
        if found.len() < count {
            // Too few that differ: the likeliest others fill up.
            let others = beam_search(&mut *ranker, mask, 2 * count)?;
            let is_new = |c: &Hypothesis| found.iter().all(|known| known.program != c.program);
            let others: Vec<_> = others.into_iter().filter(is_new).collect();
            found.extend(others);
            found.truncate(count);
            found.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        }
        Ok(found.into_iter().map(Choice::from).collect())
    }
}
