//! Harwell–Boeing files (`.rua`, `.rsa`, `.pua`, `.psa`, `.rza`, …) and Rutherford–Boeing files
//! (`.rb`), as bytes.
//!
//! ```text
//! title                                                                   key
//!              5             1             1             3          lines: all, starts, rows, values
//! rua                       3             3             4             0     kind, rows, columns, entries
//! (4i20)          (4i20)          (4e20.12)                           Fortran formats of the three
//!                    1                   2 …                          where each column starts
//! ```
//!
//! The matrix is listed column by column, rows from 1, in fields of fixed width that need no blank
//! between them. Read: real, integer and pattern matrices (every value 1), assembled, without a
//! symmetry, symmetric, skew-symmetric or rectangular. Right-hand sides are skipped. Refused:
//! complex matrices, and those that are given as elements.

use alloc::{string::String, vec, vec::Vec};
use core::str;

use thiserror::Error;

use super::assemble::{Conflict, Entry, Part, RowBuckets, assemble};
use super::{Absurd, Csr, Duplicates, Scalar, plausible, scan};

/// Wider fields are no numbers.
const MOST_WIDTH: usize = 200;

/// Why bytes are not a Harwell–Boeing file, and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("line {line}: {kind}")]
pub struct HarwellBoeingError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: HarwellBoeingErrorKind,
}

/// What is wrong in a Harwell–Boeing file. Rows and columns are counted from 1, as in the file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum HarwellBoeingErrorKind {
    /// The header's second line is not the numbers of lines.
    #[error("`{found}` is not the line counts of a Harwell-Boeing file; expected whole numbers")]
    Lines {
        /// The line.
        found: String,
    },
    /// The header's third line is not a kind and sizes.
    #[error("`{found}` is no kind and sizes; expected something like `rua 3 3 4 0`")]
    Sizes {
        /// The line.
        found: String,
    },
    /// A kind of matrix that is not read.
    #[error(
        "a matrix of kind `{found}` is not read; expected r, i or p, then u, s, z or r, then a"
    )]
    Kind {
        /// The kind.
        found: String,
    },
    /// A format is not one of Fortran's for numbers.
    #[error(
        "`{found}` is no Fortran format of numbers; expected something like (16i5) or (1p,5e16.8)"
    )]
    Format {
        /// The format.
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
    /// A symmetric matrix has as many rows as columns.
    #[error("a symmetric matrix must be square, but it is {rows} × {cols}")]
    NotSquare {
        /// Rows promised.
        rows: u64,
        /// Columns promised.
        cols: u64,
    },
    /// The file ends before all was listed.
    #[error("the file ends after {found} of {expected} {what}; it is truncated, fetch it again")]
    Ends {
        /// `column starts`, `rows` or `values`.
        what: &'static str,
        /// Numbers that there must be.
        expected: u64,
        /// Numbers found.
        found: usize,
    },
    /// A field is not a number.
    #[error("`{found}` in the {what} is not a number")]
    Number {
        /// `column starts`, `rows` or `values`.
        what: &'static str,
        /// The field.
        found: String,
    },
    /// Columns must start where the one before ends.
    #[error(
        "a column starts at entry {start} but ends before entry {end}; starts must not decrease"
    )]
    StartOrder {
        /// Where it starts.
        start: u64,
        /// Where the next starts.
        end: u64,
    },
    /// The starts do not span the entries.
    #[error("the column starts go from {first} to {last}; they must go from 1 to {expected}")]
    StartRange {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
        /// The number of entries, and one.
        expected: u64,
    },
    /// A row is not one of the matrix.
    #[error("row {row} is not from 1 to {rows}")]
    RowRange {
        /// The row.
        row: u64,
        /// Rows of the matrix.
        rows: u32,
    },
    /// A value is not finite.
    #[error("the value `{found}` is not finite")]
    NotFinite {
        /// The field.
        found: String,
    },
    /// A position occurs twice, and that is refused.
    #[error("entry ({row}, {col}) occurs more than once")]
    Duplicate {
        /// The row.
        row: u64,
        /// The column.
        col: u64,
    },
    /// The entries at one position add up to too much.
    #[error("the entries at ({row}, {col}) add up to more than fits")]
    SumOverflow {
        /// The row.
        row: u64,
        /// The column.
        col: u64,
    },
}

use HarwellBoeingErrorKind as Kind;

/// A matrix as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<T> {
    /// The matrix.
    pub matrix: Csr<T>,
    /// Whether the file has no values: every entry is 1.
    pub is_pattern: bool,
    /// Entries that were added to an earlier one at the same position.
    pub summed: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    None,
    Symmetric,
    Skew,
}

struct Header<'b> {
    is_pattern: bool,
    symmetry: Symmetry,
    rows: u32,
    cols: u32,
    entries: u64,
    starts: Fields,
    indices: Fields,
    values: Option<Fields>,
    /// What follows it.
    body: Lines<'b>,
}

/// Lines, with the number of the next.
#[derive(Clone)]
struct Lines<'b> {
    rest: &'b [u8],
    number: usize,
}

impl<'b> Lines<'b> {
    fn next(&mut self) -> Option<&'b [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = scan::line_end(self.rest, 0);
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        self.number += 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// Fields of one width, as a Fortran format has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    /// Of a line.
    count: usize,
    width: usize,
}

impl Fields {
    /// Reads a format such as `(10I8)`, `(1P,5E16.8)` or `(3(1X,E23.15))`.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?.trim().to_ascii_lowercase();
        let inside = text.strip_prefix('(')?.strip_suffix(')')?;
        let inside: String = inside.chars().filter(|c| !c.is_whitespace()).collect();
        // A scale factor shifts no point of a number that has an exponent.
        let inside = match inside.split_once('p') {
            Some((factor, rest)) if factor.trim_start_matches('-').parse::<u32>().is_ok() => {
                rest.trim_start_matches(',')
            }
            _ => &inside,
        };
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, rest) = inside.split_at(digits(inside));
        let count = if count.is_empty() { 1 } else { count.parse().ok()? };
        // A group of a blank and a number is a wider number.
        let (blanks, rest) = match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(group) => {
                let (blanks, rest) = group.split_once("x,")?;
                (if blanks.is_empty() { 1 } else { blanks.parse().ok()? }, rest)
            }
            None => (0, rest),
        };
        let rest = rest.strip_prefix(['i', 'e', 'd', 'f', 'g'])?;
        let (width, rest) = rest.split_at(digits(rest));
        let is_rest = rest.is_empty() || rest.starts_with('.');
        let width = width.parse::<usize>().ok()?.checked_add(blanks)?;
        let is_sane = is_rest && count > 0 && (1..=MOST_WIDTH).contains(&width);
        is_sane.then_some(Self { count, width })
    }

    /// Reads so many numbers, each by `parse`.
    fn read<V>(
        self,
        lines: &mut Lines<'_>,
        what: &'static str,
        expected: u64,
        parse: impl Fn(&[u8]) -> Result<Option<V>, Kind>,
    ) -> Result<Vec<V>, HarwellBoeingError> {
        let mut numbers = Vec::new();
        while (numbers.len() as u64) < expected {
            let Some(line) = lines.next() else {
                let kind = Kind::Ends { what, expected, found: numbers.len() };
                return Err(HarwellBoeingError { line: lines.number, kind });
            };
            let fail = |kind| HarwellBoeingError { line: lines.number, kind };
            let before = numbers.len();
            let fields = line.chunks(self.width).take(self.count).map(<[u8]>::trim_ascii);
            // A file whose fields have another width than it says has blanks between them.
            let is_split = fields.clone().all(|field| !field.iter().any(|&b| scan::is_blank(b)));
            let words = line.split(|&byte| scan::is_blank(byte));
            let mut take = |field: &[u8]| {
                if field.is_empty() || numbers.len() as u64 == expected {
                    return Ok(());
                }
                let number = parse(field).map_err(fail)?;
                let found = || scan::quoted(field);
                numbers.push(number.ok_or_else(|| fail(Kind::Number { what, found: found() }))?);
                Ok(())
            };
            if is_split {
                fields.into_iter().try_for_each(&mut take)?;
            } else {
                words.into_iter().try_for_each(&mut take)?;
            }
            if numbers.len() == before && !line.trim_ascii().is_empty() {
                return Err(fail(Kind::Number { what, found: scan::quoted(line) }));
            }
        }
        Ok(numbers)
    }
}

/// Reads a file.
///
/// Memory is bounded by the length of `bytes`, not by what the header promises.
///
/// # Errors
/// The first error found, with its line.
pub fn parse<T: Scalar>(
    bytes: &[u8],
    duplicates: Duplicates,
) -> Result<Read<T>, HarwellBoeingError> {
    let Header { is_pattern, symmetry, rows, cols, entries, starts, indices, values, body } =
        header(bytes)?;
    // Entries that are not there are missed below.
    plausible::check(rows.into(), cols.into(), entries)
        .map_err(|absurd| HarwellBoeingError { line: 3, kind: Kind::Absurd(absurd) })?;
    let mut lines = body;
    let whole = |field: &[u8]| Ok(scan::whole_unsigned(field));
    let starts_line = lines.number + 1;
    let starts = starts.read(&mut lines, "column starts", u64::from(cols) + 1, whole)?;
    check_starts(&starts, entries)
        .map_err(|kind| HarwellBoeingError { line: starts_line, kind })?;
    let indices_line = lines.number + 1;
    let indices = indices.read(&mut lines, "rows", entries, whole)?;
    let values = match values {
        None => vec![T::from_f64(1.0); indices.len()],
        Some(values) => values.read(&mut lines, "values", entries, number)?,
    };

    let mut list = Vec::with_capacity(indices.len());
    let columns = starts.windows(2).zip(0_u32..);
    let columns =
        columns.flat_map(|(pair, col)| core::iter::repeat_n(col, (pair[1] - pair[0]) as usize));
    for ((&index, value), col) in indices.iter().zip(values).zip(columns) {
        let row = index.checked_sub(1).and_then(|row| u32::try_from(row).ok());
        let Some(row) = row.filter(|&row| row < rows) else {
            let kind = Kind::RowRange { row: index, rows };
            return Err(HarwellBoeingError { line: indices_line, kind });
        };
        list.push(Entry { row, col, value });
        if symmetry != Symmetry::None && row != col {
            let mirrored =
                if symmetry == Symmetry::Skew { T::from_f64(-value.to_f64()) } else { value };
            list.push(Entry { row: col, col: row, value: mirrored });
        }
    }
    let listed = list.len();
    let buckets = RowBuckets::new(rows as usize, listed);
    let parts = vec![Part::new(list, buckets)];
    let matrix = assemble(rows as usize, cols as usize, buckets, &parts, duplicates);
    let matrix = matrix.map_err(|conflict| {
        let position = |row: u32, col: u32| (u64::from(row) + 1, u64::from(col) + 1);
        let kind = match conflict {
            Conflict::Duplicate { row, col } => {
                let (row, col) = position(row, col);
                Kind::Duplicate { row, col }
            }
            Conflict::SumOverflow { row, col } => {
                let (row, col) = position(row, col);
                Kind::SumOverflow { row, col }
            }
        };
        HarwellBoeingError { line: indices_line, kind }
    })?;
    Ok(Read { summed: listed - matrix.nnz(), matrix, is_pattern })
}

/// Reads the header alone.
#[cfg(feature = "std")]
pub(super) fn check_header(bytes: &[u8]) -> Result<(), HarwellBoeingError> {
    header(bytes).map(|_| ())
}

fn header(bytes: &[u8]) -> Result<Header<'_>, HarwellBoeingError> {
    let mut lines = Lines { rest: bytes, number: 0 };
    let mut next = || lines.next().unwrap_or_default();
    let (_title, counts, sizes, formats) = (next(), next(), next(), next());
    let fail = |line, kind| HarwellBoeingError { line, kind };
    let counts: Option<Vec<u64>> =
        scan::words(counts_text(counts)).map(scan::whole_unsigned).collect();
    let counts = counts.filter(|counts| matches!(counts.len(), 4 | 5));
    let counts =
        counts.ok_or_else(|| fail(2, Kind::Lines { found: scan::quoted(second(bytes)) }))?;
    let value_lines = counts.get(3).copied().unwrap_or(0);
    let right_sides = counts.get(4).copied().unwrap_or(0);

    let mut words = scan::words(sizes);
    let kind = words.next().unwrap_or_default().to_ascii_lowercase();
    let numbers: Option<Vec<u64>> = words.map(scan::whole_unsigned).collect();
    let numbers = numbers.filter(|numbers| numbers.len() >= 3);
    let wrong = || fail(3, Kind::Sizes { found: scan::quoted(sizes) });
    let numbers = numbers.ok_or_else(wrong)?;
    let &[rows, cols, entries, ..] = numbers.as_slice() else { return Err(wrong()) };
    let unknown = || fail(3, Kind::Kind { found: scan::quoted(&kind) });
    let &[values, symmetry, b'a'] = kind.as_slice() else { return Err(unknown()) };
    let symmetry = match symmetry {
        b'u' | b'r' => Symmetry::None,
        b's' => Symmetry::Symmetric,
        b'z' => Symmetry::Skew,
        _ => return Err(unknown()),
    };
    let is_pattern = match values {
        b'r' | b'i' => value_lines == 0,
        b'p' | b'q' => true,
        _ => return Err(unknown()),
    };
    let (Ok(small_rows), Ok(small_cols)) = (u32::try_from(rows), u32::try_from(cols)) else {
        return Err(fail(3, Kind::TooLarge { rows, cols }));
    };
    if symmetry != Symmetry::None && rows != cols {
        return Err(fail(3, Kind::NotSquare { rows, cols }));
    }

    // 16, 16 and 20 characters, where no blank need be between them.
    let format = |from: usize, to: usize| {
        let text = formats.get(from..formats.len().min(to)).unwrap_or_default();
        let fields = Fields::parse(text);
        fields.ok_or_else(|| fail(4, Kind::Format { found: scan::quoted(text.trim_ascii()) }))
    };
    let (starts, indices) = (format(0, 16)?, format(16, 32)?);
    let values = if is_pattern { None } else { Some(format(32, 52)?) };
    if right_sides > 0 {
        lines.next();
    }
    Ok(Header {
        is_pattern,
        symmetry,
        rows: small_rows,
        cols: small_cols,
        entries,
        starts,
        indices,
        values,
        body: lines,
    })
}

/// The second line, as far as it holds counts.
fn counts_text(line: &[u8]) -> &[u8] {
    line.get(..70).unwrap_or(line)
}

fn second(bytes: &[u8]) -> &[u8] {
    let mut lines = Lines { rest: bytes, number: 0 };
    lines.next();
    lines.next().unwrap_or_default()
}

fn check_starts(starts: &[u64], entries: u64) -> Result<(), Kind> {
    if let Some(pair) = starts.windows(2).find(|pair| pair[1] < pair[0]) {
        return Err(Kind::StartOrder { start: pair[0], end: pair[1] });
    }
    match (starts.first(), starts.last()) {
        (Some(&first), Some(&last)) if (first, last) != (1, entries.saturating_add(1)) => {
            Err(Kind::StartRange { first, last, expected: entries.saturating_add(1) })
        }
        _ => Ok(()),
    }
}

/// A number as Fortran writes it: `1.5D+03`, `1.5+103`, `.5`.
fn number<T: Scalar>(field: &[u8]) -> Result<Option<T>, Kind> {
    let Ok(text) = str::from_utf8(field) else { return Ok(None) };
    let mut plain = String::with_capacity(text.len() + 1);
    for (at, c) in text.char_indices() {
        let after_digit = text[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.');
        match c {
            'd' | 'D' | 'q' | 'Q' => plain.push('e'),
            // An exponent of three digits leaves no room for its letter.
            '+' | '-' if after_digit => {
                plain.push('e');
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    let Ok(value) = plain.parse::<f64>() else { return Ok(None) };
    let value = T::from_f64(value);
    if value.to_f64().is_finite() {
        Ok(Some(value))
    } else {
        Err(Kind::NotFinite { found: scan::quoted(field) })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn file(kind: &str, formats: &str, body: &str) -> Vec<u8> {
        format!("title\n 9 1 1 1 0\n{kind}\n{formats}\n{body}").into_bytes()
    }

    /// 3 × 3 with 4 entries in columns of 2, 0 and 2.
    const BODY: &str = "   1   3   3   5\n   1   3   1   2\n 1.5D+00-2.0E+00 3.0+100     .25\n";
    const FORMATS: &str = "(4I4)           (4I4)           (4E8.1)             ";

    #[test]
    fn fields_need_no_blank_between_them() {
        let read = parse::<f64>(&file("rua 3 3 4 0", FORMATS, BODY), Duplicates::Sum).unwrap();
        let matrix = read.matrix.view();
        assert_eq!(matrix.row(0), (&[0, 2][..], &[1.5, 3e100][..]));
        assert_eq!(matrix.row(1), (&[2][..], &[0.25][..]));
        assert_eq!(matrix.row(2), (&[0][..], &[-2.0][..]));
        assert!(!read.is_pattern && read.summed == 0);
    }

    #[test]
    fn symmetries_are_filled_in_and_patterns_are_ones() {
        let body = "   1   3   4   5\n   1   3   3   3\n";
        let header = "title\n 9 1 1 0\npsa 3 3 4 0\n(4I4)           (4I4)\n";
        let read = parse::<f32>(format!("{header}{body}").as_bytes(), Duplicates::Sum).unwrap();
        assert!(read.is_pattern);
        assert_eq!(read.matrix.view().row(2), (&[0, 1, 2][..], &[1.0, 1.0, 1.0][..]));
        assert_eq!(read.matrix.nnz(), 6);
        let skew = file("rza 2 2 1 0", FORMATS, "   1   2   2\n   2\n 4.0E+00\n");
        let read = parse::<f64>(&skew, Duplicates::Sum).unwrap();
        assert_eq!(read.matrix.view().row(0), (&[1][..], &[-4.0][..]));
    }

    #[test]
    fn formats_are_read_as_fortran_has_them() {
        for (text, count, width) in [
            ("(16I5)", 16, 5),
            (" (1P,5E16.8) ", 5, 16),
            ("(1P4D20.12)", 4, 20),
            ("(3(1X,E23.15))", 3, 24),
            ("(10f7.1)", 10, 7),
            ("(E20.12E3)", 1, 20),
            ("(8 I 10)", 8, 10),
        ] {
            assert_eq!(Fields::parse(text.as_bytes()), Some(Fields { count, width }), "{text}");
        }
        for text in ["", "16I5", "(I)", "(0I5)", "(5A8)", "(5I0)", "(5I9999)", "(I5,I5)"] {
            assert_eq!(Fields::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        for (kind, formats, body, line, says) in [
            ("cua 3 3 4 0", FORMATS, BODY, 3, "kind `cua`"),
            ("rue 3 3 4 0", FORMATS, BODY, 3, "kind `rue`"),
            ("rua 3 3", FORMATS, BODY, 3, "is no kind and sizes"),
            ("rsa 3 4 4 0", FORMATS, BODY, 3, "must be square"),
            ("rua 3 9999999999 4 0", FORMATS, BODY, 3, "too large"),
            ("rua 4000000000 3 4 0", FORMATS, BODY, 3, "absurdly large for 4 entries"),
            ("rua 3 3 4 0", "(4I4)           (4A4)", BODY, 4, "`(4A4)` is no Fortran format"),
            ("rua 3 3 4 0", FORMATS, "   1   3   2   5\n", 5, "must not decrease"),
            ("rua 3 3 4 0", FORMATS, "   1   3   3   6\n", 5, "must go from 1 to 5"),
            ("rua 3 3 4 0", FORMATS, "   1   3\n", 5, "ends after 2 of 4 column starts"),
            ("rua 3 3 4 0", FORMATS, "   1   3   3   5\n   1   4   1   2\n 1 2 3 4\n", 6, "row 4"),
            ("rua 3 3 4 0", FORMATS, "   1   3   3   5\n   1   x   1   2\n", 6, "`x` in the rows"),
            (
                "rua 3 3 4 0",
                FORMATS,
                "   1   3   3   5\n   1   3   1   2\n     1.0     NaN     1.0     1.0\n",
                7,
                "not finite",
            ),
        ] {
            let error = parse::<f64>(&file(kind, formats, body), Duplicates::Sum).unwrap_err();
            let text = format!("{error}");
            assert!(error.line == line && text.contains(says), "{text}");
        }
        let error = parse::<f64>(b"", Duplicates::Sum).unwrap_err();
        assert_eq!(error.line, 2);
    }

    #[test]
    fn what_a_header_promises_takes_no_memory() {
        let text = file("rua 4000000000 4000000000 99999999999 0", FORMATS, "   1   3\n");
        assert!(parse::<f64>(&text, Duplicates::Sum).is_err());
    }
}
