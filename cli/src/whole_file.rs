//! Files that are whole at every moment.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context;
use sparserl_gpu::store::whole_file::WholeFile;

use crate::interrupt;

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
