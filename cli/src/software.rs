//! Which version of this program made something.

use serde::{Deserialize, Serialize};
use sparserl_core::language::{LANGUAGE_VERSION, grammar_hash, vocabulary_hash};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Software {
    /// Of SparseRL.
    pub(crate) version: String,
    language_version: u32,
    /// FNV-1a, hexadecimal.
    vocabulary_hash: String,
    /// FNV-1a, hexadecimal.
    pub(crate) grammar_hash: String,
}

impl Software {
    pub(crate) fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            language_version: LANGUAGE_VERSION,
            vocabulary_hash: format!("{:016x}", vocabulary_hash()),
            grammar_hash: format!("{:016x}", grammar_hash()),
        }
    }
}
