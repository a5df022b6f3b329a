//! Answers from a store.

use std::collections::{BTreeSet, HashMap};

use sparserl_core::kernel::Candidate;
use sparserl_core::language::{Program, grammar_hash, layouts_changed_since};
use sparserl_core::matrix::{CsrView, Fingerprint, Scalar};
use sparserl_core::outcome::{Abilities, Evaluation, Evaluator};
use sparserl_core::results::ValueSource;

use super::{Recording, Recordings};
use crate::candidate::raw::RawKernel;
use crate::compile::nvrtc::Cubin;
use crate::store::fingerprint::content_hash;

/// An [`Evaluator`] that knows what was recorded, whatever it was recorded with: see
/// [`Recordings::retain`].
///
/// Of a program that was judged several times on one matrix with values of one source, the latest
/// outcome counts. Baselines and copy bandwidth are those of the evaluation that the outcomes come
/// from; of several, of the latest one that has baselines.
#[derive(Debug)]
pub struct Replay {
    recordings: Recordings,
    /// Evaluation and place in it of the latest outcome of a matrix and a program.
    places: HashMap<Key, (usize, usize)>,
    /// What is asked about next.
    matrix: Option<(Fingerprint, ValueSource)>,
}

/// What an outcome is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Of the matrix as it was read, whichever values were multiplied.
    matrix: Fingerprint,
    /// A program that is right, or fast, with the values of the file need not be with others.
    value_source: ValueSource,
    /// Its text, which names the task.
    program: String,
}

impl Replay {
    /// Answers from these recordings.
    ///
    /// # Errors
    /// When one of them was made with a grammar whose programs may have another meaning today.
    pub fn new(recordings: Recordings) -> Result<Self, ReplayError> {
        let mut places = HashMap::new();
        for (at, recording) in recordings.as_slice().iter().enumerate() {
            let found = recording.language.grammar_hash;
            let version = recording.language.version;
            let Some(changed) = layouts_changed_since(found) else {
                return Err(ReplayError::Grammar { found, version, expected: grammar_hash() });
            };
            for (i, program) in recording.programs.iter().enumerate() {
                // Texts of earlier versions are looked up as they are written today. What cannot be
                // read, nobody asks for; kernels that have changed since have other outcomes.
                let Ok(program) = Program::parse(program) else { continue };
                if program.parts().iter().any(|part| changed.contains(&part.layout.word())) {
                    continue;
                }
                let key = Key {
                    matrix: recording.matrix.fingerprint,
                    value_source: recording.context.value_source,
                    program: program.to_string(),
                };
                places.insert(key, (at, i));
            }
        }
        Ok(Self { recordings, places, matrix: None })
    }

    /// Answers about the matrix with this fingerprint and such values from now on. Without it, the
    /// matrices asked about are taken to be as they were read, with the values of their files,
    /// which those that were rounded, or given other values, are not.
    pub fn set_matrix(&mut self, fingerprint: Fingerprint, value_source: ValueSource) {
        self.matrix = Some((fingerprint, value_source));
    }

    /// What is known of programs for a matrix; no kernels need be made of them.
    ///
    /// # Errors
    /// When one of them was not recorded.
    pub fn evaluate<'p, T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        programs: impl IntoIterator<Item = &'p Program>,
    ) -> Result<Evaluation, ReplayError> {
        let as_read = || (Fingerprint::from(*content_hash(matrix).as_bytes()), ValueSource::File);
        let (matrix, value_source) = self.matrix.unwrap_or_else(as_read);
        let (mut outcomes, mut sources) = (Vec::new(), Vec::new());
        for program in programs {
            let key = Key { matrix, value_source, program: program.to_string() };
            let recorded = self.places.get(&key).and_then(|&(at, i)| {
                let evaluation = &self.recordings.as_slice().get(at)?.evaluation;
                Some((at, evaluation, evaluation.outcomes.get(i)?))
            });
            let Some((at, evaluation, outcome)) = recorded else {
                let program = key.program.lines().map(str::trim).collect::<Vec<_>>().join("; ");
                return Err(ReplayError::Unknown { matrix, value_source, program });
            };
            outcomes.push(outcome.clone());
            sources.push((!evaluation.baselines.is_empty(), at, evaluation));
        }
        let source = sources.into_iter().max_by_key(|&(measured, at, _)| (measured, at));
        Ok(Evaluation {
            outcomes,
            baselines: source.map(|(.., e)| e.baselines.clone()).unwrap_or_default(),
            copy_bandwidth: source.and_then(|(.., e)| e.copy_bandwidth),
        })
    }
}

impl Evaluator for Replay {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = ReplayError;

    fn abilities(&self) -> Abilities {
        let protocols = self.recordings.as_slice().iter().map(|r| r.context.protocol.as_str());
        let protocols: BTreeSet<&str> = protocols.collect();
        let protocol = protocols.into_iter().collect::<Vec<_>>().join("+");
        let is_timed = |recording: &Recording| {
            recording.evaluation.outcomes.iter().any(|outcome| outcome.measurement().is_some())
        };
        let times = self.recordings.as_slice().iter().any(is_timed);
        Abilities { times, findings: false, cuda: false, protocol }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate<'_, Cubin, RawKernel>],
    ) -> Result<Evaluation, ReplayError> {
        let programs: Option<Vec<_>> = candidates.iter().map(Candidate::program).collect();
        self.evaluate(matrix, programs.ok_or(ReplayError::Cuda)?)
    }
}

/// A replay has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Recordings are of programs.
    #[error("there are no recordings of CUDA from anywhere: judge it on a GPU, or emulate it")]
    Cuda,
    /// A recording of another language.
    #[error(
        "cannot replay recordings of grammar {found:016x} (language version {version}): this program has grammar \
         {expected:016x}; record anew, or leave them out"
    )]
    Grammar {
        /// Hash of the recording's grammar.
        found: u64,
        /// Version of the recording's language.
        version: u32,
        /// Hash of the grammar of today.
        expected: u64,
    },
    /// Nobody recorded this.
    #[error(
        "no recording for matrix {matrix} with values `{}` of the program `{program}`: record it on a GPU first",
        value_source.name()
    )]
    Unknown {
        /// The matrix's fingerprint.
        matrix: Fingerprint,
        /// Where the values come from that it is to be multiplied with.
        value_source: ValueSource,
        /// The program on one line.
        program: String,
    },
}
