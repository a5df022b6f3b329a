use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;

use thiserror::Error;

use super::{Elements, KeptOffsets, Offsets, OffsetsView, Scalar, tasks};

/// Entries that a thread checks at a time; fewer are not worth waking another.
const ENTRIES_A_PIECE: usize = 1 << 18;

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
    /// The matrix that these arrays are of, if it is known: they can be kept without copying them.
    owner: Option<&'a Csr<T>>,
}

impl<'a, T: Scalar> CsrView<'a, T> {
    /// This view as one of element type `U`, where that is `T`, which generic code may not know;
    /// `None` where it is another.
    #[must_use]
    pub fn of_type<U: Scalar>(self) -> Option<CsrView<'a, U>> {
        let is_same = T::DTYPE == U::DTYPE;
        is_same.then(|| self.with_values(bytemuck::cast_slice(self.values)))
    }

    /// This view with its values as those of type `U`, which is `T`.
    pub(super) fn with_values<U: Scalar>(self, values: &'a [U]) -> CsrView<'a, U> {
        let Self { rows, cols, offsets, columns, .. } = self;
        let owner = self.owner.and_then(|owner| (owner as &dyn Any).downcast_ref());
        CsrView { rows, cols, offsets, columns, values, owner }
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
        let view = Self { rows, cols, offsets, columns, values, owner: None };
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
            let next = self.offsets.rows_until(end, most).max(begin + 1);
            pieces.push(begin..next);
            begin = next;
        }
        pieces
    }

    /// Checks the entries of some rows.
    fn check_entries(&self, rows: Range<usize>) -> Result<(), CsrError> {
        if self.has_entries_in_order(rows.clone()) {
            return Ok(());
        }
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

    /// Whether the entries of some rows are as they have to be. Without a branch for each of them,
    /// several are looked at at once.
    fn has_entries_in_order(&self, rows: Range<usize>) -> bool {
        let entries = self.offsets.at(rows.start)..self.offsets.at(rows.end);
        let (columns, values) = (&self.columns[entries.clone()], &self.values[entries.clone()]);
        let is_outside = |&col: &u32| u32::from(col as usize >= self.cols);
        let is_inside = columns.iter().fold(0, |any, col| any | is_outside(col)) == 0;
        let is_finite = values.iter().fold(true, |all, value| all & value.to_f64().is_finite());
        // Columns may fall, or stay the same, only from the last of a row to the first of the next.
        let falls = |pair: &[u32]| usize::from(pair[0] >= pair[1]);
        let all_falls: usize = columns.windows(2).map(falls).sum();
        let mut between_rows = 0;
        let mut before = entries.start;
        for row in rows {
            let start = self.offsets.at(row);
            // Of empty rows, the border is that of the row before.
            if start > before && start < entries.end {
                between_rows += falls(&self.columns[start - 1..=start]);
                before = start;
            }
        }
        is_inside && is_finite && all_falls == between_rows
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

    /// The row offsets, shared with the matrix that this is a view of where it is known.
    pub(crate) fn kept_offsets(&self) -> KeptOffsets {
        match (self.owner, self.offsets) {
            (Some(owner), _) => owner.offsets.clone(),
            (None, OffsetsView::U32(v)) => KeptOffsets::U32(v.to_vec().into()),
            (None, OffsetsView::U64(v)) => KeptOffsets::U64(v.to_vec().into()),
        }
    }

    /// The columns, likewise.
    pub(crate) fn kept_columns(&self) -> Elements<u32> {
        self.owner.map_or_else(|| self.columns.to_vec().into(), |owner| owner.columns.clone())
    }

    /// The values, likewise.
    pub(crate) fn kept_values(&self) -> Elements<T> {
        self.owner.map_or_else(|| self.values.to_vec().into(), |owner| owner.values.clone())
    }

    /// Number of entries of a row.
    #[must_use]
    pub fn row_len(&self, row: usize) -> usize {
        self.offsets.row_len(row)
    }

    /// Columns and values of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.offsets.at(row)..self.offsets.at(row + 1);
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// The first row whose offsets are out of order, and how.
fn offset_disorder(
    offsets: OffsetsView<'_>,
    rows: usize,
    last: usize,
) -> Option<(usize, CsrError)> {
    if offsets.are_in_order() {
        return None;
    }
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
    offsets: KeptOffsets,
    columns: Elements<u32>,
    values: Elements<T>,
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
        Ok(Self::of(rows, cols, offsets.narrowed(), columns, values))
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
        Self::of(rows, cols, offsets, columns, values)
    }

    fn of(rows: usize, cols: usize, offsets: Offsets, columns: Vec<u32>, values: Vec<T>) -> Self {
        let (offsets, columns, values) = (offsets.into(), columns.into(), values.into());
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
            owner: Some(self),
        }
    }

    /// Rounds the values to another element type; the arrays of the pattern are shared with this
    /// matrix.
    ///
    /// # Errors
    /// [`CsrError::NotFinite`] when a value overflows the new type.
    pub fn cast<U: Scalar>(&self) -> Result<Csr<U>, CsrError> {
        let &Self { rows, cols, ref offsets, ref columns, .. } = self;
        let values = match self.values.clone().of_type() {
            Some(own) => own,
            None => {
                let rounded = self.values.iter().map(|v| U::from_f64(v.to_f64()));
                let rounded: Elements<U> = rounded.collect();
                CsrView::new(rows, cols, offsets.view(), columns, &rounded)?;
                rounded
            }
        };
        Ok(Csr { rows, cols, offsets: offsets.clone(), columns: columns.clone(), values })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::matrix::generate;

    #[test]
    fn values_that_have_the_type_are_shared() {
        let matrix = generate::stencil5(3, 3);
        let same: Csr<f64> = matrix.cast().unwrap();
        assert!(core::ptr::eq(same.view().values(), matrix.view().values()));
    }

    /// Rows of three entries, enough for several threads, and some without any.
    fn arrays() -> (usize, Vec<u32>, Vec<u32>, Vec<f64>) {
        let full = ENTRIES_A_PIECE;
        let mut offsets = vec![0, 0];
        offsets.extend((1..=full as u32).flat_map(|row| [3 * row, 3 * row]));
        let columns: Vec<u32> = (0..full).flat_map(|_| [1, 4, 7]).collect();
        let values = vec![1.0; columns.len()];
        (offsets.len() - 1, offsets, columns, values)
    }

    #[test]
    fn of_several_wrong_entries_the_first_is_reported() {
        let (rows, offsets, columns, values) = arrays();
        let check = |offsets: &[u32], columns: &[u32], values: &[f64]| {
            CsrView::new(rows, 8, OffsetsView::U32(offsets), columns, values).err()
        };
        assert_eq!(check(&offsets, &columns, &values), None);
        let entry = |row: usize| 3 * row;
        let row_of = |row: usize| 2 * row + 1;
        let far = ENTRIES_A_PIECE - 1;
        let (mut wrong_columns, mut wrong_values) = (columns.clone(), values.clone());
        wrong_values[entry(far) + 1] = f64::NAN;
        let found = check(&offsets, &columns, &wrong_values);
        assert!(
            matches!(found, Some(CsrError::NotFinite { row, col: 4, .. }) if row == row_of(far))
        );
        wrong_columns[entry(far / 2) + 2] = 4;
        let found = check(&offsets, &wrong_columns, &wrong_values);
        assert_eq!(found, Some(CsrError::ColumnOrder { row: row_of(far / 2), col: 4 }));
        wrong_columns[entry(far / 3)] = 8;
        let found = check(&offsets, &wrong_columns, &wrong_values);
        assert_eq!(found, Some(CsrError::ColumnRange { row: row_of(far / 3), col: 8, cols: 8 }));
        // An offset that is wrong is reported where no entry before it is.
        let falling = |row: usize| {
            let mut offsets = offsets.clone();
            offsets[row_of(row)] -= 1;
            check(&offsets, &wrong_columns, &wrong_values)
        };
        let row = row_of(far / 4) - 1;
        let (start, end) = (entry(far / 4) as u64, entry(far / 4) as u64 - 1);
        assert_eq!(falling(far / 4), Some(CsrError::OffsetOrder { row, start, end }));
        assert!(matches!(falling(far / 2), Some(CsrError::ColumnRange { .. })));
    }

    #[test]
    fn columns_may_fall_between_rows_only() {
        let check = |offsets: &[u32], columns: &[u32]| {
            let values = vec![1.0; columns.len()];
            let offsets = OffsetsView::U32(offsets);
            CsrView::new(offsets.len() - 1, 9, offsets, columns, &values).err()
        };
        let in_order = [
            (&[0, 2, 4][..], &[3, 5, 1, 2][..]),
            (&[0, 0, 1, 1, 2, 2], &[4, 4]),
            (&[0, 1, 4], &[8, 1, 4, 8]),
        ];
        for (offsets, columns) in in_order {
            assert_eq!(check(offsets, columns), None);
        }
        // As many falls as borders of rows, at another place.
        let fallen = Some(CsrError::ColumnOrder { row: 0, col: 3 });
        assert_eq!(check(&[0, 2, 4], &[5, 3, 4, 6]), fallen);
        assert_eq!(check(&[0, 2, 2, 4], &[3, 3, 4, 6]), fallen);
    }

    #[test]
    fn a_matrix_of_another_type_shares_its_pattern() {
        let matrix = generate::rmat(7, 5, 3);
        let narrow = matrix.cast::<f32>().unwrap();
        assert_eq!(narrow.view().columns().as_ptr(), matrix.view().columns().as_ptr());
        assert!(
            matrix.view().values().iter().zip(narrow.view().values()).all(|(a, b)| *a as f32 == *b)
        );
    }
}
