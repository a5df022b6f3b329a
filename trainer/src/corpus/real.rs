//! Real matrices that recipes are made of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sparserl_core::matrix::file::{self, MatrixFileError};
use sparserl_core::matrix::{Csr, Duplicates};
use thiserror::Error;

use super::size::Size;

/// Says of each matrix of a folder what is known without reading it.
const MANIFEST: &str = "MANIFEST.tsv";
/// Matrices are files of this name.
const EXTENSION: &str = ".mtx.gz";
/// Begins the names of matrices of the Deep Learning Matrix Collection.
const DLMC: &str = "dlmc_";

/// The matrices of a folder, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct RealMatrices {
    folder: Option<PathBuf>,
    matrices: Vec<RealMatrix>,
}

/// What is known of a matrix without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealMatrix {
    /// Its file's name without `.mtx.gz`.
    pub name: String,
    /// The domain that it is from; of layers of pruned networks, which one of the network.
    pub family: String,
    /// Rows, columns and entries, both triangles of symmetric ones.
    pub size: Size,
}

/// Why there are no real matrices, or not this one.
#[derive(Debug, Error)]
pub enum RealError {
    /// The folder or its manifest cannot be read.
    #[error("{}: {error}; name a folder of .mtx.gz files", path.display())]
    Folder {
        /// What was read.
        path: PathBuf,
        /// Why it could not be.
        error: io::Error,
    },
    /// A line of the manifest is not understood.
    #[error("{}:{line}: {what}; expected columns name, rows, cols, nnz_expanded, domain", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A matrix of a folder without a manifest cannot be read.
    #[error(transparent)]
    File(#[from] MatrixFileError),
    /// There is no such matrix.
    #[error("no matrix {name} in {}", searched(folder.as_deref()))]
    Unknown {
        /// Its name.
        name: String,
        /// Where it was looked for; `None` when there is no folder of real matrices.
        folder: Option<PathBuf>,
    },
}

fn searched(folder: Option<&Path>) -> String {
    folder.map_or_else(
        || "the corpus, which has generated matrices only; name a folder of real ones".to_owned(),
        |folder| format!("{}; name the folder that the recipe was drawn from", folder.display()),
    )
}

impl RealMatrices {
    /// No real matrix: recipes are of generated ones only.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The files `NAME.mtx.gz` of a folder, as its `MANIFEST.tsv` describes them: the table has the
    /// columns name, rows, cols, nnz_expanded and domain, in any order and among others. Lines
    /// without a file are passed over, and so are files without a line. Without a manifest all
    /// files are read once, and each is a family of its own.
    ///
    /// # Errors
    /// [`RealError`] when the folder, the manifest or a file cannot be read or understood.
    pub fn open(folder: &Path) -> Result<Self, RealError> {
        let unreadable = |path: &Path, error| RealError::Folder { path: path.into(), error };
        let path = folder.join(MANIFEST);
        let mut matrices = match fs::read_to_string(&path) {
            Ok(text) => {
                let mut listed = of_manifest(&path, &text)?;
                listed.retain(|matrix| file_of(folder, &matrix.name).is_file());
                listed
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
                let mut found = Vec::new();
                for entry in entries {
                    let name = entry.map_err(|error| unreadable(folder, error))?.file_name();
                    if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(EXTENSION))
                    {
                        found.push(of_file(folder, name)?);
                    }
                }
                found
            }
            Err(error) => return Err(unreadable(&path, error)),
        };
        matrices.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { folder: Some(folder.into()), matrices })
    }

    /// All of them, in the order of their names.
    #[must_use]
    pub fn all(&self) -> &[RealMatrix] {
        &self.matrices
    }

    /// Reads a matrix; repeated positions are summed.
    pub(super) fn load(&self, name: &str) -> Result<Csr<f64>, RealError> {
        match &self.folder {
            Some(folder) if self.matrices.iter().any(|matrix| matrix.name == name) => {
                Ok(file::load(&file_of(folder, name), Duplicates::Sum)?)
            }
            folder => Err(RealError::Unknown { name: name.to_owned(), folder: folder.clone() }),
        }
    }
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{EXTENSION}"))
}

fn of_file(folder: &Path, name: &str) -> Result<RealMatrix, RealError> {
    let matrix: Csr<f64> = file::load(&file_of(folder, name), Duplicates::Sum)?;
    let (rows, cols, nnz) = (matrix.rows() as u64, matrix.cols() as u64, matrix.nnz() as u64);
    Ok(RealMatrix {
        name: name.to_owned(),
        family: family(name, name),
        size: Size { rows, cols, nnz },
    })
}

fn of_manifest(path: &Path, text: &str) -> Result<Vec<RealMatrix>, RealError> {
    let fail = |line, what: String| RealError::Manifest { path: path.into(), line, what };
    let mut lines = text.lines().zip(1..);
    let (header, _) = lines.next().ok_or_else(|| fail(1, "there is no header".to_owned()))?;
    let header: Vec<&str> = header.split('\t').collect();
    let column = |name: &str| {
        let found = header.iter().position(|&column| column == name);
        found.ok_or_else(|| fail(1, format!("there is no column {name}")))
    };
    let (name, domain) = (column("name")?, column("domain")?);
    let (rows, cols, nnz) = (column("rows")?, column("cols")?, column("nnz_expanded")?);
    let mut matrices = Vec::new();
    for (text, line) in lines.filter(|(text, _)| !text.trim().is_empty()) {
        let cells: Vec<&str> = text.split('\t').collect();
        let cell = |at: usize| {
            let cell = cells.get(at).map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
            cell.ok_or_else(|| fail(line, format!("{} is missing", header[at])))
        };
        let number = |at: usize| {
            let text = cell(at)?;
            text.parse().map_err(|_| fail(line, format!("{} is no number: {text}", header[at])))
        };
        let (name, domain) = (cell(name)?, cell(domain)?);
        matrices.push(RealMatrix {
            name: name.to_owned(),
            family: family(name, domain),
            size: Size { rows: number(rows)?, cols: number(cols)?, nnz: number(nnz)? },
        });
    }
    Ok(matrices)
}

/// The domain; of pruned layers (`dlmc_NETWORK_METHOD_SPARSITY_LAYER`) the layer's kind, because
/// layers of one kind are alike however they were pruned.
fn family(name: &str, domain: &str) -> String {
    let mut parts = name.strip_prefix(DLMC).into_iter().flat_map(|rest| rest.split('_'));
    let _ = parts.find(|part| part.parse::<f64>().is_ok());
    let layer: Vec<&str> = parts.collect();
    match layer.is_empty() {
        true => domain.to_owned(),
        false => format!("{domain}: {}", layer.join("_")),
    }
}
