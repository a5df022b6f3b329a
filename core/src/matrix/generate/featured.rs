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
        // Entries meet by chance, too, and the first of a row follows none: what is asked for is
        // the sum. Runs of entries meet less often than as many single ones.
        let taken = mean / width as f64;
        let within = features.neighbours / 2.0 * mean / (mean - 1.0).max(0.5);
        let follow = (within - taken) / (1.0 - taken);
        let met = 1.0 - libm::pow(1.0 - taken, 3.0 - features.neighbours.clamp(0.0, 2.0));
        let carry = 1.0 - (1.0 - features.similarity) / (1.0 - met);
        let probability = |p: f64| if p > 0.0 { p.min(1.0) } else { 0.0 };
        Self {
            lengths: lengths(rows, mean, features, cols, seed),
            cols,
            width,
            follow: probability(follow).min(0.999),
            // No column is carried to one row in so many.
            carry: probability(carry * CARRIED as f64 / (CARRIED - 1) as f64),
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
                let offset = random.below(width);
                // Lengths of runs stay for as long as columns may be carried, lest longer ones push
                // others out of the row.
                let mut random = mixed(self.seed ^ 6, (at / CARRIED) as u64, slot);
                slot += 1;
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
    let longest = libm::ceil(mean * (1.0 + features.skew.max(0.0))).min(cols as f64);
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
        length = libm::ceil(length / 2.0);
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
        let before = libm::floor(sum);
        sum += weight * scale;
        (libm::floor(sum) - before).min(longest) as u32
    });
    scaled.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Mean and variation of row lengths, longest ÷ mean − 1, widest row ÷ columns, neighbours and
    /// similarity.
    fn measured(matrix: &Csr<f64>) -> [f64; 6] {
        let view = matrix.view();
        let (rows, cols, nnz) = (matrix.rows(), matrix.cols() as f64, matrix.nnz() as f64);
        let mean = nnz / rows as f64;
        let lengths = (0..rows).map(|row| view.row_len(row) as f64);
        let variance = lengths.clone().map(|length| (length - mean) * (length - mean)).sum::<f64>();
        let longest = lengths.fold(0.0, f64::max);
        let (mut widest, mut neighbours, mut similar, mut with_next) = (0, 0, 0, 0);
        for row in 0..rows {
            let columns = view.row(row).0;
            neighbours += 2 * columns.windows(2).filter(|pair| pair[1] - pair[0] == 1).count();
            let span = columns.first().zip(columns.last()).map_or(0, |(first, last)| last - first);
            widest = widest.max(span);
            if row + 1 < rows {
                let next = view.row(row + 1).0;
                with_next += columns.len();
                similar += columns
                    .iter()
                    .filter(|&&col| next.iter().any(|&other| other.abs_diff(col) <= 1))
                    .count();
            }
        }
        [
            mean,
            libm::sqrt(variance / rows as f64) / mean,
            longest / mean - 1.0,
            f64::from(widest) / cols,
            neighbours as f64 / nnz,
            similar as f64 / with_next as f64,
        ]
    }

    fn check(features: &Features, tolerances: [f64; 6], seed: u64) {
        let found = measured(&featured(features, seed));
        let Features { mean, variation, skew, bandwidth, neighbours, similarity, .. } = *features;
        let asked = [mean, variation, skew, bandwidth, neighbours, similarity];
        for ((asked, found), tolerance) in asked.into_iter().zip(found).zip(tolerances) {
            assert!((asked - found).abs() <= tolerance, "{features:?} has {found}, not {asked}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Lengths that hardly vary, so that nothing else does: within 1 % of the mean, 0.06 of the
        /// neighbours, 0.05 of the similarity and 3 % of the bandwidth.
        #[test]
        fn rows_look_as_asked(
            mean in 10.0..30.0,
            bandwidth in 0.2..1.0,
            neighbours in 0.2..1.7,
            similarity in 0.15..0.9,
            cols in 1_500_usize..50_000,
            seed in any::<u64>(),
        ) {
            let rows = 16_000;
            let features = Features {
                rows, cols, mean, variation: 0.0, skew: 0.0, bandwidth, neighbours, similarity,
                block: 1, fill: 1.0,
            };
            // A length is cut to the next whole number, so the longest is that beyond the mean.
            let tolerances = [0.01 * mean, 0.06, 1.0 / mean, 0.03, 0.06, 0.05];
            check(&features, tolerances, seed);
        }

        /// Lengths that vary: within 1 % of the mean, 10 % of the variation and 2 % of the skew.
        #[test]
        fn lengths_vary_as_asked(
            mean in 20.0..60.0,
            variation in 0.2..0.9,
            seed in any::<u64>(),
        ) {
            let features = Features {
                rows: 20_000, cols: 20_000, mean, variation, skew: 12.0 * variation.max(0.5),
                bandwidth: 1.0, neighbours: 0.5, similarity: 0.3, block: 1, fill: 1.0,
            };
            let any = f64::INFINITY;
            let tolerances = [0.01 * mean, 0.1 * variation, 0.02 * features.skew, any, any, any];
            check(&features, tolerances, seed);
        }

        /// Of every block that has an entry, the share asked for has one, within 0.03; none is
        /// beyond the number stated.
        #[test]
        fn blocks_are_filled(
            block in 2_usize..8,
            fill in 0.3..1.0,
            mean in 8.0..30.0,
            seed in any::<u64>(),
        ) {
            let features = Features {
                rows: 2_000, cols: 3_000, mean, variation: 0.3, skew: 3.0, bandwidth: 0.5,
                neighbours: 0.3, similarity: 0.5, block, fill,
            };
            let matrix = featured(&features, seed);
            let mut blocks = alloc::collections::BTreeSet::new();
            for row in 0..matrix.rows() {
                let columns = matrix.view().row(row).0;
                blocks.extend(columns.iter().map(|&col| (row / block, col as usize / block)));
            }
            let share = matrix.nnz() as f64 / (blocks.len() * block * block) as f64;
            // A block of four at a third is empty in one of five cases, and then not seen.
            let seen = 1.0 - libm::pow(1.0 - fill, (block * block) as f64);
            prop_assert!((share * seen - fill).abs() < 0.03, "{share} of {fill}");
            prop_assert!(matrix.nnz() as f64 <= features.most_entries());
        }
    }

    #[test]
    fn what_makes_no_sense_makes_a_matrix_all_the_same() {
        let sane = Features {
            rows: 50,
            cols: 40,
            mean: 5.0,
            variation: 0.5,
            skew: 2.0,
            bandwidth: 0.5,
            neighbours: 1.0,
            similarity: 0.5,
            block: 1,
            fill: 1.0,
        };
        let full = featured(&Features { mean: 1e9, variation: 0.0, ..sane }, 1);
        assert_eq!(full.nnz(), 50 * 40);
        for features in [
            Features { rows: 0, ..sane },
            Features { cols: 0, ..sane },
            Features { mean: 0.0, ..sane },
            Features { mean: f64::NAN, ..sane },
            Features { block: 100, ..sane },
        ] {
            assert_eq!(featured(&features, 1).nnz(), 0);
        }
        for features in [
            Features { block: 0, ..sane },
            Features { skew: 1e9, ..sane },
            Features { variation: -1.0, skew: -1.0, ..sane },
            Features { bandwidth: 0.0, neighbours: 9.0, similarity: 9.0, ..sane },
            Features { bandwidth: 9.0, neighbours: -1.0, similarity: -1.0, ..sane },
        ] {
            let nnz = featured(&features, 1).nnz();
            assert!((1..=250).contains(&nnz), "{features:?}: {nnz}");
        }
    }
}
