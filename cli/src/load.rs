//! Reads the matrix in the precision of the task.

use anyhow::anyhow;
use sparserl_core::matrix::{Csr, CsrError, Scalar, file};

use crate::args::MatrixArgs;

/// Reads a matrix file in double precision.
pub(crate) fn load(args: &MatrixArgs) -> anyhow::Result<Csr<f64>> {
    Ok(file::load(&args.matrix, args.duplicates())?)
}

/// Rounds a matrix to the task's precision.
pub(crate) fn round<T: Scalar>(matrix: &Csr<f64>, args: &MatrixArgs) -> anyhow::Result<Csr<T>> {
    matrix.cast().map_err(|error| match error {
        CsrError::NotFinite { row, col, .. } => {
            let (columns, values) = matrix.view().row(row);
            let value =
                columns.iter().zip(values).find(|&(&c, _)| c == col).map_or(0.0, |(_, &v)| v);
            // Counted from 1, as in Matrix Market files.
            anyhow!(
                "{}: entry ({}, {}) is {value:e}, too large for {}; use --dtype f64",
                args.matrix.display(),
                row + 1,
                u64::from(col) + 1,
                T::DTYPE
            )
        }
        other => anyhow::Error::new(other),
    })
}
