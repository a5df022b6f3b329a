//! What tells patterns apart.

use std::sync::OnceLock;

use sparserl_core::matrix::{CsrView, Scalar};

use crate::matrix::{Entries, Matrix, with_view};

/// The pattern of a matrix, for those who outlive its handle. It is hashed when it is first asked
/// for: most plans are never saved.
pub(crate) enum Pattern {
    /// Its hash.
    Hashed(String),
    /// That of these entries, which the arrays of plain CSR are shared with.
    Of(Entries, OnceLock<String>),
}

impl Pattern {
    /// A hash of its sizes, row lengths and columns, in hexadecimal.
    pub(crate) fn hash(&self) -> &str {
        match self {
            Self::Hashed(hash) => hash,
            Self::Of(entries, hash) => hash.get_or_init(|| hash_of(entries)),
        }
    }
}

impl Matrix {
    /// A hash of its pattern, as [`Pattern::hash`] gives it.
    pub(crate) fn pattern(&self) -> &str {
        self.hash.get_or_init(|| hash_of(&self.entries))
    }

    /// A hash of its transpose's pattern, which is made anew with each call.
    pub(crate) fn transposed_pattern(&self) -> String {
        hash_of(self.transposed())
    }

    /// Its pattern, to be kept without the matrix.
    pub(crate) fn kept_pattern(&self) -> Pattern {
        match self.hash.get() {
            Some(hash) => Pattern::Hashed(hash.clone()),
            None => Pattern::Of(self.entries.clone(), OnceLock::new()),
        }
    }
}

/// A hash of the sizes, row lengths and columns, in hexadecimal.
fn hash_of(entries: &Entries) -> String {
    fn of<T: Scalar>(matrix: CsrView<'_, T>) -> String {
        let sizes = [matrix.rows(), matrix.cols(), matrix.nnz()];
        let lengths = (0..matrix.rows()).map(|row| matrix.row_len(row));
        let numbers: Vec<u64> =
            sizes.into_iter().chain(lengths).map(|number| (number as u64).to_le()).collect();
        let mut hasher = blake3::Hasher::new();
        hasher.update_rayon(bytemuck::cast_slice(&numbers));
        hasher.update_rayon(bytemuck::cast_slice(matrix.columns()));
        hasher.finalize().to_hex().to_string()
    }
    with_view!(entries, view => of(view))
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;
    use crate::transpose::transpose;

    #[test]
    fn patterns_are_told_apart() {
        let matrix = generate::rmat(7, 5, 3);
        let once = transpose(matrix.view());
        let twice = transpose(once.view());
        let [matrix, once, twice] = [matrix, once, twice].map(Entries::from);
        assert_eq!(hash_of(&matrix), hash_of(&twice));
        assert_ne!(hash_of(&matrix), hash_of(&once));
        let kept = Pattern::Of(once.clone(), OnceLock::new());
        assert_eq!(kept.hash(), Pattern::Hashed(hash_of(&once)).hash());
    }
}
