//! Loading a matrix file: Matrix Market (`.mtx`), DLMC (`.smtx`), Harwell–Boeing (`.rb`, `.rua`, …)
//! and SciPy (`.npz`), plain, compressed (`.gz`, `.bz2`, `.zst`, `.xz`), or in an archive (`.tar`).

mod archive;
mod compression;
mod text;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::string::String;
use std::vec::Vec;

use thiserror::Error;

pub use self::archive::listed;
use self::compression::Compression;
use self::text::{Beginning, Claim, Text};
use super::harwell_boeing::{self, HarwellBoeingError, HarwellBoeingErrorKind};
use super::market::{self, Field, Header, MarketError, MarketErrorKind};
use super::npz::{self, NpzError};
use super::smtx::{self, SmtxError, SmtxErrorKind};
use super::{Csr, Duplicates, Scalar};

/// What standard input is called in messages.
pub const STANDARD_INPUT: &str = "-";

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
    #[error(
        "unknown extension; expected *.mtx, *.smtx, *.rb, *.rua or another of Harwell-Boeing's, *.npz, or *.tar with one of \
         them, plain or with .gz, .bz2, .zst or .xz; given as standard input (-), its content tells"
    )]
    Extension,
    /// A file of MATLAB's.
    #[error(
        "MATLAB's .mat is not read; take the same matrix as Matrix Market, as SuiteSparse has it and scipy.io.mmwrite \
         writes it"
    )]
    Matlab,
    /// A folder.
    #[error("is a folder; give a file in it")]
    Folder,
    /// What is read from a stream has none of the formats that are known.
    #[error(
        "unknown format; expected Matrix Market, .smtx, Harwell-Boeing, .npz or .tar, plain or compressed by gzip, bzip2, \
         zstd or xz"
    )]
    Unknown,
    /// A pipe or a device: it may have no end, and cannot be read twice.
    #[error("is no regular file; give - to read standard input")]
    NotAFile,
    /// The archive cannot be read.
    #[error("cannot read the archive: {0}; it is truncated or damaged, fetch it again")]
    Archive(#[source] io::Error),
    /// There is no matrix in the archive.
    #[error("holds no file that is called as matrices are (*.mtx, *.rb, …)")]
    NoMember,
    /// There are several, and none is called like the archive: [`Options::member`] names one.
    #[error("holds several matrices: {names}; choose one, or unpack it")]
    SeveralMembers {
        /// Their names.
        names: String,
    },
    /// The one that was asked for is not there.
    #[error("holds no `{asked}`, but {names}")]
    NotAMember {
        /// What was asked for.
        asked: String,
        /// Names of those that are there.
        names: String,
    },
    /// A member was asked for ([`Options::member`]), and there are none.
    #[error("is no archive, so that it has no `{asked}`")]
    NoArchive {
        /// What was asked for.
        asked: String,
    },
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
        "holds or decompresses to more than {limit} bytes; if it is genuine, decompress it first or raise the limit"
    )]
    TooLong {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// The text is longer than its header lets it be.
    #[error(
        "holds or decompresses to more than {most} bytes, which the {entries} entries of its size \
         line cannot take; the file is damaged, fetch it again"
    )]
    MoreThanClaimed {
        /// Entries promised.
        entries: u64,
        /// Bytes that they take at the very most.
        most: u64,
    },
    /// It takes more memory than the system has, or than [`Limits`] allow.
    #[error("does not fit into the memory that there is; take a smaller matrix or raise the limit")]
    Memory,
    /// The text is not a readable Matrix Market file.
    #[error("{0}")]
    Market(MarketErrorKind),
    /// The text is not a readable `.smtx` file.
    #[error("{0}")]
    Smtx(SmtxErrorKind),
    /// The text is not a readable Harwell–Boeing file.
    #[error("{0}")]
    HarwellBoeing(HarwellBoeingErrorKind),
    /// The bytes are not a readable `.npz` file.
    #[error("{0}")]
    Npz(NpzError),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Market,
    Smtx,
    HarwellBoeing,
    Npz,
}

impl Format {
    fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "mtx" => Some(Self::Market),
            "smtx" => Some(Self::Smtx),
            // Real, integer or pattern; any symmetry that is read; assembled.
            "rb" | "hb" | "rua" | "rsa" | "rza" | "rra" | "pua" | "psa" | "pra" | "iua" | "isa"
            | "ira" => Some(Self::HarwellBoeing),
            "npz" => Some(Self::Npz),
            _ => None,
        }
    }

    /// Of a file in an archive.
    fn of_member(name: &str) -> Option<Self> {
        Self::of_extension(&name.rsplit_once('.')?.1.to_ascii_lowercase())
    }

    /// What a text looks like; nothing for what looks like no matrix.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let start = bytes.trim_ascii_start();
        let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let is_list = |&byte: &u8| byte.is_ascii_digit() || b", \t\r".contains(&byte);
        if bytes.starts_with(b"PK") {
            Some(Self::Npz)
        } else if start.get(..14).is_some_and(|s| s.eq_ignore_ascii_case(b"%%MatrixMarket")) {
            Some(Self::Market)
        } else if !line.is_empty() && line.iter().all(is_list) {
            Some(Self::Smtx)
        } else if harwell_boeing::check_header(bytes).is_ok() {
            Some(Self::HarwellBoeing)
        } else {
            None
        }
    }
}

/// What a file's name says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind<'n> {
    /// Absent for archives.
    format: Option<Format>,
    compression: Option<Compression>,
    /// The name without the extensions.
    stem: &'n str,
}

impl<'n> Kind<'n> {
    fn of_name(name: &'n str) -> Option<Self> {
        let split = |name: &'n str| {
            let (stem, extension) = name.rsplit_once('.')?;
            Some((stem, extension.to_ascii_lowercase()))
        };
        let (stem, extension) = split(name)?;
        if extension == "tgz" {
            return Some(Self { format: None, compression: Some(Compression::Gzip), stem });
        }
        let compression = Compression::of_extension(&extension);
        let (stem, extension) =
            if compression.is_some() { split(stem)? } else { (stem, extension) };
        let format = Format::of_extension(&extension);
        (format.is_some() || extension == "tar").then_some(Self { format, compression, stem })
    }
}

/// The name of a matrix file without its extensions: `graph` of `graph.mtx.gz`; absent where a file
/// of this name would not be read.
#[must_use]
pub fn stem(name: &str) -> Option<&str> {
    Kind::of_name(name).map(|kind| kind.stem)
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'o> {
    /// What becomes of several entries at one position. In an `.smtx` file they are an error.
    pub duplicates: Duplicates,
    /// Limits of files that are not read in pieces.
    pub limits: Limits,
    /// Which file of an archive, by its name with or without folders.
    pub member: Option<&'o str>,
}

impl Options<'_> {
    /// Reads with the usual limits on memory.
    #[must_use]
    pub fn new(duplicates: Duplicates) -> Self {
        Self { duplicates, limits: Limits::default(), member: None }
    }
}

/// Loads the matrix of a file. The extension, in any case, tells the format: `.mtx` (see
/// [`market`]), `.smtx` (see [`smtx`]), those of [`harwell_boeing`] or `.npz` (see [`npz`]), each
/// possibly followed by that of a compression, or an archive with one of them.
///
/// Runs in the current rayon pool, as [`market::parse`].
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
    /// Whether the file has no values: every entry is 1.
    pub is_pattern: bool,
    /// Which of an archive's files it is.
    pub member: Option<Member>,
}

/// A matrix in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of the member that was read, with its folders.
    pub name: String,
    /// Names of the members that hold matrices, too.
    pub others: Vec<String>,
}

/// [`load`], which also tells what became of the entries.
///
/// # Errors
/// As [`load`].
pub fn load_counted<T: Scalar>(
    path: &Path,
    duplicates: Duplicates,
) -> Result<Loaded<T>, MatrixFileError> {
    load_with(path, &Options::new(duplicates))
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
    load_with(path, &Options { limits, ..Options::new(duplicates) }).map(|loaded| loaded.matrix)
}

/// [`load`] as asked for.
///
/// # Errors
/// As [`load`].
pub fn load_with<T: Scalar>(
    path: &Path,
    options: &Options<'_>,
) -> Result<Loaded<T>, MatrixFileError> {
    let fail = |(line, kind)| MatrixFileError { path: path.to_path_buf(), line, kind };
    let unreadable = |error| fail((None, MatrixFileErrorKind::Read(error)));
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(fail((None, MatrixFileErrorKind::Folder)));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = Kind::of_name(&name).ok_or_else(|| fail((None, unread(path))))?;
    // A pipe would be waited for, and a device has no end.
    if !metadata.is_file() {
        return Err(fail((None, MatrixFileErrorKind::NotAFile)));
    }
    if kind.format.is_some() {
        has_no_members(options).map_err(fail)?;
    }
    if (kind.format, kind.compression) == (Some(Format::Market), None)
        && let Some((matrix, header)) = load_pieces(path, options)
    {
        return Ok(of_market(matrix, header));
    }
    let limits = options.limits;
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let claim = |text: &[u8], limit| match kind.format {
        Some(format) => Claim::of(text, format, limit, held(limits)),
        None => Ok(Some(Claim::NONE)),
    };
    let bytes = match kind.compression {
        Some(compression) => read(file, limits, &|_, _| Ok(Some(Claim::NONE)))
            .and_then(|bytes| compression::decompress(&bytes, compression, limits, &claim)),
        None => read(file, limits, &claim),
    };
    let bytes = bytes.map_err(fail)?;
    match kind.format {
        Some(format) => parse(&bytes, format, options).map_err(fail),
        None => of_archive(&bytes, Some(kind.stem), options).map_err(fail),
    }
}

/// Why a file with this extension is not read.
fn unread(path: &Path) -> MatrixFileErrorKind {
    match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("mat") => MatrixFileErrorKind::Matlab,
        _ => MatrixFileErrorKind::Extension,
    }
}

/// Loads the matrix that a stream such as standard input holds, in any of the formats, compressed
/// or not; the content tells. What is read is held, so it may be as long as the limits say.
///
/// # Errors
/// As [`load`]; the path is [`STANDARD_INPUT`].
pub fn load_stream<T: Scalar>(
    mut stream: impl Read,
    options: &Options<'_>,
) -> Result<Loaded<T>, MatrixFileError> {
    let fail = |(line, kind)| MatrixFileError { path: STANDARD_INPUT.into(), line, kind };
    let is_archive = |bytes: &[u8]| bytes.get(257..262) == Some(b"ustar");
    // What begins as no matrix does may have no end.
    let claim = |bytes: &[u8], limit| match Format::of_bytes(bytes) {
        _ if is_archive(bytes) || Compression::of_bytes(bytes).is_some() => Ok(Some(Claim::NONE)),
        Some(format) => Claim::of(bytes, format, limit, held(options.limits)),
        None => Err((None, MatrixFileErrorKind::Unknown)),
    };
    let mut bytes = read(&mut stream, options.limits, &claim).map_err(fail)?;
    if let Some(compression) = Compression::of_bytes(&bytes) {
        let text = compression::decompress(&bytes, compression, options.limits, &claim);
        bytes = text.map_err(fail)?;
    }
    // The mark of an archive stands behind the header of its first file.
    if is_archive(&bytes) {
        return of_archive(&bytes, None, options).map_err(fail);
    }
    has_no_members(options).map_err(fail)?;
    let format = Format::of_bytes(&bytes);
    let format = format.ok_or_else(|| fail((None, MatrixFileErrorKind::Unknown)))?;
    parse(&bytes, format, options).map_err(fail)
}

/// What is wrong, and in which line.
type Fault = (Option<usize>, MatrixFileErrorKind);

/// Bytes that a matrix may take: there is as much as for its text once more.
fn held(limits: Limits) -> u64 {
    limits.most.saturating_mul(2)
}

/// All that a source has, within the limit of what may be held.
fn read(source: impl Read, limits: Limits, beginning: &Beginning<'_>) -> Result<Vec<u8>, Fault> {
    let mut text = Text::new(limits.most, beginning);
    text.read(source, |_, error| (None, MatrixFileErrorKind::Read(error)))?;
    Ok(text.bytes)
}

/// Refuses to look for a member in what is no archive.
fn has_no_members(options: &Options<'_>) -> Result<(), Fault> {
    options
        .member
        .map_or(Ok(()), |asked| Err((None, MatrixFileErrorKind::NoArchive { asked: asked.into() })))
}

fn of_archive<T: Scalar>(
    bytes: &[u8],
    stem: Option<&str>,
    options: &Options<'_>,
) -> Result<Loaded<T>, Fault> {
    let chosen = archive::choose(bytes, stem, options.member);
    let (member, others) = chosen.map_err(|kind| (None, kind))?;
    let bytes = bytes.get(member.bytes).unwrap_or_default();
    let loaded = parse(bytes, member.format, options)?;
    Ok(Loaded { member: Some(Member { name: member.name, others }), ..loaded })
}

fn parse<T: Scalar>(
    bytes: &[u8],
    format: Format,
    options: &Options<'_>,
) -> Result<Loaded<T>, Fault> {
    let duplicates = options.duplicates;
    let plain = |matrix, summed, is_pattern| Loaded { matrix, summed, is_pattern, member: None };
    match format {
        Format::Market => market::parse_with_header(bytes, duplicates)
            .map(|(matrix, header)| of_market(matrix, header))
            .map_err(|MarketError { line, kind }| (Some(line), MatrixFileErrorKind::Market(kind))),
        Format::Smtx => smtx::parse(bytes)
            .map(|matrix| plain(matrix, 0, true))
            .map_err(|SmtxError { line, kind }| (Some(line), MatrixFileErrorKind::Smtx(kind))),
        Format::HarwellBoeing => harwell_boeing::parse(bytes, duplicates)
            .map(|read| plain(read.matrix, read.summed, read.is_pattern))
            .map_err(|HarwellBoeingError { line, kind }| {
                (Some(line), MatrixFileErrorKind::HarwellBoeing(kind))
            }),
        Format::Npz => npz::parse(bytes, duplicates, options.limits.text_bytes(bytes.len() as u64))
            .map(|(matrix, summed)| plain(matrix, summed, false))
            .map_err(|error| (None, MatrixFileErrorKind::Npz(error))),
    }
}

fn of_market<T: Scalar>(matrix: Csr<T>, header: Header) -> Loaded<T> {
    let summed = header.summed(matrix.view());
    Loaded { matrix, summed, is_pattern: header.field == Field::Pattern, member: None }
}

/// Reads a plain Matrix Market file piece by piece, without holding its text. `None` when anything
/// is unusual: then it is read again as a whole, and that tells what and where.
///
/// Mapping the file into memory would be as fast, but another process that truncates the file
/// meanwhile would kill this one.
#[cfg(unix)]
fn load_pieces<T: Scalar>(path: &Path, options: &Options<'_>) -> Option<(Csr<T>, Header)> {
    use std::os::unix::fs::FileExt;

    let metadata = std::fs::metadata(path).ok()?;
    // A pipe can be opened and read only once, so it must not be tried.
    let length = usize::try_from(metadata.len()).ok().filter(|_| metadata.is_file())?;
    let file = std::fs::File::open(path).ok()?;
    let read = |buffer: &mut [u8], at: usize| file.read_exact_at(buffer, at as u64).ok();
    market::parse_pieces(length, read, options.duplicates, held(options.limits))
}

#[cfg(not(unix))]
fn load_pieces<T: Scalar>(_: &Path, _: &Options<'_>) -> Option<(Csr<T>, Header)> {
    None
}
