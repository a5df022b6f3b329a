//! The losses of supervised training: imitation, guessed terms and resources, speeds and their
//! order, and validity.

use burn::tensor::Tensor;
use burn::tensor::activation::{log_sigmoid, log_softmax};
use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};
use sparserl_core::language::Token;
use sparserl_onnx_models::terms::TERMS;

use super::attention::MASKED;
use super::batch::DeviceBatch;
use super::{Cache, ENSEMBLE, Network};
use crate::compiled::RESOURCES;
use sparserl_onnx_models::speeds::REGIMES;

/// How much each of the losses counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossWeights {
    /// Cross-entropy of the next token, over the whole vocabulary.
    pub imitation: f64,
    /// Huber loss of guessed terms.
    pub terms: f64,
    /// Huber loss of guessed resource usage.
    pub resources: f64,
    /// Huber loss of the speed within reach.
    pub reach: f64,
    /// Cross-entropy of right and legal against not.
    pub validity: f64,
    /// Huber loss of the ensemble's speeds.
    pub speed: f64,
    /// Cross-entropy of the order of speeds within a case.
    pub ranking: f64,
}

impl LossWeights {
    /// All of them, in the order of the losses.
    fn numbers(&self) -> [f64; 7] {
        [
            self.imitation,
            self.terms,
            self.resources,
            self.reach,
            self.validity,
            self.speed,
            self.ranking,
        ]
    }

    /// What means nothing in a configuration, if anything.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        let numbers = self.numbers();
        let right = numbers.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        (!right || numbers.iter().all(|weight| *weight == 0.0)).then_some(
            "`weights` must be finite and not negative, and at least one of them positive",
        )
    }
}

/// The losses of a batch, each a mean over what it is about; 0 where there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// The sum of all others, by their weights.
    pub total: f32,
    /// Cross-entropy of the tokens that are imitated, in nats a token.
    pub imitation: f32,
    /// Loss of the guessed terms.
    pub terms: f32,
    /// Loss of the guessed resource usage.
    pub resources: f32,
    /// Loss of the speed within reach.
    pub reach: f32,
    /// Nats a position.
    pub validity: f32,
    /// Huber loss of the ensemble's speeds.
    pub speed: f32,
    /// Nats that the predicted order lacks of the measured one.
    pub ranking: f32,
}

impl Losses {
    const COUNT: usize = 8;

    /// The mean of each; NaN of none.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f32| all.iter().map(of).sum::<f32>() / all.len() as f32;
        Self {
            total: mean(|losses| losses.total),
            imitation: mean(|losses| losses.imitation),
            terms: mean(|losses| losses.terms),
            resources: mean(|losses| losses.resources),
            reach: mean(|losses| losses.reach),
            validity: mean(|losses| losses.validity),
            speed: mean(|losses| losses.speed),
            ranking: mean(|losses| losses.ranking),
        }
    }

    pub(super) fn from_numbers(numbers: &[f32]) -> Self {
        let at = |place: usize| numbers.get(place).copied().unwrap_or(f32::NAN);
        Self {
            total: at(0),
            imitation: at(1),
            terms: at(2),
            resources: at(3),
            reach: at(4),
            validity: at(5),
            speed: at(6),
            ranking: at(7),
        }
    }
}

/// Errors up to this many doublings of speed count by their square, larger ones linearly.
const HUBER: f64 = 0.5;
/// Doublings of speed by which a program has to lead to be e times as likely the best: a softmax
/// over the programs of a case is compared, as in ListNet (Cao et al., Learning to Rank: From
/// Pairwise Approach to Listwise Approach, 2007).
const RANKING_TEMPERATURE: f64 = 0.1;

/// The weighted sum of the losses, and [`Losses::COUNT`] numbers: this sum and all of them.
pub(super) fn losses<B: Backend>(
    network: &Network<B>,
    batch: DeviceBatch<B>,
    weights: &LossWeights,
) -> (Tensor<B, 1>, Tensor<B, 1>) {
    let memory = network.read(&batch.inputs);
    let hidden = network.advance(batch.tokens, &memory, &mut Cache::empty());
    let [cases, programs, _, width] = hidden.dims();
    let last = (hidden.clone() * batch.last).sum_dim(2).reshape([cases, programs, width]);
    let said = network.predict(hidden);

    let logs = log_softmax(said.logits, 3);
    debug_assert_eq!(logs.dims()[3], Token::VOCABULARY);
    let imitation = logs.gather(3, batch.next).neg().squeeze_dim::<3>(3);
    let imitation = mean(imitation, batch.imitate);

    let guessed = huber(network.guess_terms(last.clone()) - batch.terms.clone());
    let has_terms = batch.has_terms.expand([cases, programs, TERMS]);
    let terms = mean(guessed, has_terms);

    let guessed = huber(network.guess_resources(last.clone()) - batch.resources);
    let has_resources = batch.has_resources.expand([cases, programs, RESOURCES]);
    let resources = mean(guessed, has_resources);

    let reach = mean(huber(said.reach - batch.reach), batch.has_reach);

    let logit = said.validity;
    let right = log_sigmoid(logit.clone()) * batch.valid.clone();
    let wrong = log_sigmoid(logit.neg()) * (batch.valid.neg() + 1.0);
    let validity = mean((right + wrong).neg(), batch.has_valid);

    let speeds = network.speeds(last, &memory, batch.terms);
    let shape = [cases, programs, ENSEMBLE, REGIMES.len()];
    let (measured, known) = (batch.speeds.expand(shape), batch.has_speed.expand(shape));
    let speed = mean(
        huber(speeds.clone() - measured.clone()),
        known.clone() * batch.members.clone().expand(shape),
    );
    let ranking = ranking(speeds, measured, known, batch.members);

    let all = [imitation, terms, resources, reach, validity, speed, ranking];
    let of = weights.numbers();
    let weighted = all.iter().zip(of).map(|(loss, weight)| loss.clone() * weight);
    // What has no weight is computed for the log only, and has no gradient.
    let total = weighted
        .zip(of)
        .filter(|(_, weight)| *weight != 0.0)
        .map(|(loss, _)| loss)
        .reduce(|sum, loss| sum + loss)
        .unwrap_or_else(|| all[0].clone() * 0.0);
    let numbers = std::iter::once(total.clone()).chain(all).collect::<Vec<_>>();
    debug_assert_eq!(numbers.len(), Losses::COUNT);
    (total, Tensor::cat(numbers, 0))
}

/// How far the softmax of predicted speeds is from that of measured ones, over the programs of each
/// case: the Kullback–Leibler divergence, mean over cases, members and regimes with any. A case
/// counts for a member as much as the program of it that counts most.
fn ranking<B: Backend>(
    predicted: Tensor<B, 4>,
    measured: Tensor<B, 4>,
    known: Tensor<B, 4>,
    members: Tensor<B, 4>,
) -> Tensor<B, 1> {
    let bias = (known.clone() - 1.0) * -f64::from(MASKED);
    let logs = |speeds: Tensor<B, 4>| {
        log_softmax(speeds / RANKING_TEMPERATURE * known.clone() + bias.clone(), 1)
    };
    let (predicted, measured) = (logs(predicted), logs(measured));
    let divergence = (measured.clone().exp() * (measured - predicted) * known.clone()).sum_dim(1);
    mean(divergence, known.max_dim(1) * members.max_dim(1))
}

fn huber<B: Backend, const D: usize>(error: Tensor<B, D>) -> Tensor<B, D> {
    let size = error.abs();
    let inside = size.clone().clamp_max(HUBER);
    inside.clone() * (size - inside * 0.5)
}

/// The weighted mean; 0 when all weights are 0.
pub(super) fn mean<B: Backend, const D: usize>(
    of: Tensor<B, D>,
    weights: Tensor<B, D>,
) -> Tensor<B, 1> {
    (of * weights.clone()).sum() / weights.sum().clamp_min(1e-6)
}
