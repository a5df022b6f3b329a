//! Reads the matrix in the precision of the task.

use anyhow::{anyhow, bail};
use sparserl_core::matrix::file::{self, Loaded};
use sparserl_core::matrix::{Csr, CsrError, Scalar};

use crate::args::MatrixArgs;

/// Names of standard input; the extension of a file tells its format.
const STANDARD_INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Reads a matrix file in double precision. Also gives a note where duplicates were summed.
pub(crate) fn load(args: &MatrixArgs) -> anyhow::Result<(Csr<f64>, Option<String>)> {
    if STANDARD_INPUT.iter().any(|name| args.matrix.as_os_str() == *name) {
        bail!("{}: standard input is not supported; give a file", args.matrix.display());
    }
    let Loaded { matrix, summed } = file::load_counted(&args.matrix, args.duplicates())?;
    let entries = if summed == 1 { "entry was" } else { "entries were" };
    let note = (summed > 0)
        .then(|| format!("{summed} duplicate {entries} summed; --duplicates refuse rejects them"));
    Ok((matrix, note))
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
