//! The network of an exported policy, so that it can be improved where its training is not at hand.

use std::collections::HashMap;

use half::f16;
use prost::Message as _;
use sparserl_onnx_models::Model;
use sparserl_onnx_models::onnx::{DataType, ModelProto, TensorProto};

use super::graph::HALF;
use crate::network::{ConfigError, ModelFile, Network, NetworkConfig, Parameter, Processor};

/// Of the speeds within reach, by which the critic of PPO begins.
const REACH: &str = "heads.reach.";
/// Heads that only training uses: they are not exported.
const NOT_EXPORTED: [&str; 4] = [REACH, "heads.validity.", "heads.terms.", "heads.resources."];
/// The parameter that says how wide the hidden layers of the ensemble are.
const HIDDEN: &str = "heads.speeds.0.second.bias";
/// What heads that are not exported are drawn by.
const SEED: u64 = 0;

/// An exported policy whose network cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ReadBackError {
    /// A file is none.
    #[error("the policy `{name}` is damaged: {source}")]
    Damaged {
        /// What the policy is called.
        name: String,
        /// The reason.
        source: prost::DecodeError,
    },
    /// Its sizes form no network.
    #[error("the policy `{name}`: {source}")]
    Config {
        /// What the policy is called.
        name: String,
        /// The reason.
        source: ConfigError,
    },
    /// A parameter is missing or unknown, or of another shape, or not in half precision.
    #[error("the policy `{name}` is not of the form that this version exports: `{parameter}`")]
    Parameter {
        /// What the policy is called.
        name: String,
        /// The first such parameter.
        parameter: String,
    },
}

/// The network that a policy was exported from, its parameters as near as half precision came.
/// Those of heads that only training needs (speeds within reach, validity, terms, resources) are as
/// of a network that has learned nothing.
///
/// # Errors
/// When the files are not as [`export`](super::export) writes them.
pub fn network_of(model: &Model) -> Result<ModelFile, ReadBackError> {
    let description = model.description();
    let name = || description.name.clone();
    let mut tensors = HashMap::new();
    for bytes in [model.encoder(), model.decoder()] {
        let file = ModelProto::decode(bytes)
            .map_err(|source| ReadBackError::Damaged { name: name(), source })?;
        let initializers = file.graph.unwrap_or_default().initializer.into_iter();
        tensors.extend(initializers.filter_map(|tensor| {
            let parameter = tensor.name.strip_suffix(HALF)?.to_owned();
            Some((parameter, tensor))
        }));
    }
    let other =
        |parameter: &str| ReadBackError::Parameter { name: name(), parameter: parameter.into() };
    let config = config_of(model, &tensors).ok_or_else(|| other(HIDDEN))?;
    let config = config.check().map_err(|source| ReadBackError::Config { name: name(), source })?;
    let network: Network<Processor> = Network::new(&config, &Default::default(), SEED);
    let mut parameters = network.parameters();
    for parameter in &mut parameters {
        if NOT_EXPORTED.iter().any(|head| parameter.name.starts_with(head)) {
            continue;
        }
        let tensor = tensors.remove(&parameter.name);
        let numbers = tensor.and_then(|tensor| numbers(&tensor, parameter));
        parameter.numbers = numbers.ok_or_else(|| other(&parameter.name))?;
    }
    if let Some(parameter) = tensors.keys().min() {
        return Err(other(parameter));
    }
    Ok(ModelFile {
        signature: description.signature.clone(),
        config,
        steps: 0,
        provenance: description.provenance.clone(),
        parameters,
        optimizer: Vec::new(),
    })
}

/// Whether a network, or one that it was improved from, was read back: its speeds within reach say
/// nothing.
#[must_use]
pub fn was_read_back(file: &ModelFile) -> bool {
    let drawn: Network<Processor> = Network::new(&file.config, &Default::default(), SEED);
    let is_drawn = |parameter: &Parameter| file.parameters.contains(parameter);
    drawn.parameters().iter().filter(|parameter| parameter.name.starts_with(REACH)).all(is_drawn)
}

/// The sizes of the network, by its description and the shapes of its parameters.
fn config_of(model: &Model, tensors: &HashMap<String, TensorProto>) -> Option<NetworkConfig> {
    let description = model.description();
    let layer = |number: usize| format!("encoder.layers.{number}.norm.gamma");
    let &[hidden] = tensors.get(HIDDEN)?.dims.as_slice() else { return None };
    Some(NetworkConfig {
        width: description.heads.saturating_mul(description.head_width),
        heads: description.heads,
        encoder_layers: (0..).take_while(|&number| tensors.contains_key(&layer(number))).count(),
        decoder_layers: description.layers,
        speed_width: usize::try_from(hidden).ok()?,
        positions: description.signature.embedding.scaling,
    })
}

/// The numbers of a tensor in half precision, if it has the shape of a parameter.
fn numbers(tensor: &TensorProto, parameter: &Parameter) -> Option<Vec<f32>> {
    let shape = parameter.shape.iter().map(|&size| size as i64);
    let (halves, rest) = tensor.raw_data.as_chunks::<2>();
    let is_it = tensor.data_type == i32::from(DataType::Float16)
        && tensor.dims.iter().copied().eq(shape)
        && halves.len() == parameter.numbers.len()
        && rest.is_empty();
    is_it.then(|| halves.iter().map(|&half| f16::from_le_bytes(half).to_f32()).collect())
}
