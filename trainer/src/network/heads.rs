//! What a network says of the programs that it reads, each by a head of its own: next tokens,
//! speeds within reach, validity, rewards, terms, resources, and speeds.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use burn::tensor::activation::gelu;
use burn::tensor::backend::Backend;
use sparserl_core::language::Token;
use sparserl_onnx_models::terms::{ProgramTerms, TERMS};

use super::attention::{Mlp, linear};
use super::{ENSEMBLE, NetworkConfig};
use crate::compiled::RESOURCES;
use sparserl_onnx_models::speeds::REGIMES;

/// What a network says at each position of some programs: of the program that the position's tokens
/// begin, `[cases, programs, positions, …]`.
#[derive(Clone, Debug)]
pub struct PositionPredictions<B: Backend> {
    /// Logits of the next token, one for each of the vocabulary.
    pub logits: Tensor<B, 4>,
    /// log2 of the highest relative speed within reach, for each of [`REGIMES`].
    pub reach: Tensor<B, 4>,
    /// Logit that what comes of it is right and legal: one number.
    pub validity: Tensor<B, 4>,
    /// The reward that is expected: one number.
    pub critic: Tensor<B, 4>,
}

/// log2 of the speeds of finished programs relative to the reference: `[cases, programs, ENSEMBLE,
/// REGIMES]`.
pub type Speeds<B> = Tensor<B, 4>;

/// What is said of programs.
#[derive(Module, Debug)]
pub(super) struct Heads<B: Backend> {
    tokens: Linear<B>,
    reach: Mlp<B>,
    validity: Linear<B>,
    critic: Mlp<B>,
    terms: Linear<B>,
    speeds: Vec<SpeedHead<B>>,
    resources: Linear<B>,
}

/// A member of the ensemble: what has to be added to the cost model's prediction.
#[derive(Module, Debug)]
struct SpeedHead<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
    /// Begins as zero.
    correction: Linear<B>,
}

impl<B: Backend> Heads<B> {
    pub(super) fn new(config: &NetworkConfig, device: &B::Device) -> Self {
        let (width, hidden) = (config.width, config.speed_width);
        let speed = |_| SpeedHead {
            first: linear(2 * width + TERMS, hidden, device),
            second: linear(hidden, hidden, device),
            correction: linear(hidden, REGIMES.len(), device),
        };
        Self {
            tokens: linear(width, Token::VOCABULARY, device),
            reach: Mlp::new(width, width, REGIMES.len(), device),
            validity: linear(width, 1, device),
            critic: Mlp::new(width, width, 1, device),
            terms: linear(width, TERMS, device),
            speeds: (0..ENSEMBLE).map(speed).collect(),
            resources: linear(width, RESOURCES, device),
        }
    }

    pub(super) fn predict(&self, hidden: Tensor<B, 4>) -> PositionPredictions<B> {
        PositionPredictions {
            logits: self.tokens.forward(hidden.clone()),
            reach: self.reach.forward(hidden.clone()),
            validity: self.validity.forward(hidden.clone()),
            critic: self.critic(hidden),
        }
    }

    pub(super) fn critic(&self, hidden: Tensor<B, 4>) -> Tensor<B, 4> {
        self.critic.forward(hidden)
    }

    pub(super) fn guess_terms(&self, last: Tensor<B, 3>) -> Tensor<B, 3> {
        self.terms.forward(last)
    }

    pub(super) fn guess_resources(&self, last: Tensor<B, 3>) -> Tensor<B, 3> {
        self.resources.forward(last)
    }

    pub(super) fn speeds(
        &self,
        last: Tensor<B, 3>,
        summary: Tensor<B, 2>,
        terms: Tensor<B, 3>,
    ) -> Speeds<B> {
        let [cases, programs, width] = last.dims();
        let predicted = ProgramTerms::PREDICTED;
        let predicted = terms.clone().slice([0..cases, 0..programs, predicted..predicted + 1]);
        let summary = summary.unsqueeze_dim::<3>(1).expand([cases, programs, width]);
        let known = Tensor::cat(vec![last, summary, terms], 2);
        let members = self.speeds.iter().map(|head| {
            let hidden = gelu(head.first.forward(known.clone()));
            let hidden = gelu(head.second.forward(hidden));
            head.correction.forward(hidden) + predicted.clone()
        });
        Tensor::stack(members.collect(), 2)
    }
}
