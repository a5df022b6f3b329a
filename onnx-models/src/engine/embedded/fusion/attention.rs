//! The attention of policies, as `trainer/src/export/graph.rs` writes it.

use super::super::attention::{Heads, RowAttention, SplitAttention};
use super::super::operator::Operator;
use super::super::{Source, Step};
use super::{Fused, Fusion};

impl Fusion<'_> {
    /// `attend_rows`: rows ask what is known of each, all heads in one product.
    pub(super) fn row_attention(&self, step: &Step) -> Fused {
        let &[own, axis] = &step.inputs[..] else { return None };
        let [by_heads, own] = self.before(own, &Operator::Mul)?;
        let [found, shape] = self.before(by_heads, &Operator::Reshape)?;
        let &[0, heads, -1, width] = self.integers(shape)? else { return None };
        let [shares, values] = self.before(found, &Operator::MatMul { transposed: false })?;
        let [scores] = self.before(shares, &Operator::Softmax { axis: -1 })?;
        let [scores, bias] = self.before(scores, &Operator::Add)?;
        let [queries, keys] = self.before(scores, &Operator::MatMul { transposed: true })?;
        let [queries, flat] = self.before(queries, &Operator::Reshape)?;
        let [queries, scaled] = self.before(queries, &Operator::Mul)?;
        let [queries, place] = self.before(queries, &Operator::Unsqueeze)?;
        let is_so = self.integers(axis)? == [1]
            && self.integers(place)? == [1]
            && self.integers(flat)? == [0, -1, width];
        let sizes = [usize::try_from(heads).ok()?, usize::try_from(width).ok()?];
        let biases = self.step(bias).filter(|of| of.operator == Operator::Concat { axis: 0 })?;
        let bias = *biases.inputs.first()?;
        let is_repeated =
            biases.inputs.len() == sizes[0] && biases.inputs.iter().all(|&of| of == bias);
        if !is_so || !is_repeated || self.parts(own, sizes)? != 1.0 {
            return None;
        }
        let (layer, [keys, next_keys]) = self.known(keys)?;
        let (same, [values, next_values]) = self.known(values)?;
        let [heads, width] = sizes;
        let scale = self.parts(scaled, sizes)?;
        let heads = Heads { count: heads, width: width / heads, scale };
        let attention = RowAttention { heads, layer };
        let inputs = vec![queries, keys, next_keys, values, next_values, bias];
        (same == layer).then_some((Operator::RowAttention(attention), inputs))
    }

    /// The one number that a constant `[heads, 1, width]` has where a head has its part; others are
    /// zeros.
    fn parts(&self, source: Source, [heads, width]: [usize; 2]) -> Option<f32> {
        let (shape, numbers) = self.floats(source)?;
        let part = width.checked_div(heads).filter(|part| part * heads == width && width > 0)?;
        let is_own = |at: usize| at / width == at % width / part;
        let of = *numbers.first()?;
        let is_so = |(at, &number): (usize, &f32)| number == if is_own(at) { of } else { 0.0 };
        (shape == [heads, 1, width] && numbers.iter().enumerate().all(is_so)).then_some(of)
    }

    /// What is known of all positions of a layer: the layer, what was known before of all layers,
    /// and what follows.
    fn known(&self, source: Source) -> Option<(usize, [Source; 2])> {
        let [before, next] = self.before(source, &Operator::Concat { axis: 1 })?;
        let [layer, axis] = self.before(before, &Operator::Squeeze)?;
        let (layer, all) = self.layer(layer)?;
        (self.integers(axis)? == [0]).then_some((layer, [all, next]))
    }

    /// One of the layers of a value: which, and the value.
    fn layer(&self, source: Source) -> Option<(usize, Source)> {
        let [all, first, last, axis] = self.before(source, &Operator::Slice)?;
        let (&[first], &[last]) = (self.integers(first)?, self.integers(last)?) else {
            return None;
        };
        let is_one = last == first.checked_add(1)? && self.integers(axis)? == [0];
        is_one.then_some((usize::try_from(first).ok()?, all))
    }

    /// `attend`: each head by itself, with keys and values by heads.
    pub(super) fn split_attention(&self, step: &Step) -> Fused {
        let order = Operator::Transpose { order: vec![0, 2, 1, 3] };
        let &[found, shape] = &step.inputs[..] else { return None };
        let &[0, 0, width] = self.integers(shape)? else { return None };
        let [found] = self.before(found, &order)?;
        let [shares, values] = self.before(found, &Operator::MatMul { transposed: false })?;
        let [mut scores] = self.before(shares, &Operator::Softmax { axis: -1 })?;
        let mut bias = None;
        if let Some([before, added]) = self.before(scores, &Operator::Add) {
            (scores, bias) = (before, Some(added));
        }
        let [queries, keys] = self.before(scores, &Operator::MatMul { transposed: true })?;
        let [queries, scale] = self.before(queries, &Operator::Mul)?;
        let [queries] = self.before(queries, &order)?;
        let [queries, split] = self.before(queries, &Operator::Reshape)?;
        // A size of 0 would be that of what is reshaped.
        let &[0, 0, heads, part] = self.integers(split)? else { return None };
        // Keys and values of one layer are read where they are.
        let (layer, keys, values) = match (self.layer(keys), self.layer(values)) {
            (Some((layer, keys)), Some((same, values))) if layer == same => {
                (Some(layer), keys, values)
            }
            _ => (None, keys, values),
        };
        let of = Heads {
            count: usize::try_from(heads).ok()?,
            width: usize::try_from(part).ok()?,
            scale: self.number(scale)?,
        };
        let attention = SplitAttention { heads: of, layer };
        let inputs = [queries, keys, values].into_iter().chain(bias).collect();
        let is_so = heads.min(part) > 0 && heads.checked_mul(part)? == width;
        is_so.then_some((Operator::SplitAttention(attention), inputs))
    }
}
