//! What queries find among keys and values.

mod kernel;

use super::tensor::{OperatorError, Tensor, Value, pool};
use kernel::Attention;

type Result<T> = std::result::Result<T, OperatorError>;

/// Attention of rows to what is known of each: the positions before, which lie in a cache of all
/// layers, and their own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowAttention {
    pub(super) heads: usize,
    /// Of a head.
    pub(super) width: usize,
    pub(super) layer: usize,
    pub(super) scale: f32,
}

impl RowAttention {
    /// `queries` and what is `next` are `[rows, positions, width of all heads]`, what was `before`
    /// is `[layers, rows, positions before, width of all heads]`; keys come first.
    pub(super) fn run(
        &self,
        queries: &Tensor<f32>,
        before: [&Value; 2],
        next: [&Tensor<f32>; 2],
        bias: &Tensor<f32>,
    ) -> Result<Tensor<f32>> {
        let width = self.heads * self.width;
        let shapes = [queries.shape(), before[0].shape(), before[1].shape(), bias.shape()];
        let unsuited = || OperatorError::Shapes(shapes.map(<[usize]>::to_vec).into());
        let (&[rows, count, of_query], &[layers, _, known, _]) = (shapes[0], shapes[1]) else {
            return Err(unsuited());
        };
        let is_suited = of_query == width
            && self.layer < layers
            && before.iter().all(|of| of.shape() == [layers, rows, known, width])
            && next.iter().all(|of| of.shape() == [rows, count, width])
            && bias.shape() == [count, known + count];
        if !is_suited {
            return Err(unsuited());
        }
        let own = count * width;
        let mut found = pool::take(queries.numbers().len());
        let mut shares = vec![0.0; known + count];
        let mut positions = [const { Vec::new() }; 2];
        for (row, found) in found.chunks_exact_mut(own.max(1)).enumerate() {
            for (positions, (before, next)) in positions.iter_mut().zip(before.iter().zip(next)) {
                positions.clear();
                self.before(before, row, positions)?;
                positions.extend(next.numbers()[row * own..][..own].chunks_exact(width));
            }
            let attention = Attention {
                heads: self.heads,
                width: self.width,
                scale: self.scale,
                queries: &queries.numbers()[row * own..][..own],
                found,
                keys: &positions[0],
                values: &positions[1],
                apart: self.width,
                bias: bias.numbers(),
                shares: &mut shares,
            };
            attention.run();
        }
        Tensor::new(queries.shape().to_vec(), found)
    }

    /// Adds the positions of a row that were known before.
    fn before<'a>(&self, of: &'a Value, row: usize, positions: &mut Vec<&'a [f32]>) -> Result<()> {
        match of {
            Value::Cached(cache) => positions.extend(cache.row(self.layer, row)),
            Value::Floats(tensor) => {
                let &[_, rows, known, width] = tensor.shape() else {
                    return Err(OperatorError::Type);
                };
                let size = known * width;
                let numbers = &tensor.numbers()[(self.layer * rows + row) * size..][..size];
                positions.extend(numbers.chunks_exact(width));
            }
            _ => return Err(OperatorError::Type),
        }
        Ok(())
    }
}

/// Attention to keys and values that lie by heads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SplitAttention {
    /// Which row of keys and values the only row of queries asks; each row asks its own if none.
    pub(super) layer: Option<usize>,
    pub(super) heads: usize,
    /// Of a head.
    pub(super) width: usize,
    pub(super) scale: f32,
}

impl SplitAttention {
    /// `queries` are `[rows, positions, width of all heads]`, keys and values `[rows or
    /// layers, heads, positions attended to, width of a head]`.
    pub(super) fn run(
        &self,
        queries: &Tensor<f32>,
        known: [&Tensor<f32>; 2],
        bias: Option<&Tensor<f32>>,
    ) -> Result<Tensor<f32>> {
        let tensors = [queries, known[0], known[1]].into_iter().chain(bias);
        let unsuited = || OperatorError::Shapes(tensors.map(|of| of.shape().to_vec()).collect());
        let (&[rows, count, of_query], &[all, _, positions, _]) =
            (queries.shape(), known[0].shape())
        else {
            return Err(unsuited());
        };
        let width = self.heads * self.width;
        // Of all queries, or of each.
        let is_bias = |of: &Tensor<f32>| match *of.shape() {
            [1, 1, here, last] | [here, last] => last == positions && (here == 1 || here == count),
            _ => false,
        };
        let is_suited = of_query == width
            && known.iter().all(|of| of.shape() == [all, self.heads, positions, self.width])
            && self.layer.map_or(all == rows, |layer| rows == 1 && layer < all)
            && bias.is_none_or(is_bias);
        if !is_suited || positions == 0 {
            return Err(unsuited());
        }
        let mut found = pool::take(queries.numbers().len());
        let mut shares = vec![0.0; positions];
        let (own, size) = (count * width, positions * self.width);
        for (row, found) in found.chunks_exact_mut(own.max(1)).enumerate() {
            // The first head's part of each position, and what follows it.
            let numbers = known
                .map(|of| &of.numbers()[(self.layer.unwrap_or(0) + row) * self.heads * size..]);
            let [keys, values] = numbers.map(|numbers| {
                (0..positions).map(|at| &numbers[at * self.width..]).collect::<Vec<_>>()
            });
            let attention = Attention {
                heads: self.heads,
                width: self.width,
                scale: self.scale,
                queries: &queries.numbers()[row * own..][..own],
                found,
                keys: &keys,
                values: &values,
                apart: size,
                bias: bias.map_or(&[], Tensor::numbers),
                shares: &mut shares,
            };
            attention.run();
        }
        Tensor::new(queries.shape().to_vec(), found)
    }
}
