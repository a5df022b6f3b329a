use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::beam::{Hypothesis, search};
use super::{ConditionedPolicy, PolicyError};
use crate::language::{Layout, Mask, Program, Token, Word};

/// Beams kept for each family.
const BEAMS_PER_FAMILY: usize = 12;
/// Families kept.
const FAMILIES: usize = 8;
/// Steps this many nats less likely than the best are dropped.
const MARGIN: f64 = 16.0;
/// What each program already chosen from a family costs the next one of it, in nats.
const REPETITION: f64 = 2.0;

/// Likely programs of many families that a search found, of which any number can be picked.
#[derive(Clone, Debug)]
pub struct Diverse(Vec<Hypothesis>);

impl Diverse {
    /// Searches for them.
    ///
    /// # Errors
    /// When the policy fails.
    pub fn search(policy: &mut dyn ConditionedPolicy, mask: Mask<'_>) -> Result<Self, PolicyError> {
        let found = search(policy, mask, |steps| {
            let bar = steps.first().map_or(0.0, |best| best.log_probability - MARGIN);
            steps.retain(|step| step.log_probability >= bar);
            let mut families = BTreeMap::<Vec<Word>, usize>::new();
            steps.retain(|step| {
                let tokens = step.beam.path.prefix().tokens().into_iter();
                let family: Vec<Word> =
                    tokens.chain([step.alternative.token]).filter_map(family_word).collect();
                let known = families.len();
                let taken = families.entry(family).or_insert(0);
                *taken += 1;
                *taken <= BEAMS_PER_FAMILY && (*taken > 1 || known < FAMILIES)
            });
        })?;
        Ok(Self(found))
    }

    /// At most `count` of them, as [`diverse_search`] gives them: the first of more are the same.
    #[must_use]
    pub fn pick(&self, count: usize) -> Vec<Hypothesis> {
        pick(self.0.clone(), count)
    }
}

/// At most `count` likely programs that differ in their layouts or mappings, best first, for a
/// choice by measurement: what a policy finds nearly as good may well be better.
///
/// The first one is the most likely found. Programs of one family, with the same splits and kinds
/// of layout, crowd out others only where those are far less likely; of programs that differ only
/// in block size or row order the most likely one stands for all.
///
/// # Errors
/// When the policy fails.
pub fn diverse_search(
    policy: &mut dyn ConditionedPolicy,
    mask: Mask<'_>,
    count: usize,
) -> Result<Vec<Hypothesis>, PolicyError> {
    Ok(pick(Diverse::search(policy, mask)?.0, count))
}

/// One of the words that tell families apart.
fn family_word(token: Token) -> Option<Word> {
    let Token::Word(word) = token else { return None };
    let splits = matches!(word, Word::SplitLength | Word::SplitNonzeros);
    (splits || Layout::WORDS.contains(&word)).then_some(word)
}

/// The splits and kinds of layout of a program, in their order: what tells families apart.
#[must_use]
pub fn family(program: &Program) -> Vec<Word> {
    program.tokens().into_iter().filter_map(family_word).collect()
}

fn layouts(candidate: &Hypothesis) -> Vec<Layout> {
    candidate.program.parts().iter().map(|part| part.layout).collect()
}

fn pick(mut found: Vec<Hypothesis>, count: usize) -> Vec<Hypothesis> {
    found.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
    let mut seen = Vec::new();
    found.retain(|candidate| {
        let layouts = layouts(candidate);
        let new = !seen.contains(&layouts);
        seen.push(layouts);
        new
    });
    let mut taken = BTreeMap::<Vec<Word>, f64>::new();
    let mut picked = Vec::new();
    while picked.len() < count {
        let worth = |c: &Hypothesis| {
            c.log_probability - REPETITION * taken.get(&family(&c.program)).copied().unwrap_or(0.0)
        };
        // The first of equals: `max_by` would take the last.
        let best = found.iter().enumerate().rev().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1)));
        let Some(index) = best.map(|(index, _)| index) else { break };
        let candidate = found.remove(index);
        *taken.entry(family(&candidate.program)).or_insert(0.0) += 1.0;
        picked.push(candidate);
    }
    picked
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use alloc::sync::Arc;

    use crate::decode::{CostRanker, Policy as _, PolicyInput, beam_search};
    use crate::matrix::generate;
    use crate::structure::MatrixStats;
    use crate::target::Target;
    use crate::task::{Dtype, Operation, Task};

    #[test]
    fn candidates_differ_in_more_than_block_size() {
        let matrix = generate::rmat(10, 16, 1);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        for operation in [Operation::SpMV, Operation::SpMM { columns: 32.try_into().unwrap() }] {
            let task = Task::new(operation, Dtype::F64);
            let input = PolicyInput::new(stats.clone(), task, Target::H200);
            let mut ranker = CostRanker.read(&input).unwrap();
            let mask = Mask::legal(&stats, task);
            let picked = diverse_search(&mut *ranker, mask, 8).unwrap();
            assert_eq!(picked.len(), 8);
            let narrow = beam_search(&mut *ranker, mask, 8).unwrap();
            assert!(picked[0].log_probability >= narrow[0].log_probability - 1e-9);
            for (i, a) in picked.iter().enumerate() {
                assert!(picked[i + 1..].iter().all(|b| layouts(a) != layouts(b)));
            }
            let families: BTreeSet<Vec<Word>> =
                picked.iter().map(|found| family(&found.program)).collect();
            assert!(families.len() >= 3, "{families:?}");
        }
    }
}
