//! The loss of policy gradients: a surrogate with a clip, the critic's error, the entropy, the
//! divergence from a reference policy, and what tokens are given that were not offered.

use burn::module::AutodiffModule;
use burn::tensor::activation::log_softmax;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use sparserl_core::language::Token;
use sparserl_onnx_models::speeds::REGIMES;

use super::loss::{losses, mean};
use super::parameters::numbers;
use super::rollouts::DeviceRollouts;
use super::{AdamW, Assessed, Batch, Cache, Learner, LossWeights, Losses, Network, RolloutBatch};

/// What a policy is improved by: all of it is minimised together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// What tokens are made likelier by.
    pub surrogate: Surrogate,
    /// How much the critic's error counts; without a critic 0.
    pub value_weight: f64,
    /// What the critic gains by moving further than this from what it expected when the program was
    /// written does not count.
    pub value_clip: f64,
    /// How much the entropy of structural tokens is worth.
    pub entropy_weight: f64,
    /// What a nat of divergence from the reference policy costs.
    pub kl_weight: f64,
    /// What a nat of [`PolicyLosses::illegality`] costs.
    pub illegality_weight: f64,
}

/// What tokens are made likelier by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surrogate {
    /// The advantage times the ratio of probabilities now and then, where the ratio gains nothing
    /// beyond 1 − `low` and 1 + `high` (Schulman et al., Proximal Policy Optimization Algorithms,
    /// 2017, eq. 7; a higher bound above than below: Yu et al., DAPO, 2025, eq. 10).
    Clipped {
        /// How far it may fall.
        low: f64,
        /// How far it may rise.
        high: f64,
    },
    /// The log-probability times the advantage: imitation of what has one.
    Likelihood,
}

/// What a policy is improved by, each a mean over tokens of all programs alike (Yu et al., 2025,
/// §3.3); 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyLosses {
    /// All by their weights.
    pub total: f32,
    /// The surrogate, negated; over tokens with alternatives.
    pub policy: f32,
    /// Half of the critic's squared error; over all tokens.
    pub value: f32,
    /// Nats of structural tokens.
    pub entropy: f32,
    /// Nats of a token by which the policy differs from the reference; over tokens with
    /// alternatives.
    pub kl: f32,
    /// Nats by which all tokens that were offered together are less than certain among the whole
    /// vocabulary; over all tokens.
    #[serde(default)]
    pub illegality: f32,
    /// Share of the tokens with alternatives whose ratio is beyond the clip.
    pub clipped: f32,
}

/// What a step found before it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Improvement {
    /// What the policy is improved by.
    pub policy: PolicyLosses,
    /// What is made smaller beside it, if anything.
    pub fit: Option<Losses>,
    /// The norm of the gradient of both.
    pub gradient_norm: f32,
}

impl PolicyLosses {
    const COUNT: usize = 7;

    /// The mean of each; NaN of none.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f32| all.iter().map(of).sum::<f32>() / all.len() as f32;
        Self {
            total: mean(|losses| losses.total),
            policy: mean(|losses| losses.policy),
            value: mean(|losses| losses.value),
            entropy: mean(|losses| losses.entropy),
            kl: mean(|losses| losses.kl),
            illegality: mean(|losses| losses.illegality),
            clipped: mean(|losses| losses.clipped),
        }
    }

    fn from_numbers(numbers: &[f32]) -> Self {
        let at = |place: usize| numbers.get(place).copied().unwrap_or(f32::NAN);
        Self {
            total: at(0),
            policy: at(1),
            value: at(2),
            entropy: at(3),
            kl: at(4),
            illegality: at(5),
            clipped: at(6),
        }
    }
}

/// The sum that is minimised, and [`PolicyLosses::COUNT`] numbers: this sum and all of them.
///
/// Distributions are over what was offered. With π the policy, μ the one that wrote the tokens, ρ
/// the reference, A the advantage, V the critic, V′ what it said then, R its target, and p the
/// policy over the whole vocabulary:
///
/// * policy: −min(r A, clip(r, 1 − low, 1 + high) A), r = π(a) / μ(a); or −A ln π(a);
/// * value: ½ max((V − R)², (V′ + clip(V − V′, −c, c) − R)²), as in the code of Schulman et al.;
/// * entropy: −Σ π ln π;
/// * KL: Σ π ln(π / ρ), exact for each token rather than estimated from the one that was drawn;
/// * illegality: −ln Σ p over what was offered. Nothing else of the objective tells what was not
///   offered from what was: a policy that is improved under a mask forgets what is legal.
pub(super) fn policy_losses<B: Backend>(
    network: &Network<B>,
    batch: DeviceRollouts<B>,
    objective: &Objective,
) -> (Tensor<B, 1>, Tensor<B, 1>) {
    let memory = network.read(&batch.inputs);
    let hidden = network.advance(batch.tokens, &memory, &mut Cache::empty());
    let said = network.predict(hidden);
    let logs = log_softmax(said.logits.clone() + batch.bias, 3);
    debug_assert_eq!(logs.dims()[3], Token::VOCABULARY);
    let chosen = batch.chosen;

    let log = logs.clone().gather(3, batch.next.clone()).squeeze_dim::<3>(3);
    // Of any token that was offered, the two probabilities differ by that of all of these.
    let unmasked = log_softmax(said.logits, 3).gather(3, batch.next).squeeze_dim::<3>(3);
    let illegality = mean(log.clone() - unmasked, batch.written.clone());
    let (gain, clipped) = match objective.surrogate {
        Surrogate::Clipped { low, high } => {
            clipped_gain(log - batch.log_probability, batch.advantage, (low, high))
        }
        Surrogate::Likelihood => {
            let zeros = log.zeros_like();
            (log * batch.advantage, zeros)
        }
    };
    let policy = mean(gain.neg(), chosen.clone());
    let clipped = mean(clipped, chosen.clone());

    let value = said.critic.squeeze_dim::<3>(3);
    let error = clipped_error(value, batch.value, batch.target, objective.value_clip);
    let value = mean(error, batch.written);

    let probabilities = logs.clone().exp();
    let nats = (probabilities.clone() * logs.clone()).sum_dim(3).neg().squeeze_dim::<3>(3);
    let entropy = mean(nats, batch.structural);

    let apart = (probabilities * (logs - batch.reference)).sum_dim(3).squeeze_dim::<3>(3);
    let kl = mean(apart, chosen);

    let weighted = [
        (policy.clone(), 1.0),
        (value.clone(), objective.value_weight),
        (entropy.clone(), -objective.entropy_weight),
        (kl.clone(), objective.kl_weight),
        (illegality.clone(), objective.illegality_weight),
    ];
    // What has no weight is computed for the log only, and has no gradient.
    let total = weighted
        .into_iter()
        .filter(|(_, weight)| *weight != 0.0)
        .map(|(loss, weight)| loss * weight)
        .reduce(|sum, loss| sum + loss)
        .unwrap_or_else(|| policy.clone());
    let all = vec![total.clone(), policy, value, entropy, kl, illegality, clipped];
    debug_assert_eq!(all.len(), PolicyLosses::COUNT);
    (total, Tensor::cat(all, 0))
}

/// min(r A, clip(r, 1 − low, 1 + high) A) by ln r and A; and 1 where r is beyond the clip.
fn clipped_gain<B: Backend, const D: usize>(
    log_ratio: Tensor<B, D>,
    advantage: Tensor<B, D>,
    (low, high): (f64, f64),
) -> (Tensor<B, D>, Tensor<B, D>) {
    // Beyond all reason, the ratio must still be a number.
    let ratio = log_ratio.clamp(-20.0, 20.0).exp();
    let within = ratio.clone().clamp(1.0 - low, 1.0 + high);
    let is_clipped = (ratio.clone() - within.clone()).abs().greater_elem(1e-6).float();
    ((ratio * advantage.clone()).min_pair(within * advantage), is_clipped)
}

/// ½ max((V − R)², (V′ + clip(V − V′, −c, c) − R)²).
fn clipped_error<B: Backend, const D: usize>(
    value: Tensor<B, D>,
    before: Tensor<B, D>,
    target: Tensor<B, D>,
    clip: f64,
) -> Tensor<B, D> {
    let moved = (value.clone() - before.clone()).clamp(-clip, clip);
    let near = (before + moved - target.clone()).square();
    (value - target).square().max_pair(near) * 0.5
}

impl<B: AutodiffBackend> Learner<B> {
    /// What the network, as it is, says of the tokens of each row.
    #[must_use]
    pub fn assess(&self, batch: &RolloutBatch) -> Vec<Vec<Assessed>> {
        batch.assess(&self.network.valid(), &self.device)
    }

    /// Improves the policy by one step, which also makes the losses of a stage smaller on another
    /// batch where one is given. What it found is computed when it is asked for.
    pub fn improve(
        &mut self,
        batch: &RolloutBatch,
        objective: &Objective,
        fit: Option<(&Batch, &LossWeights)>,
        learning_rate: f64,
    ) -> impl FnOnce() -> Improvement + use<B> {
        let (mut total, all) = policy_losses(&self.network, batch.on(&self.device), objective);
        let fit = fit.map(|(batch, weights)| {
            let (more, all) = losses(&self.network, batch.on(&self.device), weights);
            total = total.clone() + more;
            all
        });
        let norm = self.descend(&total, learning_rate);
        move || Improvement {
            policy: PolicyLosses::from_numbers(&numbers(all)),
            fit: fit.map(|all| Losses::from_numbers(&numbers(all))),
            gradient_norm: norm(),
        }
    }

    /// Fits the critic, and nothing else, to what the speeds within reach say: before each token of
    /// the rows it is to expect `reward` of the mean over the regimes of log2 of the highest speed
    /// that the network finds reachable from there. The mean squared error before this step.
    pub fn fit_critic(
        &mut self,
        optimizer: &mut AdamW<B>,
        batch: &RolloutBatch,
        reward: impl Fn(f32) -> f32,
        learning_rate: f64,
    ) -> f32 {
        let plain = self.network.valid();
        let length = batch.positions();
        let on_device = batch.on::<B::InnerBackend>(&self.device);
        let memory = plain.read(&on_device.inputs);
        let hidden = plain.advance(on_device.tokens, &memory, &mut Cache::empty());
        let reach = numbers(plain.predict(hidden.clone()).reach);
        let expected: Vec<f32> = reach
            .chunks(REGIMES.len())
            .map(|speeds| reward(speeds.iter().sum::<f32>() / speeds.len() as f32))
            .collect();
        let shape = [batch.cases.len(), batch.programs(), length];
        let expected = Tensor::from_data(TensorData::new(expected, shape), &self.device);
        let network = self.network.clone();
        // Nothing below the critic has a gradient.
        let said = network.heads.critic(Tensor::from_inner(hidden)).squeeze_dim::<3>(3);
        let error = mean((said - expected).square(), Tensor::from_inner(on_device.written));
        let gradients = error.backward();
        let (network, _) = optimizer.step(network, &gradients, learning_rate);
        self.network = network;
        numbers(error).first().copied().unwrap_or(f32::NAN)
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::Flex;

    use super::*;

    fn tensor<const N: usize>(numbers: [f32; N]) -> Tensor<Flex, 1> {
        Tensor::from_data(numbers, &Default::default())
    }

    #[track_caller]
    fn assert_near(found: Tensor<Flex, 1>, expected: &[f32]) {
        let found = numbers(found);
        let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near && found.len() == expected.len(), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn ratios_gain_nothing_beyond_the_clip_and_lose_all_the_way() {
        let log_ratio = tensor([1.5_f32, 1.5, 0.5, 0.5, 1.1, 0.9].map(f32::ln));
        let advantage = tensor([2.0, -2.0, 2.0, -2.0, 3.0, -1.0]);
        let (gain, clipped) = clipped_gain(log_ratio, advantage, (0.2, 0.28));
        // min(1.5 × 2, 1.28 × 2) = 2.56; min(1.5 × −2, 1.28 × −2) = −3;
        // min(0.5 × 2, 0.8 × 2) = 1; min(0.5 × −2, 0.8 × −2) = −1.6;
        // within the clip 1.1 × 3 = 3.3 and 0.9 × −1 = −0.9.
        assert_near(gain, &[2.56, -3.0, 1.0, -1.6, 3.3, -0.9]);
        assert_near(clipped, &[1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn the_critic_gains_nothing_by_going_further_than_the_clip() {
        let value = tensor([1.0, 1.0, 0.1]);
        let before = tensor([0.0, 0.0, 0.0]);
        let target = tensor([1.0, -1.0, 1.0]);
        // At the target already: it counts as 0.2, ½ × 0.8² = 0.32. On the wrong side: ½ × 2² = 2.
        // Within the clip: ½ × 0.9² = 0.405.
        let error = clipped_error(value, before, target, 0.2);
        assert_near(error, &[0.32, 2.0, 0.405]);
    }
}
