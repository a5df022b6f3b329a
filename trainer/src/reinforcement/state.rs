//! What goes from iteration to iteration: the policy, the one that it began as, and the weight of
//! their divergence.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Group;
use crate::network::{
    Assessed, AutodiffBackend, Learner, Modalities, ModelFile, NetworkConfig, OptimizerConfig,
    RolloutBatch, RolloutStep,
};
use crate::stages::{CHECKPOINT, StageError};

/// What goes from iteration to iteration.
pub(super) struct State<B: AutodiffBackend> {
    pub(super) learner: Learner<B>,
    reference: Learner<B>,
    pub(super) iterations: u64,
    pub(super) kl_weight: f64,
}

/// What is kept in a model beside its parameters.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// What it was made by.
    reinforcement: String,
    /// Iterations made.
    iterations: u64,
    /// Bits of the weight of the divergence, so that it is read back as it was.
    kl_weight: u64,
}

impl<B: AutodiffBackend> State<B> {
    /// Before the first iteration.
    pub(super) fn begin(
        from: &ModelFile,
        optimizer: OptimizerConfig,
        device: B::Device,
        kl_weight: f64,
    ) -> Self {
        let reference = from.begin(optimizer, device.clone());
        Self { learner: from.begin(optimizer, device), reference, iterations: 0, kl_weight }
    }

    /// Where a checkpoint ended that was made by what `text` says; `what_differs` is asked about
    /// what it was made by instead.
    pub(super) fn resume(
        from: &ModelFile,
        optimizer: OptimizerConfig,
        device: B::Device,
        path: &Path,
        text: &str,
        what_differs: impl FnOnce(&str) -> &'static str,
    ) -> Result<Self, StageError> {
        let kept = ModelFile::read(path)?;
        let other = |what| StageError::Other { path: path.to_owned(), what };
        let state: Kept = serde_json::from_str(&kept.provenance).map_err(|_| other("stage"))?;
        // By its text, which numbers keep better than they do when they are read back.
        if state.reinforcement != text {
            return Err(other(what_differs(&state.reinforcement)));
        }
        Ok(Self {
            learner: kept.go_on(optimizer, device.clone()),
            reference: from.begin(optimizer, device),
            iterations: state.iterations,
            kl_weight: f64::from_bits(state.kl_weight),
        })
    }

    /// Notes what the policy and the reference say of each token that was written; and in nats how
    /// far they are apart where there was a choice, and the entropy of what is structural.
    pub(super) fn assess(&self, groups: &mut [Group<'_>], at_once: usize) -> (f64, f64) {
        let (mut apart, mut entropy) = (Mean::default(), Mean::default());
        for some in groups.chunks_mut(at_once.max(1)) {
            let batch = batch(some.iter());
            let said = [self.learner.assess(&batch), self.reference.assess(&batch)];
            let [own, reference] = said;
            let rows = some.iter_mut().flat_map(|group| &mut group.rollouts);
            for ((rollout, own), reference) in rows.zip(own).zip(reference) {
                let steps = rollout.row.steps.iter_mut().zip(own).zip(reference);
                for ((step, own), reference) in steps {
                    note(step, own, reference, &mut apart, &mut entropy);
                }
            }
        }
        (apart.mean(), entropy.mean())
    }

    /// Writes a model: to go on from, or only to use.
    pub(super) fn keep(
        &self,
        config: &NetworkConfig,
        text: &str,
        folder: &Path,
        name: &str,
    ) -> Result<PathBuf, StageError> {
        let path = folder.join(name);
        let kept = Kept {
            reinforcement: text.to_owned(),
            iterations: self.iterations,
            kl_weight: self.kl_weight.to_bits(),
        };
        let text = serde_json::to_string(&kept)
            .map_err(|error| StageError::Write { path: path.clone(), source: error.into() })?;
        let file = ModelFile::of(&self.learner, config, text, name == CHECKPOINT);
        let written = file.write(&path);
        written.map_err(|error| StageError::not_kept(error, self.iterations))?;
        Ok(path)
    }
}

fn note(
    step: &mut RolloutStep,
    own: Assessed,
    reference: Assessed,
    apart: &mut Mean,
    entropy: &mut Mean,
) {
    let logs = own.log_probabilities;
    if logs.len() > 1 {
        let pairs = logs.iter().zip(&reference.log_probabilities);
        apart.add(pairs.map(|(log, other)| f64::from(log.exp() * (log - other))).sum());
        if step.structural {
            entropy.add(-logs.iter().map(|log| f64::from(log.exp() * log)).sum::<f64>());
        }
    }
    let place = step.legal.iter().position(|id| *id == step.token);
    step.log_probability = place.and_then(|place| logs.get(place)).copied().unwrap_or(0.0);
    step.value = own.value;
    step.reference = reference.log_probabilities;
}

/// What was written for some cases, as a learner takes it.
pub(super) fn batch<'g, 'd: 'g>(groups: impl Iterator<Item = &'g Group<'d>>) -> RolloutBatch {
    let mut batch = RolloutBatch { cases: Vec::new(), rows: Vec::new() };
    for group in groups {
        batch.cases.push((group.inputs.clone(), Modalities::ALL));
        batch.rows.extend(group.rollouts.iter().map(|rollout| rollout.row.clone()));
    }
    batch
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    /// NaN of none.
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}
