//! What recordings say of the matrices of a corpus: what is learned from and fitted to.
//!
//! Times are compared within a [`MeasuredCase`] only, and as speeds relative to the
//! [`reference()`] program that was measured with them, so that neither the size of a matrix nor
//! what drifts over hours is learned as a property of a program.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use sparserl_core::language::{
    Program, TextError, Token, Word, grammar_hash, layouts_changed_since,
};
use sparserl_core::outcome::{Outcome, Regime, Tier};
use sparserl_core::results::ValueSource;
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_gpu::store::recording::Recording;
use sparserl_onnx_models::reference::reference;
use sparserl_onnx_models::speeds::REGIMES;

use crate::corpus::{Recipe, RecipeError};

/// Until then, in seconds since 1970 (2026-11-23, 01:30 UTC), chains were timed with what the
/// programs before had left in the cache, their common arrays among it. One that streams large
/// arrays, and so keeps them out of the cache, takes up to 1.4 times as long in a chain of its own.
const CHAINS_WARM_THEMSELVES_SINCE: Duration = Duration::from_secs(1_795_397_400);
/// Matrices from this size on are large, in bytes of plain CSR without its offsets: with 7 MB it
/// made no difference, with 17 and 26 MB it did (H100, two matrices).
const LARGE_MATRIX: usize = 10_000_000;

/// All that was measured on one matrix for one task and GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCase {
    /// How the matrix is made.
    pub recipe: Recipe,
    /// Entries of the matrix.
    pub nnz: usize,
    /// Where its values come from.
    pub value_source: ValueSource,
    /// What was computed.
    pub task: Task,
    /// On which GPU.
    pub target: Target,
    /// The programs, each once, in the order of their first measurements; the reference among them.
    pub programs: Vec<MeasuredProgram>,
}

/// A program and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredProgram {
    /// The program.
    pub program: Program,
    /// How far it came.
    pub tier: Tier,
    /// Its speed with a cold cache; `None` where it was not timed.
    pub cold: Option<Speed>,
    /// Its speed in a chain, with a warm cache.
    pub warm: Option<Speed>,
}

/// Times of programs that are measured one after the other, against the last reference before each.
#[derive(Debug)]
pub(crate) struct AgainstReference {
    reference: Program,
    /// Of the last reference, in [`REGIMES`].
    seconds: [Option<f64>; REGIMES.len()],
}

/// How fast a program was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// log2(t_reference ÷ t): 1 where it took half of the reference's time.
    pub relative: f64,
    /// t, in seconds.
    pub seconds: f64,
}

/// Recordings that cannot be learned from.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// They are of another language than this one.
    #[error(
        "a recording of {name} is in a language with grammar {found:016x}, this one has \
         {expected:016x}: collect anew"
    )]
    Language {
        /// The matrix.
        name: String,
        /// Hash of its grammar.
        found: u64,
        /// Hash of the grammar of today.
        expected: u64,
    },
    /// A matrix is not named by a recipe.
    #[error("`{name}` is recorded, but no recipe of a corpus: {source}")]
    Recipe {
        /// Its name.
        name: String,
        /// The reason.
        source: RecipeError,
    },
    /// A text is no program.
    #[error("a recorded program of {name} cannot be read: {source}")]
    Program {
        /// The matrix.
        name: String,
        /// The reason.
        source: TextError,
    },
}

impl MeasuredCase {
    /// The cases of some recordings, in the order in which they were begun.
    ///
    /// # Errors
    /// When a recording is of another language or its matrix of no corpus.
    pub fn all<'r>(
        recordings: impl IntoIterator<Item = &'r Recording>,
    ) -> Result<Vec<Self>, MeasuredError> {
        let mut cases: Vec<Self> = Vec::new();
        let mut numbers = BTreeMap::new();
        for recording in recordings {
            let key =
                (recording.matrix.name.as_str(), recording.task, recording.context.device.target);
            let number = match numbers.get(&key) {
                Some(&number) => number,
                None => {
                    cases.push(Self::of(recording)?);
                    numbers.insert(key, cases.len() - 1);
                    cases.len() - 1
                }
            };
            if let Some(case) = cases.get_mut(number) {
                case.add(recording)?;
            }
        }
        Ok(cases)
    }

    fn of(recording: &Recording) -> Result<Self, MeasuredError> {
        let name = &recording.matrix.name;
        let recipe =
            name.parse().map_err(|source| MeasuredError::Recipe { name: name.clone(), source })?;
        Ok(Self {
            recipe,
            nnz: recording.matrix.nnz,
            value_source: recording.context.value_source,
            task: recording.task,
            target: recording.context.device.target,
            programs: Vec::new(),
        })
    }

    /// Adds what one evaluation found. Each program is compared with the last reference before it;
    /// of one that was measured before, the first measurement stays, unless it lacks the warm time
    /// that the new one has. Programs whose kernels have changed since are left out, as are warm
    /// times that would be longer today.
    fn add(&mut self, recording: &Recording) -> Result<(), MeasuredError> {
        let name = &recording.matrix.name;
        let found = recording.language.grammar_hash;
        let Some(changed) = layouts_changed_since(found) else {
            let expected = grammar_hash();
            return Err(MeasuredError::Language { name: name.clone(), found, expected });
        };
        let failed = |source| MeasuredError::Program { name: name.clone(), source };
        let mut compared = AgainstReference::new(self.task).map_err(failed)?;
        for (text, outcome) in recording.programs.iter().zip(&recording.evaluation.outcomes) {
            let program = Program::parse(text).map_err(failed)?;
            let [cold, warm] = compared.next(&program, outcome);
            let warm = warm.filter(|_| !is_too_fast(recording, &program));
            if has_layout_among(&program, changed) {
                continue;
            }
            let known = self.programs.iter_mut().find(|known| known.program == program);
            let measured = MeasuredProgram { program, tier: outcome.tier(), cold, warm };
            match known {
                None => self.programs.push(measured),
                Some(known) if known.warm.is_none() && warm.is_some() => *known = measured,
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Whether a part of the program has one of these layouts, as those whose kernels have changed.
pub(crate) fn has_layout_among(program: &Program, layouts: &[Word]) -> bool {
    program.parts().iter().any(|part| layouts.contains(&part.layout.word()))
}

/// Whether a recorded chain of the program was too fast, because its arrays were in the cache
/// already.
fn is_too_fast(recording: &Recording, program: &Program) -> bool {
    let until = SystemTime::UNIX_EPOCH + CHAINS_WARM_THEMSELVES_SINCE;
    let entry = size_of::<u32>() + recording.task.precision.matrix().size();
    recording.time < until
        && recording.matrix.nnz.saturating_mul(entry) >= LARGE_MATRIX
        && program.tokens().contains(&Token::Word(Word::Streamed))
}

impl AgainstReference {
    /// Of programs for a task, none of which was measured yet.
    ///
    /// # Errors
    /// When the language lacks the reference program.
    pub(crate) fn new(task: Task) -> Result<Self, TextError> {
        Ok(Self { reference: reference(task)?, seconds: [None; REGIMES.len()] })
    }

    /// The speeds of the next program, in [`REGIMES`].
    pub(crate) fn next(
        &mut self,
        program: &Program,
        outcome: &Outcome,
    ) -> [Option<Speed>; REGIMES.len()] {
        let seconds = REGIMES.map(|regime| median(outcome, regime));
        if *program == self.reference {
            self.seconds = seconds;
        }
        std::array::from_fn(|regime| {
            let (reference, seconds) = (self.seconds[regime]?, seconds[regime]?);
            Some(Speed { relative: (reference / seconds).log2(), seconds })
        })
    }
}

impl MeasuredProgram {
    /// Whether it was right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.tier == Tier::Right
    }

    /// Its speed in a regime.
    #[must_use]
    pub fn speed(&self, regime: Regime) -> Option<Speed> {
        match regime {
            Regime::Cold => self.cold,
            Regime::Warm => self.warm,
            Regime::BackToBack => None,
        }
    }
}

/// The median time of an outcome in a regime, if it was right and timed in it.
pub(crate) fn median(outcome: &Outcome, regime: Regime) -> Option<f64> {
    outcome.measurement()?.timing.median(regime)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sparserl_gpu::store::recording::Recordings;

    use super::*;

    #[test]
    fn the_reference_has_no_speed_relative_to_itself_and_every_program_is_there_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22");
        let recordings = Recordings::read(folder).unwrap();
        let cases = MeasuredCase::all(&recordings).unwrap();
        let matrices: std::collections::BTreeSet<String> =
            cases.iter().map(|case| case.recipe.to_string()).collect();
        assert_eq!((matrices.len(), cases.len()), (54, 3 * 54));
        for case in &cases {
            let reference = reference(case.task).unwrap();
            let first = &case.programs[0];
            assert_eq!(first.program, reference);
            assert!([first.cold, first.warm].iter().all(|speed| speed.unwrap().relative == 0.0));
            let mut texts: Vec<String> =
                case.programs.iter().map(|known| known.program.to_string()).collect();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), case.programs.len());
            assert!(
                case.programs
                    .iter()
                    .all(|known| known.is_right() && known.program.task == case.task)
            );
        }
    }

    #[test]
    fn chains_of_large_streamed_arrays_count_since_they_warm_themselves() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22");
        let recordings = Recordings::read(folder).unwrap();
        let streams = |program: &Program| program.tokens().contains(&Token::Word(Word::Streamed));
        let timed = |case: &MeasuredCase, streamed: bool| -> Vec<bool> {
            let right = case.programs.iter().filter(|known| known.is_right());
            let right = right.filter(|known| streams(&known.program) == streamed);
            right.map(|known| known.warm.is_some()).collect()
        };
        let (mut large, mut small) = (0, 0);
        for recording in &recordings {
            let case = MeasuredCase::all([recording]).unwrap().remove(0);
            assert!(timed(&case, false).iter().all(|is_timed| *is_timed));
            let entry = 4 + recording.task.precision.matrix().size();
            if recording.matrix.nnz * entry < LARGE_MATRIX {
                small += timed(&case, true).len();
                assert!(timed(&case, true).iter().all(|is_timed| *is_timed));
                continue;
            }
            large += timed(&case, true).len();
            assert!(!timed(&case, true).iter().any(|is_timed| *is_timed));
            // What is measured again has its time, whatever the older recording lacks.
            let time = SystemTime::UNIX_EPOCH + CHAINS_WARM_THEMSELVES_SINCE;
            let today = Recording { time, ..recording.clone() };
            let case = MeasuredCase::all([recording, &today]).unwrap().remove(0);
            assert!(timed(&case, true).iter().all(|is_timed| *is_timed));
        }
        assert!(large > 0 && small > 0, "{large} of large matrices, {small} of small ones");
    }
}
