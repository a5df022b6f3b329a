//! What an iteration came to, for the log and for those who watch.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sparserl_core::outcome::Tier;
use sparserl_core::results::geometric_mean;

use super::{Group, Judgement, Judgements, Reward};
use sparserl_onnx_models::speeds::REGIMES;

use crate::dataset::DatasetCase;
use crate::network::{Losses, PolicyLosses};

/// What became of some programs, in shares and means; NaN (in JSON `null`) where there is nothing
/// to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Mean reward of the programs whose outcome is known.
    #[serde(deserialize_with = "number")]
    pub reward: f64,
    /// Share of them that are right.
    #[serde(deserialize_with = "number")]
    pub right: f64,
    /// Share of them of which there is a kernel.
    #[serde(deserialize_with = "number")]
    pub compiled: f64,
    /// Share of all programs whose outcome is not known: they are left out of their groups.
    #[serde(deserialize_with = "number")]
    pub missing: f64,
    /// Different programs of a group, of all of it.
    #[serde(deserialize_with = "number")]
    pub distinct: f64,
    /// Speed of the fastest program of a group ÷ that of the fastest of the dataset: geometric mean
    /// over cases and regimes.
    #[serde(deserialize_with = "number")]
    pub best: f64,
}

/// What an iteration came to: a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Iterations made.
    pub step: u64,
    /// What became of the programs that were learned from.
    #[serde(flatten)]
    pub written: Tally,
    /// Nats of a token by which the policy that wrote the programs differs from the one that
    /// training began from.
    #[serde(deserialize_with = "number")]
    pub kl: f64,
    /// What such a nat costs.
    pub kl_weight: f64,
    /// Nats of the structural tokens of that policy.
    #[serde(deserialize_with = "number")]
    pub entropy: f64,
    /// Means over the steps of this iteration; nothing where nothing was learned.
    pub losses: Option<PolicyLosses>,
    /// What the errors of predicted speeds were in these steps, where they are fitted.
    pub fit: Option<Losses>,
    /// The mean norm of their gradients.
    pub gradient_norm: Option<f32>,
    /// The learning rate.
    pub learning_rate: f64,
    /// Seconds that it took to write programs, to find out what becomes of them, and to learn.
    pub seconds: [f64; 3],
}

/// `null` is NaN.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Tally {
    /// What is to be said of programs and what became of them.
    #[must_use]
    pub fn of(groups: &[Group<'_>], judgements: &Judgements, reward: &Reward) -> Self {
        let all: Vec<&Judgement> = judgements.iter().flatten().flatten().collect();
        let written: usize = groups.iter().map(|group| group.rollouts.len()).sum();
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let of_known = |wanted: fn(&Judgement) -> bool| {
            share(all.iter().filter(|judgement| wanted(judgement)).count(), all.len())
        };
        let sum: f64 = all.iter().map(|judgement| f64::from(reward.of(judgement))).sum();
        let distinct = |group: &Group<'_>| {
            let tokens = |rollout: &super::Rollout| -> Vec<u8> {
                rollout.row.steps.iter().map(|step| step.token).collect()
            };
            group.rollouts.iter().map(tokens).collect::<BTreeSet<_>>().len()
        };
        Self {
            reward: sum / all.len() as f64,
            right: of_known(|judgement| judgement.tier == Tier::Right),
            compiled: of_known(|judgement| judgement.tier != Tier::NotCompiled),
            missing: share(written - all.len(), written),
            distinct: share(groups.iter().map(distinct).sum(), written),
            best: best(groups, judgements),
        }
    }
}

fn best(groups: &[Group<'_>], judgements: &Judgements) -> f64 {
    let behind = |case: &DatasetCase, known: &[Option<Judgement>], regime: usize| {
        let speeds = known.iter().flatten().filter_map(|judgement| judgement.speeds[regime]);
        Some(f64::from(speeds.reduce(f32::max)? - case.best(regime)?))
    };
    let all = groups.iter().zip(judgements).flat_map(|(group, known)| {
        (0..REGIMES.len()).filter_map(|regime| behind(group.case, known, regime))
    });
    geometric_mean(all.map(f64::exp2)).unwrap_or(f64::NAN)
}
