//! Times of a launch, and which of them decide.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How the launches of a measurement follow each other, and so what the level-2 cache holds when
/// one begins. Times of different regimes are never compared: each ratio is of two times of one
/// regime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// One launch after a flush of the cache: a product now and then.
    Cold,
    /// Launches in a chain: between two of them runs a tiny kernel that reads from the output and
    /// writes to the input, and whose own time is taken off. The cache is as the launch before left
    /// it, and no launch begins before the one before has ended, as in an iterative solver.
    Warm,
    /// Launches with nothing between them. A library that lets its own launches overlap, which no
    /// application that uses the result can have, is as fast here as nowhere else.
    BackToBack,
}

impl Regime {
    /// All regimes.
    pub const ALL: [Self; 3] = [Self::Cold, Self::Warm, Self::BackToBack];

    /// For tables: `cold`, `warm`, `back to back`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::BackToBack => "back to back",
        }
    }
}

/// The regimes in which a kernel is to be fast: what it is chosen by.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// With a cold cache.
    Cold,
    /// In a chain, as in an iterative solver.
    #[serde(alias = "back-to-back")]
    Warm,
    /// In both alike: the geometric mean of the two times decides.
    #[default]
    Both,
}

impl From<Regime> for Objective {
    /// To be fast in this regime: launches with nothing between them find the cache as those of a
    /// chain do.
    fn from(regime: Regime) -> Self {
        match regime {
            Regime::Cold => Self::Cold,
            Regime::Warm | Regime::BackToBack => Self::Warm,
        }
    }
}

impl Objective {
    /// All objectives.
    pub const ALL: [Self; 3] = [Self::Cold, Self::Warm, Self::Both];

    /// The word for it: `cold`, `warm` or `both`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Both => "both",
        }
    }

    /// The regimes whose times decide, all alike.
    #[must_use]
    pub fn regimes(self) -> &'static [Regime] {
        match self {
            Self::Cold => &[Regime::Cold],
            Self::Warm => &[Regime::Warm],
            Self::Both => &[Regime::Cold, Regime::Warm],
        }
    }

    /// The seconds that decide: the geometric mean over its regimes of the medians; absent where
    /// one of them was not measured.
    #[must_use]
    pub fn seconds(self, timing: &Timing) -> Option<f64> {
        match self {
            Self::Cold => timing.median(Regime::Cold),
            Self::Warm => timing.median(Regime::Warm),
            Self::Both => {
                let (cold, warm) = (timing.median(Regime::Cold)?, timing.median(Regime::Warm)?);
                Some(libm::sqrt(cold * warm))
            }
        }
    }
}

/// Times of a launch, by [`Regime`]; each is absent when it was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Times after a flush of the level-2 cache.
    pub cold: Option<Samples>,
    /// Times in a chain, that of what links it taken off.
    pub warm: Option<Samples>,
    /// Times with a warm cache and nothing between the launches.
    pub back_to_back: Option<Samples>,
}

impl Timing {
    /// The samples of one regime.
    #[must_use]
    pub fn samples(&self, regime: Regime) -> Option<&Samples> {
        match regime {
            Regime::Cold => self.cold.as_ref(),
            Regime::Warm => self.warm.as_ref(),
            Regime::BackToBack => self.back_to_back.as_ref(),
        }
    }

    /// Median seconds.
    #[must_use]
    pub fn median(&self, regime: Regime) -> Option<f64> {
        self.samples(regime).map(Samples::median)
    }
}

/// Seconds of a launch, measured several times: at least one, each finite and above 0, in the order
/// of measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Samples(Vec<f64>);

impl Samples {
    /// All samples, in seconds.
    #[must_use]
    pub fn seconds(&self) -> &[f64] {
        &self.0
    }

    /// The middle one in size, or the mean of the two in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = sorted.get(middle).copied().unwrap_or(f64::NAN);
        match sorted.len() % 2 {
            0 => f64::midpoint(sorted.get(middle.wrapping_sub(1)).copied().unwrap_or(upper), upper),
            _ => upper,
        }
    }
}

impl TryFrom<Vec<f64>> for Samples {
    type Error = NotSamples;

    fn try_from(seconds: Vec<f64>) -> Result<Self, NotSamples> {
        let valid = |s: &f64| s.is_finite() && *s > 0.0;
        if seconds.is_empty() || !seconds.iter().all(valid) {
            return Err(NotSamples);
        }
        Ok(Self(seconds))
    }
}

impl From<Samples> for Vec<f64> {
    fn from(samples: Samples) -> Self {
        samples.0
    }
}

/// Not times of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not samples: expected at least one, each finite and above 0")]
pub struct NotSamples;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn samples(seconds: &[f64]) -> Samples {
        seconds.to_vec().try_into().unwrap()
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(samples(&[3.0]).median(), 3.0);
        assert_eq!(samples(&[9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
    }

    #[test]
    fn what_is_no_time_is_no_sample() {
        for wrong in [vec![], vec![0.0], vec![1.0, f64::NAN], vec![-1.0], vec![f64::INFINITY]] {
            assert_eq!(Samples::try_from(wrong), Err(NotSamples));
        }
    }

    #[test]
    fn the_times_of_all_regimes_of_an_objective_decide() {
        let cold = Timing { cold: Some(samples(&[2.0])), ..Timing::default() };
        let both = Timing { warm: Some(samples(&[8.0])), ..cold.clone() };
        let seconds = |timing| Objective::ALL.map(|objective| objective.seconds(timing));
        assert_eq!(seconds(&cold), [Some(2.0), None, None]);
        assert_eq!(seconds(&both), [Some(2.0), Some(8.0), Some(4.0)]);
    }
}
