//! Layers that encoder and decoder are made of: attention, pooling, and feed-forward layers.

use burn::module::{Initializer, Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::Tensor;
use burn::tensor::activation::{gelu, softmax};
use burn::tensor::backend::Backend;

/// Added to scores of what must not be attended to.
pub(super) const MASKED: f32 = -1e4;

/// A linear layer whose parameters are filled in later.
pub(super) fn linear<B: Backend>(input: usize, output: usize, device: &B::Device) -> Linear<B> {
    LinearConfig::new(input, output).with_initializer(Initializer::Zeros).init(device)
}

/// A table of learned vectors, filled in later.
pub(super) fn table<B: Backend>(
    rows: usize,
    width: usize,
    device: &B::Device,
) -> Param<Tensor<B, 2>> {
    Initializer::Zeros.init([rows, width], device)
}

pub(super) fn norm<B: Backend>(width: usize, device: &B::Device) -> LayerNorm<B> {
    LayerNormConfig::new(width).init(device)
}

/// Two linear layers with a GELU between them.
#[derive(Module, Debug)]
pub(super) struct Mlp<B: Backend> {
    first: Linear<B>,
    last: Linear<B>,
}

impl<B: Backend> Mlp<B> {
    pub(super) fn new(input: usize, hidden: usize, output: usize, device: &B::Device) -> Self {
        Self { first: linear(input, hidden, device), last: linear(hidden, output, device) }
    }

    pub(super) fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        self.last.forward(gelu(self.first.forward(x)))
    }
}

/// Multi-head attention (Vaswani et al., Attention Is All You Need, 2017, §3.2).
#[derive(Module, Debug)]
pub(super) struct Attention<B: Backend> {
    query: Linear<B>,
    key: Linear<B>,
    value: Linear<B>,
    output: Linear<B>,
    heads: usize,
}

/// What is attended to: keys and values, each `[rows, heads, positions, width ÷ heads]`.
#[derive(Clone, Debug)]
pub(super) struct KeyValues<B: Backend> {
    keys: Tensor<B, 4>,
    values: Tensor<B, 4>,
}

impl<B: Backend> KeyValues<B> {
    /// These, and then further ones of the same rows.
    pub(super) fn followed_by(self, next: Self) -> Self {
        Self {
            keys: Tensor::cat(vec![self.keys, next.keys], 2),
            values: Tensor::cat(vec![self.values, next.values], 2),
        }
    }

    /// Those of some rows, in their order.
    pub(super) fn select(&self, rows: &Tensor<B, 1, burn::tensor::Int>) -> Self {
        Self {
            keys: self.keys.clone().select(0, rows.clone()),
            values: self.values.clone().select(0, rows.clone()),
        }
    }
}

impl<B: Backend> Attention<B> {
    pub(super) fn new(width: usize, heads: usize, device: &B::Device) -> Self {
        let square = || linear(width, width, device);
        Self { query: square(), key: square(), value: square(), output: square(), heads }
    }

    /// `[rows, positions, width]` by heads.
    fn split(&self, x: Tensor<B, 3>) -> Tensor<B, 4> {
        let [rows, positions, width] = x.dims();
        x.reshape([rows, positions, self.heads, width / self.heads]).swap_dims(1, 2)
    }

    pub(super) fn key_values(&self, x: Tensor<B, 3>) -> KeyValues<B> {
        KeyValues {
            keys: self.split(self.key.forward(x.clone())),
            values: self.split(self.value.forward(x)),
        }
    }

    /// What each of `x`, `[rows, positions, width]`, finds. `bias` is added to the scores, which
    /// are `[rows, heads, positions, positions attended to]`.
    pub(super) fn attend(
        &self,
        x: Tensor<B, 3>,
        to: &KeyValues<B>,
        bias: Option<Tensor<B, 4>>,
    ) -> Tensor<B, 3> {
        let [rows, positions, width] = x.dims();
        let queries = self.split(self.query.forward(x)) * ((width / self.heads) as f64).powf(-0.5);
        let scores = queries.matmul(to.keys.clone().swap_dims(2, 3));
        let scores = match bias {
            Some(bias) => scores + bias,
            None => scores,
        };
        let found = softmax(scores, 3).matmul(to.values.clone());
        self.output.forward(found.swap_dims(1, 2).reshape([rows, positions, width]))
    }
}

/// A pre-norm block of feed-forward layers, four times as wide inside.
#[derive(Module, Debug)]
pub(super) struct FeedForward<B: Backend> {
    norm: LayerNorm<B>,
    mlp: Mlp<B>,
}

impl<B: Backend> FeedForward<B> {
    pub(super) fn new(width: usize, device: &B::Device) -> Self {
        Self { norm: norm(width, device), mlp: Mlp::new(width, 4 * width, width, device) }
    }

    pub(super) fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        x.clone() + self.mlp.forward(self.norm.forward(x))
    }
}

/// A few learned queries that look over any number of tokens.
#[derive(Module, Debug)]
pub(super) struct Pool<B: Backend> {
    queries: Param<Tensor<B, 2>>,
    norm: LayerNorm<B>,
    attention: Attention<B>,
}

impl<B: Backend> Pool<B> {
    pub(super) fn new(queries: usize, width: usize, heads: usize, device: &B::Device) -> Self {
        Self {
            queries: table(queries, width, device),
            norm: norm(width, device),
            attention: Attention::new(width, heads, device),
        }
    }

    /// `[rows, queries, width]` of `[rows, positions, width]`; `bias` is `[rows, 1, 1, positions]`.
    pub(super) fn forward(&self, x: Tensor<B, 3>, bias: Option<Tensor<B, 4>>) -> Tensor<B, 3> {
        let [rows, _, width] = x.dims();
        let queries = self.queries.val();
        let [count, _] = queries.dims();
        let queries = queries.unsqueeze_dim::<3>(0).expand([rows, count, width]);
        let to = self.attention.key_values(self.norm.forward(x));
        self.attention.attend(queries, &to, bias)
    }
}
