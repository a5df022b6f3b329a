//! What a model, or the data that it is made from, was made for.

use serde::{Deserialize, Serialize};
use sparserl_core::language::{LANGUAGE_VERSION, Token, grammar_hash, vocabulary_hash};
use sparserl_core::structure::{DensityGrids, EMBEDDING_VERSION, EmbeddingConfig};

use crate::inputs::SCALARS;
use crate::terms::TERMS;

/// Version of [`crate::inputs`] and [`crate::terms`]; raised whenever a number that a model sees
/// changes its meaning, as predicted times do with the constants of the cost model.
pub const INPUTS_VERSION: u32 = 6;

/// Everything that a model's numbers mean something in. Two that differ cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// [`LANGUAGE_VERSION`].
    pub language_version: u32,
    /// [`grammar_hash`].
    pub grammar_hash: u64,
    /// [`vocabulary_hash`].
    pub vocabulary_hash: u64,
    /// [`Token::VOCABULARY`].
    pub vocabulary: u32,
    /// [`EMBEDDING_VERSION`].
    pub embedding_version: u32,
    /// How positions of nonzeros are embedded.
    pub embedding: EmbeddingConfig,
    /// [`INPUTS_VERSION`].
    pub inputs_version: u32,
    /// [`SCALARS`].
    pub scalars: u32,
    /// [`DensityGrids::CELLS`].
    pub grid_cells: u32,
    /// [`TERMS`].
    pub terms: u32,
}

/// Something was made for another version than this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "made for {what} {found}, but this version has {expected}: make it anew, or use the version of \
     SparseRL that made it"
)]
pub struct SignatureMismatch {
    /// What differs.
    pub what: &'static str,
    /// What the model was made for.
    pub found: String,
    /// What this program has.
    pub expected: String,
}

impl Signature {
    /// The signature of this version, with positions embedded in this way.
    #[must_use]
    pub fn current(embedding: EmbeddingConfig) -> Self {
        Self {
            language_version: LANGUAGE_VERSION,
            grammar_hash: grammar_hash(),
            vocabulary_hash: vocabulary_hash(),
            vocabulary: Token::VOCABULARY as u32,
            embedding_version: EMBEDDING_VERSION,
            embedding,
            inputs_version: INPUTS_VERSION,
            scalars: SCALARS as u32,
            grid_cells: DensityGrids::CELLS as u32,
            terms: TERMS as u32,
        }
    }

    /// Whether what has this signature can be used by this version. Every way of embedding
    /// positions can.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self) -> Result<(), SignatureMismatch> {
        let expected = Self::current(self.embedding);
        let numbers = |a: u32, b: u32| (a.to_string(), b.to_string());
        let hashes = |a: u64, b: u64| (format!("{a:016x}"), format!("{b:016x}"));
        let compared = [
            ("language version", numbers(self.language_version, expected.language_version)),
            ("grammar", hashes(self.grammar_hash, expected.grammar_hash)),
            ("vocabulary", hashes(self.vocabulary_hash, expected.vocabulary_hash)),
            ("vocabulary size", numbers(self.vocabulary, expected.vocabulary)),
            ("embedding version", numbers(self.embedding_version, expected.embedding_version)),
            ("inputs version", numbers(self.inputs_version, expected.inputs_version)),
            ("number of scalars", numbers(self.scalars, expected.scalars)),
            ("number of grid cells", numbers(self.grid_cells, expected.grid_cells)),
            ("number of terms", numbers(self.terms, expected.terms)),
        ];
        match compared.into_iter().find(|(_, (found, expected))| found != expected) {
            Some((what, (found, expected))) => Err(SignatureMismatch { what, found, expected }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said_in_one_line() {
        let current = Signature::current(EmbeddingConfig::default());
        assert_eq!(current.check(), Ok(()));
        let others = [
            Signature { language_version: 1, ..current.clone() },
            Signature { grammar_hash: 1, ..current.clone() },
            Signature { vocabulary_hash: 1, ..current.clone() },
            Signature { vocabulary: 1, ..current.clone() },
            Signature { embedding_version: 1, ..current.clone() },
            Signature { inputs_version: 0, ..current.clone() },
            Signature { scalars: 1, ..current.clone() },
            Signature { grid_cells: 1, ..current.clone() },
            Signature { terms: 1, ..current.clone() },
        ];
        for other in others {
            let error = other.check().unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1);
            assert!(error.starts_with("made for "), "{error}");
        }
    }
}
