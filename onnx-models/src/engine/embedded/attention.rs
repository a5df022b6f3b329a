//! What queries find among keys and values.

mod kernel;

use super::tensor::{OperatorError, Tensor, Value, pool};
use kernel::Attention;

type Result<T> = std::result::Result<T, OperatorError>;

/// How queries, keys and values of an attention are divided, and how scores are scaled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heads {
    pub(super) count: usize,
    /// Numbers of a head.
    pub(super) width: usize,
    pub(super) scale: f32,
}

/// Attention of rows to what is known of each: the positions before, which lie in a cache of all
/// layers, and their own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowAttention {
    pub(super) heads: Heads,
    pub(super) layer: usize,
}

/// Attention to keys and values that lie by heads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SplitAttention {
    pub(super) heads: Heads,
    /// Which row of keys and values the only row of queries asks; each row asks its own if none.
    pub(super) layer: Option<usize>,
}

/// Of each position attended to the key, and the value, from the first head's numbers on.
type Positions<'a> = [Vec<&'a [f32]>; 2];

impl Heads {
    /// Numbers of all heads.
    fn all(&self) -> usize {
        self.count * self.width
    }

    /// What `queries`, `[rows, positions, width of all heads]`, find among the positions that
    /// `known_to` adds for each row, `attended` of them; from one head's numbers to the next
    /// one's it is `apart`.
    fn attend<'a>(
        &self,
        queries: &Tensor<f32>,
        (attended, apart): (usize, usize),
        bias: &[f32],
        mut known_to: impl FnMut(usize, &mut Positions<'a>) -> Result<()>,
    ) -> Result<Tensor<f32>> {
        let own: usize = queries.shape().iter().skip(1).product();
        let mut found = pool::take(queries.numbers().len());
        let mut shares = vec![0.0; attended];
        let mut positions = [const { Vec::new() }; 2];
        for (row, found) in found.chunks_exact_mut(own.max(1)).enumerate() {
            positions.iter_mut().for_each(Vec::clear);
            known_to(row, &mut positions)?;
            let attention = Attention {
                heads: self,
                queries: &queries.numbers()[row * own..][..own],
                found,
                keys: &positions[0],
                values: &positions[1],
                apart,
                bias,
                shares: &mut shares,
            };
            attention.run();
        }
        Tensor::new(queries.shape().to_vec(), found)
    }
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
        let width = self.heads.all();
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
        let (own, lie) = (count * width, (known + count, self.heads.width));
        self.heads.attend(queries, lie, bias.numbers(), |row, positions| {
            for (positions, (before, next)) in positions.iter_mut().zip(before.iter().zip(next)) {
                self.before(before, row, positions)?;
                positions.extend(next.numbers()[row * own..][..own].chunks_exact(width));
            }
            Ok(())
        })
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
        let Heads { count: heads, width, .. } = self.heads;
        // Of all queries, or of each.
        let is_bias = |of: &Tensor<f32>| match *of.shape() {
            [1, 1, here, last] | [here, last] => last == positions && (here == 1 || here == count),
            _ => false,
        };
        let is_suited = of_query == self.heads.all()
            && known.iter().all(|of| of.shape() == [all, heads, positions, width])
            && self.layer.map_or(all == rows, |layer| rows == 1 && layer < all)
            && bias.is_none_or(is_bias);
        if !is_suited || positions == 0 {
            return Err(unsuited());
        }
        let size = positions * width;
        let bias = bias.map_or(&[][..], Tensor::numbers);
        self.heads.attend(queries, (positions, size), bias, |row, of_row| {
            for (of_row, known) in of_row.iter_mut().zip(known) {
                // The first head's part of each position, and what follows it.
                let numbers = &known.numbers()[(self.layer.unwrap_or(0) + row) * heads * size..];
                of_row.extend((0..positions).map(|at| &numbers[at * width..]));
            }
            Ok(())
        })
    }
}
