//! Matrices by the features that decide the speed of a product.

use alloc::vec;
use alloc::vec::Vec;

use super::random::{mixed, normal};
use super::rows::by_rows;
use crate::matrix::Csr;

/// A column is not carried on across a row whose number is a multiple of this, so that each row
/// can be made without those above.
const CARRIED: usize = 64;
/// Times that columns are drawn for those that coincided; the rest is taken from free columns.
const ROUNDS: usize = 8;

/// What [`featured`] makes: the features of Mpakos, Galanopoulos, Anastasiadis, Papadopoulou,
/// Koziris and Goumas, "Feature-based SpMV performance analysis on contemporary devices", 2023, and
/// dense blocks.
///
/// With `block` > 1 neighbours and similarity are those of the grid of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features {
    /// Rows; with blocks, cut to a multiple of `block`.
    pub rows: usize,
    /// Columns; with blocks, cut to a multiple of `block`.
    pub cols: usize,
    /// Mean number of entries of a row. There are never more than `rows` × `mean` ÷ `fill` entries.
    pub mean: f64,
    /// Standard deviation of the lengths of rows ÷ their mean; they are log-normal.
    pub variation: f64,
    /// Longest row ÷ mean − 1. Longer rows are cut, so it should be well above `variation`; lengths
    /// of the longest rows halve from one to the next, and together they have at most half of the
    /// entries.
    pub skew: f64,
    /// Share of the columns, in (0, 1], that a row's entries spread over, about the diagonal.
    pub bandwidth: f64,
    /// Mean number of entries right beside an entry in its row, in [0, 2).
    pub neighbours: f64,
    /// Share of entries, in [0, 1], with one in the next row at most one column aside.
    pub similarity: f64,
    /// Rows and columns of the dense blocks that the matrix consists of; 1 for single entries.
    pub block: usize,
    /// Share of a block's positions, in (0, 1], that have an entry.
    pub fill: f64,
}

impl Features {
    /// At most so many entries come out.
    #[must_use]
    pub fn most_entries(&self) -> f64 {
        let fill = if self.block > 1 { self.fill.clamp(0.01, 1.0) } else { 1.0 };
        self.rows as f64 * self.mean.max(0.0) / fill
    }
}

/// A matrix with these features: the mean is met exactly up to rounding and cut rows, the others on
/// average, if rows are long enough and few of the columns within the bandwidth are taken.
#[must_use]
pub fn featured(features: &Features, seed: u64) -> Csr<f64> {
    let block = features.block.max(1);
    let (rows, cols) = (features.rows / block, features.cols / block);
    let grid = Grid::new(features, rows, cols.min(u32::MAX as usize), seed);
    let (rows, cols) = (grid.lengths.len() * block, grid.cols * block);
    by_rows(rows, cols, |at, row| {
        let mut columns = Vec::new();
        grid.columns(at / block, &mut columns);
        let mut random = mixed(seed ^ 1, at as u64, 0);
        for col in columns {
            for col in col * block..(col + 1) * block {
                if block == 1 || random.uniform() < features.fill {
                    row.push((col, random.value()));
                }
            }
        }
    })
}

/// The grid of blocks, or of entries where blocks have but one.
struct Grid {
    /// Blocks of each row.
    lengths: Vec<u32>,
    cols: usize,
    /// Columns that a row spreads over, unless it is longer.
    width: usize,
    /// Probability that a column is followed by its neighbour.
    follow: f64,
    /// Probability that a column is carried on to the next row.
    carry: f64,
    seed: u64,
}

impl Grid {
    fn new(features: &Features, rows: usize, cols: usize, seed: u64) -> Self {
        let rows = if cols == 0 { 0 } else { rows.min(u32::MAX as usize) };
        let fill = features.most_entries() / (features.rows as f64 * features.mean);
        let block = features.block.max(1) as f64;
        let mean = (features.mean * fill / block).clamp(0.0, cols as f64);
        let mean = if mean.is_finite() { mean } else { 0.0 };
        let width = (features.bandwidth * cols as f64) as usize;
        let width = width.clamp((mean as usize + 1).min(cols), cols);
        // Entries meet by chance, too; that is not to be added to what is asked for.
        let taken = mean / width as f64;
        let follow = (features.neighbours / 2.0 - taken) / (1.0 - taken);
        let met = 1.0 - (1.0 - taken) * (1.0 - taken) * (1.0 - taken);
        let carry = 1.0 - (1.0 - features.similarity) / (1.0 - met);
        let probability = |p: f64| if p > 0.0 { p.min(1.0) } else { 0.0 };
        Self {
            lengths: lengths(rows, mean, features, cols, seed),
            cols,
            width,
            follow: probability(follow).min(0.999),
            carry: probability(carry),
            seed,
        }
    }

    /// The columns of a row, in order.
    fn columns(&self, at: usize, columns: &mut Vec<usize>) {
        let length = self.lengths.get(at).map_or(0, |&length| length as usize);
        let width = self.width.max(length);
        let first = |row: usize| {
            let middle = (row as u128 * self.cols as u128 / self.lengths.len() as u128) as usize;
            middle.saturating_sub(width / 2).min(self.cols - width)
        };
        // Columns are carried along the diagonal where that is a step of at most one column.
        let along = self.cols <= self.lengths.len();
        let mut slot = 0;
        for _ in 0..ROUNDS {
            let mut missing = length - columns.len();
            while missing > 0 {
                let from = self.carried_from(at, slot);
                let mut random = mixed(self.seed ^ 2, from as u64, slot);
                slot += 1;
                let offset = random.below(width);
                let most = missing.min(width - offset);
                let mut run = 1;
                while run < most && random.uniform() < self.follow {
                    run += 1;
                }
                let col = first(if along { at } else { from }) + offset;
                columns.extend(col..col + run);
                missing -= run;
            }
            columns.sort_unstable();
            columns.dedup();
        }
        let start = first(at);
        let turn = mixed(self.seed ^ 3, at as u64, 0).below(width.max(1));
        let free = (0..width).map(|step| start + (step + turn) % width);
        let free = free.filter(|col| columns.binary_search(col).is_err());
        let rest: Vec<usize> = free.take(length - columns.len()).collect();
        if !rest.is_empty() {
            columns.extend(rest);
            columns.sort_unstable();
        }
    }

    /// The row in which a slot got its column.
    fn carried_from(&self, at: usize, slot: u64) -> usize {
        let mut row = at;
        while !row.is_multiple_of(CARRIED)
            && mixed(self.seed ^ 4, row as u64, slot).uniform() < self.carry
        {
            row -= 1;
        }
        row
    }
}

/// Lengths of rows whose sum is at most `rows` × `mean`.
fn lengths(rows: usize, mean: f64, features: &Features, cols: usize, seed: u64) -> Vec<u32> {
    let total = rows as f64 * mean;
    let longest = (mean * (1.0 + features.skew.max(0.0))).ceil().min(cols as f64);
    let variance = libm::log(1.0 + features.variation * features.variation);
    let deviation = libm::sqrt(variance);
    let mut weights: Vec<f64> = (0..rows)
        .map(|row| libm::exp(deviation * normal(&mut mixed(seed, row as u64, 0))))
        .collect();
    let mut long = Vec::new();
    let (mut length, mut left) = (longest, total / 2.0);
    while length > 2.0 * mean && length <= left && long.len() < rows / 2 {
        long.push(length);
        left -= length;
        length = (length / 2.0).ceil();
    }
    let mut places = Vec::new();
    let mut random = mixed(seed ^ 5, 0, 0);
    random.distinct(long.len(), rows, &mut places);
    let mut fixed = vec![false; if long.is_empty() { 0 } else { rows }];
    // Which of the places is the longest row's is drawn, too.
    for (index, &length) in long.iter().enumerate() {
        let (place, _) = places.swap_remove(random.below(long.len() - index));
        weights[place] = length;
        fixed[place] = true;
    }
    let is_fixed = |row: usize| fixed.get(row).copied().unwrap_or(false);
    let free: f64 = (0..rows).filter(|&row| !is_fixed(row)).map(|row| weights[row]).sum();
    let scale = (total - long.iter().sum::<f64>()).max(0.0) / free.max(f64::MIN_POSITIVE);
    // Rounding the sum, not each length, keeps the mean.
    let mut sum = 0.0_f64;
    let scaled = weights.iter().enumerate().map(|(row, &weight)| {
        if is_fixed(row) {
            return weight as u32;
        }
        let before = sum.floor();
        sum += weight * scale;
        (sum.floor() - before).min(longest) as u32
    });
    scaled.collect()
}
