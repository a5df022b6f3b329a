//! The lines after the header, one chunk of whole lines at a time.

use super::error::{Axis, MarketErrorKind};
use super::header::{Field, Header, Symmetry};
use crate::matrix::{Scalar, scan};

/// Where and why reading a chunk stopped.
#[derive(Debug)]
pub(super) struct Stop {
    /// A byte of the offending line, counted from the start of the chunk.
    pub(super) at: usize,
    /// Entries of the chunk before that line.
    pub(super) entries: usize,
    pub(super) kind: MarketErrorKind,
}

/// An entry as the file lists it, indices from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<T> {
    /// A byte of its line, counted from the start of the chunk.
    pub(super) at: usize,
    pub(super) row: u32,
    pub(super) col: u32,
    pub(super) value: T,
}

/// Calls `sink` for each entry of a chunk in coordinate format; returns how many there are.
#[inline]
pub(super) fn coordinates<T: Scalar>(
    chunk: &[u8],
    header: &Header,
    mut sink: impl FnMut(Listed<T>),
) -> Result<usize, Stop> {
    let mut entries = 0;
    let mut at = 0;
    while let Some(start) = next_entry(chunk, at) {
        let (listed, end) = coordinate(chunk, start, header).map_err(|kind| Stop {
            at: start,
            entries,
            kind: *kind,
        })?;
        at = end_of_line(chunk, end, header).map_err(|kind| Stop {
            at: start,
            entries,
            kind: *kind,
        })?;
        sink(listed);
        entries += 1;
    }
    Ok(entries)
}

/// Calls `sink` for each value of a chunk in array format; returns how many there are.
pub(super) fn array_values<T: Scalar>(
    chunk: &[u8],
    header: &Header,
    mut sink: impl FnMut(usize, T),
) -> Result<usize, Stop> {
    let mut entries = 0;
    let mut at = 0;
    while let Some(start) = next_entry(chunk, at) {
        let (number, end) =
            value(chunk, start, header).map_err(|kind| Stop { at: start, entries, kind: *kind })?;
        at = end_of_line(chunk, end, header).map_err(|kind| Stop {
            at: start,
            entries,
            kind: *kind,
        })?;
        sink(start, number);
        entries += 1;
    }
    Ok(entries)
}

// Errors are boxed so that the common case returns in registers.
type Parsed<T> = Result<T, alloc::boxed::Box<MarketErrorKind>>;

/// The start of the next line with an entry, past blank lines and comments.
#[inline]
fn next_entry(chunk: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = scan::skip_blanks(chunk, at);
        match chunk.get(at)? {
            b'\n' => at += 1,
            b'%' => at = scan::line_end(chunk, at),
            _ => return Some(at),
        }
    }
}

#[inline]
fn coordinate<T: Scalar>(chunk: &[u8], at: usize, header: &Header) -> Parsed<(Listed<T>, usize)> {
    let (row, end) = index(chunk, at, Axis::Row, header.rows, header)?;
    let start = scan::skip_blanks(chunk, end);
    let (col, end) = index(chunk, start, Axis::Column, header.cols, header)?;
    let (number, end) = if header.field == Field::Pattern {
        (T::from_f64(1.0), end)
    } else {
        value(chunk, scan::skip_blanks(chunk, end), header)?
    };
    if header.symmetry == Symmetry::SkewSymmetric && row == col && number.to_f64() != 0.0 {
        return Err(MarketErrorKind::SkewDiagonal { index: row + 1 }.into());
    }
    Ok((Listed { at, row, col, value: number }, end))
}

/// An index, counted from 0, and the position after it. Two calls an entry: worth inlining.
#[inline(always)]
fn index(chunk: &[u8], at: usize, axis: Axis, limit: u32, header: &Header) -> Parsed<(u32, usize)> {
    if let Some((number, end)) = scan::unsigned(chunk, at)
        && (1..=u64::from(limit)).contains(&number)
        && chunk.get(end).is_none_or(|&byte| scan::is_blank(byte) || byte == b'\n')
    {
        return Ok(((number - 1) as u32, end));
    }
    Err(index_error(chunk, at, axis, limit, header).into())
}

#[cold]
fn index_error(
    chunk: &[u8],
    at: usize,
    axis: Axis,
    limit: u32,
    header: &Header,
) -> MarketErrorKind {
    let word = scan::word(chunk, at);
    match scan::whole_unsigned(word) {
        _ if word.is_empty() => {
            let what = if axis == Axis::Row { "row" } else { "column" };
            MarketErrorKind::Missing { what, expected: header.entry_fields() }
        }
        Some(0) => MarketErrorKind::ZeroIndex { axis },
        Some(_) => MarketErrorKind::IndexRange { axis, index: scan::quoted(word), limit },
        None => MarketErrorKind::Index { axis, found: scan::quoted(word) },
    }
}

#[inline]
fn value<T: Scalar>(chunk: &[u8], at: usize, header: &Header) -> Parsed<(T, usize)> {
    if let Some((number, end)) = scan::float(chunk, at) {
        let number = T::from_f64(number);
        if number.to_f64().is_finite()
            && (header.field != Field::Integer || is_whole(&chunk[at..end]))
        {
            return Ok((number, end));
        }
    }
    Err(value_error(chunk, at, header).into())
}

fn is_whole(word: &[u8]) -> bool {
    word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-'))
}

#[cold]
fn value_error(chunk: &[u8], at: usize, header: &Header) -> MarketErrorKind {
    let word = scan::word(chunk, at);
    let found = scan::quoted(word);
    if word.is_empty() {
        return MarketErrorKind::Missing { what: "value", expected: header.entry_fields() };
    }
    match scan::float(chunk, at) {
        None => MarketErrorKind::Value { found },
        Some(_) if header.field == Field::Integer && !is_whole(word) => {
            MarketErrorKind::NotInteger { found }
        }
        Some(_) => MarketErrorKind::NotFinite { found },
    }
}

/// Checks that only blanks follow and returns the position of the next line.
#[inline]
fn end_of_line(chunk: &[u8], at: usize, header: &Header) -> Parsed<usize> {
    let at = scan::skip_blanks(chunk, at);
    match chunk.get(at) {
        None => Ok(at),
        Some(b'\n') => Ok(at + 1),
        Some(_) => Err(MarketErrorKind::Trailing {
            found: scan::quoted(scan::word(chunk, at)),
            expected: header.entry_fields(),
        }
        .into()),
    }
}
