//! The policy network: reads a matrix, a task and a GPU, writes programs token by token, and says
//! how fast finished ones are.
//!
//! ```text
//! scalars ──► tokens ─┐                        ┌─► next token, reach, validity, critic
//! grids ────► tokens ─┼─► Encoder ─► Memory ─► Decoder (causal, key–value cache)
//! positions ► tokens ─┘                 └──────┴─► + terms ─► ensemble of speeds
//! ```
//!
//! burn stays behind this module: whoever trains gives a [`Batch`] of plain numbers to a
//! [`Learner`], whoever decodes a [`Network`] its inputs.

mod attention;
mod batch;
mod decoder;
mod device;
mod encoder;
mod file;
mod heads;
mod learner;
mod loss;
mod optimizer;
mod parameters;
mod policy;
mod policy_gradient;
mod rollouts;
#[cfg(test)]
mod tests;

use burn::module::Module;
use burn::tensor::{Int, Tensor};
use serde::{Deserialize, Serialize};
use sparserl_core::structure::{EmbeddingConfig, IndexScaling};
use sparserl_onnx_models::inputs::Inputs;
use sparserl_onnx_models::programs::{BEGIN, most_tokens};
use sparserl_onnx_models::speeds::ENSEMBLE;

pub use burn::tensor::backend::{AutodiffBackend, Backend};

pub use batch::{Batch, EncoderInputs, Modalities, Row};
pub use decoder::Cache;
pub use device::{Compute, DeviceError, OnDevice, Processor, on_device};
pub use encoder::Memory;
pub(crate) use encoder::{MEMORY, PATCHES};
pub use file::{ModelError, ModelFile};
pub use heads::{PositionPredictions, Speeds};
pub use learner::{Evaluated, Learner};
pub use loss::{LossWeights, Losses};
pub use optimizer::{AdamW, OptimizerConfig};
pub use parameters::Parameter;
pub use policy::NetworkPolicy;
pub use policy_gradient::{Improvement, Objective, PolicyLosses, Surrogate};
pub use rollouts::{Assessed, RolloutBatch, RolloutRow, RolloutStep};

use decoder::Decoder;
use encoder::Encoder;
use heads::Heads;

/// Sizes of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Width of every token, a multiple of `heads`.
    pub width: usize,
    /// Heads of every attention.
    pub heads: usize,
    /// Layers over what is known of the matrix.
    pub encoder_layers: usize,
    /// Layers over the tokens of a program.
    pub decoder_layers: usize,
    /// Hidden width of the members of the ensemble.
    pub speed_width: usize,
    /// How positions of nonzeros are embedded.
    pub positions: IndexScaling,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            width: 128,
            heads: 4,
            encoder_layers: 2,
            decoder_layers: 2,
            speed_width: 128,
            positions: IndexScaling::Scaled,
        }
    }
}

/// Sizes that form no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no network has width {width} with {heads} heads: expected a width from 1 to 4096 that is a \
     multiple of the heads, and at most 64 layers"
)]
pub struct ConfigError {
    width: usize,
    heads: usize,
}

impl NetworkConfig {
    /// The sizes, if they form a network.
    ///
    /// # Errors
    /// When the width is not a multiple of the heads, or something is 0 or beyond all reason.
    pub fn check(self) -> Result<Self, ConfigError> {
        let Self { width, heads, encoder_layers, decoder_layers, speed_width, .. } = self;
        let sizes = (1..=4096).contains(&width) && (1..=4096).contains(&speed_width);
        let layers = encoder_layers <= 64 && decoder_layers <= 64;
        match sizes && layers && heads > 0 && width.is_multiple_of(heads) {
            true => Ok(self),
            false => Err(ConfigError { width, heads }),
        }
    }

    /// How nonzeros are embedded for this network.
    #[must_use]
    pub fn embedding(&self) -> EmbeddingConfig {
        EmbeddingConfig { scaling: self.positions, ..EmbeddingConfig::default() }
    }
}

/// The network; its parameters are those of one backend.
#[derive(Module, Debug)]
pub struct Network<B: Backend> {
    encoder: Encoder<B>,
    decoder: Decoder<B>,
    heads: Heads<B>,
}

impl<B: Backend> Network<B> {
    /// A network whose parameters are drawn: the same for the same seed, on every backend. Its
    /// speeds are those of the cost model until it has learned something.
    #[must_use]
    pub fn new(config: &NetworkConfig, device: &B::Device, seed: u64) -> Self {
        let network = Self {
            encoder: Encoder::new(config, device),
            decoder: Decoder::new(config, most_tokens() + 1, device),
            heads: Heads::new(config, device),
        };
        parameters::initialise(network, seed)
    }

    /// Reads cases: what it remembers of them serves any number of programs.
    #[must_use]
    pub fn read(&self, inputs: &EncoderInputs<B>) -> Memory<B> {
        let (tokens, summary) = self.encoder.forward(inputs);
        self.decoder.remember(&tokens, summary)
    }

    /// Reads one case, of which the network is shown `modalities`: see [`Network::read`].
    #[must_use]
    pub fn read_one(
        &self,
        inputs: &Inputs,
        modalities: Modalities,
        device: &B::Device,
    ) -> Memory<B> {
        self.read(&EncoderInputs::new(&[(inputs, modalities)], device))
    }

    /// What the network holds of programs after each of some further tokens.
    ///
    /// `tokens` are ids `[cases, programs, positions]`, of which the first is [`BEGIN`] when the
    /// cache is empty; `cache` has what came before of the same programs, and is continued. The
    /// whole of a program at once or token by token gives the same. Programs are at most
    /// [`most_tokens`] long.
    #[must_use]
    pub fn advance(
        &self,
        tokens: Tensor<B, 3, Int>,
        memory: &Memory<B>,
        cache: &mut Cache<B>,
    ) -> Tensor<B, 4> {
        self.decoder.advance(tokens, memory, cache)
    }

    /// What it says at each position, from [`Network::advance`].
    #[must_use]
    pub fn predict(&self, hidden: Tensor<B, 4>) -> PositionPredictions<B> {
        self.heads.predict(hidden)
    }

    /// Speeds of finished programs: `last` is what [`Network::advance`] gave after their last
    /// token, `[cases, programs, width]`, `terms` are `[cases, programs, TERMS]`.
    #[must_use]
    pub fn speeds(&self, last: Tensor<B, 3>, memory: &Memory<B>, terms: Tensor<B, 3>) -> Speeds<B> {
        self.heads.speeds(last, memory.summary(), terms)
    }

    /// Guesses of the terms of finished programs, as [`Network::speeds`] takes them.
    #[must_use]
    pub fn guess_terms(&self, last: Tensor<B, 3>) -> Tensor<B, 3> {
        self.heads.guess_terms(last)
    }

    /// Guesses of the resource usage of finished programs: `[cases, programs, RESOURCES]`, of
    /// `last` as [`Network::speeds`] takes it.
    #[must_use]
    pub fn guess_resources(&self, last: Tensor<B, 3>) -> Tensor<B, 3> {
        self.heads.guess_resources(last)
    }

    /// Replaces the numbers of parameters that are given, by name; others stay.
    #[must_use]
    pub fn with_parameters(self, given: &[Parameter]) -> Self {
        parameters::set(self, given)
    }

    /// All parameters by name, in a fixed order.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        parameters::list(self)
    }
}
