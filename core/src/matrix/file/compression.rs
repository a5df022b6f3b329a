//! Compressed files: `.gz`, `.bz2`, `.zst` and `.xz`.

use std::io;
use std::vec::Vec;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use super::text::{Beginning, Text};
use super::{Fault, Limits, MatrixFileErrorKind};
use crate::matrix::scan;

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
        Self::ALL.into_iter().find(|compression| compression.begins(bytes))
    }

    /// Whether bytes begin with a stream.
    fn begins(self, bytes: &[u8]) -> bool {
        bytes.starts_with(self.mark()) || (self == Self::Zstandard && is_skippable(bytes))
    }

    /// Begins each stream with text.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Bzip2 => b"BZh",
            Self::Zstandard => b"\x28\xb5\x2f\xfd",
            Self::Xz => b"\xfd7zXZ\0",
        }
    }

    /// Adds what one stream holds to the text; gives the bytes behind it.
    fn decode<'b>(self, bytes: &'b [u8], text: &mut Text<'_>) -> Result<&'b [u8], Fault> {
        match self {
            Self::Gzip => {
                let mut decoder = GzDecoder::new(bytes);
                text.read(&mut decoder, damaged)?;
                Ok(decoder.into_inner())
            }
            Self::Bzip2 => {
                let mut decoder = BzDecoder::new(bytes);
                text.read(&mut decoder, damaged)?;
                Ok(decoder.into_inner())
            }
            Self::Zstandard if is_skippable(bytes) => skip(bytes).ok_or_else(|| {
                damaged(text, io::Error::new(io::ErrorKind::UnexpectedEof, "a frame is cut off"))
            }),
            Self::Zstandard => {
                // The decoder's own reasons are names of its types.
                let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
                let mut decoder = StreamingDecoder::new(bytes)
                    .map_err(|_| damaged(text, invalid("the header of a frame is no such one")))?;
                text.read(&mut decoder, |text, _| {
                    damaged(text, invalid("a block is damaged or cut off"))
                })?;
                // Which the decoder reads, and computes, but does not compare.
                let stored = decoder.decoder.get_checksum_from_data();
                if stored.is_some() && stored != decoder.decoder.get_calculated_checksum() {
                    return Err(damaged(text, invalid("the text is not that of the checksum")));
                }
                Ok(decoder.into_inner())
            }
            Self::Xz => {
                let mut decoder = XzReader::new_mem_limit(bytes, false, XZ_MEMORY);
                text.read(&mut decoder, damaged)?;
                Ok(decoder.into_inner())
            }
        }
    }
}

/// Whether bytes begin with a frame of Zstandard's that holds no text but notes of some program.
fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// What follows such a frame; nothing where it is cut off.
fn skip(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    bytes.get(8..)?.get(usize::try_from(length).ok()?..)
}

/// The text of a compressed file, whose streams are joined, or the line at which it cannot be read
/// on. What a long text's beginning claims, the rest must keep.
pub(super) fn decompress(
    compressed: &[u8],
    compression: Compression,
    limits: Limits,
    beginning: &Beginning<'_>,
) -> Result<Vec<u8>, Fault> {
    let mut text = Text::new(limits.text_bytes(compressed.len() as u64), beginning);
    let mut rest = compressed;
    loop {
        rest = compression.decode(rest, &mut text)?;
        // Some archivers pad with zeros.
        if rest.iter().all(|&byte| byte == 0) {
            return Ok(text.bytes);
        }
        if !compression.begins(rest) {
            return Err((None, MatrixFileErrorKind::TrailingBytes { bytes: rest.len() }));
        }
    }
}

/// Why a stream could not be read on.
fn damaged(text: &Text<'_>, error: io::Error) -> Fault {
    let line = scan::line_number(&text.bytes, text.bytes.len());
    (Some(line), MatrixFileErrorKind::Decompress(error))
}
