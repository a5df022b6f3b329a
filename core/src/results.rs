//! What follows from outcomes: the figures of a kernel beside its opponents, and statistics over
//! candidates and matrices. Whoever measures states its results in these types, so that a number of
//! one name means the same everywhere.
//!
//! ```text
//! Outcome, Baseline ─► Figures, by Regime and Rival ─┬─► Chosen
//!                                                    └─► Spread (geometric mean, least, losses)
//! outcomes ─► Counts ─► pass_at_k, fast_at_p ─► Mean
//! candidate, Outcome ─► CandidateResult ─┬─► results.json and its like
//! Evaluation ─► Opponents ───────────────┘
//! ```

mod figures;
mod record;
mod statistics;

use serde::{Deserialize, Serialize};

use crate::outcome::Regime;

pub use figures::{Chosen, Comparison, Figures, Packing, Rival, Work, fastest, ranking};
pub use record::{CandidateResult, Opponents};
pub use statistics::{
    Counts, Interval, Loss, Mean, PassAt, Spread, fast_at_p, geometric_mean, pass_at_k,
    rank_correlation,
};

/// Where the values of a measured matrix come from.
///
/// Half of the public matrices list a pattern only, and a kernel for one value stores none at all:
/// with such values it is the pattern that is measured, not the product that people compute.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ValueSource {
    /// Drawn at random, each of its own, in the place of those of the file.
    #[default]
    Random,
    /// As the file or the family has them.
    File,
}

impl ValueSource {
    /// `random` or `file`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::File => "file",
        }
    }
}

/// Something for each regime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByRegime<T> {
    /// The value with a cold cache: after each flush of it.
    pub cold: T,
    /// The value with a warm cache, launches in a chain.
    pub warm: T,
    /// The value with a warm cache and nothing between the launches.
    pub back_to_back: T,
}

impl<T> ByRegime<T> {
    /// What `value` gives for each regime.
    pub fn of(mut value: impl FnMut(Regime) -> T) -> Self {
        Self {
            cold: value(Regime::Cold),
            warm: value(Regime::Warm),
            back_to_back: value(Regime::BackToBack),
        }
    }

    /// The value of one regime.
    #[must_use]
    pub fn get(&self, regime: Regime) -> &T {
        match regime {
            Regime::Cold => &self.cold,
            Regime::Warm => &self.warm,
            Regime::BackToBack => &self.back_to_back,
        }
    }
}

/// Something for each rival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByRival<T> {
    /// Against cuSPARSE's default algorithm.
    pub default: T,
    /// Against the quickest opponent.
    pub best: T,
}

impl<T> ByRival<T> {
    /// What `value` gives for each rival.
    pub fn of(mut value: impl FnMut(Rival) -> T) -> Self {
        Self { default: value(Rival::Default), best: value(Rival::Best) }
    }

    /// The value against one rival.
    #[must_use]
    pub fn get(&self, rival: Rival) -> &T {
        match rival {
            Rival::Default => &self.default,
            Rival::Best => &self.best,
        }
    }
}
