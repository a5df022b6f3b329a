use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use prost::Message as _;
use serde::{Deserialize, Serialize};
use sparserl_core::regular_file;

use crate::onnx::{ModelProto, StringStringEntryProto, ValueInfoProto};
use crate::signature::{Signature, SignatureMismatch};

/// Name of the file of the graph that reads a matrix.
pub const ENCODER: &str = "encoder.onnx";
/// Name of the file of the graph that writes programs.
pub const DECODER: &str = "decoder.onnx";
/// Key in the metadata of both files.
const KEY: &str = "sparserl";

/// What a model is, kept in the metadata of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What it is called.
    pub name: String,
    /// What it was made for.
    pub signature: Signature,
    /// Layers of the decoder.
    pub layers: usize,
    /// Heads of each attention of the decoder.
    pub heads: usize,
    /// Width of a head.
    pub head_width: usize,
    /// BLAKE3 hash of all parameters, in hexadecimal: the files of a model agree in it.
    pub parameters: String,
    /// How it was trained, in words and numbers.
    pub provenance: String,
}

/// A trained policy: two ONNX graphs and what they are.
///
/// * The **encoder** reads `scalars` `[1, SCALARS]`, `grids` `[1, CELLS]`, `positions`
///   `[1, n, token width]` with n ≥ 1, `position_bias` `[1, 1, 1, n]` (0, or −10⁴ for what is no
///   position), and `present` `[1, 3]` (1 where features, grids, positions are shown). It gives
///   `summary` `[1, width]` and the keys and values of its tokens for each layer of the decoder,
///   `memory_keys` and `memory_values` `[layers, heads, tokens, head width]`.
/// * The **decoder** continues rows of programs by `tokens` `[rows, T]`, at the places `places`
///   `[T]`, after tokens whose keys and values are `keys`, `values` `[layers, rows, L, width]`;
///   `bias` `[T, L + T]` says what may be attended to. It is given the encoder's three outputs as
///   they are. It gives `logits` `[rows, T, vocabulary]`, `critic` `[rows, T]`, the keys and values
///   of the new tokens, `next_keys` and `next_values` `[layers, rows, T, width]`, and `speeds`
///   `[rows, ensemble, regimes]` of programs that end at the token that `ends` `[rows, 1, T]` is 1
///   for and whose terms are `terms` `[rows, TERMS]`.
///
/// T are new tokens, L those in the key–value cache, and width is heads × head width.
#[derive(Clone, Debug)]
pub struct Model {
    description: Description,
    encoder: Cow<'static, [u8]>,
    decoder: Cow<'static, [u8]>,
}

/// A model that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file cannot be read.
    #[error("cannot read the policy `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Not an ONNX file of ours, or damaged.
    #[error("`{place}` is no policy of SparseRL, or damaged: {reason}")]
    Foreign {
        /// The file, or what stands for it.
        place: String,
        /// What is wrong, in one line.
        reason: String,
    },
    /// Made for another version.
    #[error("the policy `{place}` was {source}")]
    Signature {
        /// The file, or what stands for it.
        place: String,
        /// The difference.
        source: SignatureMismatch,
    },
    /// The two files are of different models.
    #[error(
        "the encoder and the decoder of `{place}` are of different models: export them together again"
    )]
    Pair {
        /// The folder, or what stands for it.
        place: String,
    },
}

impl Model {
    /// Reads a model from the bytes of two ONNX files; `place` says in errors where they are from.
    ///
    /// # Errors
    /// When they are not a model for this version.
    pub fn new(
        place: &str,
        encoder: impl Into<Cow<'static, [u8]>>,
        decoder: impl Into<Cow<'static, [u8]>>,
    ) -> Result<Self, ModelError> {
        let (encoder, decoder) = (encoder.into(), decoder.into());
        let description = describe(place, Part::Encoder, &encoder)?;
        if describe(place, Part::Decoder, &decoder)? != description {
            return Err(ModelError::Pair { place: place.to_owned() });
        }
        Ok(Self { description, encoder, decoder })
    }

    /// The model that is compiled in; `models/learned/README.md` says what it was trained on.
    ///
    /// # Errors
    /// When it was made for another version of the language: it has to be trained anew.
    pub fn shipped() -> Result<Self, ModelError> {
        let encoder: &[u8] = include_bytes!("../models/learned/encoder.onnx");
        let decoder: &[u8] = include_bytes!("../models/learned/decoder.onnx");
        Self::new("the policy within this program", encoder, decoder)
    }

    /// Reads the model in a folder with [`ENCODER`] and [`DECODER`], or beside one of these two
    /// files.
    ///
    /// # Errors
    /// When they cannot be read, or are not a model for this version.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let read = |path: &Path| {
            let bytes = regular_file::read(path, MOST_BYTES);
            bytes.map_err(|source| ModelError::Read { path: path.into(), source })
        };
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let is_one_of_two = [ENCODER, DECODER].iter().any(|name| path.ends_with(name));
        if !path.is_dir() && !is_one_of_two {
            read(path)?;
            let place = path.display().to_string();
            let reason = format!("a policy is two files, `{ENCODER}` and `{DECODER}`");
            return Err(ModelError::Foreign { place, reason });
        }
        let (encoder, decoder) = (read(&folder.join(ENCODER))?, read(&folder.join(DECODER))?);
        Self::new(&folder.display().to_string(), encoder, decoder)
    }

    /// What it is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The file of the encoder.
    #[must_use]
    pub fn encoder(&self) -> &[u8] {
        &self.encoder
    }

    /// The file of the decoder.
    #[must_use]
    pub fn decoder(&self) -> &[u8] {
        &self.decoder
    }
}

impl Description {
    /// The entry of an ONNX file's metadata that says this.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn entry(&self) -> Result<StringStringEntryProto, serde_json::Error> {
        Ok(StringStringEntryProto { key: KEY.to_owned(), value: serde_json::to_string(self)? })
    }

    /// The first digits of the hash of the parameters: a short name for this state of the model.
    #[must_use]
    pub fn version(&self) -> &str {
        self.parameters.get(..12).unwrap_or(&self.parameters)
    }
}

/// A file of a model.
#[derive(Clone, Copy)]
enum Part {
    Encoder,
    Decoder,
}

impl Part {
    /// Names of the inputs and of the outputs of its graph.
    fn interface(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Encoder => [
                &["scalars", "grids", "positions", "position_bias", "present"],
                &["summary", "memory_keys", "memory_values"],
            ],
            Self::Decoder => [
                &[
                    "tokens",
                    "places",
                    "bias",
                    "keys",
                    "values",
                    "summary",
                    "memory_keys",
                    "memory_values",
                    "ends",
                    "terms",
                ],
                &["logits", "critic", "next_keys", "next_values", "speeds"],
            ],
        }
    }
}

/// Bytes of a file, at most: like what follows, more than any policy has, since what a file says
/// decides what is allocated.
const MOST_BYTES: u64 = 1 << 30;
/// Numbers of a token in the key–value cache, at most: layers × heads × head width.
const MOST_NUMBERS_OF_A_CACHE: usize = 1 << 20;
/// Embedded positions, at most.
const MOST_POSITIONS: usize = 1 << 14;
/// Frequencies of an embedding, at most.
const MOST_FREQUENCIES: usize = 1 << 10;

fn describe(place: &str, part: Part, bytes: &[u8]) -> Result<Description, ModelError> {
    let (file, graph) = match part {
        Part::Encoder => (ENCODER, "encoder"),
        Part::Decoder => (DECODER, "decoder"),
    };
    let foreign = |reason: String| {
        let reason = reason.lines().collect::<Vec<_>>().join("; ");
        ModelError::Foreign { place: place.to_owned(), reason: format!("{file}: {reason}") }
    };
    let model = ModelProto::decode(bytes).map_err(|error| foreign(error.to_string()))?;
    let entry = model.metadata_props.iter().find(|entry| entry.key == KEY);
    let entry = entry.ok_or_else(|| foreign("it does not say what it is".to_owned()))?;
    let description: Description =
        serde_json::from_str(&entry.value).map_err(|error| foreign(error.to_string()))?;
    let found = model.graph.filter(|found| found.name == graph);
    let found = found.ok_or_else(|| foreign(format!("it is not the {graph}")))?;
    // Whatever such a network is given, its predictions would be none.
    if let Some(weights) = found.initializer.iter().find(|tensor| !tensor.is_finite()) {
        let name = weights.name.escape_debug();
        return Err(foreign(format!("`{name}` holds numbers that are not finite: train it anew")));
    }
    let names = |values: &[ValueInfoProto]| -> BTreeSet<String> {
        values.iter().map(|value| value.name.clone()).collect()
    };
    for (found, expected) in [&found.input, &found.output].into_iter().zip(part.interface()) {
        if !names(found).iter().eq(&BTreeSet::from_iter(expected.iter().copied())) {
            return Err(foreign(
                "its graph has other inputs or outputs than those of this version: export it again"
                    .to_owned(),
            ));
        }
    }
    let signature = &description.signature;
    let signature_error = |source| ModelError::Signature { place: place.to_owned(), source };
    signature.check().map_err(signature_error)?;
    let Description { layers, heads, head_width, .. } = description;
    let cache = [layers, heads, head_width]
        .into_iter()
        .try_fold(1_usize, |all, size| all.checked_mul(size).filter(|&all| all > 0));
    let embedding = signature.embedding;
    let reasonable = cache.is_some_and(|numbers| numbers <= MOST_NUMBERS_OF_A_CACHE)
        && (1..=MOST_POSITIONS).contains(&embedding.max_tokens)
        && (1..=MOST_FREQUENCIES).contains(&embedding.frequencies);
    if reasonable {
        Ok(description)
    } else {
        Err(foreign("its sizes are beyond reason".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::onnx::DataType;

    #[test]
    fn weights_that_are_not_finite_are_refused_in_one_line() {
        let shipped = Model::shipped().unwrap();
        for number in [f16::NAN, f16::INFINITY, f16::NEG_INFINITY] {
            let mut encoder = ModelProto::decode(shipped.encoder()).unwrap();
            let tensors = encoder.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
            let half = i32::from(DataType::Float16);
            let mut weights = tensors.filter(|tensor| tensor.data_type == half);
            let last = weights.next().unwrap().raw_data.last_chunk_mut::<2>().unwrap();
            *last = number.to_le_bytes();
            let bytes = encoder.encode_to_vec();
            let error = Model::new("here", bytes, shipped.decoder().to_vec()).unwrap_err();
            let text = error.to_string();
            let start = "`here` is no policy of SparseRL, or damaged: encoder.onnx: `";
            let end = "` holds numbers that are not finite: train it anew";
            assert!(text.starts_with(start) && text.ends_with(end), "{text}");
        }
    }
}
