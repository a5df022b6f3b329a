//! The loops of attention, in the widest vectors that the processor has.

use pulp::{Arch, Simd, WithSimd};

use super::super::arithmetic::softmax_of;
use super::Heads;

/// What the queries of a row find.
pub(super) struct Attention<'a> {
    pub(super) heads: &'a Heads,
    /// `[queries, heads, width]`, as is what is found.
    pub(super) queries: &'a [f32],
    pub(super) found: &'a mut [f32],
    /// Of each position the numbers from its first one on.
    pub(super) keys: &'a [&'a [f32]],
    pub(super) values: &'a [&'a [f32]],
    /// From there, where the next head's are.
    pub(super) apart: usize,
    /// `[1 or queries, positions]`, or none, added to scores.
    pub(super) bias: &'a [f32],
    /// Room for as many numbers as there are positions.
    pub(super) shares: &'a mut [f32],
}

impl Attention<'_> {
    pub(super) fn run(self) {
        Arch::new().dispatch(self);
    }
}

impl WithSimd for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { keys, values, bias, shares, .. } = self;
        let &Heads { count: heads, width, scale } = self.heads;
        let queries = self.queries.chunks_exact(width);
        for (at, (query, found)) in queries.zip(self.found.chunks_exact_mut(width)).enumerate() {
            let first = at % heads * self.apart;
            for (key, score) in keys.iter().zip(&mut *shares) {
                *score = dot(simd, query, &key[first..first + width]) * scale;
            }
            if !bias.is_empty() {
                let row = if bias.len() == keys.len() { 0 } else { at / heads };
                let bias = &bias[row * keys.len()..][..keys.len()];
                shares.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
            }
            softmax_of(shares);
            weigh(simd, shares, values, first, found);
        }
    }
}

#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut sum = simd.splat_f32s(0.0);
    for (&a, &b) in a.iter().zip(b) {
        sum = simd.mul_add_e_f32s(a, b, sum);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    simd.reduce_sum_f32s(sum) + rest
}

/// The sum of values, from `first` on, by their shares.
#[inline(always)]
fn weigh<S: Simd>(simd: S, shares: &[f32], values: &[&[f32]], first: usize, found: &mut [f32]) {
    let (vectors, rest) = S::as_mut_simd_f32s(found);
    let (pairs, single) = vectors.as_chunks_mut::<2>();
    let mut first = first;
    for pair in pairs {
        *pair = weigh_vectors(simd, shares, values, first);
        first += 2 * S::F32_LANES;
    }
    for vector in single {
        [*vector] = weigh_vectors(simd, shares, values, first);
        first += S::F32_LANES;
    }
    for (at, found) in rest.iter_mut().enumerate() {
        *found = shares.iter().zip(values).map(|(share, value)| share * value[first + at]).sum();
    }
}

#[inline(always)]
fn weigh_vectors<S: Simd, const VECTORS: usize>(
    simd: S,
    shares: &[f32],
    values: &[&[f32]],
    first: usize,
) -> [S::f32s; VECTORS] {
    let mut sums = [simd.splat_f32s(0.0); VECTORS];
    for (&share, value) in shares.iter().zip(values) {
        let value = S::as_simd_f32s(&value[first..first + VECTORS * S::F32_LANES]).0;
        let share = simd.splat_f32s(share);
        for (sum, &value) in sums.iter_mut().zip(value) {
            *sum = simd.mul_add_e_f32s(share, value, *sum);
        }
    }
    sums
}
