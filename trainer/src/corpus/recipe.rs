//! How a matrix is made, and making it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::{CooError, Csr, CsrError};
use thiserror::Error;

use super::pattern::{Base, Pattern, Step};
use super::real::{RealError, RealMatrices};
use super::size::Size;
use super::values::Values;

/// How a matrix of the corpus is made. It takes one line of text ([`fmt::Display`] and [`FromStr`]:
/// compact JSON), and gives the same matrix on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Where the entries are.
    pub pattern: Pattern,
    /// What their values are.
    pub values: Values,
    /// No matrix with more entries is made, not even on the way; nor one with more than
    /// [`Size::LINES_PER_ENTRY`] times as many rows or columns.
    pub largest_nnz: u64,
}

impl Size {
    fn check(self, largest_nnz: u64) -> Result<Self, BuildError> {
        let lines = largest_nnz.saturating_mul(Self::LINES_PER_ENTRY).min(u64::from(u32::MAX));
        match self.nnz > largest_nnz || self.rows.max(self.cols) > lines {
            true => Err(BuildError::TooLarge { size: self, largest_nnz }),
            false => Ok(self),
        }
    }
}

/// Why a recipe makes no matrix.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The real matrix is not there, or cannot be read.
    #[error(transparent)]
    Real(#[from] RealError),
    /// The real matrix is not the one that the recipe was made for.
    #[error(
        "{name}: {rows} × {cols} with {nnz} entries, but the recipe is for {} × {} with {}; \
         use the folder that it was drawn from",
        expected.rows, expected.cols, expected.nnz
    )]
    OtherMatrix {
        /// Its name.
        name: String,
        /// Rows of the file.
        rows: usize,
        /// Columns of the file.
        cols: usize,
        /// Entries of the file.
        nnz: usize,
        /// What the recipe says.
        expected: Size,
    },
    /// It could be larger than it may be; nothing was built.
    #[error(
        "up to {} × {} with {} entries, but the recipe allows {largest_nnz} entries and {} rows or \
         columns for each; draw it again with other limits",
        size.rows, size.cols, size.nnz, Size::LINES_PER_ENTRY
    )]
    TooLarge {
        /// What it could be.
        size: Size,
        /// What is allowed.
        largest_nnz: u64,
    },
    /// The base has no entry.
    #[error("{family}: no entry comes out; give the generator more rows, columns or entries")]
    Empty {
        /// Family of the base.
        family: String,
    },
    /// A step's arrays form no matrix.
    #[error("a step makes no matrix: {0}; check the recipe's numbers")]
    Entries(#[from] CooError),
    /// A step's arrays form no matrix.
    #[error("a step makes no matrix: {0}; check the recipe's numbers")]
    Arrays(#[from] CsrError),
}

/// A text that is no recipe.
#[derive(Debug, Error)]
#[error("not a recipe: {0}; expected one line of JSON as `Recipe` writes it")]
pub struct RecipeError(#[from] serde_json::Error);

impl Recipe {
    /// The family of the matrix, or of the first one where there are two: its generator's name, the
    /// domain of a real matrix, or the kind of layer of a pruned network.
    #[must_use]
    pub fn family(&self) -> &str {
        self.pattern.base.family()
    }

    /// The family of each matrix that it is made of, in order, and whether that is a real one.
    #[must_use]
    pub fn origins(&self) -> Vec<(&str, bool)> {
        let bases = self.pattern.bases().into_iter();
        bases.map(|base| (base.family(), matches!(base, Base::Real { .. }))).collect()
    }

    /// What the matrix has at most, known without building it.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] when it is beyond the recipe's limits, at the end or on the way.
    pub fn size(&self) -> Result<Size, BuildError> {
        self.pattern.size(self.largest_nnz)
    }

    /// Makes the matrix, in the current rayon pool. It has rows, columns and entries.
    ///
    /// # Errors
    /// [`BuildError`]: a real matrix is missing, unreadable or another one; the recipe's numbers,
    /// which drawn recipes do not have, are too large or make nothing.
    pub fn build(&self, real: &RealMatrices) -> Result<Csr<f64>, BuildError> {
        self.size()?;
        let matrix = self.pattern.build(real)?;
        let (rows, cols, nnz) = (matrix.rows() as u64, matrix.cols() as u64, matrix.nnz() as u64);
        Size { rows, cols, nnz }.check(self.largest_nnz)?;
        Ok(self.values.apply(matrix)?)
    }
}

impl Pattern {
    /// The base alone.
    #[must_use]
    pub fn of(base: Base) -> Self {
        Self { base, steps: Vec::new() }
    }

    fn bases(&self) -> Vec<&Base> {
        let mut bases = vec![&self.base];
        bases.extend(self.steps.iter().filter_map(Step::other).flat_map(Self::bases));
        bases
    }

    /// What it makes at most, each step within the limits.
    pub(super) fn size(&self, largest_nnz: u64) -> Result<Size, BuildError> {
        let base = self.base.size().check(largest_nnz)?;
        self.steps.iter().try_fold(base, |size, step| {
            let other = step.other().map(|other| other.size(largest_nnz)).transpose()?;
            step.size(size, other).check(largest_nnz)
        })
    }

    fn build(&self, real: &RealMatrices) -> Result<Csr<f64>, BuildError> {
        let mut matrix = self.base.build(real)?;
        if matrix.nnz() == 0 {
            return Err(BuildError::Empty { family: self.base.family().to_owned() });
        }
        for step in &self.steps {
            let other = step.other().map(|other| other.build(real)).transpose()?;
            let changed = step.apply(&matrix, other.as_ref())?;
            if changed.nnz() > 0 {
                matrix = changed;
            }
        }
        Ok(matrix)
    }
}

impl Base {
    fn family(&self) -> &str {
        match self {
            Self::Generated(generator) => generator.family(),
            Self::Real { family, .. } => family,
        }
    }

    fn size(&self) -> Size {
        match self {
            Self::Generated(generator) => generator.size(),
            Self::Real { size, .. } => *size,
        }
    }

    fn build(&self, real: &RealMatrices) -> Result<Csr<f64>, BuildError> {
        match self {
            Self::Generated(generator) => Ok(generator.build()),
            Self::Real { name, size, .. } => {
                let matrix = real.load(name)?;
                let (rows, cols, nnz) = (matrix.rows(), matrix.cols(), matrix.nnz());
                let found = Size { rows: rows as u64, cols: cols as u64, nnz: nnz as u64 };
                if found != *size {
                    let (name, expected) = (name.clone(), *size);
                    return Err(BuildError::OtherMatrix { name, rows, cols, nnz, expected });
                }
                Ok(matrix)
            }
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Self, RecipeError> {
        Ok(serde_json::from_str(text)?)
    }
}
