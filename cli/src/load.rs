//! Reads or makes the matrix, and rounds it to the precision of the task.

use std::io;

use anyhow::{anyhow, bail};
use sparserl_core::matrix::file::{self, Loaded, Member};
use sparserl_core::matrix::{Csr, CsrError, Scalar};
use sparserl_core::task::Dtype;
use sparserl_core::with_scalar;

use crate::args::MatrixArgs;
use crate::matrix_source::MatrixSource;

/// A matrix in double precision.
pub(crate) struct Matrix {
    pub(crate) matrix: Csr<f64>,
    /// What is to be known of how it was read.
    pub(crate) note: Option<String>,
    /// Whether there are no values: every entry is 1.
    pub(crate) is_pattern: bool,
}

/// Reads or makes a matrix. Also gives a note on what is to be known of that.
pub(crate) fn load(args: &MatrixArgs) -> anyhow::Result<(Csr<f64>, Option<String>)> {
    let Matrix { matrix, note, .. } = load_whole(args)?;
    Ok((matrix, note))
}

/// [`load`], which also tells whether the matrix has values.
pub(crate) fn load_whole(args: &MatrixArgs) -> anyhow::Result<Matrix> {
    let options = args.options();
    let loaded = if args.is_standard_input() {
        file::load_stream(io::stdin().lock(), &options)
    } else if let Some(family) = MatrixSource::family(&args.matrix) {
        if let Some(member) = options.member {
            let name = args.matrix.display();
            bail!("{name}: is generated, so that it has no `{member}`; leave --member out");
        }
        return Ok(Matrix { matrix: family?.load()?, note: None, is_pattern: false });
    } else {
        file::load_with(&args.matrix, &options)
    };
    let loaded = loaded.map_err(|error| match MatrixArgs::hint(&error.kind) {
        Some(hint) => anyhow!("{error}; {hint}"),
        None => anyhow!(error),
    })?;
    let Loaded { matrix, summed, is_pattern, member } = loaded;
    let entries = if summed == 1 { "entry was" } else { "entries were" };
    let duplicates = (summed > 0)
        .then(|| format!("{summed} duplicate {entries} summed; --duplicates refuse rejects them"));
    let chosen = member.map(|Member { name, others }| match others.as_slice() {
        [] => format!("read {name}"),
        others => format!("read {name}, not {}; --member chooses", file::listed(others)),
    });
    let notes: Vec<String> = chosen.into_iter().chain(duplicates).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(Matrix { matrix, note, is_pattern })
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
                "{}: entry ({}, {}) is {value:e}, too large for {}; use --dtype {}",
                args.matrix.display(),
                row + 1,
                u64::from(col) + 1,
                T::DTYPE,
                if value.abs() <= Dtype::F32.largest() { Dtype::F32 } else { Dtype::F64 }
            )
        }
        other => anyhow::Error::new(other),
    })
}

/// What to say of values that become zero in that type.
pub(crate) fn lost(matrix: &Csr<f64>, dtype: Dtype) -> Option<String> {
    fn count<T: Scalar>(matrix: &Csr<f64>) -> usize {
        matrix
            .view()
            .values()
            .iter()
            .filter(|&&v| v != 0.0 && T::from_f64(v).to_f64() == 0.0)
            .count()
    }
    // Nothing is rounded.
    if dtype == Dtype::F64 {
        return None;
    }
    let lost = with_scalar!(dtype, T => count::<T>(matrix));
    let values = if lost == 1 { "value is" } else { "values are" };
    (lost > 0).then(|| {
        format!("{lost} {values} too small for {dtype} and taken as 0; --dtype f64 keeps them")
    })
}
