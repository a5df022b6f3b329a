//! From logits to probabilities of what a mask offers: the one place where masking is done.

use alloc::vec::Vec;

use crate::language::Token;
use crate::random::SplitMix64;

/// Log-probabilities of some tokens at a temperature (1: as the policy says; near 0: greedy), all
/// others being out of the question.
pub(super) fn log_probabilities(
    tokens: impl Iterator<Item = Token>,
    logits: &[f32],
    temperature: f64,
) -> Vec<f64> {
    let logit = |token: Token| token.id().and_then(|id| logits.get(id)).copied();
    let temperature = temperature.max(1e-6);
    let logits: Vec<f64> = tokens
        .map(|token| f64::from(logit(token).unwrap_or(f32::NEG_INFINITY)) / temperature)
        .collect();
    log_softmax(&logits)
}

/// Log-softmax. A logit that is not finite is impossible; when none is finite, all are equally
/// likely.
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

/// Draws one of the events with these log-probabilities; `None` when there are none.
pub(super) fn draw(log_probabilities: &[f64], random: &mut SplitMix64) -> Option<usize> {
    let mut ticket = random.uniform();
    let drawn = log_probabilities.iter().position(|&log_probability| {
        ticket -= libm::exp(log_probability);
        ticket < 0.0
    });
    // Rounding can leave a sliver above the last probability.
    drawn.or_else(|| log_probabilities.iter().rposition(|log| log.is_finite()))
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

    #[test]
    fn draws_follow_the_probabilities() {
        let log = log_softmax(&[0.0, f64::NEG_INFINITY, libm::log(3.0), f64::NEG_INFINITY]);
        let mut random = SplitMix64::new(3);
        let mut drawn = [0; 4];
        (0..4000).for_each(|_| drawn[draw(&log, &mut random).unwrap()] += 1);
        assert_eq!((drawn[1], drawn[3]), (0, 0));
        assert!((drawn[2] - 3000_i32).abs() < 150, "{drawn:?}");
        assert_eq!(draw(&[], &mut random), None);
    }
}
