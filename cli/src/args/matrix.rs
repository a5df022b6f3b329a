//! Which matrix is read, and how.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use sparserl_core::matrix::Duplicates;
use sparserl_core::task::{Operation, Task};

/// What is read.
#[derive(Args, Debug)]
pub(crate) struct MatrixArgs {
    /// Matrix file: .mtx (Matrix Market) or .smtx (DLMC), plain or compressed (.gz)
    pub(crate) matrix: PathBuf,
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
}

impl MatrixArgs {
    pub(super) fn new(matrix: PathBuf, duplicates: DuplicatesArg) -> Self {
        Self { matrix, duplicates }
    }

    pub(crate) fn duplicates(&self) -> Duplicates {
        match self.duplicates {
            DuplicatesArg::Sum => Duplicates::Sum,
            DuplicatesArg::Refuse => Duplicates::Refuse,
        }
    }

    /// The file's name without its folder.
    pub(crate) fn file_name(&self) -> String {
        self.matrix.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file's name without folder and extensions: `graph` for `data/graph.mtx.gz`.
    pub(crate) fn stem(&self) -> String {
        let stem = Path::new(&self.file_name()).with_extension("");
        let is_format = |extension: &str| matches!(extension, "mtx" | "smtx");
        let inner = stem.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let stem =
            if inner.as_deref().is_some_and(is_format) { stem.with_extension("") } else { stem };
        stem.to_string_lossy().into_owned()
    }

    /// What a folder with a kernel of it for a task is called.
    pub(super) fn folder_name(&self, task: Task) -> String {
        let operation = match task.operation {
            Operation::SpMV => "spmv".to_owned(),
            Operation::SpMM { columns } => format!("spmm{columns}"),
        };
        // A folder's name has no slash.
        let precision = task.precision.to_string().replace('/', "-");
        format!("{}.{operation}.{precision}", self.stem())
    }
}

#[cfg(test)]
impl MatrixArgs {
    /// A matrix file as it is read unless asked otherwise.
    pub(crate) fn of(path: &str) -> Self {
        Self { matrix: path.into(), duplicates: DuplicatesArg::Sum }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum DuplicatesArg {
    /// Their values are added
    Sum,
    /// They are an error
    Refuse,
}
