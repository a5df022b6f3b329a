//! Runs an experiment without times, by an evaluator that knows only what is right.

use std::convert::Infallible;
use std::time::Duration;

use sparserl_core::kernel::NoCompiler;
use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::outcome::Evaluator;
use sparserl_core::pipeline::{JudgeError, Maker};
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_core::with_scalar;

use super::{
    CollectError, Collected, Experiment, Progress, Stopped, dtypes, for_each_task, held_in, usable,
};
use crate::corpus::{Recipe, Recipes};
use crate::shards::Shards;

/// Checking ends early.
#[derive(Debug, thiserror::Error)]
pub enum CheckError<E> {
    /// Nothing can be said of a program, and it is not the program's fault.
    #[error("{task} on {recipe}: {source}")]
    Evaluator {
        /// The text of the matrix's recipe.
        recipe: String,
        /// What was computed.
        task: Task,
        /// The reason.
        source: JudgeError<Infallible, E>,
    },
    /// Anything else.
    #[error(transparent)]
    Other(#[from] CollectError<Infallible, Infallible>),
}

/// Runs an experiment with an evaluator that says what is right, such as the emulator: there is no
/// reference to be timed, and nothing is recorded. Takes shards until there are none or `go_on`
/// says no; what is begun is finished.
///
/// # Errors
/// When something other than a program fails.
pub fn check<X: Experiment, E: Evaluator<Code: Clone + Send + Sync, Cuda: Sync>>(
    experiment: &X,
    (recipes, tasks): (&Recipes<'_>, &[Task]),
    target: Target,
    evaluator: &mut E,
    shards: &mut Shards,
    go_on: impl Fn() -> bool,
    mut observe: impl FnMut(&Progress<'_>),
) -> Result<Collected, CheckError<E::Error>> {
    let mut collected = Collected::default();
    while go_on()
        && let Some(claim) = shards.claim().map_err(CollectError::from)?
    {
        let shard = claim.number();
        let Some(recipe) = recipes.recipe(shard) else { break };
        let (place, seed) = ((shard, &recipe), recipes.seed(shard));
        let mut runner =
            ExperimentRunner { experiment, tasks, target, evaluator: &mut *evaluator, collected };
        let matrix = usable(&recipe, recipes.real())
            .map_err(|source| CollectError::Real { index: shard, source })?;
        if let Some(matrix) = matrix {
            for dtype in dtypes(tasks) {
                with_scalar!(dtype, T => {
                    if let Some(matrix) = held_in::<T>(&matrix) {
                        runner.run(place, &matrix, seed)?;
                    }
                });
            }
        }
        collected = runner.collected;
        collected.matrices += 1;
        claim.finish().map_err(CollectError::from)?;
        observe(&Progress { shard, recipe: &recipe, collected });
    }
    Ok(collected)
}

/// Runs an experiment on one matrix after the other.
struct ExperimentRunner<'a, X, E> {
    experiment: &'a X,
    tasks: &'a [Task],
    target: Target,
    evaluator: &'a mut E,
    collected: Collected,
}

impl<X: Experiment, E: Evaluator<Code: Clone + Send + Sync, Cuda: Sync>>
    ExperimentRunner<'_, X, E>
{
    /// Runs the experiment on all tasks whose matrix is of this type.
    fn run<T: Scalar>(
        &mut self,
        place: (u64, &Recipe),
        matrix: &Csr<T>,
        seed: u64,
    ) -> Result<(), CheckError<E::Error>> {
        let Self { experiment, tasks, target, evaluator, collected } = self;
        for_each_task(matrix, tasks, *target, |input| {
            let mut failure = None;
            let mut measure = |programs: &[Program]| {
                // Whoever says what is right needs no code.
                let maker =
                    Maker::new(matrix.view(), None::<&NoCompiler<E::Code>>, &|| Duration::ZERO);
                let judged = maker.judge(programs, &mut **evaluator);
                let evaluation = judged.map_err(|error| match error {
                    JudgeError::Evaluator(error) if E::is_unverifiable(&error) => {
                        Stopped::Unverifiable
                    }
                    error => {
                        failure = Some(error);
                        Stopped::Over
                    }
                })?;
                collected.programs += programs.len() as u64;
                let right = evaluation.outcomes.iter().filter(|outcome| outcome.is_right());
                collected.right += right.count() as u64;
                Ok(evaluation.outcomes)
            };
            let done = experiment.run(place, input, seed, &mut measure);
            if let Some(source) = failure {
                let ((_, recipe), task) = (place, input.task);
                return Err(CheckError::Evaluator { recipe: recipe.to_string(), task, source });
            }
            match done {
                Ok(()) | Err(Stopped::Over | Stopped::Unverifiable) => Ok(()),
                Err(Stopped::Policy(error)) => Err(CollectError::from(error).into()),
                Err(Stopped::Write { path, source }) => {
                    Err(CollectError::Write { path, source }.into())
                }
            }
        })
    }
}
