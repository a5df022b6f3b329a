//! Products of matrices.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use super::tensor::{OperatorError, Tensor, common_shape, count, for_each_row, repeated};

/// With fewer rows it takes longer to bring the right matrix into the order of a fast product than
/// to go through it once.
const FEW_ROWS: usize = 8;

/// `a` `[…, m, k]` times `b` `[…, k, n]`, or `[…, n, k]` where it is to be transposed.
pub(super) fn matmul(
    a: &Tensor<f32>,
    b: &Tensor<f32>,
    transposed: bool,
) -> Result<Tensor<f32>, OperatorError> {
    let unsuited = || OperatorError::Shapes(vec![a.shape().to_vec(), b.shape().to_vec()]);
    let (Some((a_many, &[rows, depth])), Some((b_many, &[first, last]))) =
        (a.shape().split_last_chunk::<2>(), b.shape().split_last_chunk::<2>())
    else {
        return Err(unsuited());
    };
    let (b_depth, columns) = if transposed { (last, first) } else { (first, last) };
    if depth != b_depth {
        return Err(unsuited());
    }
    let many = common_shape(a_many, b_many)?;
    let shape = [&many[..], &[rows, columns]].concat();
    let mut numbers = vec![0.0; count(&shape)?];
    if numbers.is_empty() {
        return Tensor::new(shape, numbers);
    }
    if b_many.iter().all(|&size| size == 1) {
        // One right matrix for all rows.
        multiply(a.numbers(), b.numbers(), &mut numbers, [depth, columns], transposed);
        return Tensor::new(shape, numbers);
    }
    // A dimension of one behind the others, so that each product is a row.
    let places = [&many[..], &[1]].concat();
    let strides = |of: &[usize], size: usize| -> Vec<usize> {
        repeated(of, &many).into_iter().map(|stride| stride * size).chain([0]).collect()
    };
    let (a_size, b_size) = (rows * depth, depth * columns);
    let (a_strides, b_strides) = (strides(a_many, a_size), strides(b_many, b_size));
    let mut products = numbers.chunks_exact_mut(rows * columns);
    for_each_row(&places, [&a_strides, &b_strides], |[a_first, b_first]| {
        if let Some(product) = products.next() {
            let a = &a.numbers()[a_first..a_first + a_size];
            let b = &b.numbers()[b_first..b_first + b_size];
            multiply(a, b, product, [depth, columns], transposed);
        }
    });
    Tensor::new(shape, numbers)
}

/// `a` `[m, depth]` times `b` `[depth, columns]`, into zeros.
fn multiply(
    a: &[f32],
    b: &[f32],
    product: &mut [f32],
    [depth, columns]: [usize; 2],
    transposed: bool,
) {
    let rows = product.len() / columns;
    if rows < FEW_ROWS && depth > 0 {
        let multiply = if transposed { multiply_few_transposed } else { multiply_few };
        return multiply(a, b, product, [depth, columns]);
    }
    let b = if transposed {
        ArrayView2::from_shape((columns, depth), b).map(ArrayView2::reversed_axes)
    } else {
        ArrayView2::from_shape((depth, columns), b)
    };
    let a = ArrayView2::from_shape((rows, depth), a);
    let product = ArrayViewMut2::from_shape((rows, columns), product);
    // The caller has counted all of them.
    if let (Ok(a), Ok(b), Ok(mut product)) = (a, b, product) {
        general_mat_mul(1.0, &a, &b, 0.0, &mut product);
    }
}

/// Rows of the right matrix are taken by fours for all of the few rows of the left one.
fn multiply_few(a: &[f32], b: &[f32], product: &mut [f32], [depth, columns]: [usize; 2]) {
    const AT_ONCE: usize = 4;
    let (whole, rest) = b.split_at(depth / AT_ONCE * AT_ONCE * columns);
    for (step, taken) in whole.chunks_exact(AT_ONCE * columns).enumerate() {
        let (b0, taken) = taken.split_at(columns);
        let (b1, taken) = taken.split_at(columns);
        let (b2, b3) = taken.split_at(columns);
        for (a, product) in a.chunks_exact(depth).zip(product.chunks_exact_mut(columns)) {
            let a = &a[step * AT_ONCE..(step + 1) * AT_ONCE];
            let [a0, a1, a2, a3] = [a[0], a[1], a[2], a[3]];
            let right = b0.iter().zip(b1).zip(b2.iter().zip(b3));
            for (sum, ((b0, b1), (b2, b3))) in product.iter_mut().zip(right) {
                *sum += (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3);
            }
        }
    }
    let first = depth - rest.len() / columns;
    for (step, b) in rest.chunks_exact(columns).enumerate() {
        for (a, product) in a.chunks_exact(depth).zip(product.chunks_exact_mut(columns)) {
            product.iter_mut().zip(b).for_each(|(sum, b)| *sum += a[first + step] * b);
        }
    }
}

/// Each row of the left matrix with each row of the transposed right one.
fn multiply_few_transposed(
    a: &[f32],
    b: &[f32],
    product: &mut [f32],
    [depth, columns]: [usize; 2],
) {
    for (a, product) in a.chunks_exact(depth).zip(product.chunks_exact_mut(columns)) {
        product.iter_mut().zip(b.chunks_exact(depth)).for_each(|(sum, b)| *sum = dot(a, b));
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    const PARTS: usize = 8;
    let mut parts = [0.0; PARTS];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<PARTS>(), b.as_chunks::<PARTS>());
    for (a, b) in a.iter().zip(b) {
        for ((part, a), b) in parts.iter_mut().zip(a).zip(b) {
            *part += a * b;
        }
    }
    parts.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}
