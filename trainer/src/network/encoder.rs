//! The encoder: features, density grids and positions of nonzeros become a memory of a fixed number
//! of tokens, whatever the size of the matrix.

use burn::module::{Module, Param};
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use sparserl_core::structure::{Features, GRID_SIDES};
use sparserl_onnx_models::inputs::SCALARS;

use super::attention::{Attention, FeedForward, KeyValues, Mlp, Pool, linear, norm, table};
use super::{EncoderInputs, NetworkConfig};
use burn::nn::Linear;

/// Tokens of the features.
const FEATURE_TOKENS: usize = 4;
/// Tokens of task, GPU and regime.
const CONDITION_TOKENS: usize = 2;
/// Tokens of each grid that are asked for, beside their mean.
const GRID_QUERIES: usize = 3;
/// Tokens of the positions.
const POSITION_TOKENS: usize = 8;
/// A grid is cut into so many patches along each side.
pub(crate) const PATCHES: usize = 4;
/// Tokens of what is known of a case.
pub(crate) const MEMORY: usize =
    CONDITION_TOKENS + FEATURE_TOKENS + GRID_SIDES.len() * (GRID_QUERIES + 1) + POSITION_TOKENS;

/// What a network remembers of some cases.
#[derive(Clone, Debug)]
pub struct Memory<B: Backend> {
    /// `[cases, width]`.
    summary: Tensor<B, 2>,
    /// For each layer of the decoder.
    layers: Vec<KeyValues<B>>,
}

impl<B: Backend> Memory<B> {
    pub(super) fn new(summary: Tensor<B, 2>, layers: Vec<KeyValues<B>>) -> Self {
        Self { summary, layers }
    }

    pub(super) fn summary(&self) -> Tensor<B, 2> {
        self.summary.clone()
    }

    pub(super) fn layers(&self) -> &[KeyValues<B>] {
        &self.layers
    }
}

/// Turns what is known of a case into tokens.
#[derive(Module, Debug)]
pub(super) struct Encoder<B: Backend> {
    condition: Mlp<B>,
    features: Mlp<B>,
    grids: Vec<Grid<B>>,
    grid_pool: Pool<B>,
    positions: Mlp<B>,
    pool: Pool<B>,
    /// Stand in for modalities that are absent: features, grids, positions.
    absent: Param<Tensor<B, 2>>,
    /// Tell the tokens apart.
    places: Param<Tensor<B, 2>>,
    layers: Vec<EncoderLayer<B>>,
    norm: LayerNorm<B>,
}

/// Reads one density grid by patches.
#[derive(Module, Debug)]
struct Grid<B: Backend> {
    patch: Linear<B>,
    mix: Mlp<B>,
    places: Param<Tensor<B, 2>>,
    side: usize,
}

/// A pre-norm layer of self-attention.
#[derive(Module, Debug)]
struct EncoderLayer<B: Backend> {
    norm: LayerNorm<B>,
    attention: Attention<B>,
    feed_forward: FeedForward<B>,
}

impl<B: Backend> Encoder<B> {
    pub(super) fn new(config: &NetworkConfig, device: &B::Device) -> Self {
        let (width, heads) = (config.width, config.heads);
        let layer = |_| EncoderLayer {
            norm: norm(width, device),
            attention: Attention::new(width, heads, device),
            feed_forward: FeedForward::new(width, device),
        };
        let condition = SCALARS - Features::COUNT;
        let token_width = config.embedding().token_width();
        Self {
            condition: Mlp::new(condition, width, CONDITION_TOKENS * width, device),
            features: Mlp::new(Features::COUNT, width, FEATURE_TOKENS * width, device),
            grids: GRID_SIDES.iter().map(|&side| Grid::new(side, config, device)).collect(),
            grid_pool: Pool::new(GRID_QUERIES, width, heads, device),
            positions: Mlp::new(token_width, width, width, device),
            pool: Pool::new(POSITION_TOKENS, width, heads, device),
            absent: table(3, width, device),
            places: table(MEMORY, width, device),
            layers: (0..config.encoder_layers).map(layer).collect(),
            norm: norm(width, device),
        }
    }

    /// The tokens of some cases, `[cases, MEMORY, width]`, and their means.
    pub(super) fn forward(&self, inputs: &EncoderInputs<B>) -> (Tensor<B, 3>, Tensor<B, 2>) {
        let [cases, _] = inputs.scalars.dims();
        let tokens = |flat: Tensor<B, 2>, count: usize| {
            let [_, width] = flat.dims();
            flat.reshape([cases, count, width / count])
        };
        let condition = inputs.scalars.clone().slice([0..cases, Features::COUNT..SCALARS]);
        let features = inputs.scalars.clone().slice([0..cases, 0..Features::COUNT]);
        let condition = tokens(self.condition.forward(condition), CONDITION_TOKENS);
        let features = tokens(self.features.forward(features), FEATURE_TOKENS);
        let mut first = 0;
        let grids = self.grids.iter().map(|grid| {
            let cells = first..first + grid.side * grid.side;
            first = cells.end;
            grid.forward(inputs.grids.clone().slice([0..cases, cells]), &self.grid_pool)
        });
        let grids = Tensor::cat(grids.collect(), 1);
        let positions = self.positions.forward(inputs.positions.clone());
        let positions = self.pool.forward(positions, Some(inputs.position_bias.clone()));
        let known =
            [features, grids, positions].into_iter().enumerate().map(|(modality, tokens)| {
                let present = inputs.present.clone().slice([0..cases, modality..modality + 1]);
                let present = present.unsqueeze_dim::<3>(2);
                let absent = self.absent.val().narrow(0, modality, 1).unsqueeze_dim::<3>(0);
                tokens * present.clone() + absent * (present.neg() + 1.0)
            });
        let all = Tensor::cat(std::iter::once(condition).chain(known).collect(), 1);
        let mut x = all + self.places.val().unsqueeze_dim::<3>(0);
        for layer in &self.layers {
            x = layer.forward(x);
        }
        let x = self.norm.forward(x);
        let summary = x.clone().mean_dim(1).squeeze_dim::<2>(1);
        (x, summary)
    }
}

impl<B: Backend> Grid<B> {
    fn new(side: usize, config: &NetworkConfig, device: &B::Device) -> Self {
        let (width, patch) = (config.width, side / PATCHES);
        Self {
            patch: linear(patch * patch, width, device),
            mix: Mlp::new(width, width, width, device),
            places: table(PATCHES * PATCHES, width, device),
            side,
        }
    }

    /// `[cases, GRID_QUERIES + 1, width]` of the cells, `[cases, side²]`.
    fn forward(&self, cells: Tensor<B, 2>, pool: &Pool<B>) -> Tensor<B, 3> {
        let [cases, _] = cells.dims();
        let patch = self.side / PATCHES;
        let patches = cells.reshape([cases, PATCHES, patch, PATCHES, patch]).swap_dims(2, 3);
        let patches = patches.reshape([cases, PATCHES * PATCHES, patch * patch]);
        let placed = self.patch.forward(patches) + self.places.val().unsqueeze_dim::<3>(0);
        let mixed = placed.clone() + self.mix.forward(placed);
        let mean = mixed.clone().mean_dim(1);
        Tensor::cat(vec![pool.forward(mixed, None), mean], 1)
    }
}

impl<B: Backend> EncoderLayer<B> {
    fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let normed = self.norm.forward(x.clone());
        let to = self.attention.key_values(normed.clone());
        self.feed_forward.forward(x + self.attention.attend(normed, &to, None))
    }
}
