//! Some rows of a matrix that stand for all of it, where all would take too long.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Csr, CsrView, Offsets, Scalar};
use crate::random::SplitMix64;

/// Rows that stay together, and begin at a multiple of this: layouts store rows in blocks, chunks
/// and diagonals, which single rows would not show.
const RUN: usize = 64;
/// Neighbouring columns that stay where one of them has an entry: a multiple of all sides of
/// blocks.
const GROUP: u32 = 24;

/// Rows of a matrix, in their order and with all its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSample<T> {
    /// The rows as a matrix.
    pub matrix: Csr<T>,
    /// Where they are in the whole, in increasing order; runs do not touch.
    pub runs: Vec<Range<usize>>,
    /// Rows that lost entries at their end, because they alone would have been too many.
    pub shortened: usize,
}

/// Takes runs of rows from all over a matrix, with rows of every length that it has: of each power
/// of two in which there are lengths a row in its surroundings, the longest row, empty rows, the
/// first and the last row; what is left is spread evenly.
///
/// There are at most `most` entries, and at most `most` rows. The same matrix gives the same rows.
#[must_use]
pub fn sample_rows<T: Scalar>(matrix: CsrView<'_, T>, most: usize) -> RowSample<T> {
    let mut chosen = Chosen::new(matrix, most);
    if chosen.take(0..matrix.rows()) {
        return chosen.finish();
    }
    // Half of it shows every length, whatever is frequent.
    let anchors = anchors(matrix);
    let mut for_anchors = most.div_ceil(2);
    for (index, &anchor) in anchors.iter().enumerate() {
        let before = chosen.left;
        // The longest come first: alone, one may have as much as all that are left together.
        chosen.take_around(anchor, for_anchors / (anchors.len() - index), for_anchors / 2);
        for_anchors -= (before - chosen.left).min(for_anchors);
    }
    let runs = matrix.rows().div_ceil(RUN);
    let total: usize = (0..matrix.rows()).map(|row| weight(matrix, row)).sum();
    let wanted = (runs as u128 * chosen.left as u128).div_ceil(total.max(1) as u128);
    // Twice, because some places come again before others have come.
    for step in 0..2 * (wanted as u64).min(runs as u64) {
        chosen.take_around(spread(step, runs) * RUN, chosen.left, 0);
    }
    chosen.finish()
}

/// Takes one run of rows from the middle of a matrix. Diagonals stay diagonals, which they do not
/// where rows are left out between others.
///
/// There are at most `most` entries, and at most `most` rows. The same matrix gives the same rows.
#[must_use]
pub fn middle_rows<T: Scalar>(matrix: CsrView<'_, T>, most: usize) -> RowSample<T> {
    let mut chosen = Chosen::new(matrix, most);
    let middle = matrix.rows() / 2 / RUN * RUN;
    let forward = (middle..matrix.rows()).take_while(|&row| chosen.take(row..row + 1)).count();
    let _ = (0..middle).rev().take_while(|&row| chosen.take(row..row + 1)).count();
    if forward == 0 && middle < matrix.rows() {
        chosen.take_around(middle, chosen.left, chosen.left);
    }
    chosen.finish()
}

/// The matrix without columns that have no entry, so that a product with some of its rows needs no
/// more of a dense matrix than these read. Columns go in groups of neighbours: blocks of any side
/// stay blocks, and diagonals of neighbouring rows stay diagonals.
#[must_use]
pub fn without_empty_columns<T: Scalar>(matrix: CsrView<'_, T>) -> Csr<T> {
    let groups: BTreeSet<u32> = matrix.columns().iter().map(|column| column / GROUP).collect();
    let width = GROUP as usize;
    // The last one may reach past the last column.
    let last = groups.last().map_or(1, |&last| matrix.cols() - last as usize * width).min(width);
    let cols = (groups.len().saturating_sub(1) * width + last).min(matrix.cols());
    let places: BTreeMap<u32, u32> = groups.into_iter().zip(0..).collect();
    let (mut offsets, mut columns) = (vec![0], Vec::with_capacity(matrix.nnz()));
    for row in 0..matrix.rows() {
        for &column in matrix.row(row).0 {
            // Each group has one.
            let place = places.get(&(column / GROUP)).copied().unwrap_or_default();
            columns.push(place * GROUP + column % GROUP);
        }
        offsets.push(columns.len() as u64);
    }
    // Columns of a row keep their order, and stay different.
    let offsets = Offsets::U64(offsets).narrowed();
    Csr::from_valid(matrix.rows(), cols, offsets, columns, matrix.values().to_vec())
}

/// The first, the last and the longest row, and of each power of two in which there are lengths the
/// row in the middle of all such; longest first.
fn anchors<T: Scalar>(matrix: CsrView<'_, T>) -> Vec<usize> {
    let Some(last) = matrix.rows().checked_sub(1) else { return Vec::new() };
    let stratum = |row: usize| matrix.row_len(row).checked_ilog2().map_or(0, |log| log + 1);
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    let mut longest = 0;
    for row in 0..=last {
        *counts.entry(stratum(row)).or_default() += 1;
        if matrix.row_len(row) > matrix.row_len(longest) {
            longest = row;
        }
    }
    let mut until_middle: BTreeMap<u32, usize> =
        counts.iter().map(|(&stratum, &count)| (stratum, count / 2)).collect();
    let mut middles = BTreeMap::new();
    for row in 0..=last {
        let stratum = stratum(row);
        match until_middle.get_mut(&stratum) {
            Some(0) => {
                middles.entry(stratum).or_insert(row);
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }
    let mut anchors = vec![longest];
    anchors.extend(middles.into_values().rev());
    anchors.extend([0, last]);
    anchors
}

/// Places of 0..`count` in an order in which every beginning is spread evenly, and without a period
/// that a matrix might share: multiples of the golden ratio.
fn spread(step: u64, count: usize) -> usize {
    let turn = step.wrapping_mul(SplitMix64::STEP);
    ((u128::from(turn) * count as u128) >> 64) as usize
}

/// What a row takes of the limit: an empty one is a row, too.
fn weight<T: Scalar>(matrix: CsrView<'_, T>, row: usize) -> usize {
    matrix.row_len(row).max(1)
}

/// Rows chosen so far, with how many entries of each.
struct Chosen<'a, T> {
    matrix: CsrView<'a, T>,
    rows: BTreeMap<usize, usize>,
    /// Weight that may still be taken.
    left: usize,
}

impl<'a, T: Scalar> Chosen<'a, T> {
    fn new(matrix: CsrView<'a, T>, most: usize) -> Self {
        Self { matrix, rows: BTreeMap::new(), left: most }
    }

    /// Takes rows if what they add is not too much.
    fn take(&mut self, rows: Range<usize>) -> bool {
        let added = self.added(rows.clone());
        if added > self.left {
            return false;
        }
        self.left -= added;
        for row in rows {
            self.rows.entry(row).or_insert(self.matrix.row_len(row));
        }
        true
    }

    /// Takes the largest aligned run around a row that adds at most `allowance`; or else the row
    /// alone, of which at most `alone` entries.
    fn take_around(&mut self, row: usize, allowance: usize, alone: usize) {
        let mut size = RUN;
        while size > 0 {
            let start = row / size * size;
            let run = start..(start + size).min(self.matrix.rows());
            if self.added(run.clone()) <= allowance {
                self.take(run);
                return;
            }
            size /= 2;
        }
        let kept = alone.min(self.matrix.row_len(row));
        if kept > 0 && kept <= self.left && !self.rows.contains_key(&row) {
            self.left -= kept;
            self.rows.insert(row, kept);
        }
    }

    fn added(&self, rows: Range<usize>) -> usize {
        let new = rows.filter(|row| !self.rows.contains_key(row));
        new.map(|row| weight(self.matrix, row)).sum()
    }

    fn finish(self) -> RowSample<T> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut shortened = 0;
        for (&row, &kept) in &self.rows {
            let (row_columns, row_values) = self.matrix.row(row);
            shortened += usize::from(kept < row_columns.len());
            columns.extend(row_columns.iter().take(kept));
            values.extend(row_values.iter().take(kept));
            offsets.push(columns.len() as u64);
            match runs.last_mut() {
                Some(run) if run.end == row => run.end += 1,
                _ => runs.push(row..row + 1),
            }
        }
        let offsets = Offsets::U64(offsets).narrowed();
        let (rows, cols) = (self.rows.len(), self.matrix.cols());
        // Beginnings of rows of a valid matrix are a valid matrix.
        RowSample { matrix: Csr::from_valid(rows, cols, offsets, columns, values), runs, shortened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::generate;

    /// The rows are those of the whole.
    fn check(matrix: &Csr<f64>, sample: &RowSample<f64>, most: usize) {
        assert!(sample.matrix.nnz() <= most && sample.matrix.rows() <= most);
        assert_eq!(sample.matrix.cols(), matrix.cols());
        assert!(sample.runs.windows(2).all(|pair| pair[0].end < pair[1].start));
        let rows: Vec<usize> = sample.runs.iter().cloned().flatten().collect();
        assert_eq!(rows.len(), sample.matrix.rows());
        let mut shortened = 0;
        for (index, &row) in rows.iter().enumerate() {
            let (columns, values) = sample.matrix.view().row(index);
            let (all_columns, all_values) = matrix.view().row(row);
            assert_eq!(columns, &all_columns[..columns.len()]);
            assert_eq!(values, &all_values[..values.len()]);
            shortened += usize::from(columns.len() < all_columns.len());
        }
        assert_eq!(shortened, sample.shortened);
    }

    #[test]
    fn every_length_is_there() {
        let matrix = generate::rmat(14, 16, 3);
        let view = matrix.view();
        let sample = sample_rows(view, 40_000);
        check(&matrix, &sample, 40_000);
        assert!(sample.matrix.nnz() > 20_000, "{}", sample.matrix.nnz());
        let strata = |matrix: CsrView<'_, f64>| {
            let mut all: Vec<_> =
                (0..matrix.rows()).map(|row| matrix.row_len(row).checked_ilog2()).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let (whole, part) = (strata(view), strata(sample.matrix.view()));
        assert!(whole.len() >= 8 && whole.contains(&None), "{whole:?}");
        assert_eq!(part, whole);
        assert_eq!(sample_rows(view, 40_000), sample);
    }

    #[test]
    fn rows_stay_together() {
        let matrix = generate::stencil5(400, 400);
        let sample = sample_rows(matrix.view(), 20_000);
        check(&matrix, &sample, 20_000);
        let whole = sample.runs.iter().filter(|run| run.start % RUN == 0 && run.len() >= RUN);
        assert!(whole.count() >= 20, "{:?}", sample.runs);
        assert_eq!(sample.runs[0].start, 0);
        assert_eq!(sample.runs.last().unwrap().end, 160_000);
        assert_eq!(sample.shortened, 0);
    }

    #[test]
    fn a_row_that_is_too_long_is_shortened() {
        let matrix = generate::one_dense_row(500, 100_000, 3);
        for sample in [sample_rows(matrix.view(), 5_000), middle_rows(matrix.view(), 5_000)] {
            check(&matrix, &sample, 5_000);
        }
        let sample = sample_rows(matrix.view(), 5_000);
        assert_eq!(sample.shortened, 1);
        let longest = (0..sample.matrix.rows()).map(|row| sample.matrix.view().row_len(row)).max();
        assert!(longest.unwrap() > 100, "{longest:?}");
    }

    #[test]
    fn columns_without_entries_are_left_out() {
        let matrix = generate::stencil5(400, 400);
        let middle = middle_rows(matrix.view(), 2_000).matrix;
        let narrow = without_empty_columns(middle.view());
        // Three runs of some 400 columns.
        assert!(narrow.cols() < 1_400, "{}", narrow.cols());
        assert_eq!(
            (narrow.rows(), narrow.view().values()),
            (middle.rows(), middle.view().values())
        );
        let mut shifts = BTreeMap::new();
        for row in 0..middle.rows() {
            let (before, after) = (middle.view().row(row).0, narrow.view().row(row).0);
            assert!(after.windows(2).all(|pair| pair[0] < pair[1]));
            for (&before, &after) in before.iter().zip(after) {
                assert_eq!(before % GROUP, after % GROUP);
                assert_eq!(*shifts.entry(before / GROUP).or_insert(before - after), before - after);
            }
        }
        let whole = generate::banded(100, 3, 1);
        assert_eq!(without_empty_columns(whole.view()), whole);
        let empty = generate::hyper_sparse(10, 5_000_000, 0, 1);
        assert_eq!(without_empty_columns(empty.view()).cols(), 1);
    }

    #[test]
    fn the_middle_is_one_run() {
        let matrix = generate::banded(3_000, 3, 1);
        let sample = middle_rows(matrix.view(), 2_000);
        check(&matrix, &sample, 2_000);
        assert_eq!(sample.runs.len(), 1);
        assert!(sample.matrix.nnz() > 1_900);
    }

    #[test]
    fn nothing_is_left_out_where_all_fits() {
        let empty =
            |rows, cols| Csr::new(rows, cols, Offsets::U32(vec![0; rows + 1]), vec![], vec![]);
        let matrices =
            [generate::uniform(100, 50, 3, 1), empty(70, 9).unwrap(), empty(0, 5).unwrap()];
        for matrix in matrices {
            for sample in [sample_rows(matrix.view(), 10_000), middle_rows(matrix.view(), 10_000)] {
                check(&matrix, &sample, 10_000);
                assert_eq!(sample.matrix, matrix);
            }
        }
        let nothing = sample_rows(generate::uniform(100, 50, 3, 1).view(), 0);
        assert_eq!(nothing.matrix.rows(), 0);
    }
}
