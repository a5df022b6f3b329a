use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use sparserl_core::decode::{
    BatchRow, ConditionedPolicy, Policy, PolicyError, PolicyInput, Prediction,
};
use sparserl_core::language::{Program, Token};
use sparserl_core::structure::IndexScaling;
use sparserl_onnx_models::inputs::Inputs;
use sparserl_onnx_models::programs::{most_tokens, token_ids};
use sparserl_onnx_models::speeds::{MemberSpeeds, REGIMES, SpeedModel};
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

/// What a network can be asked for that it cannot give.
#[derive(Debug, thiserror::Error)]
enum NetworkError {
    /// The prefix is longer than any program.
    #[error("a prefix of {0} tokens is longer than any program")]
    Length(usize),
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

    /// As [`Policy::read`], of inputs that are known already.
    #[must_use]
    pub fn read_inputs(&self, inputs: &Inputs) -> Box<dyn ConditionedPolicy> {
        Box::new(Reading {
            network: Arc::clone(&self.network),
            memory: self.remember(inputs),
            cache: Cache::empty(),
            device: self.device.clone(),
        })
    }

    fn remember(&self, inputs: &Inputs) -> Memory<B> {
        self.network.read_one(inputs, self.modalities, &self.device)
    }

    /// How this network is given the positions of nonzeros.
    #[must_use]
    pub fn scaling(&self) -> IndexScaling {
        self.config.positions
    }

    /// As [`SpeedModel::speeds`], of ids of tokens and terms that are known already.
    ///
    /// # Errors
    /// When a program is longer than any of today.
    pub fn speeds_of(
        &self,
        inputs: &Inputs,
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
        let memory = self.remember(inputs);
        let ids: Tensor<B, 3, Int> =
            Tensor::from_data(TensorData::new(ids, [1, count, length]), &self.device);
        let hidden = self.network.advance(ids, &memory, &mut Cache::empty());
        let [_, _, _, width] = hidden.dims();
        let ends = Tensor::from_data(TensorData::new(ends, [count]), &self.device);
        let last = hidden.reshape([count * length, width]).select(0, ends);
        let terms = TensorData::new(all_terms, [1, count, TERMS]);
        let terms = Tensor::from_data(terms, &self.device);
        let speeds = self.network.speeds(last.reshape([1, count, width]), &memory, terms);
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
    fn speeds(
        &self,
        input: &PolicyInput<'_>,
        programs: &[Program],
    ) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let terms = ProgramTerms::new(Arc::clone(&input.stats), input.task, input.target)
            .map_err(|error| PolicyError::Failed(Box::new(error)))?;
        let programs: Vec<_> =
            programs.iter().map(|program| (token_ids(program), terms.of(program))).collect();
        self.speeds_of(&Inputs::new(input, &self.config.embedding()), &programs)
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
        let last = |row: &BatchRow<'_>| match row.prefix.last().and_then(Token::id) {
            Some(id) => id as i32,
            None => BEGIN as i32,
        };
        let ids: Vec<i32> = batch.iter().map(last).collect();
        let ids: Tensor<B, 3, Int> =
            Tensor::from_data(TensorData::new(ids, [1, batch.len(), 1]), &self.device);
        let hidden = self.network.advance(ids, &self.memory, &mut cache);
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
        for (program, speeds) in programs.iter().zip(policy.speeds(&input, &programs).unwrap()) {
            let predicted = terms.of(program)[ProgramTerms::PREDICTED];
            assert!(speeds.iter().flatten().all(|speed| (speed - predicted).abs() < 1e-5));
        }
    }
}
