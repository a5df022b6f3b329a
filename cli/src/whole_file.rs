//! Files that are whole at every moment, and read whole.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context;
use sparserl_core::regular_file;
use sparserl_gpu::store::whole_file::WholeFile;

use crate::interrupt;

/// Bytes of results and records, at most: no run writes so many.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// Reads a file of results or records, or of what was measured.
///
/// # Errors
/// When it cannot be read, is longer than any of ours, or is no regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    regular_file::read(path, MOST_BYTES)
}

/// Writes a file under another name beside `path`, then gives it its name. An interruption waits
/// until that is done.
///
/// # Errors
/// When the file cannot be written; then what was there is still there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let _uninterrupted = interrupt::watch();
    let write = || -> io::Result<()> {
        let mut file = WholeFile::begin(path)?;
        file.write_all(bytes)?;
        file.finish()
    };
    write().with_context(|| format!("{}: cannot write", path.display()))
}
