//! Tells matrices apart.

use blake3::{Hash, Hasher};
use sparserl_core::matrix::{CsrView, Fingerprint, MatrixIdentity, Scalar};

/// Changes when the same matrix would hash differently.
const DOMAIN: &[u8] = b"sparserl matrix 1";
/// Bytes that are gathered before they are hashed.
const PIECE: usize = 1 << 16;

/// A matrix as it was read, before it is rounded to a task's precision, as plans, results and
/// recordings name it.
#[must_use]
pub fn identity(name: impl Into<String>, as_read: CsrView<'_, f64>) -> MatrixIdentity {
    MatrixIdentity::new(name.into(), fingerprint(as_read), as_read)
}

/// The BLAKE3 hash of the size, pattern and values of a matrix as it was read.
///
/// It covers rows, columns and row offsets as u64, column indices as u32 and values as f64, all
/// little-endian, whatever the file's format and however the matrix is held in memory. It is of the
/// values before they are rounded to any task's precision, so that plans, results and recordings of
/// one matrix have one fingerprint, whatever they were computed in.
#[must_use]
pub fn fingerprint(as_read: CsrView<'_, f64>) -> Fingerprint {
    Fingerprint::from(*content_hash(as_read).as_bytes())
}

/// The hash of a matrix's content in whichever precision it is held; for one that was not rounded,
/// its [`fingerprint`].
pub(crate) fn content_hash<T: Scalar>(matrix: CsrView<'_, T>) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(DOMAIN);
    let sizes = [matrix.rows() as u64, matrix.cols() as u64];
    let offsets = (0..matrix.offsets().len()).map(|i| matrix.offsets().at(i) as u64);
    update(&mut hasher, sizes.into_iter().chain(offsets).map(u64::to_le_bytes));
    update(&mut hasher, matrix.columns().iter().map(|c| c.to_le_bytes()));
    update(&mut hasher, matrix.values().iter().map(|v| v.to_f64().to_le_bytes()));
    hasher.finalize()
}

fn update<const N: usize>(hasher: &mut Hasher, elements: impl Iterator<Item = [u8; N]>) {
    let mut piece = Vec::with_capacity(PIECE);
    for element in elements {
        piece.extend_from_slice(&element);
        if piece.len() >= PIECE {
            hasher.update(&piece);
            piece.clear();
        }
    }
    hasher.update(&piece);
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::{Csr, Offsets};

    use super::*;

    fn hash(cols: usize, offsets: Offsets, columns: &[u32], values: &[f64]) -> Fingerprint {
        let rows = offsets.view().len() - 1;
        let matrix = Csr::new(rows, cols, offsets, columns.to_vec(), values.to_vec()).unwrap();
        fingerprint(matrix.view())
    }

    #[test]
    fn size_pattern_and_values_count_and_the_offsets_width_does_not() {
        let narrow = || Offsets::U32(vec![0, 1, 2]);
        let base = hash(3, narrow(), &[0, 2], &[1.0, 2.0]);
        assert_eq!(base, hash(3, Offsets::U64(vec![0, 1, 2]), &[0, 2], &[1.0, 2.0]));
        assert_ne!(base, hash(4, narrow(), &[0, 2], &[1.0, 2.0]));
        assert_ne!(base, hash(3, Offsets::U32(vec![0, 2, 2]), &[0, 2], &[1.0, 2.0]));
        assert_ne!(base, hash(3, narrow(), &[0, 1], &[1.0, 2.0]));
        assert_ne!(base, hash(3, narrow(), &[0, 2], &[1.0, -2.0]));
    }
}
