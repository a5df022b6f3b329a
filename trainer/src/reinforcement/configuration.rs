//! How a policy is improved, as TOML says it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{KlConfig, Reward};
use crate::configuration::{ConfigurationError, read_checked};
use crate::corpus::Split;
use crate::network::{LossWeights, OptimizerConfig};
use crate::stages::MOST_OF_BATCH;

/// How a policy is improved by what becomes of the programs that it writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReinforcementConfig {
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Rounds of writing programs, judging them and learning from that.
    pub iterations: u64,
    /// Which matrices are trained on.
    pub split: Split,
    /// At most so many matrices are trained on, a part of those of any larger number; all of them
    /// without.
    #[serde(default)]
    pub matrices: Option<usize>,
    /// Matrices with more entries are passed over: all others are held in memory once they were
    /// met.
    #[serde(default)]
    pub largest_nnz: Option<u64>,
    /// What is made of rewards.
    pub algorithm: Algorithm,
    /// Which programs can be written.
    pub decoding: DecodingMode,
    /// What programs are worth.
    pub reward: Reward,
    /// Cases of an iteration.
    pub cases: usize,
    /// Programs that are written for each: a group.
    pub rollouts: usize,
    /// How often each program is learned from.
    #[serde(default = "epochs")]
    pub epochs: usize,
    /// Cases that are learned from at once.
    pub minibatch: usize,
    /// The learning rate after the warm-up.
    pub learning_rate: f64,
    /// Iterations in which the learning rate rises from 0.
    #[serde(default)]
    pub warm_up: u64,
    /// How far the policy goes in an iteration.
    #[serde(default)]
    pub clip: Clip,
    /// λ of generalised advantage estimation: 1 trusts rewards alone, 0 the critic.
    #[serde(default = "lambda")]
    pub lambda: f64,
    /// How much the critic's error counts, where there is a critic.
    #[serde(default = "value_weight")]
    pub value_weight: f64,
    /// How much the entropy of structural tokens is worth.
    #[serde(default = "entropy_weight")]
    pub entropy_weight: f64,
    /// What keeps the policy near the one that it begins from.
    #[serde(default)]
    pub kl: KlConfig,
    /// What a nat costs by which tokens that the mask does not offer are likely: without, a policy
    /// that is improved under a mask forgets what is legal. Only where `decoding` is `masked`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub illegality_weight: f64,
    /// How much predicted speeds are fitted to what is measured, in the same steps. The members of
    /// the ensemble stay apart where `seed` is that of the stage that trained them.
    #[serde(default, skip_serializing_if = "FitWeights::are_zero")]
    pub fit: FitWeights,
    /// Share of a group that expert iteration imitates.
    #[serde(default = "best_share")]
    pub best_share: f64,
    /// How the critic begins.
    #[serde(default)]
    pub critic: CriticConfig,
    /// Iterations from one validation to the next: programs are written for cases of other
    /// families, and nothing is learned from them. There is always one before the first and after
    /// the last.
    pub validate_every: u64,
    /// Cases to validate on, at most.
    pub validation_cases: usize,
    /// Iterations from one checkpoint to the next.
    pub keep_every: u64,
    /// The optimizer.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
}

/// What is made of the rewards of a group: the programs that were written for one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Proximal policy optimisation (Schulman et al., 2017) with a critic, which is corrected
    /// within each group.
    Ppo,
    /// Group-relative policy optimisation (Shao et al., DeepSeekMath, 2024): rewards by the mean
    /// and deviation of their group.
    Grpo,
    /// REINFORCE, leave one out (Kool et al., 2019; Ahmadian et al., 2024): rewards by the mean of
    /// the others of their group.
    Rloo,
    /// Imitation of the best of each group (Anthony et al., Thinking Fast and Slow, 2017).
    ExpertIteration,
}

/// Which programs can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecodingMode {
    /// Those that are legal for the matrix.
    Masked,
    /// Any sequence of tokens: most are no programs to begin with.
    Free,
    /// Those that the dataset has of the case: what becomes of all of them is recorded, while of
    /// what a policy writes otherwise the recordings of a case know hardly anything.
    Measured,
}

/// How far the policy and the critic go in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clip {
    /// The probability of a token falls by at most this share.
    pub low: f64,
    /// And rises by at most this one.
    pub high: f64,
    /// The critic's expectation moves by at most this.
    pub value: f64,
}

/// How much the errors of predicted speeds count beside the policy's objective. With 0 nothing is
/// fitted, and predictions follow what is shared with the policy wherever that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitWeights {
    /// Weight of [`LossWeights::speed`].
    pub speed: f64,
    /// Weight of [`LossWeights::ranking`].
    pub ranking: f64,
}

/// How the critic begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CriticConfig {
    /// Steps in which it is fitted to the speeds that the network finds within reach.
    pub steps: u64,
    /// The learning rate of these steps.
    pub learning_rate: f64,
}

impl FitWeights {
    /// Whether nothing is fitted.
    pub(super) fn are_zero(&self) -> bool {
        *self == Self::default()
    }

    /// The weights of all losses: the others are 0.
    pub(super) fn losses(&self) -> LossWeights {
        LossWeights { speed: self.speed, ranking: self.ranking, ..LossWeights::default() }
    }
}

impl Default for Clip {
    fn default() -> Self {
        Self { low: 0.2, high: 0.28, value: 0.2 }
    }
}

impl Default for CriticConfig {
    fn default() -> Self {
        Self { steps: 100, learning_rate: 1e-3 }
    }
}

fn epochs() -> usize {
    2
}

fn lambda() -> f64 {
    0.95
}

fn value_weight() -> f64 {
    0.5
}

fn entropy_weight() -> f64 {
    0.01
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

fn best_share() -> f64 {
    0.25
}

/// Nothing can be interrupted within an iteration, nor while the critic is fitted.
const MOST_EPOCHS: usize = 1_000;
const MOST_CRITIC_STEPS: u64 = 100_000;

impl ReinforcementConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// When the file cannot be read, or lacks something, or has something that means nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        read_checked(path, Self::wrong)
    }

    /// What means nothing, if anything.
    fn wrong(&self) -> Option<&'static str> {
        let at_least_1 = [self.cases, self.rollouts, self.epochs, self.minibatch];
        if at_least_1.contains(&0) || [self.validate_every, self.keep_every].contains(&0) {
            return Some(
                "`cases`, `rollouts`, `epochs`, `minibatch` and every `…_every` must be at least 1",
            );
        }
        if self.cases.max(self.rollouts) > MOST_OF_BATCH {
            return Some("`cases` and `rollouts` must be at most 65536");
        }
        if self.epochs > MOST_EPOCHS || self.critic.steps > MOST_CRITIC_STEPS {
            return Some("`epochs` must be at most 1000, and `critic.steps` at most 100000");
        }
        let Clip { low, high, value } = self.clip;
        if ![low, self.lambda, self.best_share].iter().all(|share| (0.0..=1.0).contains(share)) {
            return Some("`clip.low`, `lambda` and `best_share` must be from 0 to 1");
        }
        let positive = [self.learning_rate, high, value, self.critic.learning_rate, self.kl.target];
        if !positive.iter().all(|number| number.is_finite() && *number > 0.0) {
            return Some(
                "learning rates, `clip.high`, `clip.value` and `kl.target` must be positive",
            );
        }
        let not_negative = [
            self.value_weight,
            self.entropy_weight,
            self.fit.speed,
            self.fit.ranking,
            self.kl.weight,
            self.illegality_weight,
            self.reward.efficiency(),
        ];
        let most = 1.0 / KlConfig::LARGEST_ERROR;
        if !not_negative.iter().all(|number| number.is_finite() && *number >= 0.0)
            || !(0.0..most).contains(&self.kl.rate)
        {
            return Some(
                "weights, the reward\'s `efficiency` and `kl.rate` must not be negative, and the \
                 latter less than 5",
            );
        }
        if self.illegality_weight > 0.0 && self.decoding != DecodingMode::Masked {
            return Some("`illegality_weight` needs the decoding `masked`");
        }
        self.optimizer.wrong()
    }

    /// The learning rate of an iteration: a linear warm-up, then constant.
    #[must_use]
    pub fn learning_rate(&self, iteration: u64) -> f64 {
        let warmed_up = (iteration + 1) as f64 / self.warm_up.max(1) as f64;
        self.learning_rate * warmed_up.min(1.0)
    }
}

/// A text that names no algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `ppo`, `grpo`, `rloo` or `expert-iteration`")]
pub struct UnknownAlgorithm;

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ppo, Self::Grpo, Self::Rloo, Self::ExpertIteration];
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let named = Self::ALL.into_iter().find(|algorithm| algorithm.to_string() == text);
        named.ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ppo => "ppo",
            Self::Grpo => "grpo",
            Self::Rloo => "rloo",
            Self::ExpertIteration => "expert-iteration",
        })
    }
}
