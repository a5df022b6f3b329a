//! `.smtx` files of the Deep Learning Matrix Collection: the pattern of a pruned layer, in CSR.
//!
//! ```text
//! 2, 4, 3       rows, columns, entries
//! 0 1 3         rows + 1 row offsets
//! 2 0 3         column of each entry, from 0
//! ```
//!
//! There are no values; every entry is 1. Columns may come in any order within a row.

use alloc::{string::String, vec, vec::Vec};

use thiserror::Error;

use super::assemble::{Conflict, Entry, Part, RowBuckets, assemble};
use super::{Absurd, Csr, Duplicates, Scalar, plausible, scan};

/// Why bytes are not an `.smtx` file, and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("line {line}: {kind}")]
pub struct SmtxError {
    /// The line: 1 for the sizes, 2 for the row offsets, 3 for the columns; later for what follows.
    pub line: usize,
    /// What is wrong there.
    pub kind: SmtxErrorKind,
}

/// What is wrong in an `.smtx` file. Rows, columns and entries are counted from 0, as in the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SmtxErrorKind {
    /// The file has no bytes, or none in its first line.
    #[error("the file or its first line is empty; it must start with `rows, columns, entries`")]
    Empty,
    /// The first line is not three whole numbers.
    #[error("`{found}` is not a size line; expected `rows, columns, entries` as whole numbers")]
    Size {
        /// The line.
        found: String,
    },
    /// More rows or columns than 32-bit indices address.
    #[error("{rows} × {cols} is too large: rows and columns must each be at most 2^32 - 1")]
    TooLarge {
        /// Rows promised.
        rows: u64,
        /// Columns promised.
        cols: u64,
    },
    /// So many empty rows or columns that the sizes are surely wrong.
    #[error("{0}")]
    Absurd(Absurd),
    /// A line does not hold as many numbers as the sizes ask for.
    #[error("expected {expected} {what}, found {found}; correct the size line or the list")]
    Count {
        /// `row offsets` or `columns`.
        what: &'static str,
        /// Numbers that the size line asks for.
        expected: u64,
        /// Numbers found.
        found: usize,
    },
    /// A word is not a whole number.
    #[error("`{found}` in the {what} is not a whole number")]
    Number {
        /// `row offsets` or `columns`.
        what: &'static str,
        /// The word.
        found: String,
    },
    /// The first row offset is not 0.
    #[error("the first row offset is {found}; it must be 0")]
    FirstOffset {
        /// The offset.
        found: u64,
    },
    /// Row offsets must not decrease.
    #[error("row {row} starts at offset {start} but ends at {end}; row offsets must not decrease")]
    OffsetOrder {
        /// The row.
        row: usize,
        /// Where it starts.
        start: u64,
        /// Where it ends.
        end: u64,
    },
    /// The last row offset is not the number of entries.
    #[error("the last row offset is {found}; it must be {entries}, the number of entries")]
    LastOffset {
        /// The offset.
        found: u64,
        /// Entries promised.
        entries: u64,
    },
    /// A column is not below the column count.
    #[error("entry {entry} has column {col}; columns are from 0 and below {cols}")]
    ColumnRange {
        /// The entry.
        entry: usize,
        /// Its column.
        col: u64,
        /// Columns of the matrix.
        cols: u32,
    },
    /// A column occurs twice in a row.
    #[error("row {row} has column {col} more than once; remove the repetition")]
    Duplicate {
        /// The row.
        row: u32,
        /// The column.
        col: u32,
    },
    /// Something follows the columns.
    #[error("`{found}` follows the columns; the file must have three lines")]
    Trailing {
        /// The first word.
        found: String,
    },
}

/// Reads an `.smtx` file. Every value is 1.
///
/// Memory is bounded by the length of `bytes`, not by what the size line promises.
///
/// # Errors
/// The first error found, with its line.
pub fn parse<T: Scalar>(bytes: &[u8]) -> Result<Csr<T>, SmtxError> {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let mut next_line = || lines.next().unwrap_or_default().trim_ascii();

    let (rows, cols, entries) = size(next_line()).map_err(|kind| SmtxError { line: 1, kind })?;
    let offsets = numbers(next_line(), "row offsets", u64::from(rows) + 1)
        .and_then(|offsets| check_offsets(&offsets, entries).map(|()| offsets))
        .map_err(|kind| SmtxError { line: 2, kind })?;
    let third = |kind| SmtxError { line: 3, kind };
    let columns = numbers(next_line(), "columns", entries).map_err(third)?;

    let mut list = Vec::with_capacity(columns.len());
    let row_of = |pair: &[u64]| (pair[1] - pair[0]) as usize;
    let row_indices = offsets.windows(2).zip(0_u32..);
    let row_indices = row_indices.flat_map(|(pair, row)| core::iter::repeat_n(row, row_of(pair)));
    for (entry, (&col, row)) in columns.iter().zip(row_indices).enumerate() {
        match u32::try_from(col) {
            Ok(col) if col < cols => list.push(Entry { row, col, value: T::from_f64(1.0) }),
            _ => return Err(third(SmtxErrorKind::ColumnRange { entry, col, cols })),
        }
    }
    for (line, text) in (4..).zip(lines) {
        if let Some(word) = scan::words(text).next() {
            let kind = SmtxErrorKind::Trailing { found: scan::quoted(word) };
            return Err(SmtxError { line, kind });
        }
    }

    let buckets = RowBuckets::new(rows as usize, list.len());
    let parts = vec![Part::new(list, buckets)];
    assemble(rows as usize, cols as usize, buckets, &parts, Duplicates::Refuse).map_err(
        |(Conflict::Duplicate { row, col } | Conflict::SumOverflow { row, col })| {
            third(SmtxErrorKind::Duplicate { row, col })
        },
    )
}

/// Reads the sizes alone.
#[cfg(feature = "std")]
pub(super) fn check_sizes(bytes: &[u8]) -> Result<(), SmtxError> {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    size(line).map(|_| ()).map_err(|kind| SmtxError { line: 1, kind })
}

fn size(line: &[u8]) -> Result<(u32, u32, u64), SmtxErrorKind> {
    if line.is_empty() {
        return Err(SmtxErrorKind::Empty);
    }
    let mut numbers = line
        .split(|&byte| byte == b',' || scan::is_blank(byte))
        .filter(|word| !word.is_empty())
        .map(scan::whole_unsigned);
    let (Some(Some(rows)), Some(Some(cols)), Some(Some(entries)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(SmtxErrorKind::Size { found: scan::quoted(line) });
    };
    let (Ok(small_rows), Ok(small_cols)) = (u32::try_from(rows), u32::try_from(cols)) else {
        return Err(SmtxErrorKind::TooLarge { rows, cols });
    };
    plausible::check(rows, cols, entries).map_err(SmtxErrorKind::Absurd)?;
    Ok((small_rows, small_cols, entries))
}

/// The whole numbers of a line, which must be as many as expected.
fn numbers(line: &[u8], what: &'static str, expected: u64) -> Result<Vec<u64>, SmtxErrorKind> {
    let mut numbers = Vec::new();
    for word in scan::words(line) {
        match scan::whole_unsigned(word) {
            Some(number) => numbers.push(number),
            None => return Err(SmtxErrorKind::Number { what, found: scan::quoted(word) }),
        }
    }
    if numbers.len() as u64 != expected {
        return Err(SmtxErrorKind::Count { what, expected, found: numbers.len() });
    }
    Ok(numbers)
}

fn check_offsets(offsets: &[u64], entries: u64) -> Result<(), SmtxErrorKind> {
    if let Some(&found) = offsets.first().filter(|&&first| first != 0) {
        return Err(SmtxErrorKind::FirstOffset { found });
    }
    for (row, pair) in offsets.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(SmtxErrorKind::OffsetOrder { row, start: pair[0], end: pair[1] });
        }
    }
    match offsets.last() {
        Some(&found) if found != entries => Err(SmtxErrorKind::LastOffset { found, entries }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_sorted_and_values_one() {
        let matrix = parse::<f32>(b"2, 4, 3\n0 1 3 \n2 3 0 \n").unwrap();
        assert_eq!((matrix.rows(), matrix.cols()), (2, 4));
        assert_eq!(matrix.view().row(0), (&[2][..], &[1.0][..]));
        assert_eq!(matrix.view().row(1), (&[0, 3][..], &[1.0, 1.0][..]));
    }

    #[test]
    fn a_matrix_without_entries_needs_no_third_line() {
        assert_eq!(parse::<f64>(b"2, 4, 0\r\n0 0 0").unwrap().nnz(), 0);
        assert_eq!(parse::<f64>(b"0 4 0\n0\n\n").unwrap().rows(), 0);
    }
}
