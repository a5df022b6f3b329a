//! Models and checkpoints in files.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use burn::tensor::backend::AutodiffBackend;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sparserl_core::regular_file;
use sparserl_onnx_models::signature::{Signature, SignatureMismatch};

use super::{ConfigError, Learner, Network, NetworkConfig, OptimizerConfig, Parameter};
use crate::whole_file::write_whole;

/// Bytes of a model, at most.
const MOST_BYTES: u64 = 16 << 30;
/// Key of the text in the metadata that says what the file is.
const KEY: &str = "sparserl";
const NETWORK: &str = "network.";
const OPTIMIZER: &str = "optimizer.";

/// A network in a file of the safetensors format, with what is needed to use it and to go on with
/// its training.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFile {
    /// What it was made for.
    pub signature: Signature,
    /// Its sizes.
    pub config: NetworkConfig,
    /// Steps of the stage that made it.
    pub steps: u64,
    /// What that stage was, in words and numbers.
    pub provenance: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// State of the optimizer; none in a file that is for use only.
    pub optimizer: Vec<Parameter>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    signature: Signature,
    config: NetworkConfig,
    steps: u64,
    provenance: String,
}

/// A model could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read the model `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the model `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It is not a model of ours, or damaged.
    #[error("`{}` is no model of a trainer, or damaged: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong, in one line.
        reason: String,
    },
    /// It was made for another version.
    #[error("the model `{}` was {source}", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The difference.
        source: SignatureMismatch,
    },
    /// Its training diverged.
    #[error(
        "the model `{}` has numbers that are not finite, in `{parameter}`: train it anew with a \
         lower `learning_rate`", path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The first parameter, of the network or of its optimizer, that has some.
        parameter: String,
    },
    /// Its sizes form no network.
    #[error("the model `{}`: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ConfigError,
    },
}

impl ModelFile {
    /// What a learner is now, with the state of its optimizer or without.
    #[must_use]
    pub fn of<B: AutodiffBackend>(
        learner: &Learner<B>,
        config: &NetworkConfig,
        provenance: String,
        with_optimizer: bool,
    ) -> Self {
        let optimizer = learner.optimizer();
        Self {
            signature: Signature::current(config.embedding()),
            config: config.clone(),
            steps: optimizer.steps(),
            provenance,
            parameters: learner.network().parameters(),
            optimizer: if with_optimizer { optimizer.state() } else { Vec::new() },
        }
    }

    /// A learner that begins with these parameters and a new optimizer.
    #[must_use]
    pub fn begin<B: AutodiffBackend>(
        &self,
        optimizer: OptimizerConfig,
        device: B::Device,
    ) -> Learner<B> {
        Learner::new(&self.config, optimizer, 0, device).with_parameters(&self.parameters)
    }

    /// A learner that goes on where this was kept.
    #[must_use]
    pub fn go_on<B: AutodiffBackend>(
        &self,
        optimizer: OptimizerConfig,
        device: B::Device,
    ) -> Learner<B> {
        self.begin(optimizer, device).with_optimizer(optimizer, self.steps, &self.optimizer)
    }

    /// Hash of its parameters, in hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for number in self.parameters.iter().flat_map(|parameter| &parameter.numbers) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// An error if a number is not finite. Such a model is not written, so that it takes the place
    /// of none that is whole, and not read: whatever went on from it would learn nothing.
    fn finite(&self, path: &Path) -> Result<(), ModelError> {
        let mut all = self.parameters.iter().chain(&self.optimizer);
        match all.find(|parameter| !parameter.is_finite()) {
            Some(Parameter { name, .. }) => {
                Err(ModelError::NotFinite { path: path.into(), parameter: name.clone() })
            }
            None => Ok(()),
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written, or has numbers that are not finite.
    pub fn write(&self, path: &Path) -> Result<(), ModelError> {
        self.finite(path)?;
        let failed = |source| ModelError::Write { path: path.into(), source };
        let description = Description {
            signature: self.signature.clone(),
            config: self.config.clone(),
            steps: self.steps,
            provenance: self.provenance.clone(),
        };
        let text = serde_json::to_string(&description).map_err(|error| failed(error.into()))?;
        let named = |prefix: &'static str, parameters: &[Parameter]| -> Vec<_> {
            let bytes = |parameter: &Parameter| {
                let name = format!("{prefix}{}", parameter.name);
                let bytes: Vec<u8> =
                    parameter.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                (name, parameter.shape.clone(), bytes)
            };
            parameters.iter().map(bytes).collect()
        };
        let mut all = named(NETWORK, &self.parameters);
        all.extend(named(OPTIMIZER, &self.optimizer));
        let views = all.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes);
            view.map(|view| (name.clone(), view))
        });
        let views = views.collect::<Result<Vec<_>, _>>();
        let metadata = HashMap::from([(KEY.to_owned(), text)]);
        let bytes = views.and_then(|views| safetensors::serialize(views, Some(metadata)));
        let bytes = bytes.map_err(|error| failed(io::Error::other(error)))?;
        write_whole(path, |file| file.write_all(&bytes)).map_err(failed)
    }

    /// Reads a model that this version can use: its parameters are those of a network of its sizes.
    ///
    /// # Errors
    /// When the file cannot be read, is no model, was made for another version, or has numbers that
    /// are not finite.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let bytes = regular_file::read(path, MOST_BYTES)
            .map_err(|source| ModelError::Read { path: path.into(), source })?;
        let foreign = |reason: String| {
            let reason = reason.lines().collect::<Vec<_>>().join("; ");
            ModelError::Foreign { path: path.into(), reason }
        };
        let (_, metadata) =
            SafeTensors::read_metadata(&bytes).map_err(|error| foreign(error.to_string()))?;
        let text = metadata.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let text = text.ok_or_else(|| foreign("it does not say what it is".to_owned()))?;
        let Description { signature, config, steps, provenance } =
            serde_json::from_str(text).map_err(|error| foreign(error.to_string()))?;
        let signature_error = |source| ModelError::Signature { path: path.into(), source };
        signature.check().map_err(signature_error)?;
        let config_error = |source| ModelError::Config { path: path.into(), source };
        let config = config.check().map_err(config_error)?;
        let tensors =
            SafeTensors::deserialize(&bytes).map_err(|error| foreign(error.to_string()))?;
        let parameters = named(&tensors, NETWORK).map_err(foreign)?;
        let optimizer = named(&tensors, OPTIMIZER).map_err(foreign)?;
        let model = Self { signature, config, steps, provenance, parameters, optimizer };
        model.finite(path)?;
        model.in_order().map_err(foreign)
    }

    /// The same with the parameters in the order of the network, when they are those.
    fn in_order(mut self) -> Result<Self, String> {
        let network: Network<burn::backend::Flex> =
            Network::new(&self.config, &Default::default(), 0);
        let expected = network.parameters();
        if expected.len() != self.parameters.len() {
            let (found, expected) = (self.parameters.len(), expected.len());
            return Err(format!("it has {found} parameters, expected {expected}"));
        }
        let mut by_name: HashMap<String, Parameter> = std::mem::take(&mut self.parameters)
            .into_iter()
            .map(|parameter| (parameter.name.clone(), parameter))
            .collect();
        for Parameter { name, shape, .. } in expected {
            let found = by_name.remove(&name).filter(|found| found.shape == shape);
            let found = found.ok_or_else(|| format!("`{name}` is not of shape {shape:?}"))?;
            self.parameters.push(found);
        }
        Ok(self)
    }
}

fn named(tensors: &SafeTensors<'_>, prefix: &str) -> Result<Vec<Parameter>, String> {
    let mut found = Vec::new();
    for (name, view) in tensors.tensors() {
        let Some(short) = name.strip_prefix(prefix) else { continue };
        if view.dtype() != Dtype::F32 {
            return Err(format!("`{name}` is not of type F32"));
        }
        let (numbers, _) = view.data().as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        found.push(Parameter { name: short.to_owned(), shape: view.shape().to_vec(), numbers });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
