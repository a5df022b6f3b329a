//! Decoding: a [`Policy`] proposes tokens, a [`Mask`](crate::language::Mask) says which of them are
//! legal, and search or sampling turns that into programs.
//!
//! Masking and sampling live here and nowhere else, so that training and inference cannot drift
//! apart.

mod beam;
mod diverse;
mod ranker;
mod sample;

pub use beam::{Candidate, beam_search};
pub use diverse::diverse_search;
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

/// Log-probabilities of some logits: log-softmax. A logit that is not finite is impossible; when none
/// is finite, all are equally likely.
fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let finite = |logit: &f64| logit.is_finite();
    let most = logits.iter().copied().filter(finite).fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return alloc::vec![-libm::log(logits.len() as f64); logits.len()];
    }
    let sum: f64 = logits.iter().filter(|l| finite(l)).map(|&l| libm::exp(l - most)).sum();
    let log = |&l: &f64| if l.is_finite() { l - most - libm::log(sum) } else { f64::NEG_INFINITY };
    logits.iter().map(log).collect()
}

/// The logits of some tokens; a token that the policy left out is impossible.
fn logits_of(logits: &[f32], tokens: impl Iterator<Item = Token>) -> Vec<f64> {
    let logit = |token: Token| token.id().and_then(|id| logits.get(id)).copied();
    tokens.map(|token| f64::from(logit(token).unwrap_or(f32::NEG_INFINITY))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_logits_stay_impossible() {
        let log = log_softmax(&[0.0, f64::NAN, 0.0, f64::NEG_INFINITY]);
        assert!((libm::exp(log[0]) - 0.5).abs() < 1e-12);
        assert_eq!(log[1], f64::NEG_INFINITY);
        assert_eq!(log_softmax(&[f64::NAN; 2]), [-libm::log(2.0); 2]);
    }
}
