//! The banner, the comments and the size line.

use alloc::string::String;

use super::error::{MarketError, MarketErrorKind};
#[cfg(feature = "std")]
use crate::matrix::{CsrView, Scalar, assemble::Entry};
use crate::matrix::{plausible, scan};

/// With which some editors begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Bytes of the shortest line that is not empty.
const SHORTEST_LINE: usize = 2;

/// How the entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `row column value` of each stored entry, in any order.
    Coordinate,
    /// Every value, column by column.
    Array,
}

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Floating-point numbers.
    Real,
    /// Whole numbers.
    Integer,
    /// None: every listed entry is 1.
    Pattern,
}

/// Which entries follow from others and are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None.
    General,
    /// a(j, i) = a(i, j).
    Symmetric,
    /// a(j, i) = −a(i, j); nothing on the diagonal.
    SkewSymmetric,
}

/// What a Matrix Market file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the entries are listed.
    pub format: Format,
    /// What the values are.
    pub field: Field,
    /// The entries that the file leaves out, since others imply them.
    pub symmetry: Symmetry,
    /// Number of rows.
    pub rows: u32,
    /// Number of columns; equal to the rows if there is a symmetry.
    pub cols: u32,
    /// Number of entries listed in the file, before a symmetry adds others.
    pub entries: usize,
}

impl Header {
    /// Names of the fields of an entry's line.
    pub(super) fn entry_fields(&self) -> &'static str {
        match (self.format, self.field) {
            (Format::Array, _) => "value",
            (Format::Coordinate, Field::Pattern) => "row column",
            (Format::Coordinate, _) => "row column value",
        }
    }

    /// How many entries of a file with this header were added to an earlier one at the same
    /// position, given the matrix that was read. Array files have one entry for each position.
    #[cfg(feature = "std")]
    pub(in crate::matrix) fn summed<T: Scalar>(&self, matrix: CsrView<'_, T>) -> usize {
        let positions = match (self.format, self.symmetry) {
            (Format::Array, _) => return 0,
            (_, Symmetry::General) => matrix.nnz(),
            _ => {
                let on_diagonal = |&row: &usize| {
                    let (columns, _) = matrix.row(row);
                    columns.binary_search(&(row as u32)).is_ok()
                };
                let diagonal = (0..matrix.rows()).filter(on_diagonal).count();
                // Each of the others stands for two.
                (matrix.nnz() - diagonal) / 2 + diagonal
            }
        };
        self.entries - positions
    }

    /// Bytes of memory that the matrix takes while it is read, at the very least: as a list of
    /// entries, and in the end.
    #[cfg(feature = "std")]
    pub(in crate::matrix) fn least_bytes(&self) -> u64 {
        const LISTED: usize = size_of::<Entry<f32>>();
        let stored = match (self.format, self.symmetry) {
            // Zeros are not stored.
            (Format::Array, _) => return 0,
            (_, Symmetry::General) => self.entries,
            // All but those on the diagonal, of which there are no more than rows.
            _ => self.entries.saturating_mul(2).saturating_sub(self.rows as usize),
        };
        let entry = LISTED + size_of::<u32>() + size_of::<f32>();
        let offsets = u64::from(self.rows) * size_of::<u32>() as u64;
        (stored as u64).saturating_mul(entry as u64).saturating_add(offsets)
    }

    /// Bytes of the shortest line with an entry, such as `1 1` and a line feed.
    fn shortest_entry(&self) -> usize {
        2 * self.entry_fields().split(' ').count()
    }
}

/// Reads the header and returns it with the position at which the entries start.
///
/// `bytes` are the first of a file of `length` bytes. Nothing is allocated by the sizes found, and
/// they are checked against the bytes that follow.
pub(super) fn parse(bytes: &[u8], length: usize) -> Result<(Header, usize), MarketError> {
    let banner_end = scan::line_end(bytes, 0);
    let (format, field, symmetry) =
        banner(&bytes[..banner_end]).map_err(|kind| MarketError { line: 1, kind })?;

    let mut at = banner_end + 1;
    while at < bytes.len() {
        let end = scan::line_end(bytes, at);
        let line = &bytes[at..end];
        match line.get(scan::skip_blanks(line, 0)) {
            None | Some(b'%') => at = end + 1,
            Some(_) => {
                let body = (end + 1).min(length);
                return size(line, format, field, symmetry, length - body)
                    .map(|header| (header, body))
                    .map_err(|kind| MarketError { line: scan::line_number(bytes, at), kind });
            }
        }
    }
    Err(MarketError { line: last_line(bytes), kind: MarketErrorKind::NoSize })
}

/// The last line with a byte on it.
pub(super) fn last_line(bytes: &[u8]) -> usize {
    scan::line_number(bytes, bytes.len().saturating_sub(1))
}

fn banner(line: &[u8]) -> Result<(Format, Field, Symmetry), MarketErrorKind> {
    if line.starts_with(BYTE_ORDER_MARK) {
        return Err(MarketErrorKind::ByteOrderMark);
    }
    let mut words = scan::words(line);
    let Some(first) = words.next() else {
        return Err(match line.is_empty() {
            true => MarketErrorKind::Empty,
            false => MarketErrorKind::Banner { found: String::new() },
        });
    };
    if !first.eq_ignore_ascii_case(b"%%MatrixMarket") {
        return Err(MarketErrorKind::Banner { found: scan::quoted(first) });
    }
    let (Some(object), Some(format), Some(field), Some(symmetry), None) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Err(MarketErrorKind::BannerWords { found: scan::words(line).count() });
    };
    if !object.eq_ignore_ascii_case(b"matrix") {
        return Err(MarketErrorKind::Object { found: scan::quoted(object) });
    }
    let format = match () {
        () if format.eq_ignore_ascii_case(b"coordinate") => Format::Coordinate,
        () if format.eq_ignore_ascii_case(b"array") => Format::Array,
        () => return Err(MarketErrorKind::Format { found: scan::quoted(format) }),
    };
    let field = match () {
        () if field.eq_ignore_ascii_case(b"real") => Field::Real,
        () if field.eq_ignore_ascii_case(b"integer") => Field::Integer,
        () if field.eq_ignore_ascii_case(b"pattern") => Field::Pattern,
        () => return Err(MarketErrorKind::Field { found: scan::quoted(field) }),
    };
    let symmetry = match () {
        () if symmetry.eq_ignore_ascii_case(b"general") => Symmetry::General,
        () if symmetry.eq_ignore_ascii_case(b"symmetric") => Symmetry::Symmetric,
        () if symmetry.eq_ignore_ascii_case(b"skew-symmetric") => Symmetry::SkewSymmetric,
        () => return Err(MarketErrorKind::Symmetry { found: scan::quoted(symmetry) }),
    };
    if field == Field::Pattern && format == Format::Array {
        return Err(MarketErrorKind::PatternWith { with: "array" });
    }
    if field == Field::Pattern && symmetry == Symmetry::SkewSymmetric {
        return Err(MarketErrorKind::PatternWith { with: "skew-symmetric" });
    }
    Ok((format, field, symmetry))
}

fn size(
    line: &[u8],
    format: Format,
    field: Field,
    symmetry: Symmetry,
    body_bytes: usize,
) -> Result<Header, MarketErrorKind> {
    let expected = match format {
        Format::Coordinate => "rows columns entries",
        Format::Array => "rows columns",
    };
    let unreadable = || MarketErrorKind::Size { found: scan::quoted(line.trim_ascii()), expected };
    let mut words = scan::words(line);
    let mut numbers = words.clone().map(scan::whole_unsigned);
    let (Some(Some(rows)), Some(Some(cols))) = (numbers.next(), numbers.next()) else {
        return Err(unreadable());
    };
    let (Ok(rows_32), Ok(cols_32)) = (u32::try_from(rows), u32::try_from(cols)) else {
        // As they are written: the numbers stop at 2⁶⁴ − 1.
        let mut next = || words.next().map(scan::quoted).unwrap_or_default();
        return Err(MarketErrorKind::TooLarge { rows: next(), cols: next() });
    };
    if symmetry != Symmetry::General && rows != cols {
        return Err(MarketErrorKind::NotSquare { rows, cols });
    }
    let entries = match format {
        Format::Coordinate => numbers.next().flatten().ok_or_else(unreadable)?,
        // Neither overflows: rows and columns have 32 bits.
        Format::Array => match symmetry {
            Symmetry::General => rows * cols,
            Symmetry::Symmetric => (rows * rows + rows) / 2,
            Symmetry::SkewSymmetric => (rows * rows - rows) / 2,
        },
    };
    if numbers.next().is_some() {
        return Err(unreadable());
    }
    let header = Header { format, field, symmetry, rows: rows_32, cols: cols_32, entries: 0 };
    // The last line may lack its line feed. Where there are lines enough, but too short ones, the
    // first of them is at fault.
    let entries = match usize::try_from(entries) {
        Ok(entries) if entries <= (body_bytes + 1) / SHORTEST_LINE => entries,
        _ => {
            let most = (body_bytes + 1) / header.shortest_entry();
            return Err(MarketErrorKind::TooShort { entries, bytes: body_bytes, most });
        }
    };
    plausible::check(rows, cols, entries as u64).map_err(MarketErrorKind::Absurd)?;
    Ok(Header { entries, ..header })
}
