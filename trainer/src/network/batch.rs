//! Cases and programs as the tensors that a network is trained on, padded to few shapes.

use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use sparserl_core::structure::DensityGrids;
use sparserl_onnx_models::inputs::{Inputs, SCALARS};
use sparserl_onnx_models::programs::most_tokens;
use sparserl_onnx_models::terms::TERMS;

use super::attention::MASKED;
use super::{BEGIN, ENSEMBLE};
use sparserl_onnx_models::speeds::REGIMES;

use crate::compiled::RESOURCES;

/// Lengths are rounded up to a multiple of this: kernels are chosen for every new shape.
const LENGTHS: usize = 8;
/// Numbers of positions are rounded up to a multiple of this.
const POSITIONS: usize = 64;

/// What of a case a network is shown; the task and the GPU it always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modalities {
    /// The features of the matrix.
    pub features: bool,
    /// Its density grids.
    pub grids: bool,
    /// Positions of nonzeros.
    pub positions: bool,
}

impl Modalities {
    /// Everything.
    pub const ALL: Self = Self { features: true, grids: true, positions: true };
    /// No pictures (ablation).
    pub const SCALARS: Self = Self { features: true, grids: false, positions: false };
}

/// What the encoder is given of some cases.
#[derive(Clone, Debug)]
pub struct EncoderInputs<B: Backend> {
    /// `[cases, SCALARS]`.
    pub(super) scalars: Tensor<B, 2>,
    /// `[cases, DensityGrids::CELLS]`.
    pub(super) grids: Tensor<B, 2>,
    /// `[cases, positions, token width]`, padded with zeros.
    pub(super) positions: Tensor<B, 3>,
    /// `[cases, 1, 1, positions]`: 0 where there is a position.
    pub(super) position_bias: Tensor<B, 4>,
    /// `[cases, 3]`: 1 where features, grids, positions are shown.
    pub(super) present: Tensor<B, 2>,
}

impl<B: Backend> EncoderInputs<B> {
    /// The inputs of some cases, embedded alike.
    #[must_use]
    pub fn new(cases: &[(&Inputs, Modalities)], device: &B::Device) -> Self {
        let count = cases.len();
        let width = cases.first().map_or(1, |(inputs, _)| inputs.config.token_width());
        let most = cases.iter().map(|(inputs, _)| inputs.n_tokens()).max().unwrap_or(0);
        let most = most.max(1).next_multiple_of(POSITIONS);
        let (mut scalars, mut grids) = (Vec::new(), Vec::new());
        let mut positions = Vec::with_capacity(count * most * width);
        let (mut bias, mut present) = (Vec::with_capacity(count * most), Vec::new());
        for (case, (inputs, modalities)) in cases.iter().enumerate() {
            scalars.extend_from_slice(&inputs.scalars);
            grids.extend_from_slice(&inputs.grids);
            positions.extend_from_slice(&inputs.tokens);
            positions.resize((case + 1) * most * width, 0.0);
            bias.resize(bias.len() + inputs.n_tokens(), 0.0);
            bias.resize((case + 1) * most, MASKED);
            let Modalities { features, grids, positions } = *modalities;
            present.extend([features, grids, positions].map(|shown| f32::from(u8::from(shown))));
        }
        Self {
            scalars: floats(scalars, [count, SCALARS], device),
            grids: floats(grids, [count, DensityGrids::CELLS], device),
            positions: floats(positions, [count, most, width], device),
            position_bias: floats(bias, [count, 1, 1, most], device),
            present: floats(present, [count, 3], device),
        }
    }
}

/// Cases with programs to learn from.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What the encoder is given of each case.
    pub cases: Vec<(Inputs, Modalities)>,
    /// The programs of all cases: as many of each, in the order of the cases.
    pub rows: Vec<Row>,
}

/// A program, and what is to be learned from it. What is absent or of weight 0 is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Ids of its tokens.
    pub tokens: Vec<u8>,
    /// Weight of each of its tokens in what is imitated.
    pub imitate: f32,
    /// Its terms.
    pub terms: Option<[f32; TERMS]>,
    /// Its resource usage: see
    /// [`CompiledProgram::resources`](crate::compiled::CompiledProgram::resources).
    pub resources: Option<[f32; RESOURCES]>,
    /// Its relative speeds, which need the terms.
    pub speeds: [Option<f32>; REGIMES.len()],
    /// Weight of its speed for each member of the ensemble.
    pub members: [f32; ENSEMBLE],
    /// The highest relative speeds within reach after each number of its tokens, from none to all;
    /// or nothing.
    pub reach: Vec<[Option<f32>; REGIMES.len()]>,
    /// Whether it is right and legal.
    pub valid: Option<bool>,
}

/// A batch on a device. Of `L` positions the first is the beginning, so the longest program has
/// L − 1 tokens.
pub(super) struct DeviceBatch<B: Backend> {
    pub(super) inputs: EncoderInputs<B>,
    /// `[cases, programs, L]`, from [`BEGIN`] on.
    pub(super) tokens: Tensor<B, 3, Int>,
    /// `[cases, programs, L, 1]`: the token after each position.
    pub(super) next: Tensor<B, 4, Int>,
    /// `[cases, programs, L]`: weight of that token.
    pub(super) imitate: Tensor<B, 3>,
    /// `[cases, programs, L, 1]`: 1 at the last token.
    pub(super) last: Tensor<B, 4>,
    /// `[cases, programs, TERMS]`.
    pub(super) terms: Tensor<B, 3>,
    /// `[cases, programs, 1]`: 1 where there are terms.
    pub(super) has_terms: Tensor<B, 3>,
    /// `[cases, programs, RESOURCES]`.
    pub(super) resources: Tensor<B, 3>,
    /// `[cases, programs, 1]`: 1 where these are known.
    pub(super) has_resources: Tensor<B, 3>,
    /// `[cases, programs, 1, REGIMES]`, and where they are known.
    pub(super) speeds: Tensor<B, 4>,
    pub(super) has_speed: Tensor<B, 4>,
    /// `[cases, programs, ENSEMBLE, 1]`.
    pub(super) members: Tensor<B, 4>,
    /// `[cases, programs, L, REGIMES]`, and where they are known.
    pub(super) reach: Tensor<B, 4>,
    pub(super) has_reach: Tensor<B, 4>,
    /// `[cases, programs, L, 1]`: 1 where the program is valid, and where that is known.
    pub(super) valid: Tensor<B, 4>,
    pub(super) has_valid: Tensor<B, 4>,
}

impl Batch {
    /// Programs of each case.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.rows.len() / self.cases.len().max(1)
    }

    pub(super) fn on<B: Backend>(&self, device: &B::Device) -> DeviceBatch<B> {
        let cases: Vec<_> = self.cases.iter().map(|(inputs, shown)| (inputs, *shown)).collect();
        let length = positions_of(self.rows.iter().map(|row| row.tokens.len()));
        let mut all = Arrays::default();
        for row in &self.rows {
            all.add(row, length);
        }
        let of_row = [self.cases.len(), self.programs()];
        let shape = |rest: [usize; 2]| [of_row[0], of_row[1], rest[0], rest[1]];
        let three = |last: usize| [of_row[0], of_row[1], last];
        let regimes = REGIMES.len();
        DeviceBatch {
            inputs: EncoderInputs::new(&cases, device),
            tokens: Tensor::from_data(TensorData::new(all.tokens, three(length)), device),
            next: Tensor::from_data(TensorData::new(all.next, shape([length, 1])), device),
            imitate: floats(all.imitate, three(length), device),
            last: floats(all.last, shape([length, 1]), device),
            terms: floats(all.terms, three(TERMS), device),
            has_terms: floats(all.has_terms, three(1), device),
            resources: floats(all.resources, three(RESOURCES), device),
            has_resources: floats(all.has_resources, three(1), device),
            speeds: floats(all.speeds, shape([1, regimes]), device),
            has_speed: floats(all.has_speed, shape([1, regimes]), device),
            members: floats(all.members, shape([ENSEMBLE, 1]), device),
            reach: floats(all.reach, shape([length, regimes]), device),
            has_reach: floats(all.has_reach, shape([length, regimes]), device),
            valid: floats(all.valid, shape([length, 1]), device),
            has_valid: floats(all.has_valid, shape([length, 1]), device),
        }
    }
}

/// The numbers of a [`DeviceBatch`].
#[derive(Default)]
struct Arrays {
    tokens: Vec<i32>,
    next: Vec<i32>,
    imitate: Vec<f32>,
    last: Vec<f32>,
    terms: Vec<f32>,
    has_terms: Vec<f32>,
    resources: Vec<f32>,
    has_resources: Vec<f32>,
    speeds: Vec<f32>,
    has_speed: Vec<f32>,
    members: Vec<f32>,
    reach: Vec<f32>,
    has_reach: Vec<f32>,
    valid: Vec<f32>,
    has_valid: Vec<f32>,
}

impl Arrays {
    fn add(&mut self, row: &Row, length: usize) {
        let number = |known: bool| f32::from(u8::from(known));
        for at in 0..length {
            let id = |at: usize| row.tokens.get(at).map(|&id| i32::from(id));
            let before = at.checked_sub(1).map_or(Some(BEGIN as i32), id);
            // What follows the end does not matter: nothing before looks at it.
            self.tokens.push(before.unwrap_or(0));
            self.next.push(id(at).unwrap_or(0));
            let inside = at < row.tokens.len();
            self.imitate.push(if inside { row.imitate } else { 0.0 });
            self.last.push(number(at == row.tokens.len()));
            let reach = row.reach.get(at).copied().unwrap_or_default();
            self.reach.extend(reach.map(Option::unwrap_or_default));
            self.has_reach.extend(reach.map(|reach| number(reach.is_some())));
            let known = row.valid.is_some() && at <= row.tokens.len();
            self.valid.push(number(row.valid == Some(true)));
            self.has_valid.push(number(known));
        }
        self.terms.extend(row.terms.unwrap_or_default());
        self.has_terms.push(number(row.terms.is_some()));
        self.resources.extend(row.resources.unwrap_or_default());
        self.has_resources.push(number(row.resources.is_some()));
        let speeds = row.speeds.map(|speed| speed.filter(|_| row.terms.is_some()));
        self.speeds.extend(speeds.map(Option::unwrap_or_default));
        self.has_speed.extend(speeds.map(|speed| number(speed.is_some())));
        self.members.extend(row.members);
    }
}

/// Positions of a batch of programs of so many tokens: the beginning, and those after each token.
pub(super) fn positions_of(tokens: impl Iterator<Item = usize>) -> usize {
    let longest = tokens.max().unwrap_or(0) + 1;
    // The decoder has no more positions than that.
    longest.next_multiple_of(LENGTHS).min((most_tokens() + 1).max(longest))
}

pub(super) fn floats<B: Backend, const D: usize>(
    numbers: Vec<f32>,
    shape: [usize; D],
    device: &B::Device,
) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(numbers, shape), device)
}
