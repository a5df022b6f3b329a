//! Which compiler a process found, kept beside the cubins: only a process can tell, and it loads
//! all compilers for that, which takes longer than to plan with cubins that are kept.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sparserl_core::regular_file;

use super::message::{Build, CompileTarget};
use crate::compile::cache::{CubinCache, keep};
use crate::compile::nvrtc::{Looked, SEARCH_VARIABLES};
use crate::isolate::ServerCommand;

/// Changes whenever records written before must not be read any more.
const FORMAT: u32 = 1;
/// Bytes of a record, at most.
const MOST_BYTES: u64 = 1 << 20;

/// The file with what is known of the compiler for a target.
pub(super) struct RecordFile {
    folder: PathBuf,
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Record {
    build: Build,
    /// As long as all of this is the same, so is the compiler.
    looked: Vec<Looked>,
}

impl RecordFile {
    /// For a target, the program that would be asked, and where that would look.
    pub(super) fn new(cache: &CubinCache, command: &ServerCommand, target: CompileTarget) -> Self {
        let mut hasher = blake3::Hasher::new();
        let variables = SEARCH_VARIABLES.map(|name| (name, std::env::var_os(name)));
        let asked = (FORMAT, command, target, std::env::current_dir().ok(), variables);
        hasher.update(format!("{asked:?}").as_bytes());
        let folder = cache.directory().join("compilers");
        let path = folder.join(format!("{}.json", hasher.finalize().to_hex()));
        Self { folder, path }
    }

    /// The compiler, unless something has changed since.
    pub(super) fn read(&self) -> Option<Build> {
        let text = regular_file::read(&self.path, MOST_BYTES).ok()?;
        let Record { build, looked } = serde_json::from_slice(&text).ok()?;
        looked.iter().all(Looked::is_unchanged).then_some(build)
    }

    /// Keeps it for the next time, if that is possible: it only costs as much again.
    pub(super) fn keep(&self, build: &Build, looked: Vec<Looked>) {
        let record = Record { build: build.clone(), looked };
        let kept = serde_json::to_vec(&record).map_err(std::io::Error::from);
        let kept = kept.and_then(|bytes| keep(&self.folder, &self.path, &bytes));
        if let Err(error) = kept {
            log::debug!("{}: {error}", self.path.display());
        }
    }
}
