//! Block CSR as cuSPARSE takes it.

use std::ops::RangeInclusive;

use sparserl_core::matrix::{CsrView, Scalar};

/// Sides of the blocks that are tried.
const SIDES: RangeInclusive<usize> = 2..=4;

/// More values than this many times the entries are not worth having.
const MOST_VALUES_PER_ENTRY: f64 = 1.7;

/// A matrix in square blocks, each stored row by row; the blocks of a block row by column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bsr<T> {
    /// Rows and columns of a block.
    pub(super) side: usize,
    /// Offsets of the block rows, and the number of blocks. All fit in a signed 32-bit integer.
    pub(super) offsets: Vec<u32>,
    /// The block column of each block.
    pub(super) columns: Vec<u32>,
    /// `side * side` for each block.
    pub(super) values: Vec<T>,
}

impl<T: Scalar> Bsr<T> {
    /// Converts with the side that needs the fewest values, unless it is not worth it or cannot be;
    /// then says why.
    ///
    /// Only sides that divide both dimensions are considered: the dense operands have no room for
    /// more.
    pub(super) fn from_csr(matrix: CsrView<'_, T>) -> Result<Self, String> {
        let divides = |side: &usize| {
            matrix.rows().is_multiple_of(*side) && matrix.cols().is_multiple_of(*side)
        };
        let counted = SIDES.filter(divides).map(|side| (count_blocks(matrix, side), side));
        // Of two that need as many values, the one with larger, and so fewer, blocks.
        let best = counted.min_by_key(|(blocks, side)| (blocks * side * side, *blocks));
        let Some((blocks, side)) = best else {
            let (rows, cols) = (matrix.rows(), matrix.cols());
            return Err(format!("no block side from 2 to 4 divides {rows} x {cols}"));
        };
        let values = blocks * side * side;
        if values as f64 > MOST_VALUES_PER_ENTRY * matrix.nnz() as f64 {
            return Err(format!("{values} values in blocks for {} entries", matrix.nnz()));
        }
        if i32::try_from(blocks).is_err() {
            return Err("its blocks are past 2^31".to_owned());
        }
        Ok(convert(matrix, side, blocks))
    }
}

/// Blocks with at least one entry.
fn count_blocks<T: Scalar>(matrix: CsrView<'_, T>, side: usize) -> usize {
    let mut blocks = 0;
    let mut last_row = vec![usize::MAX; matrix.cols() / side];
    for row in 0..matrix.rows() {
        for &column in matrix.row(row).0 {
            if let Some(last) = last_row.get_mut(column as usize / side)
                && *last != row / side
            {
                *last = row / side;
                blocks += 1;
            }
        }
    }
    blocks
}

fn convert<T: Scalar>(matrix: CsrView<'_, T>, side: usize, blocks: usize) -> Bsr<T> {
    let mut offsets = vec![0];
    let mut columns: Vec<u32> = Vec::with_capacity(blocks);
    let mut values = vec![T::from_f64(0.0); blocks * side * side];
    for block_row in 0..matrix.rows() / side {
        let rows = block_row * side..(block_row + 1) * side;
        let first = columns.len();
        let mut present: Vec<u32> = rows
            .clone()
            .flat_map(|row| matrix.row(row).0)
            .map(|column| column / side as u32)
            .collect();
        present.sort_unstable();
        present.dedup();
        for (within, row) in rows.enumerate() {
            let (row_columns, row_values) = matrix.row(row);
            let mut block = 0;
            for (&column, &value) in row_columns.iter().zip(row_values) {
                // Columns increase, and so do the blocks that they lie in.
                while present.get(block).is_some_and(|c| *c < column / side as u32) {
                    block += 1;
                }
                let at = ((first + block) * side + within) * side + column as usize % side;
                if let Some(slot) = values.get_mut(at) {
                    *slot = value;
                }
            }
        }
        columns.append(&mut present);
        offsets.push(columns.len() as u32);
    }
    Bsr { side, offsets, columns, values }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sparserl_core::matrix::{Coo, Csr, Duplicates, generate};

    use super::*;

    /// The entries of a conversion that are not zero, by row.
    fn back<T: Scalar>(bsr: &Bsr<T>, cols: usize) -> Csr<T> {
        let side = bsr.side;
        let (mut row_indices, mut col_indices, mut values) = (vec![], vec![], vec![]);
        for (block_row, bounds) in bsr.offsets.windows(2).enumerate() {
            for block in bounds[0] as usize..bounds[1] as usize {
                for within in 0..side * side {
                    let value = bsr.values[block * side * side + within];
                    if value.to_f64() != 0.0 {
                        let row = block_row * side + within / side;
                        let column = bsr.columns[block] as usize * side + within % side;
                        row_indices.push(u32::try_from(row).unwrap());
                        col_indices.push(u32::try_from(column).unwrap());
                        values.push(value);
                    }
                }
            }
        }
        let rows = (bsr.offsets.len() - 1) * side;
        let coo = Coo::new(rows, cols, row_indices, col_indices, values).unwrap();
        coo.to_csr(Duplicates::Refuse).unwrap()
    }

    #[test]
    fn the_side_is_the_one_that_fills_best() {
        for side in 2..=4 {
            let matrix = generate::fem_blocks(60, side, 1);
            let bsr = Bsr::from_csr(matrix.view()).unwrap();
            assert_eq!(bsr.side, side);
            assert_eq!(bsr.columns.len() * side * side, matrix.nnz());
            assert_eq!(back(&bsr, matrix.cols()), matrix);
        }
    }

    #[test]
    fn what_is_not_worth_it_is_refused_with_a_reason() {
        let prime = generate::stencil5(1, 7);
        let refused = Bsr::from_csr(prime.view()).unwrap_err();
        assert_eq!(refused, "no block side from 2 to 4 divides 7 x 7");
        let scattered = Coo::new(4, 4, vec![0, 2], vec![0, 2], vec![1.0f32, 1.0]).unwrap();
        let scattered = scattered.to_csr(Duplicates::Refuse).unwrap();
        let refused = Bsr::from_csr(scattered.view()).unwrap_err();
        assert_eq!(refused, "8 values in blocks for 2 entries");
    }

    #[test]
    fn nothing_to_convert_is_no_failure() {
        for rows in [0, 4] {
            let matrix = Coo::<f64>::new(rows, 4, vec![], vec![], vec![]).unwrap();
            let matrix = matrix.to_csr(Duplicates::Refuse).unwrap();
            assert_eq!(back(&Bsr::from_csr(matrix.view()).unwrap(), 4), matrix);
        }
    }

    proptest! {
        #[test]
        fn what_is_converted_comes_back(half in 1usize..20, side in 2usize..5, mask: u64) {
            // Dense blocks along a diagonal, with some of their entries missing.
            let rows = half * 12;
            let kept = |i: usize| mask >> (i % 61) & 1 == 1 || !i.is_multiple_of(3);
            let entries: Vec<(usize, usize)> = (0..rows)
                .flat_map(|r| (0..side).map(move |c| (r, r / side * side + c)))
                .filter(|(r, c)| kept(r * 7 + c))
                .collect();
            let matrix = Coo::new(
                rows,
                rows,
                entries.iter().map(|e| e.0 as u32).collect(),
                entries.iter().map(|e| e.1 as u32).collect(),
                (1..=entries.len()).map(|v| v as f32).collect(),
            );
            let matrix = matrix.unwrap().to_csr(Duplicates::Refuse).unwrap();
            let bsr = Bsr::from_csr(matrix.view());
            prop_assert!(bsr.is_ok(), "{:?}", bsr);
            prop_assert_eq!(back(&bsr.unwrap(), rows), matrix);
        }
    }
}
