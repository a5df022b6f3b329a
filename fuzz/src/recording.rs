//! Parts of a store, under the name that their content asks for: read, or refused in one line.

use std::fs;
use std::sync::LazyLock;

use sparserl_gpu::recording::{Recordings, Replay};
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let name = format!("part-{}.parquet", blake3::hash(bytes).to_hex());
    let path = FOLDER.path().join(name);
    fs::write(&path, bytes).unwrap();
    let recordings = Recordings::read(FOLDER.path());
    fs::remove_file(&path).unwrap();
    match recordings {
        Ok(recordings) => drop(Replay::new(recordings)),
        Err(error) => {
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
}
