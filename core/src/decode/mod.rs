//! Decoding: a [`Policy`] proposes tokens, a [`Mask`](crate::language::Mask) says which of them are
//! legal, and search or sampling turns that into programs.
//!
//! Masking and sampling live here and nowhere else, so that training and inference cannot drift
//! apart.

mod beam;
mod ranker;
mod sample;

pub use beam::{Candidate, beam_search};
pub use ranker::CostRanker;
pub use sample::sample;

use alloc::vec::Vec;

use crate::language::Token;
use crate::structure::StructureEmbedding;
use crate::task::Task;

/// Writes programs token by token.
pub trait Policy {
    /// What the policy keeps between tokens, such as a key–value cache.
    type State: Clone;
    /// Why it cannot go on.
    type Error;

    /// Reads the matrix.
    ///
    /// # Errors
    /// When the policy cannot take this embedding or task.
    fn start(&self, matrix: &StructureEmbedding, task: Task) -> Result<Self::State, Self::Error>;

    /// Logits of the token after `prefix`, by token id ([`Token::VOCABULARY`] of them). The prefix
    /// grows by one token from call to call on the same state.
    ///
    /// # Errors
    /// When the policy fails to run.
    fn next(&self, state: &mut Self::State, prefix: &[Token]) -> Result<Vec<f32>, Self::Error>;
}

/// Log-probabilities of some logits: log-softmax.
fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|&logit| libm::exp(logit - most)).sum();
    logits.iter().map(|&logit| logit - most - libm::log(sum)).collect()
}

/// The logits of some tokens; a token that the policy left out is impossible.
fn logits_of(logits: &[f32], tokens: impl Iterator<Item = Token>) -> Vec<f64> {
    let logit = |token: Token| token.id().and_then(|id| logits.get(id)).copied();
    tokens.map(|token| f64::from(logit(token).unwrap_or(f32::NEG_INFINITY))).collect()
}
