//! How a stage trains, as TOML says it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::configuration::{ConfigurationError, read_checked};
use crate::corpus::Split;
use crate::network::{LossWeights, NetworkConfig, OptimizerConfig};

/// How a stage trains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Batches to learn from.
    pub steps: u64,
    /// Which matrices are trained on.
    pub split: Split,
    /// At most so many matrices are trained on, a part of those of any larger number; all of them
    /// without.
    #[serde(default)]
    pub matrices: Option<usize>,
    /// Cases of a batch.
    pub cases: usize,
    /// Programs of each.
    pub programs: usize,
    /// Where those are from.
    pub shares: Shares,
    /// How much each loss counts.
    pub weights: LossWeights,
    /// The highest learning rate, after the warm-up.
    pub learning_rate: f64,
    /// Steps in which the learning rate rises from 0.
    #[serde(default)]
    pub warm_up: u64,
    /// Share of the highest learning rate that is left at the end of a cosine.
    #[serde(default)]
    pub last_learning_rate: f64,
    /// Programs count as near the best of a case up to this share slower.
    #[serde(default = "near")]
    pub near: f64,
    /// Doublings of speed by which a program has to lead to be imitated e times as much.
    #[serde(default = "temperature")]
    pub temperature: f64,
    /// The share by which a program is imitated less for each token that it has more than another
    /// that is as fast.
    #[serde(default = "shortness")]
    pub shortness: f64,
    /// What networks are not shown now and then.
    #[serde(default)]
    pub hidden: Hidden,
    /// Steps from one line of the log to the next.
    pub log_every: u64,
    /// Steps from one validation to the next; there is always one at the end.
    pub validate_every: u64,
    /// Cases to validate on, at most.
    pub validation_cases: usize,
    /// Steps from one checkpoint to the next.
    pub keep_every: u64,
    /// The optimizer.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Sizes of a network that begins here; of one that goes on, they are its own.
    #[serde(default)]
    pub network: NetworkConfig,
}

/// From where the programs of a case are taken: shares of their number. Where there are not as
/// many, measured ones take their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shares {
    /// Share of programs near the best.
    pub best: f64,
    /// Share of legal programs, drawn from the grammar.
    pub legal: f64,
    /// Share of programs that are not legal, drawn from the grammar.
    pub illegal: f64,
}

/// Shares of the cases of which something is not shown, so that a network learns to do without; and
/// noise, so that it does not know matrices by their last digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hidden {
    /// Without features.
    pub features: f64,
    /// Without density grids.
    pub grids: f64,
    /// Without positions.
    pub positions: f64,
    /// Up to this share of the positions is left out of those that are shown.
    pub single_positions: f64,
    /// Features are changed by up to this much.
    pub noise: f64,
}

fn near() -> f64 {
    0.05
}

fn temperature() -> f64 {
    0.03
}

fn shortness() -> f64 {
    0.1
}

/// Cases and programs of a batch, at most: no memory holds more.
pub(crate) const MOST_OF_BATCH: usize = 1 << 16;

impl StageConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// When the file cannot be read, or lacks something, or has something that means nothing.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        read_checked(path, Self::wrong)
    }

    /// What means nothing, if anything.
    fn wrong(&self) -> Option<&'static str> {
        let Shares { best, legal, illegal } = self.shares;
        let Hidden { features, grids, positions, single_positions, noise } = self.hidden;
        let shares =
            [best, legal, illegal, features, grids, positions, single_positions, self.shortness];
        let every = [self.log_every, self.validate_every, self.keep_every];
        if self.cases == 0 || self.programs == 0 || every.contains(&0) {
            return Some("`cases`, `programs` and every `…_every` must be at least 1");
        }
        if self.cases.max(self.programs) > MOST_OF_BATCH {
            return Some("`cases` and `programs` must be at most 65536");
        }
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) || best + legal + illegal > 1.0 {
            return Some("shares must be from 0 to 1, and those of programs not more together");
        }
        if self.network.clone().check().is_err() {
            return Some(
                "`network` must have a `width` from 1 to 4096 that is a multiple of its `heads`, at \
                 most 64 layers, and a `speed_width` from 1 to 4096",
            );
        }
        let positive = [self.learning_rate, self.near, self.temperature];
        let not_negative = [noise, self.last_learning_rate];
        let finite = |x: &f64| x.is_finite();
        if !positive.iter().all(|x| finite(x) && *x > 0.0)
            || !not_negative.iter().all(|x| finite(x) && *x >= 0.0)
        {
            return Some(
                "`learning_rate`, `near` and `temperature` must be positive, `noise` and \
                 `last_learning_rate` not negative",
            );
        }
        self.weights.wrong().or_else(|| self.optimizer.wrong())
    }

    /// The learning rate of a step: linear warm-up, then a cosine.
    #[must_use]
    pub fn learning_rate(&self, step: u64) -> f64 {
        if step < self.warm_up {
            return self.learning_rate * (step + 1) as f64 / self.warm_up as f64;
        }
        let rest = self.steps.saturating_sub(self.warm_up).max(1);
        let gone = (step - self.warm_up) as f64 / rest as f64;
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * gone.min(1.0)).cos());
        let last = self.last_learning_rate;
        self.learning_rate * (last + (1.0 - last) * cosine)
    }
}
