//! What decides which compilers are found, so that it can be told whether they would be found
//! again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// A path that was looked at, and what was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Looked {
    path: PathBuf,
    found: Option<Stamp>,
}

/// A file or folder as of a time. A folder's changes with the names in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// Since 1970, in nanoseconds.
    modified: u64,
}

impl Looked {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let found = Stamp::of(&path);
        Self { path, found }
    }

    /// Whether the same is there now.
    pub(crate) fn is_unchanged(&self) -> bool {
        Stamp::of(&self.path) == self.found
    }
}

impl Stamp {
    /// None where there is nothing.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|age| u64::try_from(age.as_nanos()).ok());
        Some(Self { bytes: found.len(), modified: modified.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_goes_or_changes_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnvrtc.so");
        let absent = Looked::at(&file);
        assert!(absent.is_unchanged());
        fs::write(&file, "one").unwrap();
        let (there, around) = (Looked::at(&file), Looked::at(folder.path()));
        assert!(!absent.is_unchanged() && there.is_unchanged() && around.is_unchanged());
        fs::write(&file, "three").unwrap();
        assert!(!there.is_unchanged() && around.is_unchanged());
        fs::remove_file(&file).unwrap();
        assert!(absent.is_unchanged() && !around.is_unchanged());
    }
}
