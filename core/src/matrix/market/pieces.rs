//! Reading a file that is not in memory: every task fetches its own piece of the text.

use std::ops::Range;
use std::vec::Vec;

use rayon::prelude::*;

use super::header::{self, Format, Header};
use super::parse::{CHUNK_BYTES, coordinate_part, row_buckets};
use crate::matrix::assemble::{self, Part};
use crate::matrix::{Csr, Duplicates, Scalar, scan};

/// Bytes in which the header must end.
const HEADER_BYTES: usize = 1 << 16;
/// Bytes read beyond a piece to find the end of its last line.
const LINE_BYTES: usize = 1 << 12;

/// Reads a coordinate file of `length` bytes, where `read` fills a buffer from a position.
///
/// Returns `None` when the file is an array, has very long comments or lines, takes more than
/// `memory` bytes, or is wrong in any way: [`parse`](super::parse) then reads it all or tells the
/// error.
pub(in crate::matrix) fn parse_pieces<T: Scalar>(
    length: usize,
    read: impl Fn(&mut [u8], usize) -> Option<()> + Sync,
    duplicates: Duplicates,
    memory: u64,
) -> Option<(Csr<T>, Header)> {
    pieces_of(length, read, duplicates, memory, CHUNK_BYTES, LINE_BYTES)
}

fn pieces_of<T: Scalar>(
    length: usize,
    read: impl Fn(&mut [u8], usize) -> Option<()> + Sync,
    duplicates: Duplicates,
    memory: u64,
    piece_bytes: usize,
    line_bytes: usize,
) -> Option<(Csr<T>, Header)> {
    let mut head = std::vec![0; length.min(HEADER_BYTES)];
    read(&mut head, 0)?;
    let (header, start) = header::parse(&head, length).ok()?;
    // A size line that the head cuts off may look complete.
    if header.format == Format::Array
        || header.least_bytes() > memory
        || (start >= head.len() && start < length)
    {
        return None;
    }
    let buckets = row_buckets(&header);
    let starts: Vec<usize> = (start..length).step_by(piece_bytes).collect();
    let parts: Option<Vec<(usize, Part<T>)>> = starts
        .into_par_iter()
        .map_init(Vec::new, |buffer, begin| {
            let end = length.min(begin + piece_bytes);
            // From the byte before, which tells whether a line starts at `begin`.
            let range = begin - 1..length.min(end + line_bytes);
            buffer.resize(range.len(), 0);
            read(buffer, range.start)?;
            let lines = whole_lines(buffer, end - range.start, range.end == length)?;
            coordinate_part(&buffer[lines], length - start, &header, buckets).ok()
        })
        .collect();
    let (counts, parts): (Vec<usize>, Vec<Part<T>>) = parts?.into_iter().unzip();
    if counts.iter().sum::<usize>() != header.entries {
        return None;
    }
    let (rows, cols) = (header.rows as usize, header.cols as usize);
    let matrix = assemble::assemble(rows, cols, buckets, &parts, duplicates).ok()?;
    Some((matrix, header))
}

/// The lines that start within bytes 1 to `end` of a buffer. `None` when the last of them goes on
/// beyond the buffer, unless the file ends there.
fn whole_lines(buffer: &[u8], end: usize, is_last: bool) -> Option<Range<usize>> {
    let next_line = |at: usize| match scan::line_end(buffer, at - 1) {
        end if end < buffer.len() => Some(end + 1),
        _ if is_last => Some(buffer.len()),
        _ => None,
    };
    // If no line starts at all, both ends are the start of the same later line.
    Some(next_line(1)?..next_line(end)?)
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::matrix::market;

    fn read_pieces(text: &[u8], piece_bytes: usize, line_bytes: usize) -> Option<Csr<f64>> {
        let read = |buffer: &mut [u8], at: usize| {
            buffer.copy_from_slice(text.get(at..at + buffer.len())?);
            Some(())
        };
        pieces_of(text.len(), read, Duplicates::Refuse, u64::MAX, piece_bytes, line_bytes)
            .map(|(matrix, _)| matrix)
    }

    proptest! {
        #[test]
        fn pieces_give_the_matrix_of_the_whole(
            matrix in arbitrary::csr::<f64>(30, 30, 80),
            piece_bytes in 1..300_usize,
            line_bytes in 0..60_usize,
            feed: bool,
        ) {
            let mut text = String::new();
            market::write(matrix.view(), &mut text).unwrap();
            if !feed {
                text.pop();
            }
            prop_assert_eq!(read_pieces(text.as_bytes(), piece_bytes, 60), Some(matrix.clone()));
            // With little room beyond the piece it may be left to the whole reader.
            if let Some(read) = read_pieces(text.as_bytes(), piece_bytes, line_bytes) {
                prop_assert_eq!(read, matrix);
            }
        }

        #[test]
        fn pieces_refuse_what_the_whole_refuses(
            matrix in arbitrary::csr::<f64>(10, 10, 30),
            at: prop::sample::Index,
            byte in any::<u8>(),
            piece_bytes in 1..100_usize,
        ) {
            let mut text = String::new();
            market::write(matrix.view(), &mut text).unwrap();
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let whole = market::parse(&bytes, Duplicates::Refuse).ok();
            if let Some(read) = read_pieces(&bytes, piece_bytes, 60) {
                prop_assert_eq!(Some(read), whole);
            }
        }
    }

    #[test]
    fn a_header_longer_than_the_head_is_left_to_the_whole_reader() {
        let banner = "%%MatrixMarket matrix coordinate real general\n";
        for padding in HEADER_BYTES - 80..HEADER_BYTES + 8 {
            let comment = std::format!("%{}\n", "x".repeat(padding - banner.len()));
            let text = std::format!("{banner}{comment}20 20 2\n10 10 1.5\n11 11 2\n");
            let whole = market::parse(text.as_bytes(), Duplicates::Refuse).unwrap();
            if let Some(read) = read_pieces(text.as_bytes(), 7, 60) {
                assert_eq!(read, whole);
            }
        }
    }
}
