use core::fmt::{self, Write};

use thiserror::Error;

use super::header::{Field, Symmetry};
use crate::matrix::{CsrView, Scalar};

/// Why a matrix cannot be written in the form asked for. Rows and columns are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum WriteError {
    /// The writer refused the text.
    #[error("the text could not be written")]
    Output(#[from] fmt::Error),
    /// A symmetry is asked for, but the matrix is not square.
    #[error("{rows} × {cols} is not square, so it cannot be symmetric; use `general`")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// The matrix does not have the symmetry.
    #[error("entry ({row}, {col}) has no counterpart: the matrix is not {symmetry}; use `general`")]
    Asymmetric {
        /// Row of an entry whose mirror image differs.
        row: usize,
        /// Its column.
        col: u32,
        /// The symmetry asked for.
        symmetry: &'static str,
    },
    /// The values are not of the field.
    #[error("entry ({row}, {col}) is {value}, which field `{field}` cannot hold; use `real`")]
    Value {
        /// Row of the entry.
        row: usize,
        /// Its column.
        col: u32,
        /// Its value.
        value: f64,
        /// The field asked for.
        field: &'static str,
    },
}

/// Writes a matrix as `coordinate real general`, row by row. Reading it gives the same matrix, bit
/// by bit.
///
/// # Errors
/// [`fmt::Error`] from `out`.
pub fn write<T: Scalar>(matrix: CsrView<'_, T>, out: &mut impl Write) -> fmt::Result {
    write_size(matrix, Field::Real, Symmetry::General, matrix.nnz(), out)?;
    entries(matrix, |_, _| true).try_for_each(|entry| write_entry(entry, Field::Real, out))
}

/// Writes a matrix in coordinate format with the given field and symmetry. With a symmetry only the
/// lower triangle is written.
///
/// # Errors
/// [`WriteError`] when the matrix does not have the symmetry, or its values are not of the field
/// (whole numbers, or all 1 for a pattern); nothing is written then.
pub fn write_as<T: Scalar>(
    matrix: CsrView<'_, T>,
    field: Field,
    symmetry: Symmetry,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    check_symmetry(matrix, symmetry)?;
    check_field(matrix, field)?;
    let listed = move |row: usize, col: u32| match symmetry {
        Symmetry::General => true,
        Symmetry::Symmetric => col as usize <= row,
        Symmetry::SkewSymmetric => (col as usize) < row,
    };
    write_size(matrix, field, symmetry, entries(matrix, listed).count(), out)?;
    Ok(entries(matrix, listed).try_for_each(|entry| write_entry(entry, field, out))?)
}

fn entries<'a, T: Scalar>(
    matrix: CsrView<'a, T>,
    listed: impl Fn(usize, u32) -> bool + Copy + 'a,
) -> impl Iterator<Item = (usize, u32, T)> + 'a {
    (0..matrix.rows()).flat_map(move |row| {
        let (columns, values) = matrix.row(row);
        columns
            .iter()
            .zip(values)
            .map(move |(&col, &value)| (row, col, value))
            .filter(move |&(row, col, _)| listed(row, col))
    })
}

fn write_size<T: Scalar>(
    matrix: CsrView<'_, T>,
    field: Field,
    symmetry: Symmetry,
    listed: usize,
    out: &mut impl Write,
) -> fmt::Result {
    let (field, symmetry) = (field_name(field), symmetry_name(symmetry));
    writeln!(out, "%%MatrixMarket matrix coordinate {field} {symmetry}")?;
    writeln!(out, "{} {} {listed}", matrix.rows(), matrix.cols())
}

fn write_entry<T: Scalar>(
    (row, col, value): (usize, u32, T),
    field: Field,
    out: &mut impl Write,
) -> fmt::Result {
    write!(out, "{} {}", row + 1, u64::from(col) + 1)?;
    let magnitude = value.to_f64().abs();
    match field {
        Field::Pattern => writeln!(out),
        // Both forms are the shortest that read back the same; this one suits common magnitudes.
        Field::Real if magnitude == 0.0 || (1e-5..1e16).contains(&magnitude) => {
            writeln!(out, " {value}")
        }
        Field::Real => writeln!(out, " {value:e}"),
        Field::Integer => writeln!(out, " {value}"),
    }
}

fn check_symmetry<T: Scalar>(matrix: CsrView<'_, T>, symmetry: Symmetry) -> Result<(), WriteError> {
    let sign = match symmetry {
        Symmetry::General => return Ok(()),
        Symmetry::Symmetric => 1.0,
        Symmetry::SkewSymmetric => -1.0,
    };
    if matrix.rows() != matrix.cols() {
        return Err(WriteError::NotSquare { rows: matrix.rows(), cols: matrix.cols() });
    }
    for (row, col, value) in entries(matrix, |_, _| true) {
        let (columns, values) = matrix.row(col as usize);
        let mirror = columns
            .binary_search(&(row as u32))
            .is_ok_and(|at| values[at].bits() == T::from_f64(sign * value.to_f64()).bits());
        let listed = symmetry == Symmetry::Symmetric || col as usize != row;
        if !mirror || !listed {
            return Err(WriteError::Asymmetric { row, col, symmetry: symmetry_name(symmetry) });
        }
    }
    Ok(())
}

fn check_field<T: Scalar>(matrix: CsrView<'_, T>, field: Field) -> Result<(), WriteError> {
    // Beyond 2^53 every f64 is whole, and none is below 1 in magnitude without being 0.
    let fits = |value: f64| match field {
        Field::Real => true,
        Field::Integer => libm::trunc(value) == value,
        Field::Pattern => value == 1.0,
    };
    match entries(matrix, |_, _| true).find(|(_, _, value)| !fits(value.to_f64())) {
        None => Ok(()),
        Some((row, col, value)) => {
            Err(WriteError::Value { row, col, value: value.to_f64(), field: field_name(field) })
        }
    }
}

fn field_name(field: Field) -> &'static str {
    match field {
        Field::Real => "real",
        Field::Integer => "integer",
        Field::Pattern => "pattern",
    }
}

fn symmetry_name(symmetry: Symmetry) -> &'static str {
    match symmetry {
        Symmetry::General => "general",
        Symmetry::Symmetric => "symmetric",
        Symmetry::SkewSymmetric => "skew-symmetric",
    }
}
