//! A network together with its optimizer: what the stages train.

use burn::module::{AutodiffModule, Module};
use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;
use sparserl_onnx_models::speeds::REGIMES;

use super::loss::losses;
use super::parameters::numbers;
use super::{
    AdamW, Batch, Cache, LossWeights, Losses, Network, NetworkConfig, OptimizerConfig, Parameter,
};

/// A network that learns.
#[derive(Debug)]
pub struct Learner<B: AutodiffBackend> {
    pub(super) network: Network<B>,
    pub(super) optimizer: AdamW<B>,
    pub(super) device: B::Device,
}

/// What a network says of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The losses.
    pub losses: Losses,
    /// Predicted relative speeds of each row, the mean over the ensemble, by regime.
    pub speeds: Vec<[f32; REGIMES.len()]>,
}

impl<B: AutodiffBackend> Learner<B> {
    /// A network that has learned nothing.
    #[must_use]
    pub fn new(
        config: &NetworkConfig,
        optimizer: OptimizerConfig,
        seed: u64,
        device: B::Device,
    ) -> Self {
        let network = Network::new(config, &device, seed);
        Self { network, optimizer: AdamW::new(optimizer), device }
    }

    /// Replaces the numbers of parameters that are given, by name; others stay.
    #[must_use]
    pub fn with_parameters(mut self, given: &[Parameter]) -> Self {
        self.network = self.network.with_parameters(given);
        self
    }

    /// Goes on as another that had made so many steps and whose optimizer was in this state.
    #[must_use]
    pub fn with_optimizer(
        mut self,
        config: OptimizerConfig,
        steps: u64,
        state: &[Parameter],
    ) -> Self {
        self.optimizer = AdamW::restore(config, steps, state, &self.device);
        self
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network<B> {
        &self.network
    }

    /// The optimizer.
    #[must_use]
    pub fn optimizer(&self) -> &AdamW<B> {
        &self.optimizer
    }

    /// Learns from a batch. What it found is computed when it is asked for: until then nothing has
    /// to wait for the device.
    pub fn learn(
        &mut self,
        batch: &Batch,
        weights: &LossWeights,
        learning_rate: f64,
    ) -> impl FnOnce() -> (Losses, f32) + use<B> {
        let (total, all) = losses(&self.network, batch.on(&self.device), weights);
        let norm = self.descend(&total, learning_rate);
        move || (Losses::from_numbers(&numbers(all)), norm())
    }

    /// One step of the optimizer down the gradients of a loss, whose norm is computed when it is
    /// asked for.
    pub(super) fn descend(
        &mut self,
        loss: &Tensor<B, 1>,
        learning_rate: f64,
    ) -> impl FnOnce() -> f32 + use<B> {
        let gradients = loss.backward();
        let (network, norm) = self.optimizer.step(self.network.clone(), &gradients, learning_rate);
        self.network = network;
        move || norm.map_or(0.0, |norm| numbers(norm).first().copied().unwrap_or(0.0))
    }

    /// What the network, as it is, says of a batch.
    #[must_use]
    pub fn evaluate(&self, batch: &Batch, weights: &LossWeights) -> Evaluated {
        let network = self.network.valid();
        let on_device = batch.on(&self.device);
        let memory = network.read(&on_device.inputs);
        let hidden = network.advance(on_device.tokens.clone(), &memory, &mut Cache::empty());
        let [cases, programs, _, width] = hidden.dims();
        let last = (hidden * on_device.last.clone()).sum_dim(2).reshape([cases, programs, width]);
        let speeds = network.speeds(last, &memory, on_device.terms.clone()).mean_dim(2);
        let speeds = numbers(speeds);
        let (speeds, _) = speeds.as_chunks();
        let speeds = speeds.to_vec();
        let (_, all) = losses(&network, on_device, weights);
        Evaluated { losses: Losses::from_numbers(&numbers(all)), speeds }
    }

    /// Whether all parameters are finite numbers: they are not any more when training diverged.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.network.parameters().iter().all(Parameter::is_finite)
    }

    /// Number of parameters.
    #[must_use]
    pub fn size(&self) -> usize {
        self.network.num_params()
    }
}
