//! Proptest strategies, shared by the property tests of every crate and by fuzzing.

mod program;

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use crate::matrix::{Coo, Csr, Duplicates, Scalar};
use crate::task::Dtype;

pub use program::{
    COLUMNS, Case, case, case_in, free_case, free_program, legal_program, mutated_tokens,
    random_bits, task, tokens,
};

/// Where the entries of a matrix are.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    Empty,
    DenseRow,
    DenseColumn,
    Diagonal,
    Banded,
    Blocks,
    PowerLaw,
    FewRows,
    FullRows,
}

const PATTERNS: &[Pattern] = &[
    Pattern::Uniform,
    Pattern::Empty,
    Pattern::DenseRow,
    Pattern::DenseColumn,
    Pattern::Diagonal,
    Pattern::Banded,
    Pattern::Blocks,
    Pattern::PowerLaw,
    Pattern::FewRows,
    Pattern::FullRows,
];

/// What the values of a matrix are.
#[derive(Clone, Copy, Debug)]
enum Values {
    Ordinary,
    AllEqual,
    Few,
    SomeZeros,
    Denormal,
    Huge,
    Mixed,
}

const VALUES: &[Values] = &[
    Values::Ordinary,
    Values::AllEqual,
    Values::Few,
    Values::SomeZeros,
    Values::Denormal,
    Values::Huge,
    Values::Mixed,
];

/// Matrices of up to `max_rows` × `max_cols` with up to `max_nnz` entries, of every shape that a
/// kernel has to cope with: no rows, no columns, no entries, single rows or columns, one dense row
/// or column, diagonals and bands, blocks, power laws, mostly empty rows; values that are all
/// equal, few distinct ones, explicit zeros, −0, denormals and ± huge ones. Huge means 1e30 (f32,
/// bf16), 1e300 (f64) or 100 (f16), so that sums of a row stay finite.
///
/// Shrinks towards fewer entries, fewer rows and columns, the first pattern and ordinary values.
pub fn csr<T: Scalar>(
    max_rows: usize,
    max_cols: usize,
    max_nnz: usize,
) -> impl Strategy<Value = Csr<T>> + Clone {
    let sizes = (size(max_rows), size(max_cols));
    let kinds = (0..PATTERNS.len(), 0..VALUES.len());
    let entries = proptest::collection::vec(any::<(u32, u32, u16)>(), 0..=max_nnz);
    (sizes, kinds, entries).prop_map(move |(sizes, kinds, entries)| filled(sizes, kinds, &entries))
}

/// One matrix as of [`csr`]: of so many rows and columns, of a pattern and a kind of values by
/// their numbers (taken modulo how many there are), with at most one entry for each triple of
/// random numbers, which say where it is and its value.
#[must_use]
pub fn filled<T: Scalar>(
    (rows, cols): (usize, usize),
    (pattern, values): (usize, usize),
    random: &[(u32, u32, u16)],
) -> Csr<T> {
    let (pattern, values) = (PATTERNS[pattern % PATTERNS.len()], VALUES[values % VALUES.len()]);
    let mut entries = BTreeMap::new();
    if rows > 0 && cols > 0 {
        for (at, &(i, j, v)) in random.iter().enumerate() {
            let position = place(pattern, at, i as usize, j as usize, rows, cols);
            entries.extend(position.map(|position| (position, value::<T>(values, v))));
        }
    }
    let (positions, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
    let (row_indices, col_indices) =
        positions.into_iter().map(|(row, col)| (row as u32, col as u32)).unzip();
    let matrix = Coo::new(rows, cols, row_indices, col_indices, values)
        .and_then(|coo| coo.to_csr(Duplicates::Refuse));
    #[expect(clippy::expect_used, reason = "entries are in range, distinct and finite")]
    matrix.expect("a strategy's entries form a matrix")
}

/// A size up to `max`: small, any, or exactly that, so that edges of every kind are met.
fn size(max: usize) -> impl Strategy<Value = usize> + Clone {
    prop_oneof![2 => 0..=max.min(4), 4 => 0..=max, 1 => Just(max)]
}

/// The position of the entry number `at`, from two random numbers; rows and columns are not 0.
fn place(
    pattern: Pattern,
    at: usize,
    i: usize,
    j: usize,
    rows: usize,
    cols: usize,
) -> Option<(usize, usize)> {
    let uniform = (i % rows, j % cols);
    // One entry in eight is elsewhere, so that the special row or column is not alone.
    let stray = i.is_multiple_of(8);
    Some(match pattern {
        Pattern::Uniform => uniform,
        Pattern::Empty => return None,
        Pattern::DenseRow | Pattern::DenseColumn if stray => uniform,
        Pattern::DenseRow => (rows / 2, at % cols),
        Pattern::DenseColumn => (at % rows, cols / 2),
        Pattern::Diagonal => (at % rows.min(cols), at % rows.min(cols)),
        Pattern::Banded => {
            let row = i % rows;
            (row, (row + j % 5).saturating_sub(2).min(cols - 1))
        }
        // 4 × 4 blocks, filled by successive entries.
        Pattern::Blocks => {
            let first = (at / 16).wrapping_mul(0x9e37_79b9);
            let row = first % rows.div_ceil(4) * 4 + at % 4;
            let col = first / 64 % cols.div_ceil(4) * 4 + at / 4 % 4;
            (row < rows && col < cols).then_some((row, col))?
        }
        // Each halving of the range is as likely as all the larger ones together.
        Pattern::PowerLaw => (
            (i % rows) >> (i.leading_zeros() % 8),
            (j % cols) >> ((j >> 16) as u32).trailing_zeros().min(8),
        ),
        Pattern::FewRows => (i % 3 * (rows / 3), j % cols),
        Pattern::FullRows => (at / cols % rows, at % cols),
    })
}

/// A value from a random number.
fn value<T: Scalar>(values: Values, random: u16) -> T {
    let denormal = T::DTYPE.smallest();
    let huge = match T::DTYPE {
        Dtype::F64 => 1e300,
        Dtype::F32 | Dtype::BF16 => 1e30,
        Dtype::F16 => 100.0,
    };
    let ordinary = f64::from(i32::from(random) - 0x8000) / 1024.0;
    let sign = if random.is_multiple_of(2) { 1.0 } else { -1.0 };
    let few = || [1.0, -0.5, 3.25, 1.0 / 3.0][usize::from(random % 4)];
    T::from_f64(match values {
        Values::Ordinary => ordinary,
        Values::AllEqual => 0.7,
        Values::Few => few(),
        Values::SomeZeros if random.is_multiple_of(3) => sign * 0.0,
        Values::SomeZeros => ordinary,
        Values::Denormal => ordinary * 1024.0 * denormal,
        Values::Huge => sign * huge,
        Values::Mixed => match random % 6 {
            0 => sign * 0.0,
            1 => sign * huge,
            2 => sign * denormal,
            3 => few(),
            _ => ordinary,
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn every_kind_of_matrix_occurs() {
        let mut runner = TestRunner::deterministic();
        let strategy = csr::<f32>(30, 30, 100);
        let matrices: Vec<_> =
            (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
        let occurs = |what: &dyn Fn(&Csr<f32>) -> bool| matrices.iter().any(what);
        let values = |what: fn(&f32) -> bool| occurs(&|m| m.view().values().iter().any(what));
        assert!(occurs(&|m| m.rows() == 0));
        assert!(occurs(&|m| m.cols() == 0));
        assert!(occurs(&|m| m.nnz() == 0 && m.rows() > 0 && m.cols() > 0));
        assert!(
            occurs(&|m| m.cols() > 8 && (0..m.rows()).any(|r| m.view().row_len(r) == m.cols()))
        );
        assert!(occurs(&|m| m.rows() == 30 && m.cols() == 30));
        assert!(values(|v| *v == 0.0 && v.is_sign_negative()));
        assert!(values(|v| v.is_subnormal()));
        assert!(values(|v| v.abs() == 1e30));
    }

    proptest! {
        #[test]
        fn limits_are_kept(matrix in csr::<f64>(20, 10, 50)) {
            prop_assert!(matrix.rows() <= 20 && matrix.cols() <= 10 && matrix.nnz() <= 50);
        }
    }
}
