use alloc::vec::Vec;

use super::{Policy, log_softmax, logits_of};
use crate::language::grammar::Alternative;
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

/// A program being written.
pub(super) struct Beam<'f, S> {
    pub(super) derivation: Derivation<'f>,
    state: S,
    log_probability: f64,
}

/// A beam, a token that it may go on with, and the log-probability of both.
pub(super) type Step<'b, 'f, S> = (&'b Beam<'f, S>, Alternative, f64);

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
    let mut complete = search(policy, matrix, mask, |steps| steps.truncate(width))?;
    complete.truncate(width);
    Ok(complete)
}

/// All programs that a beam finds, best first. `prune` drops steps from a list of them, best first.
pub(super) fn search<'f, P: Policy>(
    policy: &P,
    matrix: &StructureEmbedding,
    mask: Mask<'f>,
    mut prune: impl FnMut(&mut Vec<Step<'_, 'f, P::State>>),
) -> Result<Vec<Candidate>, P::Error> {
    let state = policy.start(matrix, mask.task())?;
    let mut open =
        alloc::vec![Beam { derivation: Derivation::start(mask), state, log_probability: 0.0 }];
    let mut complete: Vec<Candidate> = Vec::new();
    while !open.is_empty() {
        let mut choices = Vec::new();
        for beam in &mut open {
            let alternatives = beam.derivation.legal();
            let logits = policy.next(&mut beam.state, beam.derivation.tokens())?;
            let logits = logits_of(&logits, alternatives.iter().map(|a| a.token));
            choices.push(alternatives.into_iter().zip(log_softmax(&logits)));
        }
        let mut steps: Vec<Step<'_, 'f, P::State>> = Vec::new();
        for (beam, choices) in open.iter().zip(choices) {
            steps.extend(choices.map(|(token, log)| (beam, token, beam.log_probability + log)));
        }
        // Stable, so that ties fall to the grammar's own order of alternatives.
        steps.sort_by(|a, b| b.2.total_cmp(&a.2));
        prune(&mut steps);
        let mut next = Vec::new();
        for (beam, alternative, log_probability) in steps {
            let mut derivation = beam.derivation.clone();
            derivation.take(&alternative);
            if !derivation.is_complete() {
                next.push(Beam { derivation, state: beam.state.clone(), log_probability });
            } else if let Ok(program) = derivation.finish() {
                complete.push(Candidate { program, log_probability });
            }
        }
        open = next;
    }
    complete.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
    Ok(complete)
}
