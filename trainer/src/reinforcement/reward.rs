//! What programs are worth.

use serde::{Deserialize, Serialize};
use sparserl_core::outcome::Tier;

use super::Judgement;

/// What a program is worth. Times are compared with the reference program's, as everywhere in
/// training: log2(t_reference ÷ t), the mean over the regimes that were timed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reward {
    /// In strictly ordered tiers: no kernel −1, not launched or not ended −0.6, wrong −0.3, and
    /// right 0.3 + clip(log2(t_reference ÷ t), −0.25, 3). A right program, however slow, is worth
    /// more than any wrong one, and the top is bounded.
    Tiered,
    /// ±0.5 for whether there is a kernel, ±0.5 for whether it is right, and where it is right
    /// `efficiency` × (t_library ÷ t − 1), as published for SparseRL. The reference program stands
    /// for the library, which is not measured in training. The penalty for more shared memory than
    /// a block may have has no case here: there is no kernel of such a program.
    Paper {
        /// What twice the speed is worth.
        efficiency: f64,
    },
    /// Its tier alone: of [`Reward::Tiered`] what does not depend on times.
    Correctness,
    /// Its speed alone: clip(log2(t_reference ÷ t), −0.25, 3) where it is right, and what is not is
    /// worth as little as the slowest.
    Efficiency,
}

/// What log2 of a relative speed counts at least and at most.
const SLOWEST: f32 = -0.25;
const FASTEST: f32 = 3.0;

impl Reward {
    /// What a program is worth of which this became. One that is right and was not timed counts as
    /// fast as the reference.
    #[must_use]
    pub fn of(&self, judgement: &Judgement) -> f32 {
        match (self, judgement.tier) {
            (_, Tier::Right) => self.of_speed(judgement.speed().unwrap_or(0.0)),
            (Self::Tiered | Self::Correctness, Tier::NotCompiled) => -1.0,
            (Self::Tiered | Self::Correctness, Tier::Failed) => -0.6,
            (Self::Tiered | Self::Correctness, Tier::Wrong) => -0.3,
            (Self::Paper { .. }, Tier::NotCompiled) => -1.0,
            (Self::Paper { .. }, Tier::Failed | Tier::Wrong) => 0.0,
            (Self::Efficiency, _) => SLOWEST,
        }
    }

    /// What a right program is worth, by log2 of its speed relative to the reference.
    #[must_use]
    pub fn of_speed(&self, speed: f32) -> f32 {
        match self {
            Self::Tiered => 0.3 + speed.clamp(SLOWEST, FASTEST),
            Self::Paper { efficiency } => 1.0 + *efficiency as f32 * (speed.exp2() - 1.0),
            Self::Correctness => 0.3,
            Self::Efficiency => speed.clamp(SLOWEST, FASTEST),
        }
    }

    /// The weight of speed in the paper's formula.
    pub(crate) fn efficiency(&self) -> f64 {
        match self {
            Self::Paper { efficiency } => *efficiency,
            Self::Tiered | Self::Correctness | Self::Efficiency => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(cold: f32, warm: f32) -> Judgement {
        Judgement { tier: Tier::Right, speeds: [Some(cold), Some(warm)] }
    }

    fn failed(tier: Tier) -> Judgement {
        Judgement { tier, speeds: [None, None] }
    }

    #[test]
    fn rewards_are_those_of_the_formulas() {
        use Tier::{Failed, NotCompiled, Wrong};
        let near = |a: f32, b: f32| assert!((a - b).abs() < 1e-6, "{a} instead of {b}");
        // Twice as fast cold, four times warm: log2 is 1.5 in the mean.
        near(Reward::Tiered.of(&right(1.0, 2.0)), 0.3 + 1.5);
        near(Reward::Tiered.of(&right(-4.0, -4.0)), 0.3 - 0.25);
        near(Reward::Tiered.of(&right(9.0, 9.0)), 0.3 + 3.0);
        let untimed = Judgement { tier: Tier::Right, speeds: [None, None] };
        near(Reward::Tiered.of(&untimed), 0.3);
        let tiers = [NotCompiled, Failed, Wrong].map(|tier| Reward::Tiered.of(&failed(tier)));
        assert_eq!(tiers, [-1.0, -0.6, -0.3]);
        assert!(tiers.iter().all(|worth| *worth < Reward::Tiered.of(&right(-9.0, -9.0))));
        // 0.5 + 0.5 + 0.25 × (2 − 1).
        let paper = Reward::Paper { efficiency: 0.25 };
        near(paper.of(&right(1.0, 1.0)), 1.25);
        let tiers = [NotCompiled, Failed, Wrong].map(|tier| paper.of(&failed(tier)));
        assert_eq!(tiers, [-1.0, 0.0, 0.0]);
        near(Reward::Correctness.of(&right(2.0, 2.0)), 0.3);
        near(Reward::Correctness.of(&failed(Wrong)), -0.3);
        near(Reward::Efficiency.of(&right(2.0, 2.0)), 2.0);
        near(Reward::Efficiency.of(&failed(Wrong)), -0.25);
    }
}
