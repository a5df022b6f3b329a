//! What is done to a matrix to make others of it.

use sparserl_core::matrix::{CooError, Csr};
use sparserl_core::random::SplitMix64;

use super::arrays::{Entries, relabelled};
use super::order::{by_degree, cuthill_mckee, shuffled};
use super::pattern::{Pattern, Step};
use super::size::Size;

impl Step {
    /// The other matrix that the step takes.
    pub(super) fn other(&self) -> Option<&Pattern> {
        match self {
            Self::Beside(other) | Self::Above(other) => Some(other),
            _ => None,
        }
    }

    /// Whether the matrix that the step makes may have more entries.
    #[must_use]
    pub fn may_add_entries(&self) -> bool {
        match self {
            Self::Replicate { .. }
            | Self::DenseRows { .. }
            | Self::DenseColumns { .. }
            | Self::Beside(_)
            | Self::Above(_) => true,
            Self::PermuteRows { .. }
            | Self::PermuteColumns { .. }
            | Self::PermuteBoth { .. }
            | Self::CuthillMckee
            | Self::DegreeOrder
            | Self::Transpose
            | Self::Crop { .. }
            | Self::Thin { .. } => false,
        }
    }

    /// What becomes of a size, with that of the other matrix if there is one. Nothing does by a
    /// crop, which is left out if it leaves nothing.
    pub(super) fn size(&self, size: Size, other: Option<Size>) -> Size {
        let Size { rows, cols, nnz } = size;
        let other = other.unwrap_or(Size { rows: 0, cols: 0, nnz: 0 });
        let both = nnz.saturating_add(other.nnz);
        match *self {
            Self::Transpose => Size { rows: cols, cols: rows, nnz },
            Self::Replicate { times } => {
                let times = u64::from(times.max(1));
                let [rows, cols, nnz] = [rows, cols, nnz].map(|count| count.saturating_mul(times));
                Size { rows, cols, nnz }
            }
            Self::DenseRows { count, fill, .. } => {
                let added = share(cols, fill).saturating_mul(u64::from(count).min(rows));
                Size { nnz: nnz.saturating_add(added), ..size }
            }
            Self::DenseColumns { count, fill, .. } => {
                let added = share(rows, fill).saturating_mul(u64::from(count).min(cols));
                Size { nnz: nnz.saturating_add(added), ..size }
            }
            Self::Beside(_) => Size {
                rows: rows.max(other.rows),
                cols: cols.saturating_add(other.cols),
                nnz: both,
            },
            Self::Above(_) => Size {
                rows: rows.saturating_add(other.rows),
                cols: cols.max(other.cols),
                nnz: both,
            },
            _ => size,
        }
    }

    /// The matrix that the step makes; the other one is there if [`Step::other`] has a pattern.
    pub(super) fn apply(
        &self,
        matrix: &Csr<f64>,
        other: Option<&Csr<f64>>,
    ) -> Result<Csr<f64>, CooError> {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let mut entries = Entries::new(rows, cols);
        match *self {
            Self::PermuteRows { seed } => {
                return relabelled(matrix, Some(&shuffled(rows, seed)), None);
            }
            Self::PermuteColumns { seed } => {
                return relabelled(matrix, None, Some(&shuffled(cols, seed)));
            }
            Self::PermuteBoth { seed } => {
                let row_order = shuffled(rows, seed);
                let col_order = (rows != cols).then(|| shuffled(cols, seed ^ 1));
                let col_order = col_order.as_ref().unwrap_or(&row_order);
                return relabelled(matrix, Some(&row_order), Some(col_order));
            }
            Self::CuthillMckee => {
                let (row_order, col_order) = cuthill_mckee(matrix)?;
                return relabelled(matrix, Some(&row_order), Some(&col_order));
            }
            Self::DegreeOrder => {
                let (row_order, col_order) = by_degree(matrix);
                return relabelled(matrix, Some(&row_order), Some(&col_order));
            }
            Self::Transpose => {
                entries = Entries::new(cols, rows);
                entries.extend(matrix, |row, col| Some((col, row)));
            }
            Self::Crop { top, rows: some_rows, left, cols: some_cols } => {
                let (top, rows) = range(rows, top, some_rows);
                let (left, cols) = range(cols, left, some_cols);
                entries = Entries::new(rows, cols);
                entries.extend(matrix, |row, col| {
                    let (row, col) = (row.checked_sub(top)?, col.checked_sub(left)?);
                    (row < rows && col < cols).then_some((row, col))
                });
            }
            Self::Replicate { times } => {
                let times = times.max(1) as usize;
                entries = Entries::new(rows.saturating_mul(times), cols.saturating_mul(times));
                for copy in 0..times {
                    entries.extend(matrix, |row, col| Some((row + copy * rows, col + copy * cols)));
                }
            }
            Self::Thin { keep, seed } => {
                let mut random = SplitMix64::new(seed);
                entries.extend(matrix, |row, col| {
                    (random.below(1000) < usize::from(keep)).then_some((row, col))
                });
            }
            Self::DenseRows { count, fill, seed } => {
                entries.extend(matrix, |row, col| Some((row, col)));
                lines(rows, cols, count, fill, seed, |row, col, value| {
                    entries.push(row, col, value);
                });
            }
            Self::DenseColumns { count, fill, seed } => {
                entries.extend(matrix, |row, col| Some((row, col)));
                lines(cols, rows, count, fill, seed, |col, row, value| {
                    entries.push(row, col, value);
                });
            }
            Self::Beside(_) => {
                let other = other.unwrap_or(matrix);
                entries = Entries::new(rows.max(other.rows()), cols + other.cols());
                entries.extend(matrix, |row, col| Some((row, col)));
                entries.extend(other, |row, col| Some((row, col + cols)));
            }
            Self::Above(_) => {
                let other = other.unwrap_or(matrix);
                entries = Entries::new(rows + other.rows(), cols.max(other.cols()));
                entries.extend(matrix, |row, col| Some((row, col)));
                entries.extend(other, |row, col| Some((row + rows, col)));
            }
        }
        entries.into_csr()
    }
}

/// So many thousandths, at least one where there is any.
fn share(count: u64, thousandths: u16) -> u64 {
    let share = u128::from(count) * u128::from(thousandths.min(1000)) / 1000;
    (share as u64).max(count.min(1))
}

/// The first and how many of `count`, from shares of it.
fn range(count: usize, first: u16, some: u16) -> (usize, usize) {
    let some = share(count as u64, some) as usize;
    ((count as u128 * u128::from(first) / 1000).min((count - some) as u128) as usize, some)
}

/// Entries spread over some of `rows`, each at a share of `cols`.
fn lines(
    rows: usize,
    cols: usize,
    count: u32,
    fill: u16,
    seed: u64,
    mut push: impl FnMut(usize, usize, f64),
) {
    let some = share(cols as u64, fill) as usize;
    let mut random = SplitMix64::new(seed);
    for index in strata(rows, rows.min(count as usize)) {
        let row = index.start + random.below(index.len());
        for range in strata(cols, some) {
            push(row, range.start + random.below(range.len()), random.uniform() + 0.5);
        }
    }
}

/// Ranges, none empty, that make up `0..count`; `pieces` ≤ `count`.
fn strata(count: usize, pieces: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let start = move |piece: usize| (piece as u128 * count as u128 / pieces as u128) as usize;
    (0..pieces).map(move |piece| start(piece)..start(piece + 1))
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;

    fn apply(step: &Step, matrix: &Csr<f64>) -> Csr<f64> {
        step.apply(matrix, None).unwrap()
    }

    fn lengths(matrix: &Csr<f64>) -> Vec<usize> {
        (0..matrix.rows()).map(|row| matrix.view().row_len(row)).collect()
    }

    fn sorted(mut numbers: Vec<usize>) -> Vec<usize> {
        numbers.sort_unstable();
        numbers
    }

    fn half_width(matrix: &Csr<f64>) -> usize {
        let row = |row| matrix.view().row(row).0.iter().map(move |&col| row.abs_diff(col as usize));
        (0..matrix.rows()).flat_map(row).max().unwrap()
    }

    #[test]
    fn permutations_keep_lengths_and_values() {
        let matrix = generate::rmat(7, 6, 1);
        let turned = |matrix: &Csr<f64>| apply(&Step::Transpose, matrix);
        for (step, rows_stay, cols_stay) in [
            (Step::PermuteRows { seed: 1 }, false, true),
            (Step::PermuteColumns { seed: 1 }, true, false),
            (Step::PermuteBoth { seed: 1 }, false, false),
            (Step::CuthillMckee, false, false),
            (Step::DegreeOrder, false, false),
        ] {
            let changed = apply(&step, &matrix);
            assert_eq!(lengths(&changed) == lengths(&matrix), rows_stay, "{step:?}");
            let (cols, changed_cols) = (lengths(&turned(&matrix)), lengths(&turned(&changed)));
            assert_eq!(changed_cols == cols, cols_stay, "{step:?}");
            assert_eq!(sorted(lengths(&changed)), sorted(lengths(&matrix)));
            assert_eq!(sorted(changed_cols), sorted(cols));
        }
        assert_eq!(turned(&turned(&matrix)), matrix);
        // A symmetric permutation keeps the diagonal.
        let diagonal = generate::banded(50, 0, 3);
        assert_eq!(half_width(&apply(&Step::PermuteBoth { seed: 1 }, &diagonal)), 0);
    }

    #[test]
    fn orders_do_what_they_are_named_for() {
        let band = generate::stencil5(20, 20);
        let shuffled = apply(&Step::PermuteBoth { seed: 5 }, &band);
        let ordered = apply(&Step::CuthillMckee, &shuffled);
        assert!(half_width(&shuffled) > 300 && half_width(&ordered) <= 25);
        let falling = lengths(&apply(&Step::DegreeOrder, &generate::rmat(7, 6, 1)));
        assert!(falling.is_sorted_by(|one, next| one >= next) && falling[0] > 20);
        // Of a rectangular band whose rows and columns are shuffled.
        let crop = Step::Crop { top: 0, rows: 500, left: 0, cols: 600 };
        let tall = apply(&crop, &generate::banded(400, 2, 1));
        let shuffled = apply(&Step::PermuteBoth { seed: 5 }, &tall);
        let ordered = apply(&Step::CuthillMckee, &shuffled);
        assert_eq!((ordered.rows(), ordered.cols(), ordered.nnz()), (200, 240, tall.nnz()));
        let span = |matrix: &Csr<f64>| -> u32 {
            let rows = (0..matrix.rows()).map(|row| matrix.view().row(row).0);
            rows.map(|row| row[row.len() - 1] - row[0]).max().unwrap()
        };
        assert!(span(&shuffled) > 150 && span(&ordered) < 20, "{}", span(&ordered));
    }

    #[test]
    fn parts_and_copies_are_where_they_belong() {
        let matrix = generate::uniform(40, 60, 5, 1);
        let crop = Step::Crop { top: 250, rows: 500, left: 900, cols: 500 };
        let part = apply(&crop, &matrix);
        assert_eq!((part.rows(), part.cols()), (20, 30));
        for row in 0..20 {
            let columns =
                matrix.view().row(row + 10).0.iter().filter_map(|&col| col.checked_sub(30));
            assert_eq!(part.view().row(row).0, columns.collect::<Vec<_>>());
        }
        let copies = apply(&Step::Replicate { times: 3 }, &matrix);
        assert_eq!((copies.rows(), copies.cols(), copies.nnz()), (120, 180, 600));
        let shifted: Vec<u32> = matrix.view().row(7).0.iter().map(|col| col + 120).collect();
        assert_eq!(copies.view().row(87).0, shifted);
        let thin = apply(&Step::Thin { keep: 300, seed: 1 }, &generate::uniform(500, 500, 8, 1));
        assert!((1000..1400).contains(&thin.nnz()), "{}", thin.nnz());

        let other = generate::banded(50, 1, 1);
        let pattern = Box::new(crate::corpus::Pattern {
            base: crate::corpus::Base::Generated(crate::corpus::Generator::Banded {
                rows: 50,
                half_width: 1,
                seed: 1,
            }),
            steps: Vec::new(),
        });
        let beside = Step::Beside(pattern.clone()).apply(&matrix, Some(&other)).unwrap();
        assert_eq!((beside.rows(), beside.cols(), beside.nnz()), (50, 110, 200 + 148));
        assert_eq!(beside.view().row(45).0, [104, 105, 106]);
        let above = Step::Above(pattern).apply(&matrix, Some(&other)).unwrap();
        assert_eq!((above.rows(), above.cols(), above.nnz()), (90, 60, 200 + 148));
        assert_eq!(above.view().row(41).0, [0, 1, 2]);
    }

    #[test]
    fn dense_lines_are_added() {
        let matrix = generate::banded(100, 0, 1);
        let rows = apply(&Step::DenseRows { count: 3, fill: 400, seed: 1 }, &matrix);
        let long = lengths(&rows).into_iter().filter(|&length| length > 1);
        assert!(long.clone().all(|length| length == 40 || length == 41) && long.count() == 3);
        let columns = apply(&Step::DenseColumns { count: 3, fill: 400, seed: 1 }, &matrix);
        assert_eq!(apply(&Step::Transpose, &columns), rows);
    }
}
