//! Makes a matrix again that was measured before, in the type that it was measured in: recordings
//! have recipes and no matrices.

use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::task::Dtype;

use super::{BuildError, RealMatrices, Recipe};

/// A matrix that was measured cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum RemakeError {
    /// Its recipe makes nothing.
    #[error("the matrix of {family} cannot be made again: {source}")]
    Build {
        /// Its family.
        family: String,
        /// The reason.
        source: BuildError,
    },
    /// It has values beyond the type in which it was measured.
    #[error("the matrix of {family} was measured in {dtype}, which does not hold it")]
    Values {
        /// Its family.
        family: String,
        /// The type.
        dtype: Dtype,
    },
}

impl Recipe {
    /// The matrix that was measured once.
    ///
    /// # Errors
    /// When the recipe makes nothing.
    pub fn remake(&self, real: &RealMatrices) -> Result<Csr<f64>, RemakeError> {
        let family = || self.family().to_owned();
        self.build(real).map_err(|source| RemakeError::Build { family: family(), source })
    }

    /// Its matrix as it was measured in another type.
    ///
    /// # Errors
    /// When that does not hold its values.
    pub fn in_type<T: Scalar>(&self, matrix: &Csr<f64>) -> Result<Csr<T>, RemakeError> {
        let family = || self.family().to_owned();
        matrix.cast().map_err(|_| RemakeError::Values { family: family(), dtype: T::DTYPE })
    }
}
