//! Takes candidates that emulation finds right.

use std::sync::Arc;

use rayon::prelude::*;
use sparserl_core::decode::Candidate;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Verification};
use sparserl_core::task::Operation;
use sparserl_gpu::Architecture;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator, Subject};
use sparserl_gpu::nvrtc::Compilers;

use crate::emulation::{self, DEFAULT_SAMPLE, Emulated, Extent, Ground};

/// Checks the candidates for one matrix.
pub(crate) struct Checker<'m, T> {
    emulator: EmulatorEvaluator,
    ground: Ground<'m, T>,
}

/// What emulation says of a right candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Checked {
    pub(crate) verification: Verification,
    pub(crate) extent: Extent,
}

/// Candidates that are right, and why others are not among them.
#[derive(Debug)]
pub(crate) struct Taken<C> {
    pub(crate) right: Vec<(C, Checked)>,
    pub(crate) notes: Vec<String>,
}

impl<'m, T: Scalar> Checker<'m, T> {
    pub(crate) fn open(
        compilers: Arc<Compilers>,
        architecture: Architecture,
        matrix: CsrView<'m, T>,
        operation: Operation,
    ) -> Result<Self, String> {
        let emulator = emulation::open(compilers, architecture, EmulationOptions::default())?;
        Ok(Self { emulator, ground: Ground::sampled(matrix, DEFAULT_SAMPLE, operation) })
    }

    /// Judges a candidate.
    ///
    /// # Errors
    /// When the emulator fails, or when the candidate does not fit what it is emulated on.
    pub(crate) fn judge(&self, candidate: &Candidate) -> anyhow::Result<Emulated> {
        self.ground.judge(&self.emulator, Subject::Program(&candidate.program))
    }
}

/// Candidates cannot be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// All that there are are wrong.
    #[error("none of {tried} candidates is right; the first: {first}")]
    NoneRight {
        /// How many there are.
        tried: usize,
        /// What became of the first.
        first: String,
    },
    /// Nothing is known of them.
    #[error(transparent)]
    Judge(#[from] anyhow::Error),
}

/// Takes the first `wanted` candidates that are right, or as many as there are.
///
/// # Errors
/// When the judge fails, or when there are candidates and none is right.
pub(crate) fn first_right<C: Send>(
    candidates: impl IntoIterator<Item = C>,
    wanted: usize,
    judge: impl Fn(&C) -> anyhow::Result<Emulated> + Sync,
) -> Result<Taken<C>, CheckError> {
    let mut candidates = candidates.into_iter();
    let mut taken = Taken { right: Vec::new(), notes: Vec::new() };
    let mut first_wrong = None;
    let mut tried = 0_usize;
    while taken.right.len() < wanted {
        let batch: Vec<C> = candidates.by_ref().take(wanted - taken.right.len()).collect();
        if batch.is_empty() {
            break;
        }
        let judged = batch.into_par_iter().map(|candidate| {
            let emulated = judge(&candidate)?;
            Ok((candidate, emulated))
        });
        for (candidate, emulated) in judged.collect::<anyhow::Result<Vec<_>>>()? {
            tried += 1;
            let Emulated { judgement, extent } = emulated;
            match judgement.outcome {
                Outcome::Verified(verification) => {
                    taken.right.push((candidate, Checked { verification, extent }));
                }
                outcome => {
                    let text = format!("emulated on {extent} it {outcome}");
                    taken.notes.push(format!("candidate {tried} is not written: {text}"));
                    first_wrong = first_wrong.or(Some(text));
                }
            }
        }
    }
    match first_wrong {
        Some(first) if taken.right.is_empty() => Err(CheckError::NoneRight { tried, first }),
        _ => Ok(taken),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use sparserl_core::matrix::generate;
    use sparserl_gpu::emulated::Judgement;

    use super::*;

    /// Says of a number that it is right where it is even.
    fn judge(number: &u32) -> anyhow::Result<Emulated> {
        let outcome = match number {
            99 => bail!("the emulator is gone"),
            n if n % 2 == 0 => Outcome::Verified(Verification { checks: *n, worst_ratio: 0.5 }),
            n => Outcome::Faulted { reason: format!("{n} races") },
        };
        let judgement =
            Judgement { outcome, findings: vec![], counters: None, ptx_instructions: None };
        let matrix = generate::stencil5(3, 3);
        Ok(Emulated { judgement, extent: Ground::whole(matrix.view()).extent() })
    }

    fn right(taken: &Taken<u32>) -> Vec<u32> {
        taken.right.iter().map(|&(number, _)| number).collect()
    }

    #[test]
    fn wrong_ones_are_passed_over_and_noted() {
        let taken = first_right([2, 3, 4, 6, 8], 3, judge).unwrap();
        assert_eq!(right(&taken), [2, 4, 6]);
        assert_eq!(
            taken.notes,
            ["candidate 2 is not written: emulated on the whole matrix it faults: 3 races"]
        );
        let few = first_right([1, 2], 3, judge).unwrap();
        assert_eq!(right(&few), [2]);
    }

    #[test]
    fn none_right_is_an_error_and_so_is_a_broken_judge() {
        let error = first_right([5, 7], 1, judge).unwrap_err().to_string();
        let text = "none of 2 candidates is right; the first: emulated on the whole matrix it faults: 5 races";
        assert_eq!(error, text);
        assert!(first_right([], 1, judge).unwrap().right.is_empty());
        let broken = first_right([3, 99], 2, judge).unwrap_err();
        assert!(matches!(broken, CheckError::Judge(_)), "{broken}");
    }

    #[test]
    fn no_more_are_judged_than_are_wanted() {
        assert_eq!(right(&first_right([2, 99], 1, judge).unwrap()), [2]);
    }
}
