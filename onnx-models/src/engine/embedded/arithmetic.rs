//! What is done with single numbers and with rows of them.

use pulp::Arch;

use super::tensor::{
    OperatorError, Tensor, axis_of, common_shape, count, for_each_row, last_of, repeated,
};

type Result<T> = std::result::Result<T, OperatorError>;

/// A number of each, the smaller tensor repeated.
pub(super) fn combine(
    a: Tensor<f32>,
    b: &Tensor<f32>,
    of: impl Fn(f32, f32) -> f32,
) -> Result<Tensor<f32>> {
    let shape = common_shape(a.shape(), b.shape())?;
    let leading = b.shape().iter().take_while(|&&size| size == 1).count();
    let is_whole = shape == a.shape();
    if let (true, [number]) = (is_whole, b.numbers()) {
        return map(a, |x| of(x, *number));
    }
    if is_whole && shape.ends_with(&b.shape()[leading..]) && !b.numbers().is_empty() {
        let mut numbers = a.into_numbers();
        for row in numbers.chunks_exact_mut(b.numbers().len()) {
            row.iter_mut().zip(b.numbers()).for_each(|(x, &y)| *x = of(*x, y));
        }
        return Tensor::new(shape, numbers);
    }
    let (a_strides, b_strides) = (repeated(a.shape(), &shape), repeated(b.shape(), &shape));
    let mut numbers = Vec::with_capacity(count(&shape)?);
    let (row, a_stride) = last_of(&shape, &a_strides);
    let (_, b_stride) = last_of(&shape, &b_strides);
    for_each_row(&shape, [&a_strides, &b_strides], |[a_first, b_first]| {
        let (a, b) = (&a.numbers()[a_first..], &b.numbers()[b_first..]);
        match (a_stride, b_stride) {
            (1, 1) => numbers.extend(a.iter().zip(b).take(row).map(|(&x, &y)| of(x, y))),
            (1, _) => numbers.extend(a.iter().take(row).map(|&x| of(x, b[0]))),
            (_, 1) => numbers.extend(b.iter().take(row).map(|&y| of(a[0], y))),
            _ => numbers.extend(std::iter::repeat_n(of(a[0], b[0]), row)),
        }
    });
    Tensor::new(shape, numbers)
}

/// The exact GELU (Hendrycks and Gimpel, 2016).
pub(super) fn gelu(a: Tensor<f32>) -> Result<Tensor<f32>> {
    map(a, |x| x * 0.5 * (erf(x * std::f32::consts::FRAC_1_SQRT_2) + 1.0))
}

/// A number of each number.
#[inline(always)]
pub(super) fn map(a: Tensor<f32>, of: impl Fn(f32) -> f32) -> Result<Tensor<f32>> {
    let shape = a.shape().to_vec();
    let mut numbers = a.into_numbers();
    Arch::new().dispatch(|| numbers.iter_mut().for_each(|x| *x = of(*x)));
    Tensor::new(shape, numbers)
}

/// The error function, to within 4 units in the last place: the rational approximation of Eigen
/// (`generic_fast_erf_float`), which has no branches, so that compilers take several numbers at
/// once.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let horner = |of: &[f32]| of.iter().fold(0.0, |sum, c| sum * square + c);
    let above = horner(&[
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ]);
    let below =
        horner(&[-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2]);
    x * above / below
}

/// e to a number that is not above 0, to within 2 units in the last place: after Cephes, without
/// branches.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Added to a number it leaves the nearest integer in the lowest bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + TO_INTEGER;
    let power = shifted - TO_INTEGER;
    // ln 2 in two parts, so that nothing is lost.
    let r = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
    let horner = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    let tail = horner.iter().fold(0.0, |sum, c| sum * r + c);
    let two = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (tail * r * r + r + 1.0) * two
}

/// Partial results of a row, which compilers keep side by side.
const PARTS: usize = 16;

/// A sum of several partial ones.
#[inline(always)]
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut parts = [0.0; PARTS];
    let (whole, rest) = row.as_chunks::<PARTS>();
    for chunk in whole {
        parts.iter_mut().zip(chunk).for_each(|(part, &x)| *part += of(x));
    }
    parts.iter().sum::<f32>() + rest.iter().map(|&x| of(x)).sum::<f32>()
}

/// Shares of each row's last dimension.
pub(super) fn softmax(a: Tensor<f32>, axis: i64) -> Result<Tensor<f32>> {
    let shape = a.shape().to_vec();
    let row = last_dimension(&shape, axis)?;
    let mut numbers = a.into_numbers();
    Arch::new().dispatch(|| numbers.chunks_exact_mut(row).for_each(softmax_of));
    Tensor::new(shape, numbers)
}

/// Shares of a row.
#[inline(always)]
pub(super) fn softmax_of(row: &mut [f32]) {
    let most = greatest(row);
    row.iter_mut().for_each(|x| *x = exp(*x - most));
    let all = sum(row, |x| x);
    row.iter_mut().for_each(|x| *x /= all);
}

/// The greatest number of a row.
#[inline(always)]
fn greatest(row: &[f32]) -> f32 {
    let mut parts = [f32::NEG_INFINITY; PARTS];
    let (whole, rest) = row.as_chunks::<PARTS>();
    for chunk in whole {
        parts
            .iter_mut()
            .zip(chunk)
            .for_each(|(part, &x)| *part = if x > *part { x } else { *part });
    }
    parts.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Rows with mean 0 and variance 1, then scaled and moved.
pub(super) fn layer_normalization(
    a: Tensor<f32>,
    [gamma, beta]: [&Tensor<f32>; 2],
    axis: i64,
    epsilon: f32,
) -> Result<Tensor<f32>> {
    let shape = a.shape().to_vec();
    let width = last_dimension(&shape, axis)?;
    if [gamma, beta].iter().any(|of| of.shape() != [width]) {
        return Err(OperatorError::Shapes(vec![shape, gamma.shape().into(), beta.shape().into()]));
    }
    let mut numbers = a.into_numbers();
    let lines = || gamma.numbers().iter().zip(beta.numbers());
    Arch::new().dispatch(|| {
        for row in numbers.chunks_exact_mut(width) {
            let mean = sum(row, |x| x) / width as f32;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
            let scale = 1.0 / (variance + epsilon).sqrt();
            for (x, (gamma, beta)) in row.iter_mut().zip(lines()) {
                *x = (*x - mean) * scale * gamma + beta;
            }
        }
    });
    Tensor::new(shape, numbers)
}

/// The size of the last dimension, which is what `axis` has to be, and not empty.
fn last_dimension(shape: &[usize], axis: i64) -> Result<usize> {
    let axis = axis_of(axis, shape.len())?;
    let is_last = axis + 1 == shape.len() && shape[axis] > 0;
    if is_last { Ok(shape[axis]) } else { Err(OperatorError::Places(vec![axis as i64])) }
}

/// Sums, or means, over axes.
pub(super) fn reduce(a: Tensor<f32>, axes: &[i64], keep: bool, mean: bool) -> Result<Tensor<f32>> {
    let rank = a.shape().len();
    let mut places = axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    if places.is_empty() || places.windows(2).any(|two| two[0] == two[1]) {
        return Err(OperatorError::Places(axes.to_vec()));
    }
    let mut reduced = a;
    for &axis in places.iter().rev() {
        let [before, here, after] = reduced.around(axis);
        let mut numbers = vec![0.0; before * after];
        let blocks = reduced.numbers().chunks_exact((here * after).max(1));
        for (block, sums) in blocks.zip(numbers.chunks_exact_mut(after.max(1))) {
            for row in block.chunks_exact(after) {
                sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
        }
        if mean {
            numbers.iter_mut().for_each(|sum| *sum /= here as f32);
        }
        let mut shape = reduced.shape().to_vec();
        if keep {
            shape[axis] = 1;
        } else {
            shape.remove(axis);
        }
        reduced = Tensor::new(shape, numbers)?;
    }
    Ok(reduced)
}
