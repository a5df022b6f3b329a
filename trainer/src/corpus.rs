//! The matrices that policies are trained on: not stored, but recipes by which they are made.
//!
//! A recipe is drawn for each number, from the seed of the corpus and that number alone, so a
//! larger corpus begins with a smaller one of the same seed. Drawn are
//!
//! * **size**: the number of entries aimed at, evenly in its logarithm: unless a larger share is
//!   asked for, nine tenths from 10³ to 10⁶, which take milliseconds to measure, one tenth up to
//!   the limit: with 1.6 · 10⁷ the largest arrays are four times the L2 cache of an H200, so
//!   matrices on either side of its edge occur;
//! * **base**: a real matrix with the share asked for, or else a generated one. Of the generated
//!   ones a quarter is by features ([`Generator::Featured`]), since a network has to see every
//!   combination of them; the other 23 families, about evenly, have the regularity that features do
//!   not describe, and that of domains: meshes, roads, circuits, programs, pruned layers, tables of
//!   users;
//! * **steps**: none for half of the generated matrices, one or two for the others, since the
//!   families already differ by their parameters; one to three for nine tenths of the real ones, of
//!   which there are few. Every kind of step is as likely, except that replication is the first one
//!   where a real matrix is to become as large as was drawn;
//! * **values**: random ones for three quarters, because they are what is measured first and
//!   foremost; the rest is spread over few distinct, equal and the matrix's own ones, which layouts
//!   may code.
//!
//! What was made from a matrix is of its family, and a [`Split`] is by family.

mod arrays;
mod draw;
mod families;
mod generator;
mod order;
mod pattern;
mod real;
mod recipe;
mod recipes;
mod remake;
mod size;
mod split;
mod step;
mod values;

pub use generator::{Featured, Generator};
pub use pattern::{Base, Pattern, Step};
pub use real::{RealError, RealMatrices, RealMatrix};
pub use recipe::{BuildError, Recipe, RecipeError};
pub use recipes::Recipes;
pub(crate) use remake::Findings;
pub use remake::{RemakeError, remake_each};
pub use size::Size;
pub use split::{Role, Split, VALIDATION};
pub use values::Values;

use draw::Draw;
use serde::{Deserialize, Serialize};
use sparserl_core::random::SplitMix64;

/// Most matrices are aimed at fewer entries, so that measuring them is quick.
const QUICK: f64 = 1e6;
/// Times that a matrix is drawn again, of half the size, when it could be larger than allowed.
const ATTEMPTS: u32 = 24;

/// A corpus without end: recipe number `i` depends on nothing but these fields, the real matrices
/// and `i`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Share of the recipes, from 0 to 1, that start from a real matrix, if there are any.
    pub share_of_real: f64,
    /// Entries of the smallest matrices that are aimed at, at least 1 and at most `largest_nnz`;
    /// above 10⁶, all are large. What may come out larger than `largest_nnz` is drawn again, aimed
    /// at half as many.
    #[serde(default = "smallest_nnz")]
    pub smallest_nnz: u64,
    /// Entries of the largest matrix that is made, at least 1.
    pub largest_nnz: u64,
    /// Share of the recipes, from 0 to 1, that are aimed at 10⁶ entries or more.
    #[serde(default = "share_of_large")]
    pub share_of_large: f64,
}

fn smallest_nnz() -> u64 {
    Corpus::default().smallest_nnz
}

fn share_of_large() -> f64 {
    Corpus::default().share_of_large
}

impl Default for Corpus {
    /// Half of it real, 10³ to 1.6 · 10⁷ entries, a tenth large.
    fn default() -> Self {
        Self {
            seed: 0,
            share_of_real: 0.5,
            smallest_nnz: 1_000,
            largest_nnz: 16_000_000,
            share_of_large: 0.1,
        }
    }
}

impl Corpus {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let shares = [self.share_of_real, self.share_of_large];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Some("`corpus.share_of_real` and `corpus.share_of_large` must be from 0 to 1");
        }
        (self.smallest_nnz == 0 || self.largest_nnz == 0)
            .then_some("`corpus.smallest_nnz` and `corpus.largest_nnz` must be at least 1")
    }

    /// Recipe number `index`, whose matrix is within the limit.
    #[must_use]
    pub fn recipe(&self, index: u64, real: &RealMatrices) -> Recipe {
        let seed = SplitMix64::after(SplitMix64::new(self.seed).bits(), index).bits();
        let mut draw = Draw::new(seed);
        let largest = self.largest_nnz.max(1) as f64;
        let quick = largest.min(QUICK);
        let smallest = (self.smallest_nnz.max(1) as f64).min(largest);
        let is_small = draw.chance(1.0 - self.share_of_large) && smallest <= quick;
        let mut target = match is_small {
            true => draw.log(smallest, quick),
            false => draw.log(quick.max(smallest), largest),
        };
        // Neither do steps make it large that was drawn small.
        let limit = if target <= quick { quick as u64 } else { self.largest_nnz };
        let is_real = draw.chance(self.share_of_real);
        let values = draw.values();
        for _ in 0..ATTEMPTS {
            let pattern = match is_real {
                true => of_real(&mut draw, target, limit, real),
                false => None,
            };
            let pattern = pattern.unwrap_or_else(|| of_generated(&mut draw, target));
            if pattern.size(limit).is_ok() {
                return Recipe { pattern, values, largest_nnz: self.largest_nnz };
            }
            target = (target / 2.0).max(1.0);
        }
        // One entry is always allowed.
        let smallest = Generator::Uniform { rows: 1, cols: 1, per_row: 1, seed };
        let pattern = Pattern::of(Base::Generated(smallest));
        Recipe { pattern, values, largest_nnz: self.largest_nnz.max(1) }
    }
}

/// A generated matrix of about so many entries, and what is done to it.
fn of_generated(draw: &mut Draw, target: f64) -> Pattern {
    let steps = if draw.chance(0.5) { 0 } else { draw.between(1, 2) };
    let mut pattern = Pattern::of(Base::Generated(draw.generator(target)));
    for _ in 0..steps {
        let step = draw.step(target, |draw, target| {
            Some(Pattern::of(Base::Generated(draw.generator(target))))
        });
        pattern.steps.extend(step);
    }
    pattern
}

/// A real matrix that is not too large, and what is done to it; `None` if there is none.
fn of_real(draw: &mut Draw, target: f64, limit: u64, real: &RealMatrices) -> Option<Pattern> {
    let base = |draw: &mut Draw, largest: u64| {
        let fitting: Vec<&RealMatrix> =
            real.all().iter().filter(|matrix| matrix.size.nnz <= largest).collect();
        draw.one(&fitting).map(|matrix| (matrix.base(), matrix.size))
    };
    let (first, size) = base(draw, limit)?;
    let mut pattern = Pattern::of(first);
    if draw.chance(0.1) {
        return Some(pattern);
    }
    let times = target / size.nnz.max(1) as f64;
    let mut steps = draw.between(1, 3);
    if times >= 2.0 && draw.chance(0.3) {
        pattern.steps.push(Step::Replicate { times: times.min(64.0) as u32 });
        steps -= 1;
    }
    for _ in 0..steps {
        let step = draw.step(target, |draw, target| {
            base(draw, (target as u64).max(size.nnz)).map(|(base, _)| Pattern::of(base))
        });
        pattern.steps.extend(step);
    }
    Some(pattern)
}

impl RealMatrix {
    /// The matrix as a recipe's base.
    #[must_use]
    pub fn base(&self) -> Base {
        Base::Real { name: self.name.clone(), family: self.family.clone(), size: self.size }
    }

    /// The matrix as it is, with its own values.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        let pattern = Pattern::of(self.base());
        Recipe { pattern, values: Values::AsBuilt, largest_nnz: self.size.limit() }
    }
}

#[cfg(test)]
mod tests;
