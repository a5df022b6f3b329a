use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

use thiserror::Error;

use super::{Coo, Scalar, tasks};

/// Entries that a thread checks at a time; fewer are not worth waking another.
const ENTRIES_A_PIECE: usize = 1 << 18;

/// Row offsets of an owned CSR matrix; `U64` only when nnz does not fit in 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// nnz < 2³².
    U32(Vec<u32>),
    /// nnz ≥ 2³².
    U64(Vec<u64>),
}

impl Offsets {
    /// Borrows the offsets.
    #[must_use]
    pub fn view(&self) -> OffsetsView<'_> {
        match self {
            Self::U32(v) => OffsetsView::U32(v),
            Self::U64(v) => OffsetsView::U64(v),
        }
    }

    /// The same offsets in 32 bits if the last one fits.
    pub(super) fn narrowed(self) -> Self {
        match self {
            Self::U64(v) if v.last().is_none_or(|&last| u32::try_from(last).is_ok()) => {
                Self::U32(v.into_iter().map(|offset| offset as u32).collect())
            }
            other => other,
        }
    }
}

/// Borrowed row offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetsView<'a> {
    /// 32-bit offsets.
    U32(&'a [u32]),
    /// 64-bit offsets.
    U64(&'a [u64]),
}

impl OffsetsView<'_> {
    /// Number of offsets: rows + 1.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
        }
    }

    /// True when there is no offset at all, which no valid matrix has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Offset `i`; panics when `i` is out of range, like a slice.
    #[must_use]
    pub fn at(&self, i: usize) -> usize {
        match self {
            Self::U32(v) => v[i] as usize,
            // Where usize has 32 bits no array is that long: saturating fails every range check.
            Self::U64(v) => usize::try_from(v[i]).unwrap_or(usize::MAX),
        }
    }
}

/// Why arrays do not form a CSR matrix.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CsrError {
    /// More rows or columns than 32-bit indices address.
    #[error("{rows} × {cols} is too large: rows and columns must each be at most 2^32 - 1")]
    TooLarge {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
    },
    /// The offsets array has the wrong length.
    #[error("{found} row offsets for {rows} rows: expected rows + 1")]
    OffsetCount {
        /// Rows of the matrix.
        rows: usize,
        /// Offsets given.
        found: usize,
    },
    /// `columns` and `values` differ in length, or from the last offset.
    #[error("row offsets end at {last} but there are {columns} columns and {values} values")]
    EntryCount {
        /// Last row offset.
        last: u64,
        /// Column indices given.
        columns: usize,
        /// Values given.
        values: usize,
    },
    /// Offsets must start at 0 and never decrease.
    #[error("row {row} starts at offset {start} and ends at {end}")]
    OffsetOrder {
        /// Row, from 0.
        row: usize,
        /// Its first offset.
        start: u64,
        /// The next row's offset.
        end: u64,
    },
    /// A column index is not below the column count.
    #[error("row {row} has column {col}, but the matrix has {cols} columns")]
    ColumnRange {
        /// Row, from 0.
        row: usize,
        /// The column, from 0.
        col: u32,
        /// Columns of the matrix.
        cols: usize,
    },
    /// Columns must increase strictly within each row.
    #[error("row {row}: column {col} repeats or is out of order; sort rows and merge duplicates")]
    ColumnOrder {
        /// Row, from 0.
        row: usize,
        /// The first column found out of order.
        col: u32,
    },
    /// A stored value is NaN or infinite.
    #[error("row {row}, column {col}: value {value} is not finite")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        col: u32,
        /// The value.
        value: f64,
    },
}

/// A borrowed, validated CSR matrix: columns increase strictly within each row, values are finite.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a, T> {
    rows: usize,
    cols: usize,
    offsets: OffsetsView<'a>,
    columns: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Scalar> CsrView<'a, T> {
    /// The same matrix where `U` is its element type, which generic code may not know; none where
    /// it is another.
    #[must_use]
    pub fn of_type<U: Scalar>(self) -> Option<CsrView<'a, U>> {
        let Self { rows, cols, offsets, columns, values } = self;
        let values = (T::DTYPE == U::DTYPE).then(|| bytemuck::cast_slice(values))?;
        Some(CsrView { rows, cols, offsets, columns, values })
    }

    /// Checks the arrays, in one pass and without copying them.
    ///
    /// # Errors
    /// The first way in which the arrays are not a CSR matrix, by row.
    pub fn new(
        rows: usize,
        cols: usize,
        offsets: OffsetsView<'a>,
        columns: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, CsrError> {
        if u32::try_from(rows).is_err() || u32::try_from(cols).is_err() {
            return Err(CsrError::TooLarge { rows, cols });
        }
        if offsets.len() != rows + 1 {
            return Err(CsrError::OffsetCount { rows, found: offsets.len() });
        }
        let last = offsets.at(rows);
        if last != columns.len() || columns.len() != values.len() {
            return Err(CsrError::EntryCount {
                last: last as u64,
                columns: columns.len(),
                values: values.len(),
            });
        }
        let (ordered, disorder) = match offset_disorder(offsets, rows, last) {
            Some((row, error)) => (row, Err(error)),
            None => (rows, Ok(())),
        };
        let view = Self { rows, cols, offsets, columns, values };
        // Only rows before the first wrong offset have entries.
        let pieces = view.pieces(ordered);
        tasks::map(pieces, |rows| view.check_entries(rows))
            .into_iter()
            .collect::<Result<(), _>>()?;
        disorder?;
        Ok(view)
    }

    /// The rows before `end` in pieces of about as many entries, each a piece of work for a thread.
    fn pieces(&self, end: usize) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut begin = 0;
        while begin < end {
            let most = self.offsets.at(begin) + ENTRIES_A_PIECE;
            let mut next = begin + 1;
            while next < end && self.offsets.at(next + 1) <= most {
                next += 1;
            }
            pieces.push(begin..next);
            begin = next;
        }
        pieces
    }

    /// Checks the entries of some rows.
    fn check_entries(&self, rows: Range<usize>) -> Result<(), CsrError> {
        for row in rows {
            let (columns, values) = self.row(row);
            let mut previous = None;
            for (&col, &value) in columns.iter().zip(values) {
                if col as usize >= self.cols {
                    return Err(CsrError::ColumnRange { row, col, cols: self.cols });
                }
                if previous.is_some_and(|p| p >= col) {
                    return Err(CsrError::ColumnOrder { row, col });
                }
                if !value.to_f64().is_finite() {
                    return Err(CsrError::NotFinite { row, col, value: value.to_f64() });
                }
                previous = Some(col);
            }
        }
        Ok(())
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

    /// Number of stored entries, explicit zeros included.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// Row offsets.
    #[must_use]
    pub fn offsets(&self) -> OffsetsView<'a> {
        self.offsets
    }

    /// Column of each entry, row by row.
    #[must_use]
    pub fn columns(&self) -> &'a [u32] {
        self.columns
    }

    /// Value of each entry, row by row.
    #[must_use]
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Number of entries of a row.
    #[must_use]
    pub fn row_len(&self, row: usize) -> usize {
        self.offsets.at(row + 1) - self.offsets.at(row)
    }

    /// Columns and values of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.offsets.at(row)..self.offsets.at(row + 1);
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The same matrix as a list of entries, row by row, columns increasing.
    #[must_use]
    pub fn to_coo(&self) -> Coo<T> {
        let rows = (0..self.rows).flat_map(|row| iter::repeat_n(row as u32, self.row_len(row)));
        Coo::from_valid(
            self.rows,
            self.cols,
            rows.collect(),
            self.columns.to_vec(),
            self.values.to_vec(),
        )
    }
}

/// The first row whose offsets are out of order, and how.
fn offset_disorder(
    offsets: OffsetsView<'_>,
    rows: usize,
    last: usize,
) -> Option<(usize, CsrError)> {
    let mut end = 0;
    for row in 0..rows {
        let (start, next) = (offsets.at(row), offsets.at(row + 1));
        if start != end || next < start || next > last {
            let error = CsrError::OffsetOrder { row, start: start as u64, end: next as u64 };
            return Some((row, error));
        }
        end = next;
    }
    None
}

/// An owned, validated CSR matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    rows: usize,
    cols: usize,
    offsets: Offsets,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Csr<T> {
    /// Checks the arrays and takes them. 64-bit offsets that fit in 32 bits are narrowed.
    ///
    /// # Errors
    /// As [`CsrView::new`].
    pub fn new(
        rows: usize,
        cols: usize,
        offsets: Offsets,
        columns: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, CsrError> {
        CsrView::new(rows, cols, offsets.view(), &columns, &values)?;
        Ok(Self { rows, cols, offsets: offsets.narrowed(), columns, values })
    }

    /// For callers in this module whose arrays are valid by construction.
    pub(super) fn from_valid(
        rows: usize,
        cols: usize,
        offsets: Offsets,
        columns: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert_eq!(
            CsrView::new(rows, cols, offsets.view(), &columns, &values).err(),
            None,
            "arrays built here must be valid"
        );
        Self { rows, cols, offsets, columns, values }
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

    /// Number of stored entries, explicit zeros included.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// Borrows the matrix.
    #[must_use]
    pub fn view(&self) -> CsrView<'_, T> {
        CsrView {
            rows: self.rows,
            cols: self.cols,
            offsets: self.offsets.view(),
            columns: &self.columns,
            values: &self.values,
        }
    }

    /// The same matrix with its values rounded to another element type.
    ///
    /// # Errors
    /// [`CsrError::NotFinite`] when a value overflows the new type.
    pub fn cast<U: Scalar>(&self) -> Result<Csr<U>, CsrError> {
        let values = self.values.iter().map(|v| U::from_f64(v.to_f64())).collect();
        Csr::new(self.rows, self.cols, self.offsets.clone(), self.columns.clone(), values)
    }
}
