use alloc::string::String;

use thiserror::Error;

use crate::matrix::Absurd;

/// Why bytes are not a Matrix Market file that can be read, and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("line {line}: {kind}")]
pub struct MarketError {
    /// The line, from 1; the last line of the file when something is missing at its end.
    pub line: usize,
    /// What is wrong there.
    pub kind: MarketErrorKind,
}

/// The index of an entry that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first: the row.
    Row,
    /// The second: the column.
    Column,
}

impl core::fmt::Display for Axis {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Row => "row",
            Self::Column => "column",
        })
    }
}

/// What is wrong in a Matrix Market file. Rows and columns are counted from 1, as in the file;
/// quotations are escaped and cut to a readable length.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MarketErrorKind {
    /// The file has no bytes, or none in its first line.
    #[error("the file or its first line is empty; it must start with `%%MatrixMarket matrix`")]
    Empty,
    /// The first line is no banner.
    #[error(
        "found `{found}`, not a `%%MatrixMarket` banner; check that this is an uncompressed Matrix Market file"
    )]
    Banner {
        /// The first word.
        found: String,
    },
    /// The file begins with U+FEFF in UTF-8.
    #[error("the file begins with a byte order mark; remove it")]
    ByteOrderMark,
    /// The banner has too few or too many words.
    #[error(
        "the banner has {found} words instead of 5; write e.g. `%%MatrixMarket matrix coordinate real general`"
    )]
    BannerWords {
        /// Words in the banner.
        found: usize,
    },
    /// The object is not `matrix`.
    #[error("object `{found}` is not supported; only `matrix` is")]
    Object {
        /// The word.
        found: String,
    },
    /// The format is not `coordinate` or `array`.
    #[error("unknown format `{found}`; use `coordinate` or `array`")]
    Format {
        /// The word.
        found: String,
    },
    /// The field is not `real`, `integer` or `pattern`.
    #[error("field `{found}` is not supported; use `real`, `integer` or `pattern`")]
    Field {
        /// The word.
        found: String,
    },
    /// The symmetry is not `general`, `symmetric` or `skew-symmetric`.
    #[error("symmetry `{found}` is not supported; use `general`, `symmetric` or `skew-symmetric`")]
    Symmetry {
        /// The word.
        found: String,
    },
    /// A pattern has no values to list or to negate.
    #[error("a `pattern` cannot be `{with}`; use field `real`")]
    PatternWith {
        /// `array` or `skew-symmetric`.
        with: &'static str,
    },
    /// The file ends before its size line.
    #[error("the file ends before the size line; add `rows columns entries`")]
    NoSize,
    /// The size line is not as many whole numbers as expected.
    #[error("`{found}` is not a size line; expected `{expected}` as whole numbers")]
    Size {
        /// The line.
        found: String,
        /// Names of the numbers.
        expected: &'static str,
    },
    /// More rows or columns than 32-bit indices address.
    #[error("{rows} × {cols} is too large: rows and columns must each be at most 2^32 - 1")]
    TooLarge {
        /// Rows promised, as written.
        rows: String,
        /// Columns promised, as written.
        cols: String,
    },
    /// So many empty rows or columns that the sizes are surely wrong.
    #[error("{0}")]
    Absurd(Absurd),
    /// A symmetric or skew-symmetric matrix must be square.
    #[error("{rows} × {cols} is not square, so it cannot be symmetric; use `general`")]
    NotSquare {
        /// Rows promised.
        rows: u64,
        /// Columns promised.
        cols: u64,
    },
    /// The rest of the file is too short to hold the promised entries.
    #[error(
        "{entries} entries are promised but the {bytes} bytes that follow hold at most {most}; the file is truncated or its size line wrong"
    )]
    TooShort {
        /// Entries promised.
        entries: u64,
        /// Bytes after the size line.
        bytes: usize,
        /// Entries that fit in them.
        most: usize,
    },
    /// An index is not a whole number.
    #[error("`{found}` is not a {axis} index; expected a whole number from 1")]
    Index {
        /// Which index.
        axis: Axis,
        /// The word.
        found: String,
    },
    /// Index 0: indices start at 1.
    #[error("{axis} 0 is out of range: indices start at 1; add 1 to every index")]
    ZeroIndex {
        /// Which index.
        axis: Axis,
    },
    /// An index is beyond the size.
    #[error("{axis} {index} is out of range 1..={limit}; correct the index or the size line")]
    IndexRange {
        /// Which index.
        axis: Axis,
        /// The index, as written.
        index: String,
        /// Rows or columns of the matrix.
        limit: u32,
    },
    /// The line ends too early.
    #[error("the line ends before the {what}; expected `{expected}`")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// Names of all the fields.
        expected: &'static str,
    },
    /// A value is not a number.
    #[error("`{found}` is not a number")]
    Value {
        /// The word.
        found: String,
    },
    /// A value is NaN, infinite, or too large for the element type.
    #[error("value `{found}` is not finite in this precision; replace it by a finite number")]
    NotFinite {
        /// The word.
        found: String,
    },
    /// A value of an integer matrix is not whole.
    #[error("value `{found}` is not an integer; use field `real`")]
    NotInteger {
        /// The word.
        found: String,
    },
    /// Something follows a complete entry.
    #[error("`{found}` follows a complete entry; expected `{expected}`")]
    Trailing {
        /// The first word too many.
        found: String,
        /// Names of the fields.
        expected: &'static str,
    },
    /// A skew-symmetric matrix has zeros on its diagonal.
    #[error(
        "entry ({index}, {index}) is on the diagonal, which a skew-symmetric matrix leaves out unless zero; remove it"
    )]
    SkewDiagonal {
        /// Row and column.
        index: u32,
    },
    /// More entries than promised; the line is that of the first one too many.
    #[error("more than the {promised} promised entries; correct the size line or remove the rest")]
    TooMany {
        /// Entries promised.
        promised: u64,
    },
    /// The file ends before the promised entries.
    #[error(
        "the file ends after {found} of {promised} promised entries; it is truncated or its size line wrong"
    )]
    TooFew {
        /// Entries promised.
        promised: u64,
        /// Entries found.
        found: usize,
    },
    /// A position occurs twice and duplicates are refused; the line is that of the second entry.
    #[error("entry ({row}, {col}) occurs before; merge the two or allow summing duplicates")]
    Duplicate {
        /// The row.
        row: u32,
        /// The column.
        col: u32,
    },
    /// Adding this entry to those at the same position overflows.
    #[error("the sum of the entries at ({row}, {col}) is not finite; merge or rescale them")]
    SumOverflow {
        /// The row.
        row: u32,
        /// The column.
        col: u32,
    },
}
