//! Has programs judged and recorded, with the reference program among them wherever kernels are
//! timed in turn.

use std::sync::Arc;

use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, MatrixIdentity, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator};
use sparserl_core::pipeline::{Made, TOGETHER};
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;
use sparserl_gpu::store::recording::{Context, Recorder};

use super::{CollectError, Collected};

/// Programs between two measurements of the reference: each of the batches in which kernels are
/// timed in turn has one.
pub const BETWEEN_REFERENCES: usize = TOGETHER - 1;

/// Who measures, and where that is written.
#[derive(Debug)]
pub(crate) struct Judge<E> {
    evaluator: E,
    pub(crate) recorder: Recorder,
    context: Context,
    pub(crate) collected: Collected,
}

/// A matrix on its way through its tasks.
#[derive(Debug)]
pub(crate) struct Subject<T> {
    pub(crate) matrix: Arc<Csr<T>>,
    pub(crate) identity: Arc<MatrixIdentity>,
    pub(crate) value_source: ValueSource,
}

impl<E: Evaluator> Judge<E> {
    /// One that has judged nothing; `context` is the evaluator's.
    pub(crate) fn new(evaluator: E, recorder: Recorder, context: Context) -> Self {
        Self { evaluator, recorder, context, collected: Collected::default() }
    }

    /// Judges and records programs of a task, whose kernels are made; `None` where nothing can be
    /// verified for the matrix and task.
    ///
    /// # Errors
    /// When the evaluator itself fails, or recordings cannot be written.
    pub(crate) fn judge<T: Scalar, K>(
        &mut self,
        subject: &Subject<T>,
        (task, programs): (Task, &[Program]),
        made: &Made<E::Code>,
    ) -> Result<Option<Evaluation>, CollectError<E::Error, K>> {
        let matrix = subject.matrix.view();
        let evaluation = match made.judge(matrix, &mut self.evaluator) {
            Ok(evaluation) => evaluation,
            Err(source) if E::is_unverifiable(&source) => return Ok(None),
            Err(source) => {
                let matrix = subject.identity.name.clone();
                return Err(CollectError::Evaluator { matrix, task, source });
            }
        };
        self.context.value_source = subject.value_source;
        self.recorder.record::<T>(&subject.identity, programs, &evaluation, &self.context)?;
        self.collected.programs += programs.len() as u64;
        let right = evaluation.outcomes.iter().filter(|outcome| outcome.is_right());
        self.collected.right += right.count() as u64;
        Ok(Some(evaluation))
    }
}

impl<T> Clone for Subject<T> {
    fn clone(&self) -> Self {
        let (matrix, identity) = (Arc::clone(&self.matrix), Arc::clone(&self.identity));
        Self { matrix, identity, value_source: self.value_source }
    }
}

/// Programs with the reference before every few of them.
pub(crate) fn with_references(reference: &Program, programs: &[Program]) -> Vec<Program> {
    let chunk = |chunk: &[Program]| std::iter::once(reference.clone()).chain(chunk.to_vec());
    programs.chunks(BETWEEN_REFERENCES).flat_map(chunk).collect()
}

/// What is found of the programs alone, of what is found in the order of [`with_references`].
pub(crate) fn without_references<T>(found: Vec<T>) -> impl Iterator<Item = T> {
    let found = found.into_iter().enumerate();
    found.filter(|(place, _)| place % (BETWEEN_REFERENCES + 1) != 0).map(|(_, found)| found)
}
