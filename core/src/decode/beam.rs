use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::choice::log_probabilities;
use super::policy::predict;
use super::prefix::Path;
use super::sample::next_tokens;
use super::{BatchRow, ConditionedPolicy, PolicyError};
use crate::language::grammar::Alternative;
use crate::language::{Mask, Program, Token};
use crate::matrix::tasks::{self, Sharable};
use crate::task::Task;

/// A program and how likely the policy finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// The program.
    pub program: Program,
    /// Sum of its tokens' log-probabilities among those that were legal.
    pub log_probability: f64,
}

/// A program being written.
pub(super) struct Beam {
    pub(super) path: Path,
    /// Row of the last batch that the policy was asked for which it continues.
    parent: Option<usize>,
    log_probability: f64,
}

/// A beam and a token that it may go on with.
pub(super) struct Step<'b> {
    pub(super) beam: &'b Beam,
    /// Row of the last batch that the policy was asked for which it continues.
    parent: Option<usize>,
    pub(super) alternative: Alternative,
    /// Of the beam and the token.
    pub(super) log_probability: f64,
}

/// The most likely programs that a beam of some width finds, best first; at most `width` of them.
/// A width of 1 is greedy decoding.
///
/// # Errors
/// When the policy fails.
pub fn beam_search(
    policy: &mut dyn ConditionedPolicy,
    mask: Mask<'_>,
    width: usize,
) -> Result<Vec<Hypothesis>, PolicyError> {
    search_width(policy, mask.task(), |path| path.legal(mask), width)
}

/// The most likely of some programs that a beam of some width finds, best first; at most `width` of
/// them. Of the tokens at a place only those count with which one of the programs goes on, so that
/// probabilities are those among the programs, not those under a mask.
///
/// # Errors
/// When the policy fails.
pub fn beam_search_among(
    policy: &mut dyn ConditionedPolicy,
    task: Task,
    programs: &BTreeSet<Vec<Token>>,
    width: usize,
) -> Result<Vec<Hypothesis>, PolicyError> {
    let legal = |path: &Path| {
        let next = next_tokens(programs, &path.prefix().tokens());
        let mut alternatives = path.legal(Mask::free(task));
        alternatives.retain(|alternative| next.contains(&alternative.token));
        alternatives
    };
    search_width(policy, task, legal, width)
}

/// A beam of some width, with what programs may go on with.
fn search_width(
    policy: &mut dyn ConditionedPolicy,
    task: Task,
    legal: impl Fn(&Path) -> Vec<Alternative> + Sharable,
    width: usize,
) -> Result<Vec<Hypothesis>, PolicyError> {
    let mut complete = search_legal(policy, task, legal, |steps| steps.truncate(width))?;
    complete.truncate(width);
    Ok(complete)
}

/// All programs that a beam finds, best first. `prune` drops steps from a list of them, best first.
pub(super) fn search(
    policy: &mut dyn ConditionedPolicy,
    mask: Mask<'_>,
    prune: impl FnMut(&mut Vec<Step<'_>>),
) -> Result<Vec<Hypothesis>, PolicyError> {
    search_legal(policy, mask.task(), |path| path.legal(mask), prune)
}

/// As [`search`], with what programs may go on with.
fn search_legal(
    policy: &mut dyn ConditionedPolicy,
    task: Task,
    legal: impl Fn(&Path) -> Vec<Alternative> + Sharable,
    mut prune: impl FnMut(&mut Vec<Step<'_>>),
) -> Result<Vec<Hypothesis>, PolicyError> {
    let mut open = alloc::vec![Beam { path: Path::start(), parent: None, log_probability: 0.0 }];
    let mut complete: Vec<Hypothesis> = Vec::new();
    while !open.is_empty() {
        // What is legal depends on statistics of the matrix, which take longer than the rest.
        let legal = tasks::map(open.iter().collect(), |beam: &Beam| legal(&beam.path));
        // Where no program has a choice, there is nothing to ask.
        let asks = legal.iter().any(|alternatives| alternatives.len() > 1);
        let predictions = if asks {
            let batch: Vec<BatchRow<'_>> = open
                .iter()
                .map(|beam| BatchRow { parent: beam.parent, prefix: beam.path.prefix() })
                .collect();
            predict(policy, &batch)?
        } else {
            Vec::new()
        };
        let mut steps: Vec<Step<'_>> = Vec::new();
        for ((row, beam), legal) in open.iter().enumerate().zip(legal) {
            let tokens = legal.iter().map(|alternative| alternative.token);
            let logits = predictions.get(row).map_or(&[][..], |prediction| &prediction.logits);
            let logs = log_probabilities(tokens, logits, 1.0);
            let parent = if asks { Some(row) } else { beam.parent };
            steps.extend(legal.into_iter().zip(logs).map(|(alternative, log)| {
                let log_probability = beam.log_probability + log;
                Step { beam, parent, alternative, log_probability }
            }));
        }
        // Stable, so that ties fall to the grammar's own order of alternatives.
        steps.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        prune(&mut steps);
        let mut next = Vec::new();
        for Step { beam, parent, alternative, log_probability } in steps {
            let path = beam.path.with(&alternative);
            if !path.is_complete() {
                next.push(Beam { path, parent, log_probability });
            } else if let Ok(program) = Program::from_tokens(task, &path.prefix().tokens()) {
                complete.push(Hypothesis { program, log_probability });
            }
        }
        open = next;
    }
    complete.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
    Ok(complete)
}
