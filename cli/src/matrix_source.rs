//! Where the matrices of a benchmark come from: files, folders of them, and families made on the
//! fly.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use sparserl_core::matrix::file::{self, MatrixFileError};
use sparserl_core::matrix::{Csr, Duplicates, generate};
use thiserror::Error;
use walkdir::WalkDir;

use crate::args::default_limits;
use crate::free_memory::free_memory;

/// Entries that a generated matrix may have: more would not fit the memory of one GPU.
const MOST_ENTRIES: u64 = 2_000_000_000;
const DEFAULT_SEED: u64 = 1;

/// One matrix that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MatrixSource {
    /// A file.
    File(PathBuf),
    /// A member of a family.
    Family(Family),
}

/// Why an argument names no matrix.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    /// Neither a path nor a family.
    #[error(
        "{0}: no such file or folder, and no family; families are {families}",
        families = Kind::list()
    )]
    Unknown(String),
    /// The numbers after the family are not what it takes.
    #[error("{given}: expected {expected}, whole numbers, with an optional @SEED")]
    Numbers {
        /// The argument.
        given: String,
        /// The form of the family.
        expected: &'static str,
    },
    /// A number is out of range.
    #[error("{given}: {what}")]
    Range {
        /// The argument.
        given: String,
        /// Which, and what it may be.
        what: String,
    },
    /// A matrix that does not fit into memory.
    #[error("{given}: takes about {:.1} GB, and {:.1} GB are free; make it smaller", gb(*bytes), gb(*free))]
    Memory {
        /// The argument.
        given: String,
        /// What its arrays take.
        bytes: u64,
        /// What there is.
        free: u64,
    },
    /// A file that is called otherwise than matrices are.
    #[error("{}: no matrix file; expected *.mtx, *.smtx, *.rb, *.npz or *.tar, plain or compressed", .0.display())]
    Extension(PathBuf),
    /// A folder without matrices.
    #[error(
        "{}: no matrix file in the folder; expected *.mtx, *.smtx, *.rb, *.npz or *.tar, plain or compressed",
        .0.display()
    )]
    EmptyFolder(PathBuf),
    /// A folder that cannot be listed.
    #[error("{}: cannot list the folder", path.display())]
    Folder {
        /// The folder, or one in it.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

impl MatrixSource {
    /// The matrices that an argument names: itself, or the files of a folder and of those in it, by
    /// name.
    ///
    /// # Errors
    /// When it is neither a matrix file, a folder with such nor a family with numbers that it
    /// takes.
    pub(crate) fn parse(argument: &str) -> Result<Vec<Self>, SourceError> {
        let path = Path::new(argument);
        if path.is_dir() {
            return folder(path);
        }
        if path.exists() {
            if !is_matrix(path) {
                return Err(SourceError::Extension(path.to_owned()));
            }
            return Ok(vec![Self::File(path.to_owned())]);
        }
        Ok(vec![Self::Family(Family::parse(argument)?)])
    }

    /// The matrix that is made on the fly where an argument is called like a family and no file is.
    pub(crate) fn family(argument: &Path) -> Option<Result<Self, SourceError>> {
        match Family::parse(argument.to_str().filter(|_| !argument.exists())?) {
            // A file that is not there; where numbers follow a name, a family that is not.
            Err(SourceError::Unknown(name)) if !name.contains(':') => None,
            family => Some(family.map(Self::Family)),
        }
    }

    /// The family that a matrix of this name is made from, `rmat` of `rmat:10,8`; absent for those
    /// of files.
    pub(crate) fn family_of(name: &str) -> Option<&str> {
        Family::parse(name).is_ok().then(|| name.split(':').next().unwrap_or(name))
    }

    /// What the matrix is called: the file's name without its folder, or the family with its
    /// numbers.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Family(family) => family.to_string(),
        }
    }

    /// Reads or makes the matrix. Entries at one position are summed.
    ///
    /// # Errors
    /// When the file is no matrix; it is called by its name without its folder.
    pub(crate) fn load(&self) -> anyhow::Result<Csr<f64>> {
        match self {
            Self::File(path) => file::load_within(path, Duplicates::Sum, default_limits())
                .map_err(|error| MatrixFileError { path: self.name().into(), ..error }.into()),
            Self::Family(family) => {
                family.check_memory(free_memory())?;
                Ok(family.make())
            }
        }
    }
}

/// What results call an argument: a family as it is, a file or folder without those that it lies
/// in.
pub(crate) fn label(argument: &str) -> String {
    match Path::new(argument).canonicalize() {
        // `.` and `..` have a name too, that of the folder.
        Ok(path) => {
            let given = Path::new(argument).file_name();
            given.or(path.file_name()).unwrap_or_default().to_string_lossy().into_owned()
        }
        Err(_) => argument.to_owned(),
    }
}

/// Whether a file is called as matrices are.
fn is_matrix(path: &Path) -> bool {
    file::stem(&path.file_name().unwrap_or_default().to_string_lossy()).is_some()
}

/// A matrix's name without the extension of its file; a family has none.
pub(crate) fn without_extension(name: &str) -> &str {
    file::stem(name).unwrap_or(name)
}

fn folder(path: &Path) -> Result<Vec<MatrixSource>, SourceError> {
    let mut files = Vec::new();
    for entry in WalkDir::new(path).sort_by_file_name() {
        let entry = entry.map_err(|error| unlistable(path, error))?;
        // A link to a file counts, one to a folder does not.
        if is_matrix(entry.path()) && entry.path().is_file() {
            files.push(MatrixSource::File(entry.into_path()));
        }
    }
    if files.is_empty() {
        return Err(SourceError::EmptyFolder(path.to_owned()));
    }
    Ok(files)
}

fn unlistable(folder: &Path, error: walkdir::Error) -> SourceError {
    let path = error.path().unwrap_or(folder).to_owned();
    let loops = || io::Error::other("a link leads back to it");
    SourceError::Folder { path, source: error.into_io_error().unwrap_or_else(loops) }
}

/// A generated matrix: a family, its numbers and a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    kind: Kind,
    /// As many as the kind takes.
    numbers: Vec<usize>,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stencil5,
    Stencil7,
    Stencil27,
    Banded,
    Uniform,
    Rmat,
    Fem,
    Hyper,
    DenseRow,
    Pruned,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Stencil5,
        Self::Stencil7,
        Self::Stencil27,
        Self::Banded,
        Self::Uniform,
        Self::Rmat,
        Self::Fem,
        Self::Hyper,
        Self::DenseRow,
        Self::Pruned,
    ];

    /// How a member is written.
    fn form(self) -> &'static str {
        match self {
            Self::Stencil5 => "stencil5:NXxNY",
            Self::Stencil7 => "stencil7:NXxNYxNZ",
            Self::Stencil27 => "stencil27:NXxNYxNZ",
            Self::Banded => "banded:ROWS,HALF_WIDTH",
            Self::Uniform => "uniform:ROWS,COLS,PER_ROW",
            Self::Rmat => "rmat:SCALE,EDGE_FACTOR",
            Self::Fem => "fem:NODES,DOF",
            Self::Hyper => "hyper:ROWS,COLS,NNZ",
            Self::DenseRow => "dense-row:ROWS,COLS",
            Self::Pruned => "pruned:ROWS,COLS,BLOCK,PERCENT",
        }
    }

    fn word(self) -> &'static str {
        self.form().split_once(':').map_or("", |(word, _)| word)
    }

    /// Stands between the numbers.
    fn separator(self) -> char {
        if matches!(self, Self::Stencil5 | Self::Stencil7 | Self::Stencil27) { 'x' } else { ',' }
    }

    fn count(self) -> usize {
        self.form().split_once(':').map_or(0, |(_, rest)| rest.split(self.separator()).count())
    }

    fn list() -> String {
        Self::ALL.map(Self::form).join(", ")
    }
}

impl Family {
    fn parse(argument: &str) -> Result<Self, SourceError> {
        let unknown = || SourceError::Unknown(argument.to_owned());
        let (word, rest) = argument.split_once(':').ok_or_else(unknown)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(unknown)?;
        let wrong = || SourceError::Numbers { given: argument.to_owned(), expected: kind.form() };
        let (numbers, seed) = match rest.split_once('@') {
            Some((numbers, seed)) => (numbers, seed.parse().map_err(|_| wrong())?),
            None => (rest, DEFAULT_SEED),
        };
        let numbers: Vec<usize> = numbers
            .split(kind.separator())
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| wrong())?;
        if numbers.len() != kind.count() {
            return Err(wrong());
        }
        let family = Self { kind, numbers, seed };
        let range = |what| Err(SourceError::Range { given: argument.to_owned(), what });
        match (kind, family.numbers.as_slice()) {
            (Kind::Rmat, &[scale, _]) if scale > 31 => {
                return range(format!("scale {scale} is too large, it is at most 31"));
            }
            (Kind::Pruned, &[.., percent]) if percent > 100 => {
                return range(format!("{percent} percent of the blocks cannot be kept"));
            }
            _ => {}
        }
        let Size { rows, cols, entries } = family.size();
        if rows.max(cols) > u64::from(u32::MAX) {
            return range(format!("{rows} × {cols} is too large, at most 2^32 - 1 each"));
        }
        if entries > MOST_ENTRIES {
            return range(format!("about {entries} entries are too many, at most {MOST_ENTRIES}"));
        }
        Ok(family)
    }

    /// Rows, columns and about how many entries; what overflows is as large as can be.
    fn size(&self) -> Size {
        let numbers: Vec<u64> = self.numbers.iter().map(|&n| n as u64).collect();
        let product = |numbers: &[u64]| numbers.iter().fold(1_u64, |a, &n| a.saturating_mul(n));
        let square =
            |rows: u64, each: u64| Size { rows, cols: rows, entries: rows.saturating_mul(each) };
        match (self.kind, numbers.as_slice()) {
            (Kind::Stencil5, grid) => square(product(grid), 5),
            (Kind::Stencil7, grid) => square(product(grid), 7),
            (Kind::Stencil27, grid) => square(product(grid), 27),
            (Kind::Banded, &[rows, half]) => {
                square(rows, half.saturating_mul(2).saturating_add(1).min(rows))
            }
            (Kind::Rmat, &[scale, factor]) => square(1 << scale.min(63), factor),
            (Kind::Fem, &[nodes, dof]) => square(product(&[nodes, dof]), dof.saturating_mul(9)),
            (Kind::Uniform, &[rows, cols, each]) => {
                Size { rows, cols, entries: rows.saturating_mul(each.min(cols)) }
            }
            (Kind::Hyper, &[rows, cols, entries]) => Size { rows, cols, entries },
            (Kind::DenseRow, &[rows, cols]) => {
                Size { rows, cols, entries: rows.saturating_add(cols) }
            }
            (Kind::Pruned, &[rows, cols, _, percent]) => {
                Size { rows, cols, entries: product(&[rows, cols, percent]) / 100 }
            }
            // `parse` lets nothing else through.
            _ => Size { rows: u64::MAX, cols: u64::MAX, entries: u64::MAX },
        }
    }

    /// Refuses what the system would end the process for.
    fn check_memory(&self, free: Option<u64>) -> Result<(), SourceError> {
        let Size { rows, entries, .. } = self.size();
        // Row offsets; entries as they are made, and their columns and values in the end.
        let bytes = rows.saturating_mul(4).saturating_add(entries.saturating_mul(16 + 12));
        match free {
            Some(free) if bytes > free => {
                Err(SourceError::Memory { given: self.to_string(), bytes, free })
            }
            _ => Ok(()),
        }
    }

    fn make(&self) -> Csr<f64> {
        let seed = self.seed;
        match (self.kind, self.numbers.as_slice()) {
            (Kind::Stencil5, &[x, y]) => generate::stencil5(x, y),
            (Kind::Stencil7, &[x, y, z]) => generate::stencil7(x, y, z),
            (Kind::Stencil27, &[x, y, z]) => generate::stencil27(x, y, z),
            (Kind::Banded, &[rows, half]) => generate::banded(rows, half, seed),
            (Kind::Uniform, &[rows, cols, each]) => generate::uniform(rows, cols, each, seed),
            (Kind::Rmat, &[scale, factor]) => {
                generate::rmat(u32::try_from(scale).unwrap_or(u32::MAX), factor, seed)
            }
            (Kind::Fem, &[nodes, dof]) => generate::fem_blocks(nodes, dof, seed),
            (Kind::Hyper, &[rows, cols, entries]) => {
                generate::hyper_sparse(rows, cols, entries, seed)
            }
            (Kind::DenseRow, &[rows, cols]) => generate::one_dense_row(rows, cols, seed),
            (Kind::Pruned, &[rows, cols, block, percent]) => {
                generate::block_pruned(rows, cols, block, percent, seed)
            }
            // `parse` lets nothing else through.
            _ => generate::stencil5(0, 0),
        }
    }
}

struct Size {
    rows: u64,
    cols: u64,
    entries: u64,
}

impl fmt::Display for Family {
    /// As it is written on the command line; the seed only where it is not the usual one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(usize::to_string).collect();
        let separator = self.kind.separator().to_string();
        write!(f, "{}:{}", self.kind.word(), numbers.join(&separator))?;
        if self.seed == DEFAULT_SEED { Ok(()) } else { write!(f, "@{}", self.seed) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn family(argument: &str) -> Family {
        Family::parse(argument).unwrap()
    }

    #[test]
    fn every_family_is_read_shown_and_made() {
        for (argument, rows, cols, nnz) in [
            ("stencil5:7x5", 35, 35, 5 * 35 - 24),
            ("stencil7:4x3x2", 24, 24, 7 * 24 - 2 * (6 + 8 + 12)),
            ("stencil27:2x2x2", 8, 8, 64),
            ("banded:10,2", 10, 10, 44),
            ("uniform:6,30,4@9", 6, 30, 24),
            ("fem:1,3", 3, 3, 9),
            ("hyper:1000,1000,0", 1000, 1000, 0),
            ("dense-row:9,50", 9, 50, 58),
            ("pruned:8,8,4,100", 8, 8, 64),
        ] {
            let parsed = family(argument);
            assert_eq!(parsed.to_string(), argument);
            let matrix = parsed.make();
            assert_eq!(
                (matrix.rows(), matrix.cols(), matrix.nnz()),
                (rows, cols, nnz),
                "{argument}"
            );
            assert!(parsed.size().entries >= nnz as u64, "{argument}");
        }
        assert_eq!(family("rmat:5,4").make().rows(), 32);
        assert_ne!(family("uniform:6,30,4@9").make(), family("uniform:6,30,4").make());
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (argument, says) in [
            ("nowhere.mtx", "no such file or folder"),
            ("hexagonal:5", "rmat:SCALE,EDGE_FACTOR"),
            ("stencil5:10", "stencil5:NXxNY"),
            ("stencil5:10,10", "stencil5:NXxNY"),
            ("banded:10,-1", "banded:ROWS,HALF_WIDTH"),
            ("banded:10,1@x", "@SEED"),
            ("rmat:32,1", "at most 31"),
            ("pruned:8,8,2,101", "percent"),
            ("stencil5:100000x100000", "at most 2^32 - 1"),
            ("uniform:100000,100000,100000", "entries are too many"),
            ("stencil7:99999999999x99999999999x1", "at most 2^32 - 1"),
        ] {
            let error = MatrixSource::parse(argument).unwrap_err().to_string();
            assert!(error.contains(says) && error.starts_with(argument), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn what_does_not_fit_into_memory_is_refused_in_one_line() {
        let empty = family("hyper:4000000000,1,0");
        empty.check_memory(Some(16_000_000_000)).unwrap();
        empty.check_memory(None).unwrap();
        let error = empty.check_memory(Some(15_900_000_000)).unwrap_err().to_string();
        let says =
            "hyper:4000000000,1,0: takes about 16.0 GB, and 15.9 GB are free; make it smaller";
        assert_eq!(error, says);
    }

    #[test]
    fn results_name_no_folder_that_a_matrix_lies_in() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.mtx"), "").unwrap();
        for (path, expected) in
            [(folder.join("a.mtx"), "a.mtx"), (folder.join(""), "data"), (folder.join("."), "data")]
        {
            assert_eq!(label(path.to_str().unwrap()), expected);
        }
        assert_eq!(label("stencil5:7x5"), "stencil5:7x5");
    }

    #[test]
    fn a_file_that_is_called_otherwise_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("readme.txt");
        fs::write(&path, "").unwrap();
        let error = MatrixSource::parse(path.to_str().unwrap()).unwrap_err().to_string();
        let says = "readme.txt: no matrix file; expected *.mtx, *.smtx, ";
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn a_file_that_is_refused_is_so_by_no_option_that_is_not_there() {
        let several = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/files/several.tar.gz");
        let source = MatrixSource::parse(several).unwrap().remove(0);
        let error = source.load().unwrap_err().to_string();
        let says = "several.tar.gz: holds several matrices: ";
        assert!(error.starts_with(says) && !error.contains("--"), "{error}");
    }

    #[test]
    fn a_folder_is_its_matrix_files_by_name() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        assert!(matches!(MatrixSource::parse(root), Err(SourceError::EmptyFolder(_))));
        fs::create_dir(place.path().join("b")).unwrap();
        for name in ["z.MTX", "b/a.smtx.gz", "a.mtx", "readme.txt", "b/x.gz"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let names: Vec<_> =
            MatrixSource::parse(root).unwrap().iter().map(MatrixSource::name).collect();
        assert_eq!(names, ["a.mtx", "a.smtx.gz", "z.MTX"]);
    }
}
