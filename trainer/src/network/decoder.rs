//! The decoder, which reads the tokens of programs: all at once in training, one by one with a
//! key–value cache when it writes them.

use burn::module::{Module, Param};
use burn::nn::LayerNorm;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};

use super::attention::{Attention, FeedForward, KeyValues, MASKED, norm, table};
use super::{BEGIN, Memory, NetworkConfig};

/// What the decoder keeps of the tokens of some programs, so that each is looked at once.
#[derive(Clone, Debug)]
pub struct Cache<B: Backend> {
    layers: Vec<KeyValues<B>>,
    positions: usize,
}

impl<B: Backend> Cache<B> {
    /// A cache of programs that have not begun.
    #[must_use]
    pub fn empty() -> Self {
        Self { layers: Vec::new(), positions: 0 }
    }

    /// Positions that it holds, the beginning among them.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// That of programs that go on from some of these, by their places among all programs of all
    /// cases.
    #[must_use]
    pub fn select(&self, rows: &[usize], device: &B::Device) -> Self {
        let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let rows = Tensor::from_data(TensorData::new(rows.clone(), [rows.len()]), device);
        let layers = self.layers.iter().map(|layer| layer.select(&rows)).collect();
        Self { layers, positions: self.positions }
    }
}

/// Writes programs, looking at the memory of their case.
#[derive(Module, Debug)]
pub(super) struct Decoder<B: Backend> {
    tokens: Param<Tensor<B, 2>>,
    places: Param<Tensor<B, 2>>,
    layers: Vec<DecoderLayer<B>>,
    norm: LayerNorm<B>,
}

/// A pre-norm layer of causal self-attention and attention to the memory.
#[derive(Module, Debug)]
struct DecoderLayer<B: Backend> {
    norm: LayerNorm<B>,
    attention: Attention<B>,
    memory_norm: LayerNorm<B>,
    memory: Attention<B>,
    feed_forward: FeedForward<B>,
}

impl<B: Backend> Decoder<B> {
    /// Of at most so many positions.
    pub(super) fn new(config: &NetworkConfig, positions: usize, device: &B::Device) -> Self {
        let (width, heads) = (config.width, config.heads);
        let layer = |_| DecoderLayer {
            norm: norm(width, device),
            attention: Attention::new(width, heads, device),
            memory_norm: norm(width, device),
            memory: Attention::new(width, heads, device),
            feed_forward: FeedForward::new(width, device),
        };
        Self {
            tokens: table(BEGIN + 1, width, device),
            places: table(positions, width, device),
            layers: (0..config.decoder_layers).map(layer).collect(),
            norm: norm(width, device),
        }
    }

    /// Keys and values of the memory, the same for all programs of a case.
    pub(super) fn remember(&self, tokens: &Tensor<B, 3>, summary: Tensor<B, 2>) -> Memory<B> {
        let layers = self.layers.iter().map(|layer| layer.memory.key_values(tokens.clone()));
        Memory::new(summary, layers.collect())
    }

    pub(super) fn advance(
        &self,
        tokens: Tensor<B, 3, Int>,
        memory: &Memory<B>,
        cache: &mut Cache<B>,
    ) -> Tensor<B, 4> {
        let [cases, programs, positions] = tokens.dims();
        let (rows, before) = (cases * programs, cache.positions);
        let table = self.tokens.val();
        let [_, width] = table.dims();
        let embedded = table.select(0, tokens.reshape([rows * positions]));
        let places = self.places.val().narrow(0, before, positions).unsqueeze_dim::<3>(0);
        let mut x = embedded.reshape([rows, positions, width]) + places;
        // One more position may look at all before it.
        let bias = (positions > 1).then(|| causal_bias(positions, before, &x.device()));
        let mut layers = std::mem::take(&mut cache.layers).into_iter();
        for (layer, remembered) in self.layers.iter().zip(memory.layers()) {
            let normed = layer.norm.forward(x.clone());
            let next = layer.attention.key_values(normed.clone());
            let known = match layers.next() {
                Some(before) => before.followed_by(next),
                None => next,
            };
            x = x + layer.attention.attend(normed, &known, bias.clone());
            cache.layers.push(known);
            // All programs of a case ask its memory together.
            let asked = layer.memory_norm.forward(x.clone());
            let asked = asked.reshape([cases, programs * positions, width]);
            let found = layer.memory.attend(asked, remembered, None);
            x = layer.feed_forward.forward(x + found.reshape([rows, positions, width]));
        }
        cache.positions = before + positions;
        self.norm.forward(x).reshape([cases, programs, positions, width])
    }
}

/// Keeps positions from looking at later ones: `[1, 1, positions, before + positions]`.
fn causal_bias<B: Backend>(positions: usize, before: usize, device: &B::Device) -> Tensor<B, 4> {
    let known = before + positions;
    let allowed = |at: usize| if at % known <= before + at / known { 0.0 } else { MASKED };
    let bias: Vec<f32> = (0..positions * known).map(allowed).collect();
    Tensor::from_data(TensorData::new(bias, [1, 1, positions, known]), device)
}
