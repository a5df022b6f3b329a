//! [Matrix Market](https://math.nist.gov/MatrixMarket/formats.html) files, as bytes.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general
//! % comments
//! 3 4 2          rows, columns, entries
//! 1 1 2.5        row and column from 1, value
//! 3 2 -1e-3
//! ```
//!
//! Read: `coordinate` and `array`; `real`, `integer` and `pattern` (every value 1); `general`,
//! `symmetric` and `skew-symmetric`. The banner may be in any case, lines may end in CR LF, blank
//! lines and comments may stand anywhere, exponents may be Fortran's (`1.0D+03`). Refused:
//! `complex` and `hermitian`, values that are not finite, counts that do not match the size line.
//!
//! A symmetric file may list either triangle, or some entries of each; every entry off the diagonal
//! also stands for its mirror image. When it lists both (i, j) and (j, i), they are duplicates.
//! Explicit zeros of coordinate files are kept; zeros of array files are not stored.

mod body;
mod error;
mod header;
mod parse;
#[cfg(all(feature = "std", unix))]
mod pieces;
#[cfg(test)]
mod tests;
mod write;

pub use error::{Axis, MarketError, MarketErrorKind};
pub use header::{Field, Format, Header, Symmetry};
pub use parse::parse;
#[cfg(feature = "std")]
pub(super) use parse::parse_with_header;
#[cfg(all(feature = "std", unix))]
pub(super) use pieces::parse_pieces;
pub use write::{WriteError, write, write_as};

/// The header of a file of `length` bytes, of which `bytes` are the first, and where its entries
/// start.
#[cfg(feature = "std")]
pub(super) fn beginning(bytes: &[u8], length: usize) -> Result<(Header, usize), MarketError> {
    header::parse(bytes, length)
}

/// Reads the header alone.
///
/// # Errors
/// As [`parse`], for the banner and the size line.
pub fn header(bytes: &[u8]) -> Result<Header, MarketError> {
    header::parse(bytes, bytes.len()).map(|(header, _)| header)
}
