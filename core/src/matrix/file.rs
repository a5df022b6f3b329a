//! Loading a matrix file: `.mtx` and `.smtx`, plain or compressed (`.gz`).

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec::Vec;

use flate2::bufread::GzDecoder;
use thiserror::Error;

use super::market::{self, Header, MarketError, MarketErrorKind};
use super::smtx::{self, SmtxError, SmtxErrorKind};
use super::{Csr, Duplicates, Scalar, scan};

/// Decompressed text is read in pieces of this size, so that a bomb is met before it is held.
const PIECE_BYTES: usize = 1 << 20;

/// Why a file could not be loaded. The message starts with `path:` or `path:line:`.
#[derive(Debug, Error)]
#[error("{}:{} {kind}", path.display(), line.map(|line| std::format!("{line}:")).unwrap_or_default())]
pub struct MatrixFileError {
    /// The file.
    pub path: PathBuf,
    /// The line of its (decompressed) text, from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub kind: MatrixFileErrorKind,
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum MatrixFileErrorKind {
    /// The extension names no known format.
    #[error("unknown extension; name the file *.mtx, *.mtx.gz, *.smtx or *.smtx.gz")]
    Extension,
    /// The operating system could not open or read the file.
    #[error("cannot read the file: {0}; check that it exists and is readable")]
    Read(#[source] io::Error),
    /// The compressed bytes are damaged or end early, after the line given.
    #[error("cannot decompress: {0}; the file is truncated or damaged, fetch it again")]
    Decompress(#[source] io::Error),
    /// Something that is neither compressed nor padding follows the compressed text.
    #[error("{bytes} bytes after the compressed data; cut them off or fetch the file again")]
    TrailingBytes {
        /// How many there are.
        bytes: usize,
    },
    /// The text is longer than [`Limits`] allow.
    #[error(
        "decompresses to more than {limit} bytes; if it is genuine, decompress it first or raise the limit"
    )]
    TooLong {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// The text is not a readable Matrix Market file.
    #[error("{0}")]
    Market(MarketErrorKind),
    /// The text is not a readable `.smtx` file.
    #[error("{0}")]
    Smtx(SmtxErrorKind),
}

/// How long a compressed file's text may be. The compressed file's own claim is never trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Text of up to this many bytes is always accepted.
    pub always: u64,
    /// Longer text may have this many bytes for each compressed byte. Matrix Market text shrinks
    /// 3–20 times; deflate can reach 1030.
    pub ratio: u64,
    /// No text may be longer than this.
    pub most: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { always: 64 << 20, ratio: 200, most: 64 << 30 }
    }
}

impl Limits {
    fn text_bytes(self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.ratio).max(self.always).min(self.most)
    }
}

/// Begins each compressed member of a `.gz` file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Market,
    Smtx,
}

/// Loads the matrix of a file. The extension, in any case, tells the format: `.mtx` (see
/// [`market`]) or `.smtx` (see [`smtx`]), each possibly followed by `.gz`.
///
/// Runs in the current rayon pool, as [`market::parse`]. A repeated position of an `.smtx` file is
/// an error whatever `duplicates` says.
///
/// # Errors
/// [`MatrixFileError`], for everything that can be wrong with the file.
pub fn load<T: Scalar>(path: &Path, duplicates: Duplicates) -> Result<Csr<T>, MatrixFileError> {
    load_within(path, duplicates, Limits::default())
}

/// A matrix from a file, and what became of the file's entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// The matrix.
    pub matrix: Csr<T>,
    /// Entries of the file that were added to an earlier one at the same position. In a symmetric
    /// file both triangles are the same positions.
    pub summed: usize,
}

/// [`load`], which also tells how many duplicates were summed.
///
/// # Errors
/// As [`load`].
pub fn load_counted<T: Scalar>(
    path: &Path,
    duplicates: Duplicates,
) -> Result<Loaded<T>, MatrixFileError> {
    load_counted_within(path, duplicates, Limits::default())
}

/// [`load`] with other limits for compressed files.
///
/// # Errors
/// As [`load`].
pub fn load_within<T: Scalar>(
    path: &Path,
    duplicates: Duplicates,
    limits: Limits,
) -> Result<Csr<T>, MatrixFileError> {
    load_counted_within(path, duplicates, limits).map(|loaded| loaded.matrix)
}

fn load_counted_within<T: Scalar>(
    path: &Path,
    duplicates: Duplicates,
    limits: Limits,
) -> Result<Loaded<T>, MatrixFileError> {
    let fail = |line, kind| MatrixFileError { path: path.to_path_buf(), line, kind };
    let (format, compressed) =
        format(path).ok_or_else(|| fail(None, MatrixFileErrorKind::Extension))?;
    if format == Format::Market
        && !compressed
        && let Some((matrix, header)) = load_pieces(path, duplicates)
    {
        let summed = header.summed(matrix.view());
        return Ok(Loaded { matrix, summed });
    }
    let bytes = if compressed {
        decompress(path, limits).map_err(|(line, kind)| fail(line, kind))?
    } else {
        std::fs::read(path).map_err(|error| fail(None, MatrixFileErrorKind::Read(error)))?
    };
    match format {
        Format::Market => market::parse_with_header(&bytes, duplicates)
            .map(|(matrix, header)| Loaded { summed: header.summed(matrix.view()), matrix })
            .map_err(|MarketError { line, kind }| {
                fail(Some(line), MatrixFileErrorKind::Market(kind))
            }),
        Format::Smtx => smtx::parse(&bytes)
            .map(|matrix| Loaded { matrix, summed: 0 })
            .map_err(|SmtxError { line, kind }| fail(Some(line), MatrixFileErrorKind::Smtx(kind))),
    }
}

/// Reads a plain Matrix Market file piece by piece, without holding its text. `None` when anything
/// is unusual: then it is read again as a whole, and that tells what and where.
///
/// Mapping the file into memory would be as fast, but another process that truncates the file
/// meanwhile would kill this one.
#[cfg(unix)]
fn load_pieces<T: Scalar>(path: &Path, duplicates: Duplicates) -> Option<(Csr<T>, Header)> {
    use std::os::unix::fs::FileExt;

    let metadata = std::fs::metadata(path).ok()?;
    // A pipe can be opened and read only once, so it must not be tried.
    let length = usize::try_from(metadata.len()).ok().filter(|_| metadata.is_file())?;
    let file = std::fs::File::open(path).ok()?;
    let read = |buffer: &mut [u8], at: usize| file.read_exact_at(buffer, at as u64).ok();
    market::parse_pieces(length, read, duplicates)
}

#[cfg(not(unix))]
fn load_pieces<T: Scalar>(_: &Path, _: Duplicates) -> Option<(Csr<T>, Header)> {
    None
}

/// The format and whether the file is compressed.
fn format(path: &Path) -> Option<(Format, bool)> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let plain = name.strip_suffix(".gz");
    let format = match plain.unwrap_or(&name).rsplit_once('.')?.1 {
        "mtx" => Format::Market,
        "smtx" => Format::Smtx,
        _ => return None,
    };
    Some((format, plain.is_some()))
}

fn decompress(
    path: &Path,
    limits: Limits,
) -> Result<Vec<u8>, (Option<usize>, MatrixFileErrorKind)> {
    let unreadable = |error| (None, MatrixFileErrorKind::Read(error));
    let compressed = std::fs::read(path).map_err(unreadable)?;
    let limit = limits.text_bytes(compressed.len() as u64);
    let mut decoder = GzDecoder::new(compressed.as_slice());
    let mut text = Vec::new();
    loop {
        match decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut text) {
            Ok(0) => match decoder.into_inner() {
                // Some archivers pad with zeros.
                rest if rest.iter().all(|&byte| byte == 0) => return Ok(text),
                rest if rest.starts_with(&MAGIC) => decoder = GzDecoder::new(rest),
                rest => {
                    return Err((None, MatrixFileErrorKind::TrailingBytes { bytes: rest.len() }));
                }
            },
            Ok(_) if text.len() as u64 > limit => {
                return Err((None, MatrixFileErrorKind::TooLong { limit }));
            }
            Ok(_) => {}
            Err(error) => {
                let line = scan::line_number(&text, text.len());
                return Err((Some(line), MatrixFileErrorKind::Decompress(error)));
            }
        }
    }
}
