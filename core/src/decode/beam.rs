use alloc::vec::Vec;

use super::{Policy, log_softmax, logits_of};
use crate::language::{Derivation, Mask, Program};
use crate::structure::StructureEmbedding;

/// A program and how likely the policy finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The program.
    pub program: Program,
    /// Sum of its tokens' log-probabilities under the mask.
    pub log_probability: f64,
}

struct Beam<'f, S> {
    derivation: Derivation<'f>,
    state: S,
    log_probability: f64,
}

/// The most likely programs that a beam of some width finds, best first; at most `width` of them.
/// A width of 1 is greedy decoding.
///
/// # Errors
/// When the policy fails.
pub fn beam_search<P: Policy>(
    policy: &P,
    matrix: &StructureEmbedding,
    mask: Mask<'_>,
    width: usize,
) -> Result<Vec<Candidate>, P::Error> {
    if width == 0 {
        return Ok(Vec::new());
    }
    let state = policy.start(matrix, mask.task())?;
    let mut open =
        alloc::vec![Beam { derivation: Derivation::start(mask), state, log_probability: 0.0 }];
    let mut complete: Vec<Candidate> = Vec::new();
    while !open.is_empty() {
        let mut scored = Vec::new();
        for (index, beam) in open.iter_mut().enumerate() {
            let alternatives = beam.derivation.legal();
            let logits = policy.next(&mut beam.state, beam.derivation.tokens())?;
            let logits = logits_of(&logits, alternatives.iter().map(|a| a.token));
            for (alternative, log_probability) in alternatives.into_iter().zip(log_softmax(&logits))
            {
                scored.push((index, alternative, beam.log_probability + log_probability));
            }
        }
        // Stable, so that ties fall to the grammar's own order of alternatives.
        scored.sort_by(|a, b| b.2.total_cmp(&a.2));
        scored.truncate(width);
        let mut next = Vec::new();
        for (index, alternative, log_probability) in scored {
            let beam = &open[index];
            let mut derivation = beam.derivation.clone();
            derivation.take(&alternative);
            if !derivation.is_complete() {
                next.push(Beam { derivation, state: beam.state.clone(), log_probability });
            } else if let Ok(program) = derivation.finish() {
                complete.push(Candidate { program, log_probability });
            }
        }
        complete.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        complete.truncate(width);
        // Log-probabilities only fall, so a beam below the last of a full list cannot enter it.
        if complete.len() == width {
            let bar = complete[width - 1].log_probability;
            next.retain(|beam| beam.log_probability > bar);
        }
        open = next;
    }
    Ok(complete)
}
