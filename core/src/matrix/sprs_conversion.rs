//! To and from `sprs`, whose matrices are not validated for finite values or 32-bit indices.

use alloc::vec::Vec;

use sprs::CsMat;

use super::{Coo, CooError, Csr, CsrView, Duplicates, Scalar};

impl<T: Scalar> From<CsrView<'_, T>> for CsMat<T> {
    /// A compressed-row `sprs` matrix with the same entries.
    fn from(matrix: CsrView<'_, T>) -> Self {
        let offsets = (0..=matrix.rows()).map(|row| matrix.offsets().at(row)).collect();
        let columns = matrix.columns().iter().map(|&col| col as usize).collect();
        CsMat::new((matrix.rows(), matrix.cols()), offsets, columns, matrix.values().to_vec())
    }
}

impl<T: Scalar> From<&Csr<T>> for CsMat<T> {
    /// A compressed-row `sprs` matrix with the same entries.
    fn from(matrix: &Csr<T>) -> Self {
        matrix.view().into()
    }
}

impl<T: Scalar> TryFrom<&CsMat<T>> for Csr<T> {
    type Error = CooError;

    /// From a compressed-row or compressed-column `sprs` matrix, sorted or not; repeated positions
    /// are summed.
    ///
    /// # Errors
    /// [`CooError`] when a dimension exceeds 2³² − 1, or a value or a sum of values is not finite.
    fn try_from(matrix: &CsMat<T>) -> Result<Self, CooError> {
        let (rows, cols) = matrix.shape();
        if u32::try_from(rows).is_err() || u32::try_from(cols).is_err() {
            return Err(CooError::TooLarge { rows, cols });
        }
        let mut outer_indices = Vec::with_capacity(matrix.nnz());
        let mut inner_indices = Vec::with_capacity(matrix.nnz());
        let mut values = Vec::with_capacity(matrix.nnz());
        for (outer, vector) in matrix.outer_iterator().enumerate() {
            for (inner, &value) in vector.iter() {
                outer_indices.push(outer as u32);
                inner_indices.push(inner as u32);
                values.push(value);
            }
        }
        let (row_indices, col_indices) = if matrix.is_csr() {
            (outer_indices, inner_indices)
        } else {
            (inner_indices, outer_indices)
        };
        Coo::new(rows, cols, row_indices, col_indices, values)?.to_csr(Duplicates::Sum)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;
    use sprs::TriMat;

    use super::*;
    use crate::arbitrary;

    proptest! {
        #[test]
        fn there_and_back(matrix in arbitrary::csr::<f64>(40, 40, 200)) {
            let sprs = CsMat::from(&matrix);
            prop_assert_eq!(Csr::try_from(&sprs), Ok(matrix.clone()));
            prop_assert_eq!(Csr::try_from(&sprs.to_csc()), Ok(matrix));
        }

        #[test]
        fn there_and_back_in_single_precision(matrix in arbitrary::csr::<f32>(40, 40, 200)) {
            prop_assert_eq!(Csr::try_from(&CsMat::from(&matrix).to_csc()), Ok(matrix));
        }
    }

    #[test]
    fn unsorted_columns_are_sorted() {
        let unsorted =
            CsMat::new_from_unsorted((2, 3), vec![0, 2, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0]);
        let matrix = Csr::try_from(&unsorted.unwrap()).unwrap();
        assert_eq!(matrix.view().row(0), (&[0, 2][..], &[2.0, 1.0][..]));
    }

    #[test]
    fn a_value_that_is_not_finite_is_refused() {
        let mut triplets = TriMat::new((2, 2));
        triplets.add_triplet(1, 1, f32::INFINITY);
        let refused = Csr::try_from(&triplets.to_csr::<usize>());
        assert!(matches!(refused, Err(CooError::NotFinite { entry: 0, .. })));
    }
}
