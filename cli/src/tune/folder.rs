//! The folder of a search: `tune.json`, the recordings of all that was measured, and the kernel.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sparserl_gpu::store::whole_file::UNFINISHED;

use super::record::{Case, FORMAT, TuneRecord};
use crate::output_folder::{Edited, OutputFolder};
use crate::text;
use crate::whole_file;

const RECORD: &str = "tune.json";
const RECORDINGS: &str = "recordings";
/// Folder of the kernel's files.
pub(super) const KERNEL: &str = "kernel";
/// Held by the one run that is at work on the folder.
const LOCK: &str = ".lock";

/// Whether a folder holds nothing but what a run makes before its record.
fn is_only_begun(path: &Path) -> bool {
    let is_ours = |entry: io::Result<fs::DirEntry>| {
        let name = entry.map(|entry| entry.file_name());
        name.is_ok_and(|name| {
            name == LOCK || name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
        })
    };
    fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_ours))
}

/// A folder that this run alone works on.
#[derive(Debug)]
pub(super) struct TuneFolder {
    path: PathBuf,
    /// Given up when this goes.
    _lock: File,
}

impl TuneFolder {
    /// What an earlier run left; `None` where there is none. Refuses a folder that is something
    /// else, or whose kernel was edited, where such are kept.
    pub(super) fn look(path: &Path, edited: Edited) -> anyhow::Result<Option<TuneRecord>> {
        let shown = path.display();
        match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                bail!("{shown}: is not a folder; choose another with --output")
            }
            Err(error) => {
                return Err(error).with_context(|| format!("{shown}: cannot look into the folder"));
            }
            Ok(true) => return Ok(None),
            Ok(false) => {}
        }
        // What cannot be written in the end is refused now.
        OutputFolder::check(&path.join(KERNEL), edited)?;
        let record = path.join(RECORD);
        let text = match whole_file::read(&record) {
            // Killed before it wrote anything.
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_only_begun(path) => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "{shown}: holds other files (no {RECORD} of ours); empty it or choose another \
                 folder with --output"
            ),
            text => text.with_context(|| record.display().to_string())?,
        };
        let read: Result<TuneRecord, _> = serde_json::from_slice(&text);
        match read {
            Ok(record) if record.format == FORMAT => Ok(Some(record)),
            Ok(TuneRecord { format, .. }) => {
                bail!("{}: is `{format}`, not `{FORMAT}`", record.display())
            }
            Err(error) => bail!("{}: is no `{FORMAT}`: {error}", record.display()),
        }
    }

    /// Takes the folder, and makes it where there is none.
    pub(super) fn open(
        path: &Path,
        edited: Edited,
        case: &Case,
        seed: u64,
    ) -> anyhow::Result<(Self, TuneRecord)> {
        let shown = path.display();
        let earlier = || {
            let earlier = Self::look(path, edited)?;
            if let Some(difference) = earlier.as_ref().and_then(|record| record.difference(case)) {
                bail!("{shown}: is of {difference}; choose another folder with --output");
            }
            Ok(earlier)
        };
        // Nothing is made where it is refused.
        earlier()?;
        let failed = || format!("{shown}: cannot create the folder");
        fs::create_dir_all(path).with_context(failed)?;
        let lock = File::create(path.join(LOCK)).with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{shown}: another run is at work on it"),
            Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
        }
        // Another run may have ended since.
        let earlier = earlier()?.unwrap_or(TuneRecord::new(case.clone(), seed));
        let record = TuneRecord { seed, ..earlier };
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.save(&record)?;
        Ok((folder, record))
    }

    /// Writes `tune.json`, whole or not at all.
    pub(super) fn save(&self, record: &TuneRecord) -> anyhow::Result<()> {
        whole_file::write(&self.path.join(RECORD), text::json(record)?.as_bytes())
    }

    /// The folder of the recordings.
    pub(super) fn recordings(&self) -> PathBuf {
        self.path.join(RECORDINGS)
    }

    /// The folder of the kernel's files.
    pub(super) fn kernel(&self) -> PathBuf {
        self.path.join(KERNEL)
    }
}
