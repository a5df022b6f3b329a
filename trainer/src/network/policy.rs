//! A network as a policy that writes programs, and as a model of their speeds.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use sparserl_core::decode::{
    BatchRow, ConditionedPolicy, Policy, PolicyError, PolicyInput, Prediction,
};
use sparserl_core::language::{Program, Token};
use sparserl_core::structure::IndexScaling;
use sparserl_onnx_models::inputs::Inputs;
use sparserl_onnx_models::programs::{most_tokens, token_ids};
use sparserl_onnx_models::speeds::{ConditionedSpeedModel, MemberSpeeds, REGIMES, SpeedModel};
use sparserl_onnx_models::terms::{ProgramTerms, TERMS};

use super::parameters::numbers;
use super::{
    BEGIN, Backend, Cache, ENSEMBLE, Memory, Modalities, ModelFile, Network, NetworkConfig,
    Parameter,
};

/// A network that writes programs.
#[derive(Debug)]
pub struct NetworkPolicy<B: Backend> {
    network: Arc<Network<B>>,
    config: NetworkConfig,
    modalities: Modalities,
    device: B::Device,
}

/// A network that has read its input.
struct Reading<B: Backend> {
    network: Arc<Network<B>>,
    memory: Memory<B>,
    /// Of the rows of the last batch.
    cache: Cache<B>,
    device: B::Device,
}

/// The same, which knows the terms of programs too.
struct RatedReading<'m, B: Backend> {
    reading: Reading<B>,
    terms: ProgramTerms<'m>,
}

/// What a network can be asked for that it cannot give.
#[derive(Debug, thiserror::Error)]
enum NetworkError {
    /// The prefix is longer than any program.
    #[error("a prefix of {0} tokens is longer than any program")]
    Length(usize),
    /// Rows of one batch that are not equally long, or not longer than those before.
    #[error("the prefixes of a batch are not equally long, or do not go on")]
    Lengths,
    /// The tensors hold something else than numbers.
    #[error("the network gave {found} numbers instead of {expected}")]
    Numbers { found: usize, expected: usize },
}

impl From<NetworkError> for PolicyError {
    fn from(error: NetworkError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl<B: Backend> NetworkPolicy<B> {
    /// The network of a file, which is shown some modalities of its inputs.
    #[must_use]
    pub fn new(file: &ModelFile, modalities: Modalities, device: B::Device) -> Self {
        Self::with(&file.parameters, &file.config, modalities, device)
    }

    /// A network with these parameters and of these sizes.
    #[must_use]
    pub fn with(
        parameters: &[Parameter],
        config: &NetworkConfig,
        modalities: Modalities,
        device: B::Device,
    ) -> Self {
        let network = Network::new(config, &device, 0).with_parameters(parameters);
        Self { network: Arc::new(network), config: config.clone(), modalities, device }
    }

    /// Reads a case whose inputs are known already: see [`Policy::read`].
    #[must_use]
    pub fn read_inputs(&self, inputs: &Inputs) -> Box<dyn ConditionedPolicy> {
        Box::new(self.reading(inputs))
    }

    /// How this network is given the positions of nonzeros.
    #[must_use]
    pub fn scaling(&self) -> IndexScaling {
        self.config.positions
    }

    /// Predicts the speeds of programs whose ids of tokens and terms are known already, as the
    /// inputs are: see [`ConditionedSpeedModel::speeds`].
    ///
    /// # Errors
    /// When a program is longer than any of today.
    pub fn speeds_of(
        &self,
        inputs: &Inputs,
        programs: &[(Vec<u8>, [f32; TERMS])],
    ) -> Result<Vec<MemberSpeeds>, PolicyError> {
        self.reading(inputs).speeds_of(programs)
    }

    fn reading(&self, inputs: &Inputs) -> Reading<B> {
        Reading {
            network: Arc::clone(&self.network),
            memory: self.network.read_one(inputs, self.modalities, &self.device),
            cache: Cache::empty(),
            device: self.device.clone(),
        }
    }
}

impl<B: Backend> Reading<B> {
    fn speeds_of(
        &self,
        programs: &[(Vec<u8>, [f32; TERMS])],
    ) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let longest = programs.iter().map(|(ids, _)| ids.len()).max().unwrap_or(0);
        if longest > most_tokens() {
            return Err(NetworkError::Length(longest).into());
        }
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let length = longest + 1;
        let (mut ids, mut ends) = (Vec::new(), Vec::new());
        let mut all_terms: Vec<f32> = Vec::new();
        for (row, (tokens, terms)) in programs.iter().enumerate() {
            ids.push(BEGIN as i32);
            ids.extend(tokens.iter().map(|&id| i32::from(id)));
            // What follows the end does not matter: nothing before looks at it.
            ids.resize((row + 1) * length, 0);
            ends.push((row * length + tokens.len()) as i32);
            all_terms.extend(terms);
        }
        let count = programs.len();
        let ids: Tensor<B, 3, Int> =
            Tensor::from_data(TensorData::new(ids, [1, count, length]), &self.device);
        let hidden = self.network.advance(ids, &self.memory, &mut Cache::empty());
        let [_, _, _, width] = hidden.dims();
        let ends = Tensor::from_data(TensorData::new(ends, [count]), &self.device);
        let last = hidden.reshape([count * length, width]).select(0, ends);
        let terms = TensorData::new(all_terms, [1, count, TERMS]);
        let terms = Tensor::from_data(terms, &self.device);
        let speeds = self.network.speeds(last.reshape([1, count, width]), &self.memory, terms);
        let found = numbers(speeds);
        let expected = count * ENSEMBLE * REGIMES.len();
        if found.len() != expected {
            return Err(NetworkError::Numbers { found: found.len(), expected }.into());
        }
        let at = |row: usize, member: usize, regime: usize| {
            found[(row * ENSEMBLE + member) * REGIMES.len() + regime]
        };
        let of_row = |row| {
            std::array::from_fn(|member| std::array::from_fn(|regime| at(row, member, regime)))
        };
        Ok((0..count).map(of_row).collect())
    }
}

impl<B: Backend> SpeedModel for NetworkPolicy<B> {
    fn read_for_speeds<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedSpeedModel + 'm>, PolicyError> {
        let terms = ProgramTerms::new(Arc::clone(&input.stats), input.task, input.target)
            .map_err(|error| PolicyError::Failed(Box::new(error)))?;
        let reading = self.reading(&Inputs::new(input, &self.config.embedding()));
        Ok(Box::new(RatedReading { reading, terms }))
    }
}

impl<B: Backend> Policy for NetworkPolicy<B> {
    fn read<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
        Ok(self.read_inputs(&Inputs::new(input, &self.config.embedding())))
    }
}

impl<B: Backend> ConditionedPolicy for Reading<B> {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        let positions = first.prefix.len();
        if positions > most_tokens() {
            return Err(NetworkError::Length(positions).into());
        }
        let parents: Option<Vec<usize>> = batch.iter().map(|row| row.parent).collect();
        let mut cache = match parents {
            Some(parents) => self.cache.select(&parents, &self.device),
            None => Cache::empty(),
        };
        let known = cache.positions();
        let next = |row: &BatchRow<'_>| {
            let ids = row.prefix.tokens().into_iter().filter_map(Token::id);
            let ids = std::iter::once(BEGIN).chain(ids).skip(known);
            ids.map(|id| id as i32).collect::<Vec<i32>>()
        };
        let ids: Vec<i32> = batch.iter().flat_map(next).collect();
        let count = (positions + 1).saturating_sub(known);
        if count == 0 || ids.len() != batch.len() * count {
            return Err(NetworkError::Lengths.into());
        }
        let ids: Tensor<B, 3, Int> =
            Tensor::from_data(TensorData::new(ids, [1, batch.len(), count]), &self.device);
        let hidden = self.network.advance(ids, &self.memory, &mut cache);
        let hidden = hidden.narrow(2, count - 1, 1);
        self.cache = cache;
        let predictions = self.network.predict(hidden);
        let logits = numbers(predictions.logits);
        let values = numbers(predictions.critic);
        let expected = batch.len() * Token::VOCABULARY;
        if logits.len() != expected {
            return Err(NetworkError::Numbers { found: logits.len(), expected }.into());
        }
        let rows = logits.chunks(Token::VOCABULARY).zip(values);
        Ok(rows
            .map(|(logits, value)| Prediction { logits: logits.to_vec(), value: Some(value) })
            .collect())
    }
}

impl<B: Backend> ConditionedPolicy for RatedReading<'_, B> {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        self.reading.next(batch)
    }
}

impl<B: Backend> ConditionedSpeedModel for RatedReading<'_, B> {
    fn speeds(&mut self, programs: &[Program]) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let known = |program| (token_ids(program), self.terms.of(program));
        self.reading.speeds_of(&programs.iter().map(known).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::decode::{Decoding, beam_search, sample_batch, score};
    use sparserl_core::language::Mask;
    use sparserl_core::matrix::generate;
    use sparserl_core::structure::MatrixStats;
    use sparserl_core::target::Target;
    use sparserl_core::task::{Dtype, Operation, Task};

    use super::super::Processor;
    use super::*;

    fn policy(config: &NetworkConfig) -> NetworkPolicy<Processor> {
        let device = Default::default();
        let network = Arc::new(Network::new(config, &device, 3));
        NetworkPolicy { network, config: config.clone(), modalities: Modalities::ALL, device }
    }

    #[test]
    fn what_is_sampled_side_by_side_is_scored_alike_and_a_new_network_agrees_with_the_cost_model() {
        let config =
            NetworkConfig { width: 16, heads: 2, decoder_layers: 2, ..NetworkConfig::default() };
        let policy = policy(&config);
        let matrix = generate::rmat(8, 6, 1);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        let masked = Decoding::Masked(Mask::legal(&stats, task));
        let mut reading = policy.read(&input).unwrap();
        let sampled = sample_batch(&mut *reading, masked, 1.0, &[1, 2, 3, 4]).unwrap();
        for trajectory in &sampled {
            let tokens: Vec<Token> = trajectory.steps.iter().map(|step| step.token).collect();
            let scored = score(&mut *reading, masked, 1.0, &tokens).unwrap();
            for (one, other) in trajectory.steps.iter().zip(&scored.steps) {
                assert!((one.log_probability - other.log_probability).abs() < 1e-4);
                assert!(one.value.is_some());
            }
        }
        let mask = Mask::legal(&stats, task);
        let beam = beam_search(&mut *policy.read(&input).unwrap(), mask, 6).unwrap();
        let programs: Vec<Program> = beam.into_iter().map(|found| found.program).collect();
        assert_eq!(programs.len(), 6);
        let terms = ProgramTerms::new(stats, task, Target::H200).unwrap();
        let found = policy.read_for_speeds(&input).unwrap().speeds(&programs).unwrap();
        for (program, speeds) in programs.iter().zip(found) {
            let predicted = terms.of(program)[ProgramTerms::PREDICTED];
            assert!(speeds.iter().flatten().all(|speed| (speed - predicted).abs() < 1e-5));
        }
    }
}
