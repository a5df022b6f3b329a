//! Has a policy write programs, several for each case.

use rayon::prelude::*;
use sparserl_core::decode::{Decoding, PolicyError, Trajectory, sample_batch};
use sparserl_core::language::{Derivation, Mask, Program, Slot, Token};
use sparserl_core::random::SplitMix64;
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::Inputs;
use sparserl_onnx_models::programs::most_tokens;

use super::{Cases, DecodingMode, MatrixError, Request};
use crate::dataset::DatasetCase;
use crate::network::{NetworkPolicy, Processor, RolloutRow, RolloutStep};

/// What a policy wrote for a case.
#[derive(Clone, Debug)]
pub struct Group<'d> {
    /// The case.
    pub case: &'d DatasetCase,
    /// What the policy was given.
    pub inputs: Inputs,
    /// What it wrote.
    pub rollouts: Vec<Rollout>,
}

/// A program as a policy wrote it.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// Its tokens, of which nothing is known yet but what was offered, and whether they are
    /// structural.
    pub row: RolloutRow,
    /// The program; `None` when it is none.
    pub program: Option<Program>,
}

/// Nothing can be written for a case.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The mask needs a matrix that cannot be made again.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

/// Has a policy write `count` programs for each of some cases of the dataset, by their places. The
/// same for the same seed, however many cores there are.
///
/// Whatever networks are trained on, programs are written on the processor, several cases at a
/// time: steps of a single token are too small to keep a GPU at work.
///
/// # Errors
/// When the policy fails, or a matrix cannot be made again.
pub fn write_programs<'d>(
    policy: &NetworkPolicy<Processor>,
    cases: &Cases<'d>,
    places: &[usize],
    mode: DecodingMode,
    count: usize,
    seed: u64,
) -> Result<Vec<Group<'d>>, RolloutError> {
    let dataset = cases.dataset();
    let write = |(number, &place): (usize, &usize)| {
        let case = dataset.cases.get(place)?;
        let inputs = dataset.inputs(case, policy.scaling())?;
        let first = (number * count) as u64;
        let seeds = (first..first + count as u64).map(|i| SplitMix64::after(seed, i).bits());
        let seeds: Vec<u64> = seeds.collect();
        let written = write_for(policy, cases, case, &inputs, mode, &seeds);
        Some(written.map(|rollouts| Group { case, inputs, rollouts }))
    };
    places.par_iter().enumerate().filter_map(write).collect()
}

fn write_for(
    policy: &NetworkPolicy<Processor>,
    cases: &Cases<'_>,
    case: &DatasetCase,
    inputs: &Inputs,
    mode: DecodingMode,
    seeds: &[u64],
) -> Result<Vec<Rollout>, RolloutError> {
    let task = case.task;
    let mut reading = policy.read_inputs(inputs);
    let trajectories = match mode {
        DecodingMode::Masked => {
            let mask = Mask::legal(cases.stats(case)?, task);
            sample_batch(&mut *reading, Decoding::Masked(mask), 1.0, seeds)?
        }
        DecodingMode::Free => {
            let decoding = Decoding::Free { task, most_tokens: most_tokens() };
            sample_batch(&mut *reading, decoding, 1.0, seeds)?
        }
        DecodingMode::Measured => {
            let programs = case.tokens_of(&case.programs);
            let decoding = Decoding::Among { task, programs: &programs };
            sample_batch(&mut *reading, decoding, 1.0, seeds)?
        }
    };
    Ok(trajectories.into_iter().map(|trajectory| Rollout::of(task, trajectory)).collect())
}

impl<'d> Group<'d> {
    /// What is to be found out of its programs; of what is no program there is nothing to ask.
    #[must_use]
    pub fn request(&self) -> Request<'d> {
        let programs = self.rollouts.iter().filter_map(|rollout| rollout.program.clone());
        Request { case: self.case, programs: programs.collect() }
    }
}

impl Rollout {
    fn of(task: Task, trajectory: Trajectory) -> Self {
        let tokens: Vec<Token> = trajectory.tokens().collect();
        let is_structural = structural(task, &tokens);
        // Every token of the vocabulary has an id, and ids fit.
        let id = |token: &Token| token.id().map(|id| id as u8);
        let steps = trajectory.steps.iter().zip(is_structural).filter_map(|(step, structural)| {
            let (token, legal) = (id(&step.token)?, step.legal.iter().filter_map(id).collect());
            Some(RolloutStep { token, legal, structural, ..RolloutStep::default() })
        });
        Self { row: RolloutRow { steps: steps.collect() }, program: trajectory.end.ok() }
    }
}

/// For each token, whether it decides about the structure of its program: what becomes of a set of
/// rows (kept, sorted or split), and in which layout they are. What the language does not allow
/// decides nothing.
#[must_use]
pub fn structural(task: Task, tokens: &[Token]) -> Vec<bool> {
    let mut derivation = Derivation::start(Mask::free(task));
    let mut goes_on = true;
    let mut decides = |&token: &Token| {
        let slot = derivation.open().last().copied();
        goes_on = goes_on && derivation.push(token).is_ok();
        goes_on && matches!(slot, Some(Slot::Rows { .. } | Slot::Layout(_)))
    };
    tokens.iter().map(&mut decides).collect()
}
