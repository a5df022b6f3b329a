//! Products of matrices.

use std::array::from_fn;

use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::tensor::{OperatorError, Tensor, common_shape, count, for_each_row, pool, repeated};

/// Columns that lie together in a [`Packed`] matrix.
const STRIP: usize = 64;
/// No vectors have more numbers: columns are filled up to a multiple of it.
const MOST_LANES: usize = 16;
/// Rows of the left matrix that are taken together: each vector of the right one is loaded once for
/// all of them.
const ROWS: usize = 4;

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
        let b = Packed::new(b.numbers(), [depth, columns], transposed)?;
        b.multiply(a.numbers(), None, &mut numbers);
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
    let mut packed = Ok(());
    for_each_row(&places, [&a_strides, &b_strides], |[a_first, b_first]| {
        if let (Some(product), Ok(())) = (products.next(), &packed) {
            let a = &a.numbers()[a_first..a_first + a_size];
            let b = &b.numbers()[b_first..b_first + b_size];
            let b = Packed::new(b, [depth, columns], transposed);
            packed = b.map(|b| b.multiply(a, None, product));
        }
    });
    packed?;
    Tensor::new(shape, numbers)
}

/// `x` `[…, depth]` times a constant matrix, and a constant row added to each of the results.
pub(super) fn linear(
    x: &Tensor<f32>,
    weights: &Packed,
    bias: Option<&[f32]>,
) -> Result<Tensor<f32>, OperatorError> {
    let shape = match x.shape().split_last() {
        Some((&depth, many)) if depth == weights.depth && !many.is_empty() => {
            [many, &[weights.columns]].concat()
        }
        _ => {
            let weights = vec![weights.depth, weights.columns];
            return Err(OperatorError::Shapes(vec![x.shape().to_vec(), weights]));
        }
    };
    let mut numbers = pool::take(count(&shape)?);
    if !numbers.is_empty() {
        weights.multiply(x.numbers(), bias, &mut numbers);
    }
    Tensor::new(shape, numbers)
}

/// A right matrix as products go through it: in strips of columns, of each of which the rows follow
/// one another.
#[derive(Debug, PartialEq)]
pub(super) struct Packed {
    depth: usize,
    columns: usize,
    /// The strips, after some numbers without meaning.
    numbers: Vec<f32>,
    /// Where the strips begin: at a line of the cache, so that no vector lies in two.
    first: usize,
}

impl Packed {
    /// `b` is `[depth, columns]`, or `[columns, depth]` where it is to be transposed.
    ///
    /// # Errors
    /// Where its columns, filled up, are too many numbers.
    pub(super) fn new(
        b: &[f32],
        [depth, columns]: [usize; 2],
        transposed: bool,
    ) -> Result<Self, OperatorError> {
        const LINE: usize = 64;
        let padded = columns.next_multiple_of(MOST_LANES);
        let mut numbers = vec![0.0; count(&[depth, padded])? + LINE / size_of::<f32>()];
        let first = numbers.as_ptr().align_offset(LINE).min(LINE / size_of::<f32>());
        let mut packed = &mut numbers[first..first + depth * padded];
        for from in (0..columns).step_by(STRIP) {
            let (strip, rest) = packed.split_at_mut(depth * STRIP.min(padded - from));
            packed = rest;
            let here = STRIP.min(columns - from);
            let rows = strip.chunks_exact_mut(STRIP.min(padded - from));
            for (at, row) in rows.enumerate() {
                if transposed {
                    let column = b[from * depth + at..].iter().step_by(depth);
                    row[..here].iter_mut().zip(column).for_each(|(to, from)| *to = *from);
                } else {
                    row[..here].copy_from_slice(&b[at * columns + from..][..here]);
                }
            }
        }
        Ok(Self { depth, columns, numbers, first })
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// `a` `[m, depth]` times the matrix, and `bias` added to each row.
    ///
    /// Each number is a sum from the first of the depth to the last one, whatever is computed
    /// beside it: the results of a row do not depend on how many others there are.
    fn multiply(&self, a: &[f32], bias: Option<&[f32]>, product: &mut [f32]) {
        Arch::new().dispatch(Product { a, b: self, bias, product });
    }
}

struct Product<'a> {
    a: &'a [f32],
    b: &'a Packed,
    bias: Option<&'a [f32]>,
    product: &'a mut [f32],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut strips = &self.b.numbers[self.b.first..];
        for from in (0..self.b.columns).step_by(STRIP) {
            let width = STRIP.min((self.b.columns - from).next_multiple_of(MOST_LANES));
            let (strip, rest) = strips.split_at(self.b.depth * width);
            strips = rest;
            let strip = Strip { numbers: strip, width, from };
            let mut at = 0;
            // As many sums at once as there is room for in registers, and so many in any case that
            // each is ready when its turn comes again.
            if self.product.len() == self.b.columns {
                at = self.tiles::<S, 8>(simd, strip, at);
            }
            if S::REGISTER_COUNT >= 32 {
                at = self.tiles::<S, 4>(simd, strip, at);
            }
            at = self.tiles::<S, 2>(simd, strip, at);
            self.tiles::<S, 1>(simd, strip, at);
        }
    }
}

/// Some columns of a packed matrix.
#[derive(Clone, Copy)]
struct Strip<'a> {
    numbers: &'a [f32],
    width: usize,
    /// The first of the columns.
    from: usize,
}

impl Product<'_> {
    /// The columns of a strip from `at` on, by so many vectors while there are as many: where the
    /// rest begins.
    #[inline(always)]
    fn tiles<S: Simd, const VECTORS: usize>(
        &mut self,
        simd: S,
        strip: Strip<'_>,
        mut at: usize,
    ) -> usize {
        let rows = self.product.len() / self.b.columns;
        while at + VECTORS * S::F32_LANES <= strip.width {
            let mut row = 0;
            while row + ROWS <= rows {
                self.tile::<S, ROWS, VECTORS>(simd, strip, at, row);
                row += ROWS;
            }
            match rows - row {
                3 => self.tile::<S, 3, VECTORS>(simd, strip, at, row),
                2 => self.tile::<S, 2, VECTORS>(simd, strip, at, row),
                1 => self.tile::<S, 1, VECTORS>(simd, strip, at, row),
                _ => {}
            }
            at += VECTORS * S::F32_LANES;
        }
        at
    }

    /// `ROWS` rows of `VECTORS` vectors of columns.
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        strip: Strip<'_>,
        at: usize,
        row: usize,
    ) {
        let Packed { depth, columns, .. } = *self.b;
        let a: [&[f32]; ROWS] = from_fn(|more| &self.a[(row + more) * depth..][..depth]);
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
        let width = VECTORS * S::F32_LANES;
        for (step, b) in strip.numbers.chunks_exact(strip.width).take(depth).enumerate() {
            let b = S::as_simd_f32s(&b[at..at + width]).0;
            let b: [S::f32s; VECTORS] = from_fn(|vector| b[vector]);
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = simd.splat_f32s(a[step]);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = simd.mul_add_e_f32s(a, b, *sum);
                }
            }
        }
        let from = strip.from + at;
        let Some(width) = columns.checked_sub(from).map(|rest| rest.min(width)) else { return };
        for (more, sums) in sums.iter().enumerate() {
            let product = &mut self.product[(row + more) * columns + from..][..width];
            let sums: &[f32] = bytemuck::cast_slice(sums);
            match self.bias {
                None => product.copy_from_slice(&sums[..width]),
                Some(bias) => {
                    let sums = sums.iter().zip(&bias[from..from + width]);
                    product.iter_mut().zip(sums).for_each(|(to, (sum, bias))| *to = sum + bias);
                }
            }
        }
    }
}
