//! The fastest programs of the matrices that were searched for, where later searches find them: one
//! file in the user's cache folder, which any number of runs may share.
//!
//! It is a convenience: whatever is wrong with it is said in one line, and a search does without.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use etcetera::BaseStrategy as _;
use redb::{
    Database, DatabaseError, Error, ReadableDatabase, ReadableTable as _, TableDefinition,
    TableError,
};
use serde::{Deserialize, Serialize};
use sparserl_core::language::{Program, grammar_hash};
use sparserl_core::outcome::Regime;
use sparserl_core::structure::{EMBEDDING_VERSION, FeatureScale};
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_gpu::compile::cache::DIRECTORY_VARIABLE;
use sparserl_gpu::panics;
use sparserl_gpu::store::whole_file::UNFINISHED;

use crate::args::StoreChoice;

/// Raised when what is written cannot be read by the versions before.
const FORMAT: u64 = 1;
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
/// The key in [`ABOUT`] of [`FORMAT`].
const FORMAT_KEY: &str = "format";
/// By [`WinnerScope`]; the values are JSON.
const WINNERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("winners");
/// How long to wait for another run that has the store open.
const PATIENCE: Duration = Duration::from_secs(5);
/// Matrices that a search takes programs from.
const NEIGHBOURS: usize = 4;

/// A file of winners.
#[derive(Clone, Debug)]
pub(crate) struct WinnerStore {
    path: PathBuf,
}

/// What times can be compared: programs of one language, for one task, on one GPU, in one regime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WinnerScope {
    pub(crate) task: Task,
    pub(crate) target: Target,
    pub(crate) regime: Regime,
}

/// What was fastest on a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Winner {
    /// The matrix's name.
    pub(crate) matrix: String,
    /// Its features.
    pub(crate) features: Vec<f32>,
    /// The fastest programs, fastest first; at least one.
    pub(crate) programs: Vec<WinningProgram>,
    /// Seconds of the quickest opponent, where one was measured.
    pub(crate) reference_seconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WinningProgram {
    /// Its text.
    pub(crate) program: String,
    pub(crate) seconds: f64,
}

/// A store cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WinnersError {
    /// There is no cache folder.
    #[error("there is no folder for it: name a file with --store")]
    NoFolder,
    /// Another run does not let go of it.
    #[error("another run has it open")]
    Busy,
    /// It is of another version.
    #[error("it is of another version: remove it, or name another file with --store")]
    Foreign,
    /// It is damaged or something else.
    #[error(
        "it is damaged, or no store of winners ({0}): remove it, or name another file with --store"
    )]
    Damaged(String),
    /// The file cannot be made or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl WinnerStore {
    /// The store that was chosen, if any; nothing is opened or made yet.
    pub(crate) fn choose(choice: StoreChoice) -> Result<Option<Self>, WinnersError> {
        let path = match choice {
            StoreChoice::Nowhere => return Ok(None),
            StoreChoice::At(path) => path,
            StoreChoice::Usual => usual_folder()?.join("winners.redb"),
        };
        Ok(Some(Self { path }))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Programs that were fastest on the matrices with the most similar features, at most `count`:
    /// the fastest of each, nearest first, then the second fastest of each, and so on.
    pub(crate) fn nearest(
        &self,
        scope: WinnerScope,
        features: &[f32],
        count: usize,
    ) -> Result<Vec<Program>, WinnersError> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let mut winners = self.with_database(|database| {
            let read = database.begin_read()?;
            check_format(read.open_table(ABOUT))?;
            let table = match read.open_table(WINNERS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                table => table?,
            };
            let prefix = scope.prefix();
            let mut winners: Vec<Winner> = Vec::new();
            for entry in table.range(prefix.as_str()..)? {
                let (key, value) = entry?;
                if !key.value().starts_with(&prefix) {
                    break;
                }
                winners.push(parse(value.value())?);
            }
            Ok(winners)
        })?;
        winners.retain(|winner| winner.features.len() == features.len());
        let vectors = winners.iter().map(|winner| winner.features.as_slice()).chain([features]);
        let scale = FeatureScale::of(&vectors.collect::<Vec<_>>());
        let distance = |winner: &Winner| scale.squared_distance(&winner.features, features);
        winners.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
        winners.truncate(NEIGHBOURS);
        let most = winners.iter().map(|winner| winner.programs.len()).max().unwrap_or(0);
        let mut found: Vec<Program> = Vec::new();
        for rank in 0..most {
            for winning in winners.iter().filter_map(|winner| winner.programs.get(rank)) {
                let program = Program::parse(&winning.program);
                let program = program.map_err(|error| WinnersError::Damaged(error.to_string()))?;
                if found.len() < count && !found.contains(&program) {
                    found.push(program);
                }
            }
        }
        Ok(found)
    }

    /// Adds the winner of the matrix with this fingerprint, unless what is there already is faster.
    pub(crate) fn keep(
        &self,
        scope: WinnerScope,
        fingerprint: &str,
        winner: &Winner,
    ) -> Result<(), WinnersError> {
        if !self.path.exists() {
            self.create()?;
        }
        let value =
            serde_json::to_vec(winner).map_err(|error| WinnersError::Damaged(error.to_string()))?;
        let key = scope.prefix() + fingerprint;
        let time = |winner: &Winner| winner.programs.first().map(|best| best.seconds);
        self.with_database(|database| {
            let write = database.begin_write()?;
            {
                let about = write.open_table(ABOUT)?;
                if about.get(FORMAT_KEY)?.is_none_or(|format| format.value() != FORMAT) {
                    return Err(WinnersError::Foreign);
                }
                let mut winners = write.open_table(WINNERS)?;
                let known = match winners.get(key.as_str())? {
                    Some(known) => time(&parse(known.value())?),
                    None => None,
                };
                if known.is_none_or(|known| time(winner).is_some_and(|new| new < known)) {
                    winners.insert(key.as_str(), value.as_slice())?;
                }
            }
            write.commit()?;
            Ok(())
        })
    }

    /// Makes a store without winners under another name, which it has until it is whole: a run that
    /// is killed meanwhile, or a full disk, would leave one that no later run can open.
    fn create(&self) -> Result<(), WinnersError> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        let database = Database::create(file.path())?;
        let write = database.begin_write()?;
        write.open_table(ABOUT)?.insert(FORMAT_KEY, FORMAT)?;
        write.open_table(WINNERS)?;
        write.commit()?;
        drop(database);
        match file.persist_noclobber(&self.path) {
            // Another run was faster.
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => Ok(made.map(drop).map_err(|error| error.error)?),
        }
    }

    /// Opens the file for as long as `act` takes, after others that have it open.
    fn with_database<R>(
        &self,
        act: impl FnOnce(&Database) -> Result<R, WinnersError>,
    ) -> Result<R, WinnersError> {
        let start = Instant::now();
        // A damaged file may panic where it is looked into, which is no reason to lose a search.
        let whole = panics::caught(|| {
            let database = loop {
                match Database::open(&self.path) {
                    Err(DatabaseError::DatabaseAlreadyOpen) if start.elapsed() < PATIENCE => {
                        thread::sleep(Duration::from_millis(50));
                    }
                    opened => break opened?,
                }
            };
            act(&database)
        });
        whole.unwrap_or_else(|| Err(WinnersError::Damaged("it cannot be read".to_owned())))
    }
}

impl WinnerScope {
    /// With what the keys of all its matrices begin.
    fn prefix(&self) -> String {
        let Self { task, target, regime } = self;
        let Target {
            architecture,
            multiprocessors,
            l2_bytes,
            shared_memory_bytes,
            registers,
            bandwidth,
        } = target;
        format!(
            "grammar {:016x}, features {EMBEDDING_VERSION}, {task}, {}, {architecture} \
             {multiprocessors} {l2_bytes} {shared_memory_bytes} {registers} {bandwidth}: ",
            grammar_hash(),
            regime.name(),
        )
    }
}

fn parse(value: &[u8]) -> Result<Winner, WinnersError> {
    serde_json::from_slice(value).map_err(|error| WinnersError::Damaged(error.to_string()))
}

/// Refuses a store of another version.
fn check_format(
    about: Result<redb::ReadOnlyTable<&'static str, u64>, TableError>,
) -> Result<(), WinnersError> {
    let about = match about {
        Err(TableError::TableDoesNotExist(_)) => return Err(WinnersError::Foreign),
        about => about?,
    };
    let format = about.get(FORMAT_KEY)?;
    if format.is_some_and(|format| format.value() == FORMAT) {
        Ok(())
    } else {
        Err(WinnersError::Foreign)
    }
}

/// The folder that holds the caches of this program.
fn usual_folder() -> Result<PathBuf, WinnersError> {
    if let Some(folder) = std::env::var_os(DIRECTORY_VARIABLE).filter(|name| !name.is_empty()) {
        return Ok(folder.into());
    }
    let base = etcetera::choose_base_strategy().map_err(|_| WinnersError::NoFolder)?;
    Ok(base.cache_dir().join("sparserl"))
}

impl From<Error> for WinnersError {
    fn from(error: Error) -> Self {
        match error {
            Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => Self::Busy,
            Error::UpgradeRequired(_) | Error::TableTypeMismatch { .. } => Self::Foreign,
            Error::Io(error) if error.kind() != io::ErrorKind::InvalidData => Self::Io(error),
            error => Self::Damaged(error.to_string().replace('\n', " ")),
        }
    }
}

/// All errors of the database become one.
macro_rules! from_errors {
    ($($Error:ident)*) => {
        $(impl From<redb::$Error> for WinnersError {
            fn from(error: redb::$Error) -> Self {
                Error::from(error).into()
            }
        })*
    };
}

from_errors!(DatabaseError TransactionError TableError StorageError CommitError);

#[cfg(test)]
mod damaged;

#[cfg(test)]
mod tests {
    use sparserl_core::language::LANGUAGE_VERSION;
    use sparserl_core::task::{Dtype, Operation};

    use super::*;

    pub(super) fn a_scope() -> WinnerScope {
        let task = Task::new(Operation::SpMV, Dtype::F32);
        WinnerScope { task, target: Target::H200, regime: Regime::Cold }
    }

    fn program(lanes: u32) -> String {
        format!(
            "sparserl {LANGUAGE_VERSION}\nspmv f32\nblock 256\nkeep csr index=u32 values=plain \
             cache=cached vector=1 lanes={lanes} unroll=1\n"
        )
    }

    fn winner(features: [f32; 2], programs: &[(u32, f64)]) -> Winner {
        let winning =
            |&(lanes, seconds): &(u32, f64)| WinningProgram { program: program(lanes), seconds };
        Winner {
            matrix: "a.mtx".to_owned(),
            features: features.to_vec(),
            programs: programs.iter().map(winning).collect(),
            reference_seconds: None,
        }
    }

    fn store(folder: &Path) -> WinnerStore {
        let path = folder.join("deep/winners.redb");
        WinnerStore::choose(StoreChoice::At(path)).unwrap().unwrap()
    }

    fn nearest(
        store: &WinnerStore,
        scope: WinnerScope,
        features: [f32; 2],
        count: usize,
    ) -> Vec<String> {
        let found = store.nearest(scope, &features, count).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_most_similar_matrices_come_first_and_each_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        assert!(nearest(&store, a_scope(), [0.0, 0.0], 8).is_empty());
        assert!(!store.path().exists(), "looking makes no file");
        store.keep(a_scope(), "far", &winner([9.0, 1.0], &[(1, 1e-6), (2, 2e-6)])).unwrap();
        store.keep(a_scope(), "near", &winner([1.0, 1.0], &[(4, 3e-6), (8, 4e-6)])).unwrap();
        let of = |lanes: [u32; 4]| lanes.map(program).to_vec();
        assert_eq!(nearest(&store, a_scope(), [1.5, 1.0], 8), of([4, 1, 8, 2]));
        assert_eq!(nearest(&store, a_scope(), [8.0, 1.0], 8), of([1, 4, 2, 8]));
        assert_eq!(nearest(&store, a_scope(), [8.0, 1.0], 1), [program(1)]);
    }

    #[test]
    fn what_cannot_be_compared_is_kept_apart() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.keep(a_scope(), "a", &winner([1.0, 1.0], &[(4, 1e-6)])).unwrap();
        let double = Task::new(Operation::SpMV, Dtype::F64);
        for other in [
            WinnerScope { task: double, ..a_scope() },
            WinnerScope { target: Target::A100, ..a_scope() },
            WinnerScope { regime: Regime::Warm, ..a_scope() },
        ] {
            assert!(nearest(&store, other, [1.0, 1.0], 8).is_empty());
        }
        assert_eq!(nearest(&store, a_scope(), [1.0, 1.0], 8), [program(4)]);
    }

    #[test]
    fn the_faster_winner_of_a_matrix_stays() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        for (lanes, seconds, best) in [(4, 2e-6, 4), (8, 3e-6, 4), (2, 1e-6, 2)] {
            store.keep(a_scope(), "a", &winner([1.0, 1.0], &[(lanes, seconds)])).unwrap();
            assert_eq!(nearest(&store, a_scope(), [1.0, 1.0], 8), [program(best)]);
        }
    }

    #[test]
    fn what_is_no_store_of_this_version_is_said_in_a_line_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let good = store(folder.path());
        good.keep(a_scope(), "a", &winner([1.0, 1.0], &[(4, 2e-6)])).unwrap();
        let bytes = fs::read(good.path()).unwrap();
        let mut damaged = bytes.clone();
        damaged.iter_mut().skip(64).step_by(7).for_each(|byte| *byte = !*byte);
        let files = [
            ("text", b"not a database".to_vec()),
            ("cut", bytes[..bytes.len() / 3].to_vec()),
            ("damaged", damaged),
        ];
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::write(&path, &content).unwrap();
            let broken = WinnerStore { path: path.clone() };
            let hidden = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let looked = broken.nearest(a_scope(), &[1.0, 1.0], 8);
            let kept = broken.keep(a_scope(), "a", &winner([1.0, 1.0], &[(4, 1e-6)]));
            std::panic::set_hook(hidden);
            for error in [looked.map(|_| ()).unwrap_err(), kept.unwrap_err()] {
                let line = error.to_string();
                assert!(line.lines().count() == 1 && line.contains("--store"), "{name}: {line}");
            }
        }
        let other = folder.path().join("other");
        let database = Database::create(&other).unwrap();
        let write = database.begin_write().unwrap();
        write.open_table(ABOUT).unwrap().insert(FORMAT_KEY, FORMAT + 1).unwrap();
        write.commit().unwrap();
        drop(database);
        let other = WinnerStore { path: other };
        let error = other.nearest(a_scope(), &[1.0, 1.0], 8).unwrap_err();
        assert!(matches!(error, WinnersError::Foreign), "{error}");
        let kept = other.keep(a_scope(), "a", &winner([1.0, 1.0], &[(4, 1e-6)]));
        assert!(matches!(kept, Err(WinnersError::Foreign)));
    }

    #[test]
    fn two_runs_share_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        thread::scope(|scope| {
            for number in 0..4_u32 {
                let store = &store;
                let new = winner([1.0 + number as f32, 1.0], &[(1 << number, 1e-6)]);
                scope.spawn(move || store.keep(a_scope(), &number.to_string(), &new).unwrap());
            }
        });
        assert_eq!(nearest(&store, a_scope(), [1.0, 1.0], 8).len(), 4);
    }
}
