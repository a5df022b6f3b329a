use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{
    ConditionedPolicy, CostRanker, Diverse, Hypothesis, Policy as _, PolicyError, PolicyInput,
    beam_search,
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

/// What a chooser offers for one matrix, task and objective. However often it is asked, the policy
/// runs once: when it is asked first.
pub trait Choices {
    /// At most `count` programs, in the order that [`Chooser::choose`] gives them.
    ///
    /// # Errors
    /// When the chooser fails.
    fn first(&mut self, count: usize) -> Result<Vec<Choice>, PolicyError>;
}

/// Chooses what the cost model finds fastest, of different layouts and mappings; scores are
/// log-probabilities of the [`CostRanker`]. The cost model knows one time of a program, so that all
/// objectives are the same to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostChooser;

impl CostChooser {
    /// What it offers for an input.
    #[must_use]
    pub fn choices<'a>(self, input: &'a PolicyInput<'a>) -> CostChoices<'a> {
        CostChoices { input, searched: None }
    }
}

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
        self.choices(input).first(count)
    }
}

/// What a [`CostChooser`] offers for one input.
pub struct CostChoices<'a> {
    input: &'a PolicyInput<'a>,
    searched: Option<(Box<dyn ConditionedPolicy + 'a>, Diverse)>,
}

impl Choices for CostChoices<'_> {
    fn first(&mut self, count: usize) -> Result<Vec<Choice>, PolicyError> {
        let mask = Mask::legal(&self.input.stats, self.input.task);
        let (ranker, diverse) = match &mut self.searched {
            Some(searched) => searched,
            none => {
                let mut ranker = CostRanker.read(self.input)?;
                let diverse = Diverse::search(&mut *ranker, mask)?;
                none.insert((ranker, diverse))
            }
        };
        let mut found = diverse.pick(count);
        if found.len() < count {
            // Too few that differ: the likeliest others fill up.
            let others = beam_search(&mut **ranker, mask, 2 * count)?;
            let is_new = |c: &Hypothesis| found.iter().all(|known| known.program != c.program);
            let others: Vec<_> = others.into_iter().filter(is_new).collect();
            found.extend(others);
            found.truncate(count);
            found.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        }
        Ok(found.into_iter().map(Choice::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::sync::Arc;

    use super::*;
    use crate::matrix::generate;
    use crate::structure::MatrixStats;
    use crate::target::Target;
    use crate::task::{Dtype, Operation, Task};

    #[test]
    fn an_x_that_the_cache_does_not_hold_is_read_by_panels_where_a_block_has_room_for_them() {
        let task = Task::new(Operation::SpMV, Dtype::F32);
        let matrix = generate::uniform(200_000, 200_000, 5, 1).cast::<f32>().unwrap();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let first = |target| {
            let input = PolicyInput::new(stats.clone(), task, target);
            let choices = CostChooser.choose(&input, Objective::Cold, 1).unwrap();
            choices[0].program.to_string()
        };
        assert!(!first(Target::H200).contains("binned"));
        let small_cache = Target { l2_bytes: 64 << 10, ..Target::H200 };
        assert!(first(small_cache).contains("binned shared="));
        let no_room = Target { shared_memory_bytes: 32 << 10, ..small_cache };
        assert!(!first(no_room).contains("binned"));
    }

    #[test]
    fn what_is_offered_depends_on_nothing_that_was_asked_before() {
        let task = Task::new(Operation::SpMV, Dtype::F32);
        // Of a small matrix few programs differ, so that others fill up.
        for matrix in [generate::banded(3, 1, 1), generate::rmat(8, 8, 1)] {
            let matrix = matrix.cast::<f32>().unwrap();
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            let input = PolicyInput::new(stats, task, Target::H200);
            let mut choices = CostChooser.choices(&input);
            for count in [1, 8, 3, 200, 1] {
                let alone = CostChooser.choose(&input, Objective::Cold, count).unwrap();
                assert!(!alone.is_empty() && alone.len() <= count);
                assert_eq!(choices.first(count).unwrap(), alone, "{count}");
            }
        }
    }
}
