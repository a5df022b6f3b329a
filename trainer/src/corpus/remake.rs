use sparserl_core::matrix::Csr;

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
    /// It has values beyond single precision, in which it was measured.
    #[error("the matrix of {family} was measured in single precision, which does not hold it")]
    Values {
        /// Its family.
        family: String,
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

    /// Its matrix as it was measured in single precision.
    ///
    /// # Errors
    /// When single precision does not hold its values.
    pub fn in_single(&self, matrix: &Csr<f64>) -> Result<Csr<f32>, RemakeError> {
        matrix.cast().map_err(|_| RemakeError::Values { family: self.family().to_owned() })
    }
}
