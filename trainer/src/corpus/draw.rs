//! Drawing parameters widely.

use sparserl_core::random::SplitMix64;

use super::pattern::{Pattern, Step};
use super::values::Values;

/// Draws numbers of the shapes that parameters have.
pub(super) struct Draw {
    random: SplitMix64,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed) }
    }

    /// A seed for something that is drawn when it is built; short, because it is written down.
    pub(super) fn seed(&mut self) -> u64 {
        self.random.bits() >> 32
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.random.uniform() < probability
    }

    /// Evenly in `low..=high`.
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.random.below((high.saturating_sub(low) as usize).saturating_add(1)) as u32
    }

    /// Evenly in the logarithm, from `low` to `high`, both above 0.
    pub(super) fn log(&mut self, low: f64, high: f64) -> f64 {
        let (low, high) = (libm::log2(low), libm::log2(high));
        libm::exp2(low + (high - low) * self.random.uniform())
    }

    /// As [`Draw::log`], rounded.
    pub(super) fn log_number(&mut self, low: u32, high: u32) -> u32 {
        let drawn = self.log(f64::from(low), f64::from(high.max(low)) + 1.0);
        (drawn as u32).clamp(low, high.max(low))
    }

    /// One of them.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.random.below(of.len())) }
    }

    /// Values of three quarters random, else few distinct, equal or the matrix's own.
    pub(super) fn values(&mut self) -> Values {
        let seed = self.seed();
        match self.between(0, 11) {
            0..9 => Values::Random { seed },
            9 => Values::Few { distinct: self.log_number(2, 4096) as u16, seed },
            10 => Values::Equal,
            _ => Values::AsBuilt,
        }
    }

    /// A step for a matrix of about `target` entries; `other` draws one to put beside it, if there
    /// is any.
    pub(super) fn step(
        &mut self,
        target: f64,
        other: impl FnOnce(&mut Self, f64) -> Option<Pattern>,
    ) -> Option<Step> {
        let seed = self.seed();
        // Few lines, and few entries in each beside those of the matrix.
        let count = self.log_number(1, 16);
        let fill = self.log_number(5, 1000) as u16;
        Some(match self.between(0, 12) {
            0 => Step::PermuteRows { seed },
            1 => Step::PermuteColumns { seed },
            2 => Step::PermuteBoth { seed },
            3 => Step::CuthillMckee,
            4 => Step::DegreeOrder,
            5 => Step::Transpose,
            6 => {
                let [rows, cols] = [(); 2].map(|()| self.between(250, 1000));
                let (top, left) = (self.between(0, 1000 - rows), self.between(0, 1000 - cols));
                let [top, rows, left, cols] = [top, rows, left, cols].map(|share| share as u16);
                Step::Crop { top, rows, left, cols }
            }
            7 => Step::Replicate { times: self.log_number(2, 16) },
            8 => Step::Thin { keep: self.between(200, 900) as u16, seed },
            9 => Step::DenseRows { count, fill, seed },
            10 => Step::DenseColumns { count, fill, seed },
            11 => Step::Beside(Box::new(other(self, target)?)),
            _ => Step::Above(Box::new(other(self, target)?)),
        })
    }
}
