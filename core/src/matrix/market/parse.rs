//! Cutting a file into chunks, reading them side by side, and putting the results together.

use alloc::{vec, vec::Vec};

use super::body::{self, Listed, Stop};
use super::error::{MarketError, MarketErrorKind};
use super::header::{self, Format, Header, Symmetry};
use crate::matrix::assemble::{self, Conflict, Entry, Part, RowBuckets};
use crate::matrix::{Csr, Duplicates, Scalar, scan, tasks};

/// Bytes of text whose entries fit in a core's cache.
pub(super) const CHUNK_BYTES: usize = 1 << 18;

/// Reads a Matrix Market file.
///
/// Values are read as f64 and rounded to `T`. With `std` the work is shared among the threads of
/// the current rayon pool (`pool.install(|| parse(…))` chooses it); the result does not depend on
/// the number of threads.
///
/// Memory is bounded by the length of `bytes`, not by what the header promises: a file may have at
/// most 2²⁴ + 64·entries rows, and as many columns; larger ones are refused as absurd.
///
/// # Errors
/// The first error in the file, with its line. Duplicates that are refused, and sums that overflow,
/// are reported only when everything else is right.
pub fn parse<T: Scalar>(bytes: &[u8], duplicates: Duplicates) -> Result<Csr<T>, MarketError> {
    parse_in_chunks(bytes, duplicates, CHUNK_BYTES)
}

/// [`parse`], with what the file says of itself.
#[cfg(feature = "std")]
pub(in crate::matrix) fn parse_with_header<T: Scalar>(
    bytes: &[u8],
    duplicates: Duplicates,
) -> Result<(Csr<T>, Header), MarketError> {
    parse_whole(bytes, duplicates, CHUNK_BYTES)
}

pub(super) fn parse_in_chunks<T: Scalar>(
    bytes: &[u8],
    duplicates: Duplicates,
    chunk_bytes: usize,
) -> Result<Csr<T>, MarketError> {
    parse_whole(bytes, duplicates, chunk_bytes).map(|(matrix, _)| matrix)
}

fn parse_whole<T: Scalar>(
    bytes: &[u8],
    duplicates: Duplicates,
    chunk_bytes: usize,
) -> Result<(Csr<T>, Header), MarketError> {
    let (header, start) = header::parse(bytes, bytes.len())?;
    let file = File { bytes, start, header, chunks: chunks(&bytes[start..], chunk_bytes) };
    let buckets = row_buckets(&header);
    let parts = match header.format {
        Format::Coordinate => file.coordinate_parts(buckets)?,
        Format::Array => file.array_parts(buckets)?,
    };
    assemble::assemble(header.rows as usize, header.cols as usize, buckets, &parts, duplicates)
        .map(|matrix| (matrix, header))
        .map_err(|_| file.conflict::<T>(duplicates))
}

pub(super) fn row_buckets(header: &Header) -> RowBuckets {
    let stored = match header.symmetry {
        Symmetry::General => header.entries,
        Symmetry::Symmetric | Symmetry::SkewSymmetric => 2 * header.entries,
    };
    RowBuckets::new(header.rows as usize, stored)
}

/// Reads the entries of one chunk, of a file with `body` bytes after its header. Returns how many
/// the chunk lists, and the entries with those that a symmetry adds.
pub(super) fn coordinate_part<T: Scalar>(
    chunk: &[u8],
    body: usize,
    header: &Header,
    buckets: RowBuckets,
) -> Result<(usize, Part<T>), Stop> {
    // Room for the chunk's share of the promised entries, but no more than it can hold.
    let share = header.entries as u128 * chunk.len() as u128 / body.max(1) as u128;
    let listed = (share as usize + share as usize / 16 + 16).min(chunk.len() / 2);
    let stored = if header.symmetry == Symmetry::General { listed } else { 2 * listed };
    let mut entries = Vec::with_capacity(stored);
    let count = body::coordinates(chunk, header, |listed: Listed<T>| {
        entries.push(Entry { row: listed.row, col: listed.col, value: listed.value });
        entries.extend(mirrored(header, listed));
    })?;
    Ok((count, Part::new(entries, buckets)))
}

/// Cuts the bytes after line feeds, into pieces of about the given length.
fn chunks(mut bytes: &[u8], length: usize) -> Vec<&[u8]> {
    let mut chunks = Vec::with_capacity(bytes.len() / length.max(1) + 1);
    while bytes.len() > length {
        let end = (scan::line_end(bytes, length) + 1).min(bytes.len());
        let (chunk, rest) = bytes.split_at(end);
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

struct File<'a> {
    bytes: &'a [u8],
    /// Where the entries start.
    start: usize,
    header: Header,
    /// The bytes from there on, cut after line feeds.
    chunks: Vec<&'a [u8]>,
}

impl File<'_> {
    fn coordinate_parts<T: Scalar>(
        &self,
        buckets: RowBuckets,
    ) -> Result<Vec<Part<T>>, MarketError> {
        let body = self.bytes.len() - self.start;
        let read = tasks::map(self.chunks.clone(), |chunk| {
            coordinate_part(chunk, body, &self.header, buckets)
        });
        self.complete(read)
    }

    fn array_parts<T: Scalar>(&self, buckets: RowBuckets) -> Result<Vec<Part<T>>, MarketError> {
        let read = tasks::map(self.chunks.clone(), |chunk| {
            let mut values: Vec<T> = Vec::new();
            let count = body::array_values(chunk, &self.header, |_, value| values.push(value))?;
            Ok((count, values))
        });
        let values = self.complete(read)?;
        let mut positions = positions(&self.header);
        let mut entries = Vec::new();
        for value in values.into_iter().flatten() {
            // `complete` checked the count, so there are as many positions as values.
            let Some((row, col)) = positions.next() else { break };
            if value.to_f64() != 0.0 {
                entries.push(Entry { row, col, value });
                entries.extend(mirrored(&self.header, Listed { at: 0, row, col, value }));
            }
        }
        Ok(vec![Part::new(entries, buckets)])
    }

    /// The results of all chunks, or the first error in the order of the file.
    fn complete<R>(&self, read: Vec<Result<(usize, R), Stop>>) -> Result<Vec<R>, MarketError> {
        let mut results = Vec::with_capacity(read.len());
        let mut left = self.header.entries;
        for (&chunk, read) in self.chunks.iter().zip(read) {
            let entries = match &read {
                Ok((entries, _)) => *entries,
                Err(stop) => stop.entries,
            };
            if entries > left {
                let kind = MarketErrorKind::TooMany { promised: self.header.entries as u64 };
                return Err(self.error(chunk, self.nth_entry(chunk, left), kind));
            }
            left -= entries;
            let (_, result) = read.map_err(|stop| self.error(chunk, stop.at, stop.kind))?;
            results.push(result);
        }
        if left > 0 {
            let found = self.header.entries - left;
            let kind = MarketErrorKind::TooFew { promised: self.header.entries as u64, found };
            return Err(MarketError { line: header::last_line(self.bytes), kind });
        }
        Ok(results)
    }

    /// A byte of the line of the n-th entry of a chunk, n from 0.
    #[cold]
    fn nth_entry(&self, chunk: &[u8], n: usize) -> usize {
        let (mut entries, mut found) = (0, 0);
        let mut visit = |at| {
            if entries == n {
                found = at;
            }
            entries += 1;
        };
        // What stops the reading lies behind: it was read that far before.
        let _ = match self.header.format {
            Format::Coordinate => {
                body::coordinates(chunk, &self.header, |listed: Listed<f64>| visit(listed.at))
            }
            Format::Array => body::array_values(chunk, &self.header, |at, _: f64| visit(at)),
        };
        found
    }

    fn error(&self, chunk: &[u8], at: usize, kind: MarketErrorKind) -> MarketError {
        let before: usize =
            self.chunks.iter().take_while(|c| c.as_ptr() != chunk.as_ptr()).map(|c| c.len()).sum();
        MarketError { line: scan::line_number(self.bytes, self.start + before + at), kind }
    }

    /// Finds the line of the first duplicate or the first sum that overflows, by reading again.
    #[cold]
    fn conflict<T: Scalar>(&self, duplicates: Duplicates) -> MarketError {
        let body = &self.bytes[self.start..];
        let mut all: Vec<Listed<T>> = Vec::new();
        // Read before without an error; array files list no position twice.
        let _ = body::coordinates(body, &self.header, |listed: Listed<T>| {
            all.push(listed);
            all.extend(mirrored(&self.header, listed).map(|mirror| Listed {
                at: listed.at,
                row: mirror.row,
                col: mirror.col,
                value: mirror.value,
            }));
        });
        all.sort_by_key(|listed| (listed.row, listed.col));
        let mut first: Option<(Listed<T>, Conflict)> = None;
        for same in all.chunk_by(|a, b| (a.row, a.col) == (b.row, b.col)) {
            let mut sum = same[0].value;
            for &listed in &same[1..] {
                sum = assemble::add(sum, listed.value);
                let (row, col) = (listed.row, listed.col);
                let conflict = match duplicates {
                    Duplicates::Refuse => Conflict::Duplicate { row, col },
                    Duplicates::Sum if sum.to_f64().is_finite() => continue,
                    Duplicates::Sum => Conflict::SumOverflow { row, col },
                };
                if first.is_none_or(|(earlier, _)| listed.at < earlier.at) {
                    first = Some((listed, conflict));
                }
                break;
            }
        }
        let (at, kind) = match first {
            Some((listed, Conflict::Duplicate { row, col })) => {
                (listed.at, MarketErrorKind::Duplicate { row: row + 1, col: col + 1 })
            }
            Some((listed, Conflict::SumOverflow { row, col })) => {
                (listed.at, MarketErrorKind::SumOverflow { row: row + 1, col: col + 1 })
            }
            // Not reached: the conflict that was seen is there.
            None => (0, MarketErrorKind::Duplicate { row: 0, col: 0 }),
        };
        MarketError { line: scan::line_number(self.bytes, self.start + at), kind }
    }
}

/// The entry that a symmetry adds to a listed one.
#[inline]
fn mirrored<T: Scalar>(header: &Header, listed: Listed<T>) -> Option<Entry<T>> {
    let value = match header.symmetry {
        Symmetry::General => return None,
        _ if listed.row == listed.col => return None,
        Symmetry::Symmetric => listed.value,
        Symmetry::SkewSymmetric => T::from_f64(-listed.value.to_f64()),
    };
    Some(Entry { row: listed.col, col: listed.row, value })
}

/// Positions of the values of an array file, in its order: column by column, the lower triangle
/// alone if there is a symmetry.
fn positions(header: &Header) -> impl Iterator<Item = (u32, u32)> + use<> {
    let Header { rows, cols, symmetry, .. } = *header;
    (0..cols).flat_map(move |col| {
        let first = match symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric => col,
            Symmetry::SkewSymmetric => col + 1,
        };
        (first..rows).map(move |row| (row, col))
    })
}
