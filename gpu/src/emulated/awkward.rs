//! Small matrices on which kernels are wrong that are right on others.
//!
//! They are cut out of the matrix that a kernel is judged on and none is larger in any way, so that
//! a kernel that relies on what its matrix is like, as on the length of rows, may go on doing so.

use sparserl_core::matrix::{Csr, CsrError, CsrView, Offsets, Scalar};

/// Rows that they have at most.
const MOST_ROWS: usize = 300;

/// A matrix, after what it is called.
pub(super) type Named<T> = (&'static str, Csr<T>);

/// One with empty rows, one of a single row, one of a single column, one without entries. A matrix
/// without rows has none.
pub(super) fn matrices<T: Scalar>(matrix: CsrView<'_, T>) -> Result<Vec<Named<T>>, CsrError> {
    let rows = matrix.rows().min(MOST_ROWS);
    let Some(longest) = (0..rows).max_by_key(|&row| matrix.row_len(row)) else {
        return Ok(Vec::new());
    };
    let is_kept = |row: usize| row % 3 == 1 && row + 1 < rows;
    let first_value = |row: usize| matrix.row(row).1.first().map(|&value| (0, value));
    let entries = |row: usize| -> Vec<(u32, T)> {
        let (columns, values) = matrix.row(row);
        columns.iter().copied().zip(values.iter().copied()).collect()
    };
    let with_gaps = (0..rows).map(|row| if is_kept(row) { entries(row) } else { Vec::new() });
    let column = (0..rows).map(|row| first_value(row).into_iter().collect());
    let cols = matrix.cols();
    Ok(vec![
        ("with empty rows", of_rows(cols, with_gaps)?),
        ("of one row", of_rows(cols, [entries(longest)])?),
        ("of one column", of_rows(cols.min(1), column)?),
        ("without entries", of_rows(cols, vec![Vec::new(); rows])?),
    ])
}

fn of_rows<T: Scalar>(
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

    #[test]
    fn none_is_larger_than_what_it_is_cut_out_of() {
        let matrix = generate::hyper_sparse(400, 30, 900, 1);
        let found = matrices(matrix.view()).unwrap();
        let sizes = |(name, matrix): &Named<f64>| (*name, matrix.rows(), matrix.cols());
        let sizes: Vec<_> = found.iter().map(sizes).collect();
        let expected = [
            ("with empty rows", 300, 30),
            ("of one row", 1, 30),
            ("of one column", 300, 1),
            ("without entries", 300, 30),
        ];
        assert_eq!(sizes, expected);
        let longest = (0..300).map(|row| matrix.view().row_len(row)).max();
        assert_eq!(found[1].1.nnz(), longest.unwrap());
        assert!(found.iter().all(|(_, small)| small.nnz() <= matrix.nnz()));
        let gaps = found[0].1.view();
        assert!(gaps.nnz() > 0 && [0, 2, 298, 299].iter().all(|&row| gaps.row_len(row) == 0));
    }

    #[test]
    fn a_matrix_without_rows_has_none() {
        let matrix = Csr::<f32>::new(0, 4, Offsets::U32(vec![0]), vec![], vec![]).unwrap();
        assert!(matrices(matrix.view()).unwrap().is_empty());
    }
}
