use proptest::prelude::*;

use super::*;
use crate::matrix::{Csr, Offsets};

/// A product to check: entries as (row, column, value), n columns of operands.
#[derive(Clone, Debug)]
struct Case {
    matrix: Csr<f64>,
    n: usize,
    dense: Vec<f64>,
    initial: Vec<f64>,
    alpha: f64,
    beta: f64,
}

fn csr(rows: usize, cols: usize, entries: &[(usize, u32, f64)]) -> Csr<f64> {
    let mut offsets = vec![0; rows + 1];
    for row in 0..rows {
        offsets[row + 1] = offsets[row] + entries.iter().filter(|e| e.0 == row).count() as u32;
    }
    let columns = entries.iter().map(|e| e.1).collect();
    let values = entries.iter().map(|e| e.2).collect();
    Csr::new(rows, cols, Offsets::U32(offsets), columns, values).unwrap()
}

/// Numbers of both signs over many orders of magnitude, and zero.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(0.0),
        9 => (-1.0..1.0_f64, -18..18).prop_map(|(m, e)| f64::from((m * 2_f64.powi(e)) as f32)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    (1_usize..12, 1_usize..60, 1_usize..5).prop_flat_map(|(rows, cols, n)| {
        let entries = prop::collection::btree_map((0..rows, 0..cols as u32), number(), 0..200);
        let dense = prop::collection::vec(number(), cols * n);
        let initial = prop::collection::vec(number(), rows * n);
        let scale = || prop_oneof![Just(0.0), Just(1.0), number()];
        (entries, dense, initial, scale(), scale()).prop_map(
            move |(entries, dense, initial, alpha, beta)| {
                let entries: Vec<_> = entries.into_iter().map(|((r, c), v)| (r, c, v)).collect();
                Case { matrix: csr(rows, cols, &entries), n, dense, initial, alpha, beta }
            },
        )
    })
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

/// What kernels do, in `f32`: four partial sums, from the right.
fn naive_f32(case: &Case) -> Vec<f32> {
    let (dense, initial) = (narrow(&case.dense), narrow(&case.initial));
    let matrix = case.matrix.cast::<f32>().unwrap();
    let mut out = vec![];
    for row in 0..matrix.view().rows() {
        let (columns, values) = matrix.view().row(row);
        for j in 0..case.n {
            let mut lanes = [0.0_f32; 4];
            for (i, (&c, &v)) in columns.iter().zip(values).enumerate().rev() {
                lanes[i % 4] += v * dense[c as usize * case.n + j];
            }
            let sum = (lanes[3] + lanes[1]) + (lanes[2] + lanes[0]);
            let y = initial[row * case.n + j];
            out.push(case.alpha as f32 * sum + case.beta as f32 * y);
        }
    }
    out
}

/// The matrix with each value multiplied by a factor.
fn scaled(matrix: &Csr<f64>, factor: f64) -> Csr<f64> {
    let view = matrix.view();
    let rows = 0..matrix.rows();
    let entries: Vec<_> = rows
        .flat_map(|row| {
            let (columns, values) = view.row(row);
            columns.iter().zip(values).map(move |(&column, &value)| (row, column, value * factor))
        })
        .collect();
    csr(matrix.rows(), matrix.cols(), &entries)
}

/// The matrix as `f32` holds it, in double precision again.
fn rounded(case: &Case) -> Case {
    let matrix = case.matrix.cast::<f32>().unwrap().cast::<f64>().unwrap();
    Case { matrix, ..case.clone() }
}

fn naive_f64(case: &Case) -> Vec<f64> {
    let mut out = vec![];
    for row in 0..case.matrix.view().rows() {
        let (columns, values) = case.matrix.view().row(row);
        for j in 0..case.n {
            let terms = columns.iter().zip(values).rev();
            // α goes into each term, which costs a rounding more for each.
            let sum = terms.fold(0.0, |sum, (&c, v)| {
                (case.alpha * v).mul_add(case.dense[c as usize * case.n + j], sum)
            });
            out.push(case.beta.mul_add(case.initial[row * case.n + j], sum));
        }
    }
    out
}

fn reference_f32(case: &Case) -> Reference {
    multiply(
        case.matrix.cast::<f32>().unwrap().view(),
        &narrow(&case.dense),
        case.n,
        case.alpha as f32,
        case.beta as f32,
        &narrow(&case.initial),
    )
    .unwrap()
}

fn reference_f64(case: &Case) -> Reference {
    multiply(case.matrix.view(), &case.dense, case.n, case.alpha, case.beta, &case.initial).unwrap()
}

/// Of a matrix in `f32`, with everything else in `f64`.
fn reference_mixed(case: &Case) -> Reference {
    let matrix = case.matrix.cast::<f32>().unwrap();
    multiply(matrix.view(), &case.dense, case.n, case.alpha, case.beta, &case.initial).unwrap()
}

/// The case with all operands but α and β as a half type holds them.
fn in_half<D: Scalar>(case: &Case) -> (Csr<D>, Vec<D>, Vec<D>) {
    // Of a size whose sums both types hold, and whose small ones are subnormal in `f16`.
    let halved = |values: &[f64]| values.iter().map(|&v| D::from_f64(v.clamp(-8.0, 8.0))).collect();
    let view = case.matrix.view();
    let offsets = Offsets::U64((0..=view.rows()).map(|i| view.offsets().at(i) as u64).collect());
    let (columns, values) = (view.columns().to_vec(), halved(view.values()));
    let matrix = Csr::new(view.rows(), view.cols(), offsets, columns, values).unwrap();
    (matrix, halved(&case.dense), halved(&case.initial))
}

/// What kernels do in half precision: sums in `f32`, each result rounded once; or sums that are
/// rounded on the way.
fn naive_half<D: Scalar>(case: &Case, rounds_sums: bool) -> (Reference, Vec<D>) {
    let (matrix, dense, initial) = in_half::<D>(case);
    let factor = |number: f64| number.clamp(-2.0, 2.0) as f32;
    let (alpha, beta) = (factor(case.alpha), factor(case.beta));
    let single = |value: D| value.to_f64() as f32;
    let mut out = vec![];
    for row in 0..matrix.rows() {
        let (columns, values) = matrix.view().row(row);
        for j in 0..case.n {
            let mut sum = 0.0_f32;
            for (&c, &v) in columns.iter().zip(values).rev() {
                sum += single(v) * single(dense[c as usize * case.n + j]);
                if rounds_sums {
                    sum = single(D::from_f64(f64::from(sum)));
                }
            }
            let y = beta.mul_add(single(initial[row * case.n + j]), alpha * sum);
            out.push(D::from_f64(f64::from(y)));
        }
    }
    let factor = |factor: f32| D::Accumulator::from_f64(f64::from(factor));
    let (alpha, beta) = (factor(alpha), factor(beta));
    (multiply(matrix.view(), &dense, case.n, alpha, beta, &initial).unwrap(), out)
}

fn half_passes<D: Scalar>(case: &Case) -> Result<(), TestCaseError> {
    let (reference, got) = naive_half::<D>(case, false);
    let comparison = compare(&reference, &got);
    prop_assert!(comparison.passed() && comparison.unbounded == 0, "{:?}", comparison);
    Ok(())
}

proptest! {
    #[test]
    fn half_precision_with_sums_in_single_passes(case in case()) {
        half_passes::<half::f16>(&case)?;
        half_passes::<half::bf16>(&case)?;
    }

    #[test]
    fn another_order_passes(case in case()) {
        let single = compare(&reference_f32(&case), &naive_f32(&case));
        prop_assert!(single.passed(), "{:?}", single);
        let double = compare(&reference_f64(&case), &naive_f64(&case));
        prop_assert!(double.passed(), "{:?}", double);
        prop_assert_eq!(single.unbounded + double.unbounded, 0);
        let mixed = compare(&reference_mixed(&case), &naive_f64(&rounded(&case)));
        prop_assert!(mixed.passed() && mixed.unbounded == 0, "{:?}", mixed);
    }

    #[test]
    fn a_matrix_in_single_precision_is_multiplied_as_in_double(mut case in case()) {
        // Numbers that `f32` does not hold.
        case.dense.iter_mut().for_each(|x| *x *= 1.0 + 1e-9);
        case.matrix = scaled(&case.matrix, 1.0 + 1e-9);
        prop_assert_eq!(reference_mixed(&case), reference_f64(&rounded(&case)));
    }

    #[test]
    fn ten_bounds_off_fails(case in case(), at in any::<prop::sample::Index>(), up: bool) {
        let reference = reference_f64(&case);
        let mut got = reference.values.clone();
        let at = at.index(got.len());
        let off = 10.0 * reference.bounds[at];
        got[at] += if up { off } else { -off };
        let comparison = compare(&reference, &got);
        prop_assert_eq!(comparison.violations, 1);
        prop_assert_eq!(comparison.worst_index, Some(at));
        prop_assert!(comparison.worst_ratio > 5.0);
    }

    #[test]
    fn single_and_double_references_agree(mut case in case()) {
        case.alpha = f64::from(case.alpha as f32);
        let (single, double) = (reference_f32(&case), reference_f64(&case));
        for ((a, b), bound) in single.values.iter().zip(&double.values).zip(&single.bounds) {
            prop_assert!((a - b).abs() <= 1e-6 * bound);
        }
    }
}

fn row(values: &[f64]) -> Csr<f64> {
    let entries: Vec<_> = (0..).zip(values).map(|(c, &v)| (0, c, v)).collect();
    csr(1, values.len(), &entries)
}

#[test]
fn cancellation_is_exact() {
    let matrix = row(&[1e16, 1.0, -1e16]);
    let got = multiply(matrix.view(), &[1.0; 3], 1, 1.0, 0.0, &[]).unwrap();
    assert_eq!(got.values, [1.0]);
    // The bound follows the sizes of the terms, not that of the result.
    assert!(got.bounds[0] > 1.0 && got.bounds[0] < 50.0);
}

#[test]
fn the_bound_is_the_formula() {
    let matrix = row(&[1.0, -2.0, 3.0]);
    let got = multiply(matrix.view(), &[1.0, 1.0, 2.0], 1, -2.0, 0.5, &[8.0]).unwrap();
    assert_eq!(got.values, [-2.0 * 5.0 + 4.0]);
    let expected = SAFETY * (f64::EPSILON / 2.0) * 5.0 * (2.0 * 9.0 + 4.0);
    assert!((got.bounds[0] / expected - 1.0).abs() < 1e-12);
}

#[test]
fn sums_in_single_precision_are_too_few_digits_for_double() {
    let matrix = row(&[1.0, 1.0]).cast::<f32>().unwrap();
    let reference = multiply(matrix.view(), &[1.0 / 3.0, 1.0], 1, 1.0, 0.0, &[]).unwrap();
    assert!(compare(&reference, &[1.0 / 3.0 + 1.0]).passed());
    assert!(!compare(&reference, &[1.0_f32 / 3.0 + 1.0]).passed());
    let expected = SAFETY * (f64::EPSILON / 2.0) * 4.0 * (1.0 / 3.0 + 1.0);
    assert!((reference.bounds[0] / expected - 1.0).abs() < 1e-12);
}

#[test]
fn a_matrix_wider_than_the_sums_is_refused() {
    let unsupported =
        UnsupportedPrecision { matrix: Dtype::F64, dense: Dtype::F32, accumulator: Dtype::F32 };
    let product = multiply(row(&[1.0]).view(), &[1.0_f32], 1, 1.0, 0.0, &[]);
    assert_eq!(product, Err(unsupported.into()));
}

#[test]
fn beta_zero_does_not_read_the_initial_result() {
    let matrix = csr(2, 2, &[(0, 0, 2.0)]);
    let got = multiply(matrix.view(), &[3.0, 1.0], 1, 1.0, 0.0, &[f64::NAN; 2]).unwrap();
    assert_eq!(got.values, [6.0, 0.0]);
    assert!(got.bounds.iter().all(|b| b.is_finite()));
    assert_eq!(multiply(matrix.view(), &[3.0, 1.0], 1, 1.0, 0.0, &[]).unwrap(), got);
}

#[test]
fn shapes_are_checked() {
    let matrix = csr(2, 3, &[]);
    let dense = |found| OperandError::Dense { rows: 3, columns: 2, found };
    assert_eq!(multiply(matrix.view(), &[0.0; 5], 2, 1.0, 0.0, &[]), Err(dense(5)));
    let initial = OperandError::Initial { rows: 2, columns: 2, found: 3 };
    assert_eq!(multiply(matrix.view(), &[0.0; 6], 2, 1.0, 1.0, &[0.0; 3]), Err(initial));
    let large = OperandError::TooLarge { rows: 2, columns: usize::MAX };
    let none: [f64; 0] = [];
    assert_eq!(multiply(matrix.view(), &none, usize::MAX, 1.0, 0.0, &[]), Err(large));
}

#[test]
fn empty_products() {
    for (rows, cols, n) in [(0, 0, 1), (0, 4, 3), (3, 0, 2), (3, 4, 0)] {
        let reference =
            multiply(csr(rows, cols, &[]).view(), &vec![1.0; cols * n], n, 1.0, 0.0, &[]).unwrap();
        assert_eq!(reference.values, vec![0.0; rows * n]);
        assert!(compare(&reference, &vec![0.0; rows * n]).passed());
    }
}

#[test]
fn nan_missing_and_excess_fail() {
    let reference = Reference { values: vec![1.0, 2.0], bounds: vec![0.1, f64::INFINITY] };
    assert!(compare(&reference, &[1.0, -7.0]).passed());
    assert!(compare(&reference, &[1.0, f64::INFINITY]).passed());
    for bad in [&[f64::NAN, 2.0][..], &[1.0, f64::NAN], &[1.0], &[1.0, 2.0, 3.0], &[]] {
        let comparison = compare(&reference, bad);
        assert!(!comparison.passed());
        assert_eq!(comparison.worst_ratio, f64::INFINITY);
        assert_eq!(comparison.unbounded, 1);
    }
    assert_eq!(compare(&reference, &[f64::INFINITY, 0.0]).violations, 1);
}

#[test]
fn what_may_overflow_is_unbounded() {
    let huge = f32::MAX / 2.0;
    let matrix = row(&[f64::from(huge), -f64::from(huge)]).cast::<f32>().unwrap();
    let got = multiply(matrix.view(), &[1.0_f32, 1.0], 1, 1.0, 0.0, &[]).unwrap();
    assert_eq!((got.values[0], got.bounds[0]), (0.0, f64::INFINITY));
    let overflown = multiply(row(&[1e300]).view(), &[1e300], 1, 1.0, 0.0, &[]).unwrap();
    assert_eq!((overflown.values[0], overflown.bounds[0]), (f64::INFINITY, f64::INFINITY));
    let small = multiply(matrix.view(), &[0.25_f32, 0.125], 1, 1.0, 0.0, &[]).unwrap();
    assert!(small.bounds[0].is_finite());
}

#[test]
fn underflow_is_not_wrong() {
    let tiny = f32::from_bits(3);
    let matrix = row(&[f64::from(tiny), 1e-30]).cast::<f32>().unwrap();
    let reference = multiply(matrix.view(), &[0.25_f32, 1e-30], 1, 1.0, 0.0, &[]).unwrap();
    assert!(compare(&reference, &[0.0_f32]).passed());
    assert!(compare(&reference, &[tiny * 0.25]).passed());
    assert!(!compare(&reference, &[f32::from_bits(100)]).passed());
}

#[test]
fn an_empty_matrix_takes_any_number_of_columns() {
    let none: [f64; 0] = [];
    let reference = multiply(csr(0, 0, &[]).view(), &none, usize::MAX, 1.0, 0.0, &[]).unwrap();
    assert!(reference.values.is_empty());
}

fn case_of(values: &[f64], dense: f64) -> Case {
    let matrix = row(values);
    let dense = vec![dense; values.len()];
    Case { matrix, n: 1, dense, initial: vec![0.0], alpha: 1.0, beta: 0.0 }
}

#[test]
fn the_bound_of_half_precision_is_that_of_its_sums_and_of_one_rounding() {
    let case = case_of(&[1.0, -2.0, 3.0], 2.0);
    let (reference, _) = naive_half::<half::f16>(&case, false);
    assert_eq!(reference.values, [4.0]);
    let sum = SAFETY * 2f64.powi(-24) * 5.0 * 12.0;
    let expected = sum + 2f64.powi(-11) * (4.0 + sum) + 2f64.powi(-25);
    assert!((reference.bounds[0] / expected - 1.0).abs() < 1e-12);
}

#[test]
fn sums_in_half_precision_are_too_few_digits() {
    // 300 of them lose what a sum of 256 in bf16 cannot hold.
    let case = case_of(&[1.0; 300], 1.0);
    for rounds_sums in [false, true] {
        let (reference, got) = naive_half::<half::bf16>(&case, rounds_sums);
        assert_eq!(compare(&reference, &got).passed(), !rounds_sums);
    }
    let case = case_of(&[1.0; 2100], 1.0);
    for rounds_sums in [false, true] {
        let (reference, got) = naive_half::<half::f16>(&case, rounds_sums);
        assert_eq!(compare(&reference, &got).passed(), !rounds_sums);
    }
}

#[test]
fn results_past_the_largest_half_are_unbounded_and_those_below_are_not() {
    let of = |value: f64| naive_half::<half::f16>(&case_of(&[8.0; 8190], value), false).0;
    assert_eq!((of(1.0).values[0], of(1.0).bounds[0]), (65520.0, f64::INFINITY));
    assert!(of(0.99).bounds[0].is_finite());
    // Not in bf16, which has the range of f32.
    let wide = naive_half::<half::bf16>(&case_of(&[8.0; 8190], 1.0), false).0;
    assert!(wide.bounds[0].is_finite());
}
