//! Which matrix is read, and how.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sparserl_core::matrix::Duplicates;
use sparserl_core::matrix::file::{self, Limits, MatrixFileErrorKind, Options};
use sparserl_core::matrix::npz::NpzError;
use sparserl_core::task::{Operation, Precision};

use crate::free_memory::free_memory;

/// Names of standard input.
const STANDARD_INPUT: [&str; 4] =
    [file::STANDARD_INPUT, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

pub(super) fn is_standard_input(path: &Path) -> bool {
    STANDARD_INPUT.iter().any(|name| path.as_os_str() == *name)
}

/// What is read.
#[derive(Args, Debug)]
pub(crate) struct MatrixArgs {
    /// Matrix: a file in the format of Matrix Market (.mtx), DLMC (.smtx), Harwell-Boeing (.rb,
    /// .rua, …) or SciPy (.npz), plain or compressed (.gz, .bz2, .zst, .xz), or an archive with one
    /// (.tar.gz, as SuiteSparse has them); `-` for standard input; or a generated one, as in
    /// stencil5:100x100 (`bench --help` lists them)
    pub(crate) matrix: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// How matrices are read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadingArgs {
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
    /// Which matrix of an archive, by its name with or without folders [default: the one called
    /// like the archive, or else the only one]
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// Memory that the text of a file or of standard input may take, as in 500M or 16G [default:
    /// 64M or 200 times the file, whichever is more, up to 64G or half of what is free]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
}

impl MatrixArgs {
    pub(super) fn new(matrix: PathBuf, reading: ReadingArgs) -> Self {
        Self { matrix, reading }
    }

    /// How it is read.
    pub(crate) fn options(&self) -> Options<'_> {
        let ReadingArgs { duplicates, member, memory } = &self.reading;
        let duplicates = match duplicates {
            DuplicatesArg::Sum => Duplicates::Sum,
            DuplicatesArg::Refuse => Duplicates::Refuse,
        };
        let limits = memory.map(|most| Limits { always: most, ratio: 0, most });
        let limits = limits.unwrap_or_else(default_limits);
        Options { duplicates, limits, member: member.as_deref() }
    }

    /// What has a file read that was refused, if anything that can be asked for does.
    pub(crate) fn hint(refused: &MatrixFileErrorKind) -> Option<&'static str> {
        match refused {
            MatrixFileErrorKind::SeveralMembers { .. } => Some("--member NAME chooses"),
            MatrixFileErrorKind::NoArchive { .. } => Some("leave --member out"),
            MatrixFileErrorKind::TooLong { .. }
            | MatrixFileErrorKind::Memory
            | MatrixFileErrorKind::Npz(NpzError::TooLong { .. }) => {
                Some("--memory BYTES raises it")
            }
            _ => None,
        }
    }

    /// Whether it is read from standard input.
    pub(crate) fn is_standard_input(&self) -> bool {
        is_standard_input(&self.matrix)
    }

    /// The file's name without its folder.
    pub(crate) fn file_name(&self) -> String {
        self.matrix.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file's name without folder and extensions: `graph` for `data/graph.mtx.gz`.
    pub(crate) fn stem(&self) -> String {
        if self.is_standard_input() {
            return "stdin".to_owned();
        }
        let name = self.file_name();
        // What separates the numbers of a generated matrix has no place in a folder's name.
        file::stem(&name).unwrap_or(&name).replace([':', ',', '@'], "-")
    }

    /// What a folder with a kernel of it is called that computes a product in such types.
    pub(super) fn folder_name(&self, (operation, precision): (Operation, Precision)) -> String {
        let operation = match operation {
            Operation::SpMV => "spmv".to_owned(),
            Operation::SpMM { columns } => format!("spmm{columns}"),
        };
        // A folder's name has no slash.
        let precision = precision.to_string().replace('/', "-");
        format!("{}.{operation}.{precision}", self.stem())
    }
}

#[cfg(test)]
impl MatrixArgs {
    /// A matrix file as it is read unless asked otherwise.
    pub(crate) fn of(path: &str) -> Self {
        Self { matrix: path.into(), reading: ReadingArgs::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DuplicatesArg {
    /// Their values are added
    #[default]
    Sum,
    /// They are an error
    Refuse,
}

/// The usual limits, within half of the memory that is free where the system tells: a process that
/// takes more than there is gets killed without a word.
pub(crate) fn default_limits() -> Limits {
    let usual = Limits::default();
    let half = free_memory().map_or(usual.most, |bytes| bytes / 2);
    Limits { most: usual.most.min(half.max(usual.always)), ..usual }
}

/// Reads a number of bytes such as `512M`, in powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let error = || format!("`{text}` is no number of bytes above 0: give one as in 500M or 16G");
    let number = text.trim_end_matches(['i', 'B']);
    let (number, shift) = match number.char_indices().last() {
        Some((end, unit)) if unit.is_ascii_alphabetic() => {
            let power = "KMGT".find(unit.to_ascii_uppercase()).ok_or_else(error)?;
            (&number[..end], 10 * (power + 1))
        }
        _ => (number, 0),
    };
    let number: u64 = number.parse().map_err(|_| error())?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_in_bytes_or_powers_of_1024() {
        assert_eq!(bytes("1000"), Ok(1000));
        assert_eq!(bytes("500M"), Ok(500 << 20));
        assert_eq!(bytes("16GiB"), Ok(16 << 30));
        for wrong in ["", "0", "G", "1.5G", "-1", "5X", "99999999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_within_those_that_are_usual() {
        let Limits { always, most, .. } = default_limits();
        assert!((always..=Limits::default().most).contains(&most), "{most}");
    }

    #[test]
    fn a_folder_is_named_after_whatever_is_read() {
        for (matrix, stem) in [
            ("a/graph.mtx.gz", "graph"),
            ("a/graph.tar.gz", "graph"),
            ("x.y.RUA", "x.y"),
            ("-", "stdin"),
            ("uniform:6,30,4@9", "uniform-6-30-4-9"),
        ] {
            assert_eq!(MatrixArgs::of(matrix).stem(), stem);
        }
    }
}
