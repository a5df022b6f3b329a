//! Parts of a store, under the name that their content asks for: read, or refused in one line.

use std::fs;
use std::panic;
use std::sync::LazyLock;

use sparserl_gpu::store::recording::Recordings;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// A fuzzer ends at any panic, also at those of the Parquet reader, which are caught.
static PASS_OVER_CAUGHT: LazyLock<()> = LazyLock::new(|| {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if panic.location().is_none_or(|place| !place.file().contains("/parquet-")) {
            report(panic);
        }
    }));
});

/// Runs the target.
pub fn run(bytes: &[u8]) {
    LazyLock::force(&PASS_OVER_CAUGHT);
    let name = format!("part-{}.parquet", blake3::hash(bytes).to_hex());
    let path = FOLDER.path().join(name);
    fs::write(&path, bytes).unwrap();
    let recordings = Recordings::read(FOLDER.path());
    fs::remove_file(&path).unwrap();
    if let Err(error) = recordings {
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
