//! What was found out about one matrix and task, and the files in which processes that share the
//! work leave it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sparserl_core::outcome::Regime;
use sparserl_core::task::Task;

use crate::whole_file::write_json;

/// What was found out about all choosers on one matrix and task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The text of the matrix's recipe.
    pub recipe: String,
    /// The families that the matrix is made of.
    pub family: String,
    /// The task, as programs state it.
    pub task: String,
    /// The picks of each chooser in each regime.
    pub choosers: Vec<Picks>,
    /// The fastest programs of the search.
    pub oracle: Oracle,
    /// Programs that were measured to find them.
    pub searched: usize,
}

/// The fastest program of a search in each regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Oracle {
    /// The fastest program with a cold cache.
    pub cold: TimedProgram,
    /// The fastest program in a chain, with a warm cache.
    pub warm: TimedProgram,
}

impl Oracle {
    /// The least seconds in a regime.
    #[must_use]
    pub fn seconds(&self, regime: Regime) -> Option<f64> {
        match regime {
            Regime::Cold => self.cold.seconds(regime),
            Regime::Warm => self.warm.seconds(regime),
            Regime::BackToBack => None,
        }
    }
}

/// What a chooser chose for a regime, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picks {
    /// The chooser.
    pub chooser: String,
    /// Where they are to be fast.
    pub regime: Regime,
    /// Its programs.
    pub programs: Vec<TimedProgram>,
}

/// A program and how long it took: all of a case timed in turn, or, where a dataset is
/// [replayed](super::replay), in units of the reference program's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedProgram {
    /// The text of the program.
    pub program: String,
    /// Seconds with a cold cache; `None` where it is not right or was not timed.
    pub cold: Option<f64>,
    /// Seconds in a chain.
    pub warm: Option<f64>,
}

impl TimedProgram {
    /// Seconds in a regime.
    #[must_use]
    pub fn seconds(&self, regime: Regime) -> Option<f64> {
        match regime {
            Regime::Cold => self.cold,
            Regime::Warm => self.warm,
            Regime::BackToBack => None,
        }
    }
}

/// Results that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The folder or a file cannot be read.
    #[error("cannot read results from `{}`: {source}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("`{}` is no result of an evaluation: {source}; to have it made again, \
         remove it and what `shards` has of its number", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// An archive holds something else, or is damaged.
    #[error("`{}` is no archive of results of this version, or is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
}

/// Writes what was found out about one case to the file of its shard and task in a folder, whole or
/// not at all.
pub(super) fn write_case(
    case: &impl Serialize,
    folder: &Path,
    shard: u64,
    task: Task,
) -> Result<(), (PathBuf, io::Error)> {
    let name = format!("{shard:06}-{}.json", task.to_string().replace([' ', '/'], "-"));
    let path = folder.join(name);
    let written = fs::create_dir_all(folder).and_then(|()| write_json(&path, case));
    written.map_err(|error| (path, error))
}

/// What was written of all cases of a folder, [`CaseResult`]s or
/// [`SampledCase`](super::SampledCase)s, in the order of the shards.
///
/// # Errors
/// When the folder cannot be read, or a `.json` file in it is none of these.
pub fn read_cases<C: DeserializeOwned>(folder: &Path) -> Result<Vec<C>, ResultError> {
    let read = |path: &Path, source| ResultError::Read { path: path.to_owned(), source };
    let mut paths = Vec::new();
    let entries = match fs::read_dir(folder) {
        // Nothing is done yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|source| read(folder, source))?,
    };
    for entry in entries {
        let path = entry.map_err(|source| read(folder, source))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let parse = |path: PathBuf| {
        let text = fs::read(&path).map_err(|source| read(&path, source))?;
        serde_json::from_slice(&text).map_err(|source| ResultError::Foreign { path, source })
    };
    paths.into_iter().map(parse).collect()
}
