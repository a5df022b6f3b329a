//! Building matrices piece by piece, on threads where there are any.

use alloc::vec::Vec;
use core::ops::Range;

use crate::matrix::{Csr, Offsets, tasks};

/// Pieces that work is cut into: enough to keep threads busy, few enough to cost nothing.
const PIECES: usize = 512;
/// Fewer than this are not worth a piece of their own.
const LEAST: usize = 64;

/// Ranges that make up `0..count`.
fn pieces(count: usize) -> Vec<Range<usize>> {
    let step = count.div_ceil(PIECES).max(LEAST);
    (0..count).step_by(step).map(|start| start..(start + step).min(count)).collect()
}

/// Builds a matrix from its rows; `fill` pushes (column, value) of one with increasing columns.
/// Each row is made once, in any order.
pub(super) fn by_rows(
    rows: usize,
    cols: usize,
    fill: impl Fn(usize, &mut Vec<(usize, f64)>) + Send + Sync,
) -> Csr<f64> {
    struct Piece {
        /// Entries of each row.
        lengths: Vec<u32>,
        columns: Vec<u32>,
        values: Vec<f64>,
    }
    let rows = rows.min(u32::MAX as usize);
    let cols = cols.min(u32::MAX as usize);
    let made = tasks::map(pieces(rows), |range: Range<usize>| {
        let mut lengths = Vec::with_capacity(range.len());
        let (mut columns, mut values, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for at in range {
            fill(at, &mut row);
            let before = columns.len();
            for (col, value) in row.drain(..).take_while(|&(col, _)| col < cols) {
                columns.push(col as u32);
                values.push(value);
            }
            lengths.push((columns.len() - before) as u32);
        }
        Piece { lengths, columns, values }
    });
    let nnz = made.iter().map(|piece| piece.columns.len()).sum();
    let mut offsets = Vec::with_capacity(rows + 1);
    let (mut columns, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
    let mut offset = 0;
    offsets.push(offset);
    // Each piece is freed as soon as it is copied, so that the matrix is hardly ever held twice.
    for piece in made {
        offsets.extend(piece.lengths.iter().map(|&length| {
            offset += u64::from(length);
            offset
        }));
        columns.extend_from_slice(&piece.columns);
        values.extend_from_slice(&piece.values);
    }
    Csr::from_valid(rows, cols, Offsets::U64(offsets).narrowed(), columns, values)
}

/// What `fill` pushes for the ranges of `0..count`, in order.
pub(super) fn concatenate<T: Copy + Send>(
    count: usize,
    fill: impl Fn(Range<usize>, &mut Vec<T>) + Send + Sync,
) -> Vec<T> {
    let made = tasks::map(pieces(count), |range: Range<usize>| {
        let mut piece = Vec::with_capacity(range.len());
        fill(range, &mut piece);
        piece
    });
    let mut whole = Vec::with_capacity(made.iter().map(Vec::len).sum());
    for piece in made {
        whole.extend_from_slice(&piece);
    }
    whole
}

/// Sorts numbers; equal ones cannot be told apart, so threads do not matter.
pub(super) fn sort(numbers: &mut [u64]) {
    #[cfg(feature = "std")]
    rayon::slice::ParallelSliceMut::par_sort_unstable(numbers);
    #[cfg(not(feature = "std"))]
    numbers.sort_unstable();
}
