//! Adding to a store.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use parquet::basic::Compression;
use sparserl_core::language::{LANGUAGE_VERSION, Program, grammar_hash};
use sparserl_core::matrix::{MatrixIdentity, Scalar};
use sparserl_core::outcome::Evaluation;

use super::{Context, RecordedLanguage, Recording, RecordingError, part};

/// Rows after which a part is written unasked.
const ROWS: usize = 4096;

/// Appends evaluations to a store.
///
/// They are gathered and written as parts: every 4096 rows, on [`flush`](Recorder::flush) and when
/// dropped. Only `flush` can tell that the last ones could not be written.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    language: RecordedLanguage,
    pending: Vec<Recording>,
    pending_rows: usize,
    last: SystemTime,
}

impl Recorder {
    /// Opens a store, and makes its folder if need be.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn append_to(folder: impl Into<PathBuf>) -> Result<Self, RecordingError> {
        let folder = folder.into();
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Self {
                folder,
                language: RecordedLanguage {
                    version: LANGUAGE_VERSION,
                    grammar_hash: grammar_hash(),
                },
                pending: Vec::new(),
                pending_rows: 0,
                last: SystemTime::UNIX_EPOCH,
            }),
            Err(source) => Err(RecordingError::Write { folder, source }),
        }
    }

    /// The store's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records an evaluation of programs for one matrix and task. An evaluation of no programs
    /// leaves no trace.
    ///
    /// `T` is the type that the matrix was computed with in; `matrix` is it as it was read.
    ///
    /// # Errors
    /// When there is not one outcome for each program, when tasks differ, or when a part is due and
    /// cannot be written.
    pub fn record<T: Scalar>(
        &mut self,
        matrix: &MatrixIdentity,
        programs: &[Program],
        evaluation: &Evaluation,
        context: &Context,
    ) -> Result<(), RecordingError> {
        let outcomes = evaluation.outcomes.len();
        if outcomes != programs.len() {
            return Err(RecordingError::Count { programs: programs.len(), outcomes });
        }
        let Some(first) = programs.first() else { return Ok(()) };
        let task = if first.task.precision.matrix() == T::DTYPE {
            first.task
        } else {
            first.task.with_precision(T::DTYPE.into())
        };
        if let Some(found) = programs.iter().map(|p| p.task).find(|found| *found != task) {
            return Err(RecordingError::Task { expected: task, found });
        }
        let time = self.now();
        self.pending.push(Recording {
            time,
            matrix: matrix.clone(),
            task,
            language: self.language,
            programs: programs.iter().map(ToString::to_string).collect(),
            evaluation: evaluation.clone(),
            context: context.clone(),
        });
        self.pending_rows += outcomes + evaluation.baselines.len();
        if self.pending_rows >= ROWS { self.flush() } else { Ok(()) }
    }

    /// Writes what was recorded since the last part.
    ///
    /// # Errors
    /// When it cannot be written; it is kept for another attempt.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        if !self.pending.is_empty() {
            // More comes soon: written fast.
            part::write(&self.folder, &self.pending, Compression::SNAPPY)
                .map_err(|source| RecordingError::Write { folder: self.folder.clone(), source })?;
            self.pending.clear();
            self.pending_rows = 0;
        }
        Ok(())
    }

    /// The time in whole microseconds; later than the last one even if the clock stands still or is
    /// set back, because the order of evaluations is the order of their times.
    fn now(&mut self) -> SystemTime {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let whole = now - Duration::from_nanos((now.subsec_nanos() % 1000).into());
        self.last = (SystemTime::UNIX_EPOCH + whole).max(self.last + Duration::from_micros(1));
        self.last
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // There is no one to tell.
        let _ = self.flush();
    }
}
