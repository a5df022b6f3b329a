//! Small matrices on which kernels are wrong that are right on others.
//!
//! They are cut out of the matrix that a kernel is judged on and none is larger in any way, so that
//! a kernel that relies on what its matrix is like, as on the length of rows, may go on doing so.
//! Nor does a size change that it is not told. A kernel whose source has a size of its matrix as a
//! number is for that matrix.

use sparserl_core::matrix::{Csr, CsrError, CsrView, Offsets, Scalar};

/// Rows that they have at most.
const MOST_ROWS: usize = 300;
/// Powers of two, as exponents, that sizes are kept multiples of: vectors of 16 bytes have up to 16
/// elements.
const LARGEST_POWER: u32 = 4;

/// A matrix, after what it is called.
pub(super) type Named<T> = (&'static str, Csr<T>);

/// One with empty rows, one of a single row, one of a single column, one without entries, for a
/// kernel that is told the number of rows, and of columns. A matrix without rows has none.
pub(super) fn matrices<T: Scalar>(
    matrix: CsrView<'_, T>,
    [rows_told, cols_told]: [bool; 2],
) -> Result<Vec<Named<T>>, CsrError> {
    let rows = matrix.rows().min(MOST_ROWS);
    let longest = (0..rows).max_by_key(|&row| matrix.row_len(row));
    let Some(longest) = longest.filter(|_| rows_told) else { return Ok(Vec::new()) };
    // Who is told one size takes the other for the same where they are.
    let is_square = !cols_told && matrix.rows() == matrix.cols();
    let cols_of = |rows: usize| if is_square { rows } else { matrix.cols() };
    let first_value = |row: usize| matrix.row(row).1.first().map(|&value| (0, value));
    let entries = |row: usize, cols: usize| -> Vec<(u32, T)> {
        let (columns, values) = matrix.row(row);
        let all = columns.iter().copied().zip(values.iter().copied());
        all.filter(|entry| (entry.0 as usize) < cols).collect()
    };
    let is_kept = |row: usize| row % 3 == 1 && row + 1 < rows;
    let cols = cols_of(rows);
    let with_gaps = (0..rows).map(|row| if is_kept(row) { entries(row, cols) } else { Vec::new() });
    let row = match is_square {
        true => first_value(longest).into_iter().collect(),
        false => entries(longest, cols),
    };
    let mut all = vec![
        ("with empty rows", of_rows(cols, with_gaps)?),
        ("of one row", of_rows(cols_of(1), [row])?),
        ("without entries", of_rows(cols, vec![Vec::new(); rows])?),
    ];
    if cols_told {
        let column = (0..rows).map(|row| first_value(row).into_iter().collect());
        all.push(("of one column", of_rows(matrix.cols().min(1), column)?));
    }
    Ok(all)
}

/// A matrix that was cut out of another one, with empty rows and columns behind it until each size
/// is a multiple of as large a power of two as the other one's is.
pub(super) fn with_multiples<T: Scalar>(
    small: CsrView<'_, T>,
    of: CsrView<'_, T>,
) -> Result<Csr<T>, CsrError> {
    let power = |size: usize| 1 << size.trailing_zeros().min(LARGEST_POWER);
    let rows = small.rows().next_multiple_of(power(of.rows()));
    let cols = small.cols().next_multiple_of(power(of.cols()));
    let entries = |row: usize| -> Vec<(u32, T)> {
        if row >= small.rows() {
            return Vec::new();
        }
        let (columns, values) = small.row(row);
        columns.iter().copied().zip(values.iter().copied()).collect()
    };
    of_rows(cols, (0..rows).map(entries))
}

pub(super) fn of_rows<T: Scalar>(
    cols: usize,
    rows: impl IntoIterator<Item = Vec<(u32, T)>>,
) -> Result<Csr<T>, CsrError> {
    let (mut offsets, mut columns, mut values) = (vec![0_u32], Vec::new(), Vec::new());
    for row in rows {
        columns.extend(row.iter().map(|entry| entry.0));
        values.extend(row.iter().map(|entry| entry.1));
        // They are no more than those of a few hundred rows; where that is too many, it is refused.
        offsets.push(u32::try_from(columns.len()).unwrap_or(u32::MAX));
    }
    Csr::new(offsets.len() - 1, cols, Offsets::U32(offsets), columns, values)
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;

    fn sizes(matrices: &[Named<f64>]) -> Vec<(&'static str, usize, usize)> {
        matrices.iter().map(|(name, matrix)| (*name, matrix.rows(), matrix.cols())).collect()
    }

    #[test]
    fn none_is_larger_than_what_it_is_cut_out_of() {
        let matrix = generate::hyper_sparse(400, 30, 900, 1);
        let found = matrices(matrix.view(), [true, true]).unwrap();
        let expected = [
            ("with empty rows", 300, 30),
            ("of one row", 1, 30),
            ("without entries", 300, 30),
            ("of one column", 300, 1),
        ];
        assert_eq!(sizes(&found), expected);
        let longest = (0..300).map(|row| matrix.view().row_len(row)).max();
        assert_eq!(found[1].1.nnz(), longest.unwrap());
        assert!(found.iter().all(|(_, small)| small.nnz() <= matrix.nnz()));
        let gaps = found[0].1.view();
        assert!(gaps.nnz() > 0 && [0, 2, 297, 299].iter().all(|&row| gaps.row_len(row) == 0));
    }

    #[test]
    fn sizes_stay_that_a_kernel_is_not_told() {
        let matrix = generate::hyper_sparse(400, 30, 900, 1);
        assert!(matrices(matrix.view(), [false, true]).unwrap().is_empty());
        let found = matrices(matrix.view(), [true, false]).unwrap();
        assert!(found.iter().all(|(_, small)| small.cols() == 30));
        let square = generate::hyper_sparse(40, 40, 200, 1);
        let found = matrices(square.view(), [true, false]).unwrap();
        let expected =
            [("with empty rows", 40, 40), ("of one row", 1, 1), ("without entries", 40, 40)];
        assert_eq!(sizes(&found), expected);
        assert_eq!(found[1].1.nnz(), 1);
    }

    #[test]
    fn sizes_become_multiples_of_the_powers_of_two_that_others_are() {
        let matrix = generate::hyper_sparse(400, 36, 900, 1);
        let found = matrices(matrix.view(), [true, true]).unwrap();
        for (_, small) in &found {
            let padded = with_multiples(small.view(), matrix.view()).unwrap();
            assert_eq!((padded.rows() % 16, padded.cols() % 4), (0, 0));
            assert!(padded.rows() <= 400 && padded.cols() <= 36);
            assert_eq!(padded.nnz(), small.nnz());
        }
        let odd = generate::hyper_sparse(41, 37, 90, 1);
        let one = with_multiples(found[3].1.view(), matrix.view()).unwrap();
        assert_eq!((one.rows(), one.cols()), (304, 4));
        let same = with_multiples(odd.view(), odd.view()).unwrap();
        assert_eq!((same.rows(), same.cols(), same.nnz()), (41, 37, odd.nnz()));
    }

    #[test]
    fn a_matrix_without_rows_has_none() {
        let matrix = Csr::<f32>::new(0, 4, Offsets::U32(vec![0]), vec![], vec![]).unwrap();
        assert!(matrices(matrix.view(), [true, true]).unwrap().is_empty());
    }
}
