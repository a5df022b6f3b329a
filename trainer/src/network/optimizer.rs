//! AdamW, with a state that outlives the process.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::parameters::{Parameter, ParameterPath, numbers};

/// How parameters follow their gradients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Share of the mean gradient that stays from step to step.
    pub beta_1: f64,
    /// Share of the mean squared gradient that stays.
    pub beta_2: f64,
    /// Added to the root of the mean squared gradient.
    pub epsilon: f64,
    /// Share of the weights that is taken off, times the learning rate; not of biases and norms.
    pub weight_decay: f64,
    /// Gradients are scaled down to this norm, over all parameters.
    pub largest_norm: f64,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.98, epsilon: 1e-8, weight_decay: 0.02, largest_norm: 1.0 }
    }
}

impl OptimizerConfig {
    /// What means nothing in a configuration, if anything.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        if ![self.beta_1, self.beta_2].iter().all(|beta| (0.0..1.0).contains(beta)) {
            return Some("`optimizer.beta_1` and `optimizer.beta_2` must be from 0 to less than 1");
        }
        // Parameters are of single precision: what is 0 there is divided by.
        let is_positive = |number: f64| (number as f32).is_finite() && number as f32 > 0.0;
        if ![self.epsilon, self.largest_norm].into_iter().all(is_positive) {
            return Some(
                "`optimizer.epsilon` and `optimizer.largest_norm` must be positive, also in f32",
            );
        }
        let decay = self.weight_decay;
        (!(decay.is_finite() && decay >= 0.0))
            .then_some("`optimizer.weight_decay` must be finite and must not be negative")
    }
}

/// AdamW (Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019) with gradients
/// clipped by their norm over all parameters.
///
/// burn's own clips each tensor by itself, and names its state by numbers that change from process
/// to process.
#[derive(Clone, Debug)]
pub struct AdamW<B: AutodiffBackend> {
    config: OptimizerConfig,
    steps: u64,
    moments: BTreeMap<String, Moments<B>>,
}

/// Running means of a parameter's gradient and of its square, flattened.
#[derive(Clone, Debug)]
struct Moments<B: AutodiffBackend> {
    first: Tensor<B::InnerBackend, 1>,
    second: Tensor<B::InnerBackend, 1>,
    shape: Vec<usize>,
}

impl<B: AutodiffBackend> AdamW<B> {
    /// One that has made no step.
    #[must_use]
    pub fn new(config: OptimizerConfig) -> Self {
        Self { config, steps: 0, moments: BTreeMap::new() }
    }

    /// Steps made.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The module after a step along its gradients, and their norm before it was clipped.
    pub fn step<M: Module<B>>(
        &mut self,
        module: M,
        gradients: &B::Gradients,
        learning_rate: f64,
    ) -> (M, Option<Tensor<B::InnerBackend, 1>>) {
        let mut squares = Squares { gradients, found: Vec::new() };
        module.visit(&mut squares);
        if squares.found.is_empty() {
            return (module, None);
        }
        let norm = Tensor::cat(squares.found, 0).sum().sqrt();
        let largest = self.config.largest_norm;
        let scale = (norm.clone() + 1e-12).recip().mul_scalar(largest).clamp_max(1.0);
        self.steps += 1;
        let mut update =
            Update { adam: self, gradients, scale, learning_rate, path: ParameterPath::default() };
        (module.map(&mut update), Some(norm))
    }

    /// What has to be kept to go on: the means by the names of their parameters, `first.` and
    /// `second.` before them, in the order of these names.
    #[must_use]
    pub fn state(&self) -> Vec<Parameter> {
        let mut state = Vec::new();
        for (name, moments) in &self.moments {
            for (kind, tensor) in [("first", &moments.first), ("second", &moments.second)] {
                state.push(Parameter {
                    name: format!("{kind}.{name}"),
                    shape: moments.shape.clone(),
                    numbers: numbers(tensor.clone()),
                });
            }
        }
        state.sort_by(|a, b| a.name.cmp(&b.name));
        state
    }

    /// One that goes on from what another kept after so many steps. Names without both means are
    /// left out.
    #[must_use]
    pub fn restore(
        config: OptimizerConfig,
        steps: u64,
        state: &[Parameter],
        device: &B::Device,
    ) -> Self {
        let flat = |parameter: &Parameter| {
            let numbers = parameter.numbers.clone();
            let count = numbers.len();
            Tensor::from_data(TensorData::new(numbers, [count]), device)
        };
        let mut moments = BTreeMap::new();
        for first in state {
            let Some(name) = first.name.strip_prefix("first.") else { continue };
            let second = format!("second.{name}");
            if let Some(second) = state.iter().find(|parameter| parameter.name == second) {
                let (shape, first, second) = (first.shape.clone(), flat(first), flat(second));
                moments.insert(name.to_owned(), Moments { first, second, shape });
            }
        }
        Self { config, steps, moments }
    }
}

/// Sums of the squares of all gradients.
struct Squares<'g, B: AutodiffBackend> {
    gradients: &'g B::Gradients,
    found: Vec<Tensor<B::InnerBackend, 1>>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Squares<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.found.extend(param.val().grad(self.gradients).map(|gradient| gradient.square().sum()));
    }
}

struct Update<'g, B: AutodiffBackend> {
    adam: &'g mut AdamW<B>,
    gradients: &'g B::Gradients,
    scale: Tensor<B::InnerBackend, 1>,
    learning_rate: f64,
    path: ParameterPath,
}

impl<B: AutodiffBackend> ModuleMapper<B> for Update<'_, B> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let tensor = match tensor.grad(self.gradients) {
            Some(gradient) => {
                let updated = self.update(tensor.inner(), gradient);
                Tensor::from_inner(updated).require_grad()
            }
            None => tensor,
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

impl<B: AutodiffBackend> Update<'_, B> {
    fn update<const D: usize>(
        &mut self,
        tensor: Tensor<B::InnerBackend, D>,
        gradient: Tensor<B::InnerBackend, D>,
    ) -> Tensor<B::InnerBackend, D> {
        let OptimizerConfig { beta_1, beta_2, epsilon, weight_decay, .. } = self.adam.config;
        let shape = tensor.dims();
        let gradient = gradient.reshape([-1]) * self.scale.clone();
        let name = self.path.name();
        let (first, second) = match self.adam.moments.remove(&name) {
            Some(moments) => (moments.first, moments.second),
            None => (gradient.zeros_like(), gradient.zeros_like()),
        };
        let first = first * beta_1 + gradient.clone() * (1.0 - beta_1);
        let second = second * beta_2 + gradient.square() * (1.0 - beta_2);
        let steps = self.adam.steps as i32;
        let unbiased = [beta_1, beta_2].map(|beta| 1.0 - beta.powi(steps));
        let direction =
            (first.clone() / unbiased[0]) / ((second.clone() / unbiased[1]).sqrt() + epsilon);
        self.adam.moments.insert(name, Moments { first, second, shape: shape.to_vec() });
        let decay = if D > 1 { weight_decay * self.learning_rate } else { 0.0 };
        tensor * (1.0 - decay) - direction.reshape(shape) * self.learning_rate
    }
}
