//! Dense matrices with gaps between their rows.

use sparserl_core::matrix::Scalar;

/// How the rows of a matrix lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Elements of a row.
    pub(super) columns: usize,
    /// Elements from the beginning of a row to that of the next.
    pub(super) leading: usize,
}

impl Rows {
    /// Rows that follow each other, with gaps between them; behind the last there is none.
    pub(super) fn spread<D: Scalar>(self, matrix: &[D], gap: D) -> Vec<D> {
        let mut spread = Vec::new();
        for (row, elements) in matrix.chunks(self.columns).enumerate() {
            spread.resize(row * self.leading, gap);
            spread.extend_from_slice(elements);
        }
        spread
    }

    /// The rows without their gaps; `None` where the gaps hold something else.
    pub(super) fn gathered<D: Scalar>(self, spread: &[D], gap: D) -> Option<Vec<D>> {
        let mut matrix = Vec::new();
        for row in spread.chunks(self.leading) {
            let (elements, gaps) = row.split_at_checked(self.columns)?;
            if gaps.iter().any(|element| element.bits() != gap.bits()) {
                return None;
            }
            matrix.extend_from_slice(elements);
        }
        Some(matrix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_is_gathered_unless_a_gap_was_written() {
        let rows = Rows { columns: 2, leading: 5 };
        let mut spread = rows.spread(&[1.0_f32, 2.0, 3.0, 4.0], 9.0);
        assert_eq!(spread, [1.0, 2.0, 9.0, 9.0, 9.0, 3.0, 4.0]);
        assert_eq!(rows.gathered(&spread, 9.0).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        spread[3] = 0.0;
        assert!(rows.gathered(&spread, 9.0).is_none());
        assert!(rows.spread::<f32>(&[], 9.0).is_empty());
    }
}
