//! Compressed files: `.gz`, `.bz2`, `.zst` and `.xz`.

use std::io::{self, Read};
use std::vec::Vec;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use super::{Limits, MatrixFileErrorKind};
use crate::matrix::scan;

/// Decompressed text is read in pieces of this size, so that a bomb is met before it is held.
const PIECE_BYTES: usize = 1 << 20;
/// KiB that a stream may have its decoder hold of what came before: no preset of `xz` takes more.
const XZ_MEMORY: u32 = 128 << 10;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Bzip2,
    Zstandard,
    Xz,
}

impl Compression {
    const ALL: [Self; 4] = [Self::Gzip, Self::Bzip2, Self::Zstandard, Self::Xz];

    pub(super) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "gz" => Some(Self::Gzip),
            "bz2" => Some(Self::Bzip2),
            "zst" => Some(Self::Zstandard),
            "xz" => Some(Self::Xz),
            _ => None,
        }
    }

    /// What begins with the mark of a compressed stream.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| bytes.starts_with(compression.mark()))
    }

    /// Begins each stream.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Bzip2 => b"BZh",
            Self::Zstandard => b"\x28\xb5\x2f\xfd",
            Self::Xz => b"\xfd7zXZ\0",
        }
    }

    /// Adds what one stream holds to the text; gives the bytes behind it.
    fn decode<'b>(
        self,
        bytes: &'b [u8],
        text: &mut Vec<u8>,
        limit: u64,
    ) -> Result<&'b [u8], MatrixFileErrorKind> {
        match self {
            Self::Gzip => {
                let mut decoder = GzDecoder::new(bytes);
                read(&mut decoder, text, limit)?;
                Ok(decoder.into_inner())
            }
            Self::Bzip2 => {
                let mut decoder = BzDecoder::new(bytes);
                read(&mut decoder, text, limit)?;
                Ok(decoder.into_inner())
            }
            Self::Zstandard => {
                let failed = |error| MatrixFileErrorKind::Decompress(io::Error::other(error));
                let mut decoder = StreamingDecoder::new(bytes).map_err(failed)?;
                read(&mut decoder, text, limit)?;
                Ok(decoder.into_inner())
            }
            Self::Xz => {
                let mut decoder = XzReader::new_mem_limit(bytes, false, XZ_MEMORY);
                read(&mut decoder, text, limit)?;
                Ok(decoder.into_inner())
            }
        }
    }
}

/// The text of a compressed file, whose streams are joined, or the line at which it cannot be read
/// on.
pub(super) fn decompress(
    compressed: &[u8],
    compression: Compression,
    limits: Limits,
) -> Result<Vec<u8>, (Option<usize>, MatrixFileErrorKind)> {
    let limit = limits.text_bytes(compressed.len() as u64);
    let (mut rest, mut text) = (compressed, Vec::new());
    loop {
        rest = compression.decode(rest, &mut text, limit).map_err(|kind| match kind {
            kind @ MatrixFileErrorKind::Decompress(_) => {
                (Some(scan::line_number(&text, text.len())), kind)
            }
            kind => (None, kind),
        })?;
        // Some archivers pad with zeros.
        if rest.iter().all(|&byte| byte == 0) {
            return Ok(text);
        }
        if !rest.starts_with(compression.mark()) {
            return Err((None, MatrixFileErrorKind::TrailingBytes { bytes: rest.len() }));
        }
    }
}

fn read(
    decoder: &mut impl Read,
    text: &mut Vec<u8>,
    limit: u64,
) -> Result<(), MatrixFileErrorKind> {
    loop {
        match decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(text) {
            Ok(0) => return Ok(()),
            Ok(_) if text.len() as u64 > limit => {
                return Err(MatrixFileErrorKind::TooLong { limit });
            }
            Ok(_) => {}
            Err(error) => return Err(MatrixFileErrorKind::Decompress(error)),
        }
    }
}
