//! Sliced ELLPACK as cuSPARSE takes it.

use sparserl_core::matrix::{CsrView, Scalar};

/// Rows per slice: one for each lane of a warp.
pub(super) const SLICE: usize = 32;

/// More slots than this many times the entries are not worth having.
const MOST_SLOTS_PER_ENTRY: usize = 4;

/// The column of a slot without an entry: −1 as a signed integer.
const PADDING: u32 = u32::MAX;

/// A matrix in slices of [`SLICE`] rows, each as wide as its longest row. Within a slice, a column
/// of slots follows the other. The last slice is as high as all, with rows of padding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sell<T> {
    /// Where each slice begins, and the number of slots. All fit in a signed 32-bit integer.
    pub(super) offsets: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Scalar> Sell<T> {
    /// Converts, unless it is not worth it or cannot be; then says why.
    pub(super) fn from_csr(matrix: CsrView<'_, T>) -> Result<Self, String> {
        let offsets = offsets(matrix)?;
        let slots = offsets.last().copied().unwrap_or(0) as usize;
        let mut columns = vec![PADDING; slots];
        let mut values = vec![T::from_f64(0.0); slots];
        for row in 0..matrix.rows() {
            let first = offsets.get(row / SLICE).copied().unwrap_or(0) as usize + row % SLICE;
            let (row_columns, row_values) = matrix.row(row);
            let slots = columns.iter_mut().zip(&mut values).skip(first).step_by(SLICE);
            for ((column, value), (&c, &v)) in slots.zip(row_columns.iter().zip(row_values)) {
                *column = c;
                *value = v;
            }
        }
        Ok(Self { offsets, columns, values })
    }
}

fn offsets<T: Scalar>(matrix: CsrView<'_, T>) -> Result<Vec<u32>, String> {
    let most = matrix.nnz().saturating_mul(MOST_SLOTS_PER_ENTRY);
    let slices = matrix.rows().div_ceil(SLICE);
    let mut offsets = Vec::with_capacity(slices + 1);
    offsets.push(0);
    let mut slots: usize = 0;
    for slice in 0..slices {
        let rows = slice * SLICE..matrix.rows().min((slice + 1) * SLICE);
        slots += SLICE * rows.map(|row| matrix.row_len(row)).max().unwrap_or(0);
        let offset = i32::try_from(slots).map_err(|_| "its slots are past 2^31".to_owned())?;
        offsets.push(offset.unsigned_abs());
    }
    if slots > most {
        return Err(format!("{slots} slots for {} entries", matrix.nnz()));
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sparserl_core::matrix::{Coo, Csr, Duplicates, generate};

    use super::*;

    /// The entries of a conversion, by row.
    fn back<T: Scalar>(sell: &Sell<T>, rows: usize, cols: usize) -> Csr<T> {
        let (mut row_indices, mut col_indices, mut values) = (vec![], vec![], vec![]);
        for (slice, bounds) in sell.offsets.windows(2).enumerate() {
            for slot in bounds[0] as usize..bounds[1] as usize {
                if sell.columns[slot] != PADDING {
                    let row = slice * SLICE + (slot - bounds[0] as usize) % SLICE;
                    row_indices.push(u32::try_from(row).unwrap());
                    col_indices.push(sell.columns[slot]);
                    values.push(sell.values[slot]);
                }
            }
        }
        let coo = Coo::new(rows, cols, row_indices, col_indices, values).unwrap();
        coo.to_csr(Duplicates::Refuse).unwrap()
    }

    #[test]
    fn slots_run_down_a_slice() {
        // Rows 0 and 1 of 33, and the last one alone in the second slice.
        let coo = Coo::new(33, 3, vec![0, 0, 1, 32], vec![0, 2, 1, 2], vec![1.0f32, 2.0, 3.0, 4.0]);
        let matrix = coo.unwrap().to_csr(Duplicates::Refuse).unwrap();
        let refused = Sell::from_csr(matrix.view()).unwrap_err();
        assert_eq!(refused, "96 slots for 4 entries");

        let matrix = generate::stencil5(6, 6);
        let sell = Sell::from_csr(matrix.view()).unwrap();
        assert_eq!(sell.offsets, [0, 160, 288], "the last 4 rows have at most 4 entries");
        assert_eq!(sell.columns.len(), 288);
        assert_eq!(sell.columns[..2], [0, 0], "the first entries of rows 0 and 1");
        assert_eq!(sell.columns[SLICE..SLICE + 2], [1, 1], "their second ones");
        assert_eq!(sell.columns[4 * SLICE], PADDING, "a corner has three");
        assert_eq!(sell.values[4 * SLICE], 0.0);
    }

    #[test]
    fn nothing_to_convert_is_no_failure() {
        for rows in [0, 1, 40] {
            let matrix = Coo::<f64>::new(rows, 3, vec![], vec![], vec![]).unwrap();
            let matrix = matrix.to_csr(Duplicates::Refuse).unwrap();
            let sell = Sell::from_csr(matrix.view()).unwrap();
            assert_eq!(back(&sell, rows, 3), matrix);
        }
    }

    proptest! {
        #[test]
        fn what_is_converted_comes_back(rows in 1usize..120, per_row in 1usize..7, seed: u64) {
            let matrix = generate::uniform(rows, 50, per_row, seed);
            let sell = Sell::from_csr(matrix.view());
            prop_assume!(sell.is_ok());
            prop_assert_eq!(back(&sell.unwrap(), rows, 50), matrix);
        }
    }
}
