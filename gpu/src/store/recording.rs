//! Outcomes on disk, for training and for searches that go on.
//!
//! ```text
//! Evaluation ─► Recorder ─► part-*.parquet ─► Recordings
//! ```
//!
//! A store is a folder of Parquet files, its parts. Parts are only ever added: each is written
//! under a temporary name and renamed to the hash of its content, so any number of processes can
//! share a folder, and a part that is cut short or damaged is noticed. One is an error, not
//! skipped: whoever trains on a store should know that some of it is gone.
//!
//! A part has one row for each program and one for each baseline of the library; the rows of one
//! evaluation share the value of `evaluation`. Rows of programs have an `outcome`, rows of
//! baselines an `algorithm`; what does not apply is null. In Python:
//!
//! ```python
//! rows = pandas.read_parquet("store")
//! programs, baselines = rows[rows.outcome.notna()], rows[rows.algorithm.notna()]
//! ```
//!
//! Rows are taken apart into columns by hand: `parquet_derive` 60.1 reads no column that may be
//! null and knows no lists of numbers, and `serde_arrow` 0.15 with `arrow` 60, which could hold
//! this schema, takes 402 s of processor time to build where `parquet` alone takes 88 s (dev
//! profile, two cores, 2026-11-22).

#[cfg(feature = "archives")]
mod archive;
mod column;
mod pages;
mod part;
mod recorder;
mod row;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::Evaluation;
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;

pub use recorder::Recorder;

use crate::compile::nvrtc;
use crate::run::device::DeviceFacts;

/// What an evaluation was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The GPU that the kernels ran on.
    pub device: DeviceFacts,
    /// What compiled them.
    pub nvrtc: nvrtc::Version,
    /// How they were checked and timed, such as `screening` or `full`.
    pub protocol: String,
    /// Where the values of the matrix come from.
    pub value_source: ValueSource,
}

/// One evaluation of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// When it was recorded, in whole microseconds. Evaluations of one recorder never share a time.
    pub time: SystemTime,
    /// The matrix; its name is what its user called it.
    pub matrix: MatrixIdentity,
    /// What every program computes.
    pub task: Task,
    /// The language that the programs are written in.
    pub language: RecordedLanguage,
    /// Texts of the programs; one for each outcome of the evaluation, in their order. At least one.
    pub programs: Vec<String>,
    /// What was found out about them.
    pub evaluation: Evaluation,
    /// What it was made with.
    pub context: Context,
}

/// The language of a [`Recording`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedLanguage {
    /// [`LANGUAGE_VERSION`](sparserl_core::language::LANGUAGE_VERSION) of the time.
    pub version: u32,
    /// [`grammar_hash`](sparserl_core::language::grammar_hash) of the time.
    pub grammar_hash: u64,
}

/// All evaluations of a store, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recordings(Vec<Recording>);

impl Recordings {
    /// Reads every part of a store. An empty folder is an empty store; files that are not Parquet,
    /// and hidden ones, are not looked at.
    ///
    /// # Errors
    /// When the folder or a part cannot be read, or a part is damaged or not one of ours; it is
    /// named.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, RecordingError> {
        let folder = folder.as_ref();
        let failed = |source| RecordingError::Read { path: folder.into(), source };
        let mut recordings = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
            if path.extension().is_some_and(|e| e == "parquet") && !hidden {
                recordings.extend(part::read(&path)?);
            }
        }
        // A stable sort, after which files' order in the folder matters to equal times only.
        recordings.sort_by_key(|recording| recording.time);
        Ok(Self(recordings))
    }

    /// The evaluations, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Recording] {
        &self.0
    }

    /// Keeps only some evaluations, such as those of one device or protocol.
    pub fn retain(&mut self, keep: impl FnMut(&Recording) -> bool) {
        self.0.retain(keep);
    }
}

impl<'a> IntoIterator for &'a Recordings {
    type Item = &'a Recording;
    type IntoIter = std::slice::Iter<'a, Recording>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A store could not be read or added to.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The folder or a part cannot be read.
    #[error("cannot read recordings from `{}`: {source}", path.display())]
    Read {
        /// The folder or part.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A part cannot be written. What it should hold is kept for the next attempt.
    #[error("cannot add recordings to `{}`: {source}", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A part's content is not what was written.
    #[error(
        "`{}` is damaged or cut short, or was not written by a recorder: restore it or move it out of the folder",
        path.display()
    )]
    Damaged {
        /// The part.
        path: PathBuf,
    },
    /// A part is whole, but holds something else than recordings of this version.
    #[error("`{}` holds no recordings that this version reads: {reason}; move it out of the folder", path.display())]
    Foreign {
        /// The part.
        path: PathBuf,
        /// What is wrong, in one line.
        reason: String,
    },
    /// Outcomes without a program, or the reverse.
    #[error("cannot record {outcomes} outcomes of {programs} programs: expected one for each")]
    Count {
        /// Programs given.
        programs: usize,
        /// Outcomes given.
        outcomes: usize,
    },
    /// Programs that compute different things, or in another type than the matrix's.
    #[error(
        "cannot record a program for `{found}` in an evaluation for `{expected}`: split it by task"
    )]
    Task {
        /// Task of the first program, in the matrix's type.
        expected: Task,
        /// Task of the program that does not fit.
        found: Task,
    },
}
