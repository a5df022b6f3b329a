use super::{Policy, log_softmax, logits_of};
use crate::language::{Derivation, Mask, Program};
use crate::structure::StructureEmbedding;

/// A program sampled from the policy at a temperature (1: as the policy says; near 0: greedy).
/// `uniform` gives random numbers in [0, 1).
///
/// # Errors
/// When the policy fails.
pub fn sample<P: Policy>(
    policy: &P,
    matrix: &StructureEmbedding,
    mask: Mask<'_>,
    temperature: f64,
    mut uniform: impl FnMut() -> f64,
) -> Result<Option<Program>, P::Error> {
    let mut state = policy.start(matrix, mask.task())?;
    let mut derivation = Derivation::start(mask);
    while !derivation.is_complete() {
        let alternatives = derivation.legal();
        let logits = policy.next(&mut state, derivation.tokens())?;
        let mut logits = logits_of(&logits, alternatives.iter().map(|a| a.token));
        for logit in &mut logits {
            *logit /= temperature.max(1e-6);
        }
        let mut ticket = uniform();
        let chosen = alternatives.iter().zip(log_softmax(&logits)).find(|&(_, log_probability)| {
            ticket -= libm::exp(log_probability);
            ticket < 0.0
        });
        // Rounding can leave a sliver above the last probability.
        let Some(alternative) = chosen.map(|(a, _)| a).or(alternatives.last()) else {
            return Ok(None);
        };
        derivation.take(alternative);
    }
    Ok(derivation.finish().ok())
}
