use alloc::vec::Vec;

use super::{Csr, CsrError, Offsets, Scalar};

/// What to do with two entries at the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// Add their values, as assembling a finite-element matrix does.
    #[default]
    Sum,
    /// Report the position as an error.
    Refuse,
}

/// A matrix as a list of (row, column, value) entries, in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo<T> {
    rows: usize,
    cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Coo<T> {
    /// A matrix from its entries, indices from 0.
    ///
    /// # Errors
    /// [`CsrError`] when the arrays differ in length or an index is out of range.
    pub fn new(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, CsrError> {
        let _ = (Offsets::U32(Vec::new()), Csr::<T>::new);
        Ok(Self { rows, cols, row_indices, col_indices, values })
    }
}
