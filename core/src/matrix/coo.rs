use alloc::vec::Vec;
use core::iter;

use thiserror::Error;

use super::assemble::{Conflict, Duplicates, Entry, Part, RowBuckets, assemble};
use super::{Csr, CsrView, Scalar, tasks};

/// Entries sorted as one piece when converting to CSR.
const ENTRIES_PER_PART: usize = 1 << 16;

/// Why entries do not form a matrix. Rows, columns and entries are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum CooError {
    /// More rows or columns than 32-bit indices address.
    #[error("{rows} × {cols} is too large: rows and columns must each be at most 2^32 - 1")]
    TooLarge {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
    },
    /// The three arrays differ in length.
    #[error("{rows} row indices, {cols} column indices and {values} values: expected as many each")]
    Lengths {
        /// Row indices given.
        rows: usize,
        /// Column indices given.
        cols: usize,
        /// Values given.
        values: usize,
    },
    /// A row index is not below the row count.
    #[error("entry {entry} has row {row}, but the matrix has {rows} rows")]
    RowRange {
        /// The entry.
        entry: usize,
        /// Its row.
        row: u32,
        /// Rows of the matrix.
        rows: usize,
    },
    /// A column index is not below the column count.
    #[error("entry {entry} has column {col}, but the matrix has {cols} columns")]
    ColumnRange {
        /// The entry.
        entry: usize,
        /// Its column.
        col: u32,
        /// Columns of the matrix.
        cols: usize,
    },
    /// A value is NaN or infinite.
    #[error("entry {entry}: value {value} is not finite")]
    NotFinite {
        /// The entry.
        entry: usize,
        /// Its value.
        value: f64,
    },
    /// Two entries share a position, and duplicates are refused.
    #[error("row {row}, column {col} occurs more than once; merge the entries or allow summing")]
    Duplicate {
        /// The row.
        row: u32,
        /// The column.
        col: u32,
    },
    /// Adding the entries at one position overflows the element type.
    #[error("row {row}, column {col}: the sum of its entries is not finite")]
    SumOverflow {
        /// The row.
        row: u32,
        /// The column.
        col: u32,
    },
}

impl From<Conflict> for CooError {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Duplicate { row, col } => Self::Duplicate { row, col },
            Conflict::SumOverflow { row, col } => Self::SumOverflow { row, col },
        }
    }
}

/// A validated matrix as a list of (row, column, value) entries, in any order, duplicates allowed.
///
/// Indices are below the row and column count, values are finite.
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
    /// [`CooError`] when a dimension exceeds 2³² − 1, the arrays differ in length, an index is out
    /// of range or a value is not finite; the first such entry.
    pub fn new(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, CooError> {
        if u32::try_from(rows).is_err() || u32::try_from(cols).is_err() {
            return Err(CooError::TooLarge { rows, cols });
        }
        if row_indices.len() != values.len() || col_indices.len() != values.len() {
            return Err(CooError::Lengths {
                rows: row_indices.len(),
                cols: col_indices.len(),
                values: values.len(),
            });
        }
        for (entry, ((&row, &col), &value)) in
            row_indices.iter().zip(&col_indices).zip(&values).enumerate()
        {
            if row as usize >= rows {
                return Err(CooError::RowRange { entry, row, rows });
            }
            if col as usize >= cols {
                return Err(CooError::ColumnRange { entry, col, cols });
            }
            if !value.to_f64().is_finite() {
                return Err(CooError::NotFinite { entry, value: value.to_f64() });
            }
        }
        Ok(Self { rows, cols, row_indices, col_indices, values })
    }

    /// For callers in this module whose entries are valid by construction.
    pub(super) fn from_valid(
        rows: usize,
        cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        Self { rows, cols, row_indices, col_indices, values }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries, duplicates and explicit zeros included.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Row of each entry.
    #[must_use]
    pub fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// Column of each entry.
    #[must_use]
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Value of each entry.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Converts the matrix to CSR, columns sorted within rows, explicit zeros kept.
    ///
    /// A counting sort by row: O(nnz + rows), and sorting for the rows whose columns come out of
    /// order. Duplicates are summed in the order of the entries. Allocates rows + 1 offsets, so a
    /// matrix of billions of empty rows costs gigabytes. Runs in the current rayon pool under
    /// `std`.
    ///
    /// # Errors
    /// [`CooError::Duplicate`] and [`CooError::SumOverflow`].
    pub fn to_csr(&self, duplicates: Duplicates) -> Result<Csr<T>, CooError> {
        let buckets = RowBuckets::new(self.rows, self.nnz());
        let starts = (0..self.nnz()).step_by(ENTRIES_PER_PART).collect();
        let parts = tasks::map(starts, |start: usize| {
            let range = start..(start + ENTRIES_PER_PART).min(self.nnz());
            let entries = self.row_indices[range.clone()]
                .iter()
                .zip(&self.col_indices[range.clone()])
                .zip(&self.values[range])
                .map(|((&row, &col), &value)| Entry { row, col, value })
                .collect();
            Part::new(entries, buckets)
        });
        Ok(assemble(self.rows, self.cols, buckets, &parts, duplicates)?)
    }
}

impl<T: Scalar> CsrView<'_, T> {
    /// Converts the matrix to a list of entries, row by row, columns increasing.
    #[must_use]
    pub fn to_coo(&self) -> Coo<T> {
        let rows = (0..self.rows()).flat_map(|row| iter::repeat_n(row as u32, self.row_len(row)));
        Coo::from_valid(
            self.rows(),
            self.cols(),
            rows.collect(),
            self.columns().to_vec(),
            self.values().to_vec(),
        )
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn invalid_entries_are_refused() {
        let new = |rows, cols, i: &[u32], j: &[u32], v: &[f64]| {
            Coo::new(rows, cols, i.to_vec(), j.to_vec(), v.to_vec()).unwrap_err()
        };
        assert!(matches!(new(1 << 32, 1, &[], &[], &[]), CooError::TooLarge { .. }));
        assert!(matches!(new(2, 2, &[0], &[], &[1.0]), CooError::Lengths { cols: 0, .. }));
        assert!(matches!(
            new(2, 2, &[0, 2], &[0, 0], &[1.0, 1.0]),
            CooError::RowRange { entry: 1, row: 2, .. }
        ));
        assert!(matches!(
            new(2, 2, &[0], &[2], &[1.0]),
            CooError::ColumnRange { entry: 0, col: 2, .. }
        ));
        assert!(matches!(new(2, 2, &[0], &[1], &[f64::NAN]), CooError::NotFinite { entry: 0, .. }));
    }

    #[test]
    fn duplicates_are_summed_or_refused_and_zeros_kept() {
        let coo =
            Coo::new(2, 3, vec![1, 0, 1, 1], vec![2, 1, 0, 2], vec![1.5, 0.0, 2.0, -1.5]).unwrap();
        let csr = coo.to_csr(Duplicates::Sum).unwrap();
        assert_eq!(csr.view().row(0), (&[1][..], &[0.0][..]));
        assert_eq!(csr.view().row(1), (&[0, 2][..], &[2.0, 0.0][..]));
        let refused = coo.to_csr(Duplicates::Refuse);
        assert_eq!(refused, Err(CooError::Duplicate { row: 1, col: 2 }));
    }

    #[test]
    fn a_sum_beyond_the_type_is_an_error() {
        let coo = Coo::new(1, 1, vec![0, 0], vec![0, 0], vec![f32::MAX, f32::MAX]).unwrap();
        assert_eq!(coo.to_csr(Duplicates::Sum), Err(CooError::SumOverflow { row: 0, col: 0 }));
    }
}
