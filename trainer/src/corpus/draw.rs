//! Drawing parameters widely.

use sparserl_core::random::SplitMix64;

use super::generator::{Featured, Generator};
use super::recipe::Pattern;
use super::step::Step;
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

    /// Rows and columns for so many entries in rows of this mean length: half square, else from 64
    /// times as wide to 64 times as tall.
    fn shape(&mut self, target: f64, mean: f64) -> (u32, u32) {
        let rows = (target / mean).max(1.0);
        let aspect = if self.chance(0.5) { 1.0 } else { self.log(1.0 / 64.0, 64.0) };
        // Enough columns for the mean.
        (count(rows), count((rows * aspect).max(mean * 1.5)))
    }

    /// A family, and its parameters for about `target` entries.
    pub(super) fn generator(&mut self, target: f64) -> Generator {
        let seed = self.seed();
        // The general family stands for six, since it alone has all features in all combinations.
        match self.between(0, 13) {
            0..6 => self.featured(target, seed),
            6 => self.stencil(target),
            7 => {
                let half_width = self.log_number(1, 200).min(count(libm::sqrt(target / 4.0)));
                let rows = count(target / (2.0 * f64::from(half_width) + 1.0));
                Generator::Banded { rows, half_width, seed }
            }
            8 => {
                let per_row = self.log_number(1, 256);
                let (rows, cols) = self.shape(target, per_row.into());
                Generator::Uniform { rows, cols, per_row, seed }
            }
            9 => {
                let edge_factor = self.log_number(2, 64);
                let scale = libm::log2(target / f64::from(edge_factor)).max(3.0) as u8;
                let upper_left = self.between(25, 65) as u8;
                let upper_right = self.between(10, (100 - u32::from(upper_left)) / 2) as u8;
                // Undirected graphs have as many edges one way as the other.
                let lower_left = match self.chance(0.7) {
                    true => upper_right,
                    false => self.between(5, 99 - u32::from(upper_left + upper_right)) as u8,
                };
                let percent = [upper_left, upper_right, lower_left];
                Generator::Rmat { scale, edge_factor, percent, seed }
            }
            10 => {
                let dof = self.between(1, 8);
                let nodes = count(target / (9.0 * f64::from(dof * dof)));
                Generator::FemBlocks { nodes, dof, seed }
            }
            11 => {
                let entries = count(target);
                let rows = count(target * self.log(1.0, 3.0));
                let cols = count(target * self.log(0.05, 3.0));
                Generator::HyperSparse { rows, cols, entries, seed }
            }
            12 => {
                let cols = count(target * self.log(0.05, 0.9));
                let rows = count(target - f64::from(cols));
                Generator::DenseRow { rows, cols, seed }
            }
            _ => {
                // So many blocks that it is next to impossible that none is kept.
                let most = libm::log2(target / 32.0) / 2.0;
                let block = 1 << self.between(0, 5).min(most.max(0.0) as u32);
                let percent = self.log_number(2, 50) as u8;
                let cells = target * 100.0 / f64::from(percent);
                let aspect = self.log(0.125, 8.0);
                let whole = |size: f64| (count(size) / block).max(1).saturating_mul(block);
                let (rows, cols) = (libm::sqrt(cells * aspect), libm::sqrt(cells / aspect));
                let (rows, cols) = (whole(rows), whole(cols));
                Generator::BlockPruned { rows, cols, block, percent, seed }
            }
        }
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

    fn stencil(&mut self, target: f64) -> Generator {
        // From square to a slab.
        let (long, longer) = (self.log(1.0, 8.0), self.log(1.0, 8.0));
        match self.between(0, 2) {
            0 => {
                let ny = libm::sqrt(target / 5.0 / long);
                Generator::Stencil5 { nx: count(ny * long), ny: count(ny) }
            }
            points => {
                let per_row = if points == 1 { 7.0 } else { 27.0 };
                let nz = libm::cbrt(target / per_row / long / longer);
                let [nx, ny, nz] = [nz * long * longer, nz, nz].map(count);
                match points {
                    1 => Generator::Stencil7 { nx, ny, nz },
                    _ => Generator::Stencil27 { nx, ny, nz },
                }
            }
        }
    }

    fn featured(&mut self, target: f64, seed: u64) -> Generator {
        let block = if self.chance(0.7) { 1 } else { self.between(2, 8) };
        let fill = if block == 1 { 1.0 } else { self.log(0.3, 1.0) };
        // Not without a few rows and columns of blocks.
        let mean = self.log(1.5, 300.0).max(f64::from(block) * fill);
        let mean = mean.min(target / f64::from(32 * block));
        let (rows, cols) = self.shape(target * fill, mean);
        let cols = cols.max(4 * block);
        let variation = if self.chance(0.3) { 0.0 } else { self.log(0.05, 4.0) };
        let skew = if self.chance(0.7) { 6.0 * variation } else { self.log(4.0, 10_000.0) };
        let thousandths = |number: f64| (number * 1000.0) as u32;
        let bandwidth = if self.chance(0.4) { 1.0 } else { self.log(0.002, 1.0) };
        let neighbours = if self.chance(0.3) { 0 } else { self.between(0, 1950) };
        let similarity = if self.chance(0.3) { 0 } else { self.between(0, 980) };
        Generator::Featured(Featured {
            rows,
            cols,
            mean: thousandths(mean),
            variation: thousandths(variation),
            skew: thousandths(skew.max(6.0 * variation)),
            bandwidth: thousandths(bandwidth).max(1),
            neighbours,
            similarity,
            block,
            fill: thousandths(fill),
            seed,
        })
    }
}

/// A size, at least 1.
fn count(size: f64) -> u32 {
    size.max(1.0) as u32
}
