//! The weight of the divergence from the policy that training began from, which follows the
//! divergence.

use serde::{Deserialize, Serialize};

/// What keeps a policy near the one that it begins from: a penalty on their divergence whose weight
/// follows the divergence (Ziegler et al., Fine-Tuning Language Models from Human Preferences,
/// 2019, §2.2), in nats of a token that was chosen among several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KlConfig {
    /// What a nat costs at first.
    pub weight: f64,
    /// The divergence at which the weight stays as it is.
    pub target: f64,
    /// How fast the weight follows: K_β of the paper. At 0 it stays.
    pub rate: f64,
}

impl KlConfig {
    /// The relative error of the divergence counts up to this.
    pub(super) const LARGEST_ERROR: f64 = 0.2;

    /// The next weight after a divergence was seen: β (1 + K_β clip(KL ÷ target − 1, −0.2, 0.2)).
    #[must_use]
    pub fn next_weight(&self, weight: f64, divergence: f64) -> f64 {
        let error = divergence / self.target - 1.0;
        weight * (1.0 + self.rate * error.clamp(-Self::LARGEST_ERROR, Self::LARGEST_ERROR))
    }
}

impl Default for KlConfig {
    fn default() -> Self {
        Self { weight: 0.1, target: 0.05, rate: 0.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_follows_the_divergence() {
        let config = KlConfig { weight: 0.5, target: 0.1, rate: 0.1 };
        // 0.11 ÷ 0.1 − 1 = 0.1; 0.5 × (1 + 0.1 × 0.1) = 0.505.
        assert!((config.next_weight(0.5, 0.11) - 0.505).abs() < 1e-12);
        // Three times the target: clipped to 0.2; 0.5 × 1.02 = 0.51.
        assert!((config.next_weight(0.5, 0.3) - 0.51).abs() < 1e-12);
        // None at all: clipped to −0.2; 0.5 × 0.98 = 0.49.
        assert!((config.next_weight(0.5, 0.0) - 0.49).abs() < 1e-12);
        assert_eq!(config.next_weight(0.5, 0.1), 0.5);
    }
}
