//! The reference product that kernels are checked against, with a bound on the error of a right
//! one.
//!
//! Each element of αAX + βY₀ is computed in `f64`: plainly for sums of `f32`, whose products are
//! exact there; with a compensated dot product (Ogita, Rump and Oishi, Accurate Sum and Dot
//! Product, 2005, algorithm Dot2) for those of `f64`, whatever the matrix is stored in.
//!
//! A kernel whose sums are of a type with unit roundoff u may add in any order and fuse or not. The
//! types of the matrix and of the dense operands do not matter: they are never wider, so their
//! values enter a product as they are. A row of n entries then takes at most n + 2 roundings on the
//! way of any term: one for the product, n − 1 for the sum, one each for α and for adding βy₀. The
//! error is therefore at most
//!
//! (n + 2) · u · (|α| Σ|a||x| + |β||y₀|)
//!
//! to first order (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §3.1; without
//! its limit on n·u, Jeannerod and Rump, 2013). The bound used is [`SAFETY`] times that, which
//! covers the higher orders and the rounding of the reference itself, plus an absolute term for
//! results that underflow: (n + 2) · max(1, |α|) times the smallest subnormal number.
//!
//! **Half precision.** Operands are numbers of the half type, which are exact in `f32`; sums are of
//! `f32`, and the result y, which is off by at most the bound b above, is rounded to half once:
//! with the half type's unit roundoff v and smallest subnormal number s by at most
//! v · (|y| + b) + s / 2, which is added.
//!
//! **Overflow.** When max(1, |α|) Σ|a||x| + |β||y₀| exceeds a quarter of the largest finite number,
//! a right kernel may overflow on the way, depending on its order of summation. So it may where it
//! rounds a result to half that may exceed the largest number there is, 65504 in `f16`. Such an
//! element is *unbounded*: its bound is +∞ and any result but NaN is accepted.
//! [`Comparison::unbounded`] counts them, so that a verifier can tell inputs that show nothing.
//!
//! **NaN** never passes, not even where ∞ − ∞ would explain it: it is the mark of an unwritten
//! element. Verifiers must keep operands finite and small enough not to be unbounded.

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use crate::matrix::{CsrView, Scalar};
use crate::task::{Dtype, Precision, UnsupportedPrecision};

/// The factor c by which the bound exceeds the first-order worst case.
pub const SAFETY: f64 = 2.0;

/// Rows that one thread computes at a time.
const ROWS_TOGETHER: usize = 256;

/// Why operands do not fit a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperandError {
    /// The dense operand has the wrong number of elements.
    #[error("the dense operand has {found} elements: expected {rows} × {columns}")]
    Dense {
        /// Columns of the matrix.
        rows: usize,
        /// Columns of the dense operand.
        columns: usize,
        /// Elements given.
        found: usize,
    },
    /// The initial result has the wrong number of elements.
    #[error("the initial result has {found} elements: expected {rows} × {columns}")]
    Initial {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the dense operand.
        columns: usize,
        /// Elements given.
        found: usize,
    },
    /// The result has more elements than can be addressed.
    #[error("a result of {rows} × {columns} elements is too large")]
    TooLarge {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the dense operand.
        columns: usize,
    },
    /// No kernel combines the element types, and the bound is not proven for them.
    #[error(transparent)]
    Precision(#[from] UnsupportedPrecision),
}

/// A product and how far a right kernel may be from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The elements of the product, row-major, rows × n.
    pub values: Vec<f64>,
    /// For each element, the largest error allowed; +∞ for one that may overflow.
    pub bounds: Vec<f64>,
}

/// How a result compares with a [`Reference`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Elements of the reference.
    pub elements: usize,
    /// Elements that are off by more than their bound, NaN, missing or in excess.
    pub violations: usize,
    /// Elements that no finite bound could be given for.
    pub unbounded: usize,
    /// The largest |error| / bound; +∞ for NaN, infinite, missing and excess elements. 0 when there
    /// are no elements.
    pub worst_ratio: f64,
    /// The first element with that ratio; none when there are no elements.
    pub worst_index: Option<usize>,
}

impl Comparison {
    /// Whether every element is within its bound.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.violations == 0
    }
}

/// Computes αAX + βY₀ with error bounds.
///
/// `dense` is X, row-major, `a.cols()` × `n` (for SpMV, n = 1). `initial` is Y₀, row-major,
/// `a.rows()` × `n`; when `beta` is 0 it is not read at all and may be anything, even empty.
///
/// `A` is the type of the matrix, `D` that of the dense operands and of the result that is judged;
/// α and β, and the sums that are judged, are of its accumulator.
///
/// # Errors
/// [`OperandError`] when an operand has the wrong number of elements, or when the types form no
/// [`Precision`].
pub fn multiply<A: Scalar, D: Scalar>(
    a: CsrView<'_, A>,
    dense: &[D],
    n: usize,
    alpha: D::Accumulator,
    beta: D::Accumulator,
    initial: &[D],
) -> Result<Reference, OperandError> {
    Precision::new(A::DTYPE, D::DTYPE, D::Accumulator::DTYPE)?;
    let (rows, cols) = (a.rows(), a.cols());
    let elements = rows.checked_mul(n).ok_or(OperandError::TooLarge { rows, columns: n })?;
    if cols.checked_mul(n) != Some(dense.len()) {
        return Err(OperandError::Dense { rows: cols, columns: n, found: dense.len() });
    }
    let reads_initial = beta.to_f64() != 0.0;
    if reads_initial && initial.len() != elements {
        return Err(OperandError::Initial { rows, columns: n, found: initial.len() });
    }
    if elements == 0 {
        return Ok(Reference { values: Vec::new(), bounds: Vec::new() });
    }
    let product = Product { a, dense, n, alpha, beta, initial: reads_initial.then_some(initial) };
    let mut reference = Reference { values: vec![0.0; elements], bounds: vec![0.0; elements] };
    product.fill(&mut reference);
    Ok(reference)
}

/// Checked operands of a product.
#[derive(Clone, Copy)]
struct Product<'a, A, D: Scalar> {
    a: CsrView<'a, A>,
    dense: &'a [D],
    n: usize,
    alpha: D::Accumulator,
    beta: D::Accumulator,
    /// None when β is 0.
    initial: Option<&'a [D]>,
}

impl<A: Scalar, D: Scalar> Product<'_, A, D> {
    /// Fills a reference, some rows at a time; on all cores where there are threads.
    fn fill(self, reference: &mut Reference) {
        let elements = ROWS_TOGETHER.saturating_mul(self.n);
        #[cfg(feature = "std")]
        {
            use rayon::prelude::*;
            let values = reference.values.par_chunks_mut(elements);
            let bounds = reference.bounds.par_chunks_mut(elements);
            values.zip(bounds).enumerate().for_each(|(i, (values, bounds))| {
                self.fill_rows(i * ROWS_TOGETHER, values, bounds);
            });
        }
        #[cfg(not(feature = "std"))]
        {
            let values = reference.values.chunks_mut(elements);
            let bounds = reference.bounds.chunks_mut(elements);
            for (i, (values, bounds)) in values.zip(bounds).enumerate() {
                self.fill_rows(i * ROWS_TOGETHER, values, bounds);
            }
        }
    }

    /// Fills the rows from `first` on that `values` and `bounds` have room for.
    fn fill_rows(self, first: usize, values: &mut [f64], bounds: &mut [f64]) {
        let n = self.n;
        let (alpha, beta) = (self.alpha.to_f64(), self.beta.to_f64());
        let mut sums = Sums::new(n);
        let rows = values.chunks_mut(n).zip(bounds.chunks_mut(n));
        for (row, (values, bounds)) in (first..).zip(rows) {
            let (columns, factors) = self.a.row(row);
            sums.clear();
            for (&col, factor) in columns.iter().zip(factors) {
                let start = col as usize * n;
                sums.add(factor.to_f64(), &self.dense[start..start + n]);
            }
            for (j, (value, bound)) in values.iter_mut().zip(bounds).enumerate() {
                let start = self.initial.map_or(0.0, |initial| initial[row * n + j].to_f64());
                *value = sums.scaled(j, alpha, beta, start);
                let (magnitude, start) = (sums.magnitude[j], (beta * start).abs());
                *bound = rounded_bound::<D>(
                    *value,
                    error_bound::<D::Accumulator>(columns.len(), alpha.abs(), magnitude, start),
                );
            }
        }
    }
}

/// Compares a result, row-major like the reference, with it.
#[must_use]
pub fn compare<T: Scalar>(reference: &Reference, got: &[T]) -> Comparison {
    let elements = reference.values.len();
    let mut comparison = Comparison {
        elements,
        violations: 0,
        unbounded: reference.bounds.iter().filter(|b| b.is_infinite()).count(),
        worst_ratio: 0.0,
        worst_index: None,
    };
    for (index, ratio) in ratios(reference, got) {
        if ratio > 1.0 {
            comparison.violations += 1;
        }
        if comparison.worst_index.is_none() || ratio > comparison.worst_ratio {
            comparison.worst_ratio = ratio;
            comparison.worst_index = Some(index);
        }
    }
    comparison
}

/// The elements that [`compare`] counts as violations, in order.
pub fn violations<T: Scalar>(reference: &Reference, got: &[T]) -> impl Iterator<Item = usize> {
    ratios(reference, got).filter(|&(_, ratio)| ratio > 1.0).map(|(index, _)| index)
}

/// |error| / bound of all elements; +∞ for those that are missing or in excess.
fn ratios<T: Scalar>(reference: &Reference, got: &[T]) -> impl Iterator<Item = (usize, f64)> {
    let Reference { values, bounds } = reference;
    (0..values.len().max(got.len())).map(move |index| {
        let ratio = match (values.get(index), bounds.get(index), got.get(index)) {
            (Some(&value), Some(&bound), Some(got)) => error_ratio(got.to_f64(), value, bound),
            _ => f64::INFINITY,
        };
        (index, ratio)
    })
}

/// |got − value| / bound; +∞ for NaN.
fn error_ratio(got: f64, value: f64, bound: f64) -> f64 {
    if got.is_nan() {
        return f64::INFINITY;
    }
    if bound.is_infinite() {
        return 0.0;
    }
    let error = (got - value).abs();
    // Not 0 / 0, should a caller have made a reference of bounds 0.
    let ratio = if error == 0.0 { 0.0 } else { error / bound };
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// The error allowed in an element whose row has `n` entries, with sums of type `D`.
///
/// `magnitude` is Σ|a||x|, `start` is |β||y₀|.
fn error_bound<D: Scalar>(n: usize, alpha: f64, magnitude: f64, start: f64) -> f64 {
    let gain = alpha.max(1.0);
    let peak = gain * magnitude + start;
    // NaN comes from operands that are not finite.
    if peak.is_nan() || peak > D::DTYPE.largest() / 4.0 {
        return f64::INFINITY;
    }
    let roundings = (n + 2) as f64;
    SAFETY * D::DTYPE.unit_roundoff() * roundings * (alpha * magnitude + start)
        + roundings * gain * D::DTYPE.smallest()
}

/// The error allowed in an element of type `D` whose sum may be off by `bound`.
fn rounded_bound<D: Scalar>(value: f64, bound: f64) -> f64 {
    if D::DTYPE == D::Accumulator::DTYPE {
        return bound;
    }
    let most = value.abs() + bound;
    if most > D::DTYPE.largest() {
        return f64::INFINITY;
    }
    bound + D::DTYPE.unit_roundoff() * most + D::DTYPE.smallest() / 2.0
}

/// The dot products of one row with each column of the dense operand, in progress.
struct Sums {
    high: Vec<f64>,
    /// What rounding has taken off `high`; stays 0 for sums of `f32`.
    low: Vec<f64>,
    /// Σ|a||x|.
    magnitude: Vec<f64>,
}

impl Sums {
    fn new(n: usize) -> Self {
        Self { high: vec![0.0; n], low: vec![0.0; n], magnitude: vec![0.0; n] }
    }

    fn clear(&mut self) {
        self.high.fill(0.0);
        self.low.fill(0.0);
        self.magnitude.fill(0.0);
    }

    /// Adds `a` times each element of `x`.
    #[inline]
    fn add<D: Scalar>(&mut self, a: f64, x: &[D]) {
        let sums = self.high.iter_mut().zip(&mut self.magnitude).zip(x);
        match D::DTYPE {
            // The matrix is no wider. 24 + 24 bits fit in 53: the product is exact, and the
            // additions' 2⁻⁵³ is far below the 2⁻²⁴ allowed.
            Dtype::F32 | Dtype::F16 | Dtype::BF16 => {
                for ((high, magnitude), x) in sums {
                    let product = a * x.to_f64();
                    *high += product;
                    *magnitude += product.abs();
                }
            }
            Dtype::F64 => {
                for (((high, magnitude), x), low) in sums.zip(&mut self.low) {
                    let product = a * x.to_f64();
                    *magnitude += product.abs();
                    let lost = fused(a, x.to_f64(), -product);
                    let (sum, error) = two_sum(*high, product);
                    *high = sum;
                    *low += error + lost;
                }
            }
        }
    }

    /// α · sum + β · start, for column `j`.
    fn scaled(&self, j: usize, alpha: f64, beta: f64, start: f64) -> f64 {
        let first = alpha * self.high[j];
        let first_lost = fused(alpha, self.high[j], -first) + alpha * self.low[j];
        let second = beta * start;
        let second_lost = fused(beta, start, -second);
        let (sum, error) = two_sum(first, second);
        let corrected = sum + (error + first_lost + second_lost);
        // Corrections are ∞ − ∞ once something overflowed; the plain sum still says where to.
        if corrected.is_nan() { sum } else { corrected }
    }
}

/// a + b and its rounding error, exactly (Knuth, The Art of Computer Programming, vol. 2, §4.2.2).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// a · b + c with one rounding.
#[cfg(feature = "std")]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    // The hardware instruction where there is one; the same result as libm's.
    a.mul_add(b, c)
}

/// a · b + c with one rounding.
#[cfg(not(feature = "std"))]
fn fused(a: f64, b: f64, c: f64) -> f64 {
    libm::fma(a, b, c)
}
