//! Takes candidates that emulation finds right, and none that it finds wrong.

use std::fmt;
use std::time::Instant;

use rayon::prelude::*;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Verification};
use sparserl_core::pipeline::{Check, NoneRight, Ranked, Taken};
use sparserl_core::task::Operation;

use super::ground::{DEFAULT_SAMPLE, Emulated, Extent, Ground, GroundError};
use super::{EmulationOptions, EmulatorError, EmulatorEvaluator};
use crate::candidate::Candidate;
use crate::compile::CubinCompiler;
use crate::compile::nvrtc::Cubin;

/// Checks the candidates for one matrix.
pub struct Checker<'m, T> {
    emulator: EmulatorEvaluator,
    ground: Ground<'m, T>,
    unjudged: Unjudged,
    /// When nothing more is emulated.
    until: Option<Instant>,
    notes: Vec<String>,
}

/// What emulation says of a right candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// How well it was right.
    pub verification: Verification,
    /// The rows that it was emulated on.
    pub extent: Extent,
}

/// What becomes of candidates that emulation says nothing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// They are taken where too few are right.
    Last,
    /// They are not taken.
    Never,
}

/// Candidates that are not known to be wrong.
#[derive(Debug)]
struct Right<C> {
    /// Right ones, then those that nothing is known of.
    candidates: Vec<(C, Option<Checked>)>,
    /// What was found out about the others and about those that nothing is known of.
    notes: Vec<String>,
}

impl<'m, T: Scalar> Checker<'m, T> {
    /// Opens an emulator of what a compiler makes, and takes rows of the matrix to check on.
    ///
    /// # Errors
    /// When there is no compiler for the architecture.
    pub fn open(
        compiler: &CubinCompiler,
        matrix: CsrView<'m, T>,
        operation: Operation,
        unjudged: Unjudged,
    ) -> Result<Self, EmulatorError> {
        let options = EmulationOptions::default();
        let emulator = EmulatorEvaluator::with_compiler(compiler.clone(), options)?;
        let ground = Ground::sampled(matrix, DEFAULT_SAMPLE, operation);
        Ok(Self { emulator, ground, unjudged, until: None, notes: Vec::new() })
    }

    /// From then on nothing is said of candidates; one that is being emulated then is given up.
    #[must_use]
    pub fn until(self, until: Option<Instant>) -> Self {
        Self { until, ..self }
    }

    fn judge(&self, ranked: &Ranked<Cubin>) -> Result<Emulated, GroundError> {
        let candidate = Candidate::Kernel(&ranked.kernel);
        match self.until {
            None => self.ground.judge(&self.emulator, candidate),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                self.ground.judge(&self.emulator.within(left), candidate)
            }
        }
    }

    /// What was found out about candidates that were not taken, and about those that nothing is
    /// known of.
    #[must_use]
    pub fn into_notes(self) -> Vec<String> {
        self.notes
    }
}

impl<T: Scalar> Check<Cubin> for Checker<'_, T> {
    type Verdict = Checked;
    type Error = NoneRight;

    /// The first that are right. One that the emulator fails on, or that does not fit the rows that
    /// it is emulated on, is `unjudged`.
    fn take(
        &mut self,
        candidates: &mut dyn Iterator<Item = Result<Ranked<Cubin>, Outcome>>,
        wanted: usize,
    ) -> Result<Vec<Taken<Cubin, Checked>>, NoneRight> {
        let judge = |ranked: &Ranked<Cubin>| self.judge(ranked);
        let right = first_right(candidates, wanted, self.unjudged, judge)?;
        self.notes.extend(right.notes);
        let taken = |(ranked, verdict)| Taken { ranked, verdict };
        Ok(right.candidates.into_iter().map(taken).collect())
    }
}

/// Takes the first `wanted` candidates that are right, or as many as there are. What has no kernel
/// is taken as little as what is judged wrong; one that the judge fails on is `unjudged`.
fn first_right<C: Send, E: fmt::Display + Send>(
    candidates: impl IntoIterator<Item = Result<C, Outcome>>,
    wanted: usize,
    unjudged: Unjudged,
    judge: impl Fn(&C) -> Result<Emulated, E> + Sync,
) -> Result<Right<C>, NoneRight> {
    let mut candidates = candidates.into_iter();
    let (mut right, mut unknown, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    // Why nothing is known, of which candidate first, and of how many more.
    let mut reasons: Vec<(String, usize, usize)> = Vec::new();
    let (mut first_fault, mut is_wrong) = (None, false);
    let mut tried = 0_usize;
    while right.len() < wanted {
        let batch: Vec<_> = candidates.by_ref().take(wanted - right.len()).collect();
        if batch.is_empty() {
            break;
        }
        let judged = batch.into_par_iter().map(|candidate: Result<C, Outcome>| {
            let candidate = candidate?;
            let emulated = judge(&candidate);
            Ok((candidate, emulated))
        });
        for judged in judged.collect::<Vec<Result<_, Outcome>>>() {
            tried += 1;
            let (candidate, emulated) = match judged {
                Ok(judged) => judged,
                Err(outcome) => {
                    let text = outcome.sentence();
                    notes.push(format!("candidate {tried} is not written: {text}"));
                    is_wrong |= outcome.is_wrong();
                    first_fault = first_fault.or(Some(text));
                    continue;
                }
            };
            let fault = match emulated {
                Ok(Emulated { judgement, extent }) => match judgement.outcome {
                    Outcome::Verified(verification) => {
                        right.push((candidate, Some(Checked { verification, extent })));
                        continue;
                    }
                    outcome => {
                        let text = format!("emulated on {extent} {}", outcome.sentence());
                        notes.push(format!("candidate {tried} is not written: {text}"));
                        is_wrong = true;
                        text
                    }
                },
                Err(error) => {
                    unknown.push((candidate, None));
                    let reason = error.to_string();
                    let text = format!("it cannot be checked: {reason}");
                    match reasons.iter_mut().find(|(known, ..)| *known == reason) {
                        Some((_, _, more)) => *more += 1,
                        None => reasons.push((reason, tried, 0)),
                    }
                    text
                }
            };
            first_fault = first_fault.or(Some(fault));
        }
    }
    notes.extend(reasons.into_iter().map(|(reason, first, more)| match more {
        0 => format!("candidate {first} cannot be checked: {reason}"),
        _ => format!("candidate {first} and {more} more cannot be checked: {reason}"),
    }));
    if unjudged == Unjudged::Last {
        let missing = wanted.saturating_sub(right.len());
        right.extend(unknown.into_iter().take(missing));
    }
    match first_fault {
        Some(first) if right.is_empty() => Err(NoneRight { tried, first, is_wrong }),
        _ => Ok(Right { candidates: right, notes }),
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::super::Judgement;

    use super::*;

    /// Says of a number that it is right where it is even.
    fn judge(number: &u32) -> Result<Emulated, &'static str> {
        let outcome = match number {
            n if n % 10 == 9 => return Err("it ends in 9"),
            n if n % 2 == 0 => Outcome::Verified(Verification { checks: *n, worst_ratio: 0.5 }),
            n => Outcome::Faulted { reason: format!("{n} races") },
        };
        let judgement = Judgement {
            outcome,
            findings: vec![],
            counters: None,
            ptx_instructions: None,
            remark: None,
        };
        let matrix = generate::stencil5(3, 3);
        Ok(Emulated { judgement, extent: Ground::whole(matrix.view()).extent() })
    }

    fn take(numbers: &[u32], wanted: usize, unjudged: Unjudged) -> Result<Right<u32>, NoneRight> {
        first_right(numbers.iter().copied().map(made), wanted, unjudged, judge)
    }

    /// There is no number above 100.
    fn made(number: u32) -> Result<u32, Outcome> {
        let reason = format!("{number} is too large");
        if number > 100 { Err(Outcome::CompileFailed { reason }) } else { Ok(number) }
    }

    /// Numbers that were taken, and whether they are known to be right.
    fn taken(taken: &Right<u32>) -> Vec<(u32, bool)> {
        let numbers = taken.candidates.iter();
        numbers.map(|&(number, checked)| (number, checked.is_some())).collect()
    }

    #[test]
    fn wrong_ones_are_passed_over_and_noted() {
        let three = take(&[2, 3, 4, 6, 8], 3, Unjudged::Never).unwrap();
        assert_eq!(taken(&three), [(2, true), (4, true), (6, true)]);
        assert_eq!(
            three.notes,
            ["candidate 2 is not written: emulated on the whole matrix it faults: 3 races"]
        );
        let made = take(&[102, 2], 1, Unjudged::Last).unwrap();
        assert_eq!(taken(&made), [(2, true)]);
        assert_eq!(
            made.notes,
            ["candidate 1 is not written: it does not compile: 102 is too large"]
        );
        let few = take(&[1, 2], 3, Unjudged::Last).unwrap();
        assert_eq!(taken(&few), [(2, true)]);
    }

    #[test]
    fn none_right_is_an_error() {
        let error = take(&[5, 7], 1, Unjudged::Last).unwrap_err().to_string();
        let text = "none of 2 candidates was found right; the first: \
                    emulated on the whole matrix it faults: 5 races";
        assert_eq!(error, text);
        assert!(take(&[], 1, Unjudged::Never).unwrap().candidates.is_empty());
    }

    #[test]
    fn unjudged_ones_come_last_and_wrong_ones_never() {
        let numbers = [3, 19, 2, 29, 5];
        let one = take(&numbers, 1, Unjudged::Last).unwrap();
        assert_eq!(taken(&one), [(2, true)]);
        let all = take(&numbers, 5, Unjudged::Last).unwrap();
        assert_eq!(taken(&all), [(2, true), (19, false), (29, false)]);
        let text = "candidate 2 and 1 more cannot be checked: it ends in 9";
        assert_eq!(all.notes.last().unwrap(), text);
        assert_eq!(all.notes.len(), 3);
        assert_eq!(taken(&take(&[3, 19], 1, Unjudged::Last).unwrap()), [(19, false)]);

        assert_eq!(taken(&take(&numbers, 5, Unjudged::Never).unwrap()), [(2, true)]);
        let error = take(&[19, 3], 2, Unjudged::Never).unwrap_err().to_string();
        let text = "none of 2 candidates was found right; the first: \
                    it cannot be checked: it ends in 9";
        assert_eq!(error, text);
    }

    #[test]
    fn no_more_are_judged_than_are_wanted() {
        let one = take(&[2, 99], 1, Unjudged::Never).unwrap();
        assert_eq!((taken(&one), one.notes.len()), (vec![(2, true)], 0));
    }
}
