//! Programs that a policy wrote, with all that is to be learned from their tokens, as tensors.

use burn::tensor::activation::log_softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};
use sparserl_core::language::Token;
use sparserl_onnx_models::inputs::Inputs;

use super::attention::MASKED;
use super::batch::{floats, positions_of};
use super::parameters::numbers;
use super::{BEGIN, Cache, EncoderInputs, Modalities, Network};

/// Cases with programs that a policy wrote, as many of each, in the order of the cases.
#[derive(Clone, Debug)]
pub struct RolloutBatch {
    /// What the encoder is given of each case.
    pub cases: Vec<(Inputs, Modalities)>,
    /// The programs of all cases.
    pub rows: Vec<RolloutRow>,
}

/// A program as it was written. One without steps is not learned from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutRow {
    /// Its tokens, in order.
    pub steps: Vec<RolloutStep>,
}

/// A token that was written, and what is to be learned from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutStep {
    /// Its id.
    pub token: u8,
    /// Ids of the tokens that were offered: the distribution is over these alone. With fewer than
    /// two there was no choice, and only the critic learns something.
    pub legal: Vec<u8>,
    /// Whether the entropy of the choice is worth something.
    pub structural: bool,
    /// Log-probability of the token when it was written.
    pub log_probability: f32,
    /// What the critic expected then, before the token.
    pub value: f32,
    /// How much the token was better than what else would have been written; for
    /// [`Surrogate::Likelihood`](super::Surrogate) how much it is imitated.
    pub advantage: f32,
    /// What the critic should have expected.
    pub target: f32,
    /// Log-probabilities that the reference policy gives to `legal`.
    pub reference: Vec<f32>,
}

/// What a network says of a token that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessed {
    /// Log-probabilities of the tokens that were offered, in their order.
    pub log_probabilities: Vec<f32>,
    /// What the critic expects before the token.
    pub value: f32,
}

/// A batch on a device; of its `L` positions the first is the beginning.
pub(super) struct DeviceRollouts<B: Backend> {
    pub(super) inputs: EncoderInputs<B>,
    /// `[cases, programs, L]`, from [`BEGIN`] on.
    pub(super) tokens: Tensor<B, 3, Int>,
    /// `[cases, programs, L, 1]`: the token after each position.
    pub(super) next: Tensor<B, 4, Int>,
    /// `[cases, programs, L, VOCABULARY]`: 0 for what is offered.
    pub(super) bias: Tensor<B, 4>,
    /// `[cases, programs, L]`: 1 where a token was written; where it was chosen among several; and
    /// where that is structural.
    pub(super) written: Tensor<B, 3>,
    pub(super) chosen: Tensor<B, 3>,
    pub(super) structural: Tensor<B, 3>,
    /// `[cases, programs, L]`, as in [`RolloutStep`].
    pub(super) log_probability: Tensor<B, 3>,
    pub(super) value: Tensor<B, 3>,
    pub(super) advantage: Tensor<B, 3>,
    pub(super) target: Tensor<B, 3>,
    /// `[cases, programs, L, VOCABULARY]`.
    pub(super) reference: Tensor<B, 4>,
}

impl RolloutBatch {
    /// Programs of each case.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.rows.len() / self.cases.len().max(1)
    }

    pub(super) fn positions(&self) -> usize {
        positions_of(self.rows.iter().map(|row| row.steps.len()))
    }

    pub(super) fn on<B: Backend>(&self, device: &B::Device) -> DeviceRollouts<B> {
        let cases: Vec<_> = self.cases.iter().map(|(inputs, shown)| (inputs, *shown)).collect();
        let length = self.positions();
        let nothing = RolloutStep::default();
        let places = self.rows.iter().flat_map(|row| (0..length).map(move |at| (row, at)));
        let places: Vec<(Option<&RolloutStep>, Option<&RolloutStep>)> = places
            .map(|(row, at)| {
                (at.checked_sub(1).and_then(|at| row.steps.get(at)), row.steps.get(at))
            })
            .collect();
        // What follows the end does not matter: nothing before looks at it.
        let id = |step: Option<&RolloutStep>| step.map_or(0, |step| i32::from(step.token));
        let before =
            |at: usize, step| if at.is_multiple_of(length) { BEGIN as i32 } else { id(step) };
        let tokens = places.iter().enumerate().map(|(at, (step, _))| before(at, *step)).collect();
        let next = places.iter().map(|(_, step)| id(*step)).collect();
        let (mut bias, mut reference) = (Vec::new(), Vec::new());
        for step in places.iter().map(|(_, step)| step.unwrap_or(&nothing)) {
            let first = bias.len();
            // Where nothing was written, anything might have been.
            let otherwise = if step.legal.is_empty() { 0.0 } else { MASKED };
            bias.resize(first + Token::VOCABULARY, otherwise);
            reference.resize(first + Token::VOCABULARY, MASKED);
            for (place, &id) in step.legal.iter().enumerate() {
                bias[first + usize::from(id)] = 0.0;
                reference[first + usize::from(id)] =
                    step.reference.get(place).copied().unwrap_or(MASKED).max(MASKED);
            }
        }
        let three = [self.cases.len(), self.programs(), length];
        let four = |last: usize| [three[0], three[1], three[2], last];
        let number = |of: fn(&RolloutStep) -> f32| {
            let steps = places.iter().map(|(_, step)| step.map_or(0.0, of));
            floats(steps.collect(), three, device)
        };
        let one = |known: bool| f32::from(u8::from(known));
        let flag = |of: fn(&RolloutStep) -> bool| {
            let steps = places.iter().map(|(_, step)| one(step.is_some_and(of)));
            floats(steps.collect(), three, device)
        };
        let ids = |ids: Vec<i32>| TensorData::new(ids, three);
        DeviceRollouts {
            inputs: EncoderInputs::new(&cases, device),
            tokens: Tensor::from_data(ids(tokens), device),
            next: Tensor::<B, 3, Int>::from_data(ids(next), device).unsqueeze_dim(3),
            bias: floats(bias, four(Token::VOCABULARY), device),
            written: flag(|_| true),
            chosen: flag(|step| step.legal.len() > 1),
            structural: flag(|step| step.structural && step.legal.len() > 1),
            log_probability: number(|step| step.log_probability),
            value: number(|step| step.value),
            advantage: number(|step| step.advantage),
            target: number(|step| step.target),
            reference: floats(reference, four(Token::VOCABULARY), device),
        }
    }

    /// What a network says of the tokens of each row.
    pub(super) fn assess<B: Backend>(
        &self,
        network: &Network<B>,
        device: &B::Device,
    ) -> Vec<Vec<Assessed>> {
        let length = self.positions();
        let batch = self.on::<B>(device);
        let memory = network.read(&batch.inputs);
        let hidden = network.advance(batch.tokens, &memory, &mut Cache::empty());
        let said = network.predict(hidden);
        let logs = numbers(log_softmax(said.logits + batch.bias, 3));
        let values = numbers(said.critic);
        let of_step = |position: usize, step: &RolloutStep| {
            let logs = logs.get(position * Token::VOCABULARY..).unwrap_or_default();
            let log = |&id: &u8| logs.get(usize::from(id)).copied().unwrap_or(f32::NAN);
            Assessed {
                log_probabilities: step.legal.iter().map(log).collect(),
                value: values.get(position).copied().unwrap_or(f32::NAN),
            }
        };
        let rows = self.rows.iter().enumerate();
        let of_row = |(row, steps): (usize, &RolloutRow)| {
            let steps = steps.steps.iter().enumerate();
            steps.map(|(at, step)| of_step(row * length + at, step)).collect()
        };
        rows.map(of_row).collect()
    }
}
