//! Writes a trained network as the two ONNX graphs that policies are used as, and reads it back.
//!
//! The graphs are those of [`crate::network`] once more, in ONNX's operators: what they compute is
//! the same within rounding, which is tested. Parameters are stored in half precision and are
//! converted to `f32` when a graph is made ready.

mod decoder;
mod encoder;
mod graph;
mod layers;
mod read_back;
#[cfg(test)]
mod tests;

use half::f16;
use sparserl_onnx_models::{Description, Model, ModelError};

use crate::network::{ModelFile, Parameter};
use graph::Graph;

pub use read_back::{ReadBackError, network_of, was_read_back};

/// A network that cannot be written as ONNX.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It lacks a parameter.
    #[error("the network has no parameter `{0}`")]
    Missing(String),
    /// A parameter is not within ±65504.
    #[error("the parameter `{0}` has numbers that half precision does not hold")]
    Range(String),
    /// The description cannot be written.
    #[error("the model cannot be described: {0}")]
    Description(#[from] serde_json::Error),
    /// What was written is not read back.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Writes the network of a file as a model of this name.
///
/// # Errors
/// When the network is not of the form that this version trains, or half precision does not hold
/// its parameters.
pub fn export(file: &ModelFile, name: &str) -> Result<Model, ExportError> {
    let parameters = half_precision(&file.parameters)?;
    let mut hasher = blake3::Hasher::new();
    for parameter in &parameters {
        hasher.update(parameter.name.as_bytes());
        parameter.numbers.iter().for_each(|number| {
            hasher.update(&number.to_le_bytes());
        });
    }
    let config = &file.config;
    let description = Description {
        name: name.to_owned(),
        signature: file.signature.clone(),
        layers: config.decoder_layers,
        heads: config.heads,
        head_width: config.width / config.heads,
        parameters: hasher.finalize().to_hex().to_string(),
        provenance: file.provenance.clone(),
    };
    let mut encoder = Graph::new("encoder", &parameters);
    encoder::encoder(&mut encoder, config)?;
    let mut decoder = Graph::new("decoder", &parameters);
    decoder::decoder(&mut decoder, config)?;
    let (encoder, decoder) = (encoder.file(&description)?, decoder.file(&description)?);
    Ok(Model::new(name, encoder, decoder)?)
}

/// The same parameters, as near as half precision comes.
fn half_precision(parameters: &[Parameter]) -> Result<Vec<Parameter>, ExportError> {
    let round = |parameter: &Parameter| {
        let numbers = parameter.numbers.iter().map(|&number| f16::from_f32(number).to_f32());
        let numbers: Vec<f32> = numbers.collect();
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(Parameter { numbers, ..parameter.clone() }),
            false => Err(ExportError::Range(parameter.name.clone())),
        }
    };
    parameters.iter().map(round).collect()
}
