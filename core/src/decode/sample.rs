use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound;

use super::choice::{draw, log_probabilities};
use super::policy::predict;
use super::prefix::Path;
use super::{BatchRow, ConditionedPolicy, PolicyError};
use crate::language::{Mask, Program, ProgramError, Token};
use crate::random::SplitMix64;
use crate::task::Task;

/// The tokens that a sampler may choose.
#[derive(Clone, Copy, Debug)]
pub enum Decoding<'f> {
    /// Those that a mask offers: every trajectory ends in a program.
    Masked(Mask<'f>),
    /// Any token at any time: not even the syntax is forced. A trajectory ends with the first token
    /// that completes a program or that no program goes on with, since nothing after it would
    /// change what has come out, or after `most_tokens`.
    Free {
        /// What the programs are for.
        task: Task,
        /// Tokens after which a program is given up.
        most_tokens: usize,
    },
    /// Those with which one of some programs goes on: every trajectory ends in one of them, as it
    /// has to where nothing is known of others. Without programs, trajectories are empty.
    Among {
        /// What the programs are for.
        task: Task,
        /// Their tokens.
        programs: &'f BTreeSet<Vec<Token>>,
    },
}

impl<'f> Decoding<'f> {
    /// The mask whose programs a path follows.
    fn mask(self) -> Mask<'f> {
        match self {
            Self::Masked(mask) => mask,
            Self::Free { task, .. } | Self::Among { task, .. } => Mask::free(task),
        }
    }

    fn offers(self, path: &Path) -> Vec<Token> {
        match self {
            Self::Masked(mask) => path.legal(mask).iter().map(|a| a.token).collect(),
            Self::Free { .. } => Token::all().collect(),
            Self::Among { programs, .. } => next_tokens(programs, &path.prefix().tokens()),
        }
    }

    fn gives_up(self, tokens: usize) -> bool {
        matches!(self, Self::Free { most_tokens, .. } if tokens >= most_tokens)
    }
}

/// The tokens with which programs go on that begin with `prefix`, each once.
pub(super) fn next_tokens(programs: &BTreeSet<Vec<Token>>, prefix: &[Token]) -> Vec<Token> {
    let not_before = (Bound::Included(prefix), Bound::Unbounded);
    let begin_so = programs.range::<[Token], _>(not_before).take_while(|p| p.starts_with(prefix));
    let mut next: Vec<Token> =
        begin_so.filter_map(|program| program.get(prefix.len()).copied()).collect();
    // Programs are in order, so that those with the same token stand together.
    next.dedup();
    next
}

/// A token of a [`Trajectory`], and what was known when it was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct TrajectoryStep {
    /// The token.
    pub token: Token,
    /// Its log-probability among those that were offered, at the sampler's temperature.
    pub log_probability: f64,
    /// The tokens that were offered.
    pub legal: Vec<Token>,
    /// The reward that the policy expected before the token, where it estimates that.
    pub value: Option<f32>,
}

/// A program as it was written, token by token.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The tokens.
    pub steps: Vec<TrajectoryStep>,
    /// The program, or why it is none.
    pub end: Result<Program, ProgramError>,
}

impl Trajectory {
    /// The tokens.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        self.steps.iter().map(|step| step.token)
    }

    /// The log-probability of all tokens.
    #[must_use]
    pub fn log_probability(&self) -> f64 {
        self.steps.iter().map(|step| step.log_probability).sum()
    }
}

/// A trajectory drawn from a policy at a temperature (1: as the policy says; near 0: greedy). The
/// same seed gives the same one.
///
/// # Errors
/// When the policy fails.
pub fn sample(
    policy: &mut dyn ConditionedPolicy,
    decoding: Decoding<'_>,
    temperature: f64,
    seed: u64,
) -> Result<Trajectory, PolicyError> {
    let mut random = SplitMix64::new(seed);
    let mut found = walk(policy, decoding, temperature, 1, |_, logs, _| draw(logs, &mut random))?;
    Ok(found.remove(0))
}

/// Draws a program for each of some seeds, as [`sample`] does for one, in one batch.
///
/// # Errors
/// When the policy fails.
pub fn sample_batch(
    policy: &mut dyn ConditionedPolicy,
    decoding: Decoding<'_>,
    temperature: f64,
    seeds: &[u64],
) -> Result<Vec<Trajectory>, PolicyError> {
    let mut random: Vec<SplitMix64> = seeds.iter().map(|&seed| SplitMix64::new(seed)).collect();
    walk(policy, decoding, temperature, seeds.len(), |walker, logs, _| {
        draw(logs, &mut random[walker])
    })
}

/// The trajectory of given tokens: what a policy says of each, having been led to it. It ends
/// before a token that is not offered.
///
/// # Errors
/// When the policy fails.
pub fn score(
    policy: &mut dyn ConditionedPolicy,
    decoding: Decoding<'_>,
    temperature: f64,
    tokens: &[Token],
) -> Result<Trajectory, PolicyError> {
    let mut given = tokens.iter();
    let mut found = walk(policy, decoding, temperature, 1, |_, _, offered| {
        let token = given.next()?;
        offered.iter().position(|offered| offered == token)
    })?;
    Ok(found.remove(0))
}

/// A trajectory being written.
struct Walker {
    index: usize,
    path: Path,
    parent: Option<usize>,
}

/// Writes `count` trajectories side by side. `choose` gets the number of one, and the
/// log-probabilities and tokens that are offered to it; when it chooses none, that one ends.
fn walk(
    policy: &mut dyn ConditionedPolicy,
    decoding: Decoding<'_>,
    temperature: f64,
    count: usize,
    mut choose: impl FnMut(usize, &[f64], &[Token]) -> Option<usize>,
) -> Result<Vec<Trajectory>, PolicyError> {
    let mask = decoding.mask();
    let mut steps: Vec<Vec<TrajectoryStep>> = alloc::vec![Vec::new(); count];
    let walker = |index| Walker { index, path: Path::start(), parent: None };
    let mut open: Vec<Walker> = (0..count).map(walker).collect();
    open.retain(|walker| !decoding.gives_up(walker.path.prefix().len()));
    while !open.is_empty() {
        let row = |w: &Walker| (w.parent, w.path.prefix().clone());
        let rows: Vec<_> = open.iter().map(row).collect();
        let batch: Vec<_> =
            rows.iter().map(|(parent, prefix)| BatchRow { parent: *parent, prefix }).collect();
        let predictions = predict(policy, &batch)?;
        let mut next = Vec::new();
        for ((row, Walker { index, path, .. }), prediction) in
            open.into_iter().enumerate().zip(predictions)
        {
            let legal = decoding.offers(&path);
            let logs = log_probabilities(legal.iter().copied(), &prediction.logits, temperature);
            let Some(chosen) = choose(index, &logs, &legal) else { continue };
            let (token, log_probability) = (legal[chosen], logs[chosen]);
            let value = prediction.value;
            steps[index].push(TrajectoryStep { token, log_probability, legal, value });
            let path = path.with_token(token, mask);
            let goes_on =
                |path: &Path| !path.is_complete() && !decoding.gives_up(path.prefix().len());
            let walker = |path| Walker { index, path, parent: Some(row) };
            next.extend(path.filter(goes_on).map(walker));
        }
        open = next;
    }
    let finish = |steps: Vec<TrajectoryStep>| {
        let tokens: Vec<Token> = steps.iter().map(|step| step.token).collect();
        Trajectory { steps, end: Program::from_tokens(mask.task(), &tokens) }
    };
    Ok(steps.into_iter().map(finish).collect())
}
