//! Keeps results of different requests apart: a folder says what its results are of.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::write_json;

/// What was asked for, in the folder of the results.
const FILE: &str = "asked.json";

/// Makes a folder for the results of what is asked for, or goes on in one that has results of the
/// same.
///
/// # Errors
/// When the folder has results of something else.
pub(crate) fn results_folder(folder: &Path, asked: &impl Serialize) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(FILE);
    // By its text, which numbers keep better than they do when they are read back.
    let known = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return write_json(&path, asked),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    anyhow::ensure!(
        known.trim_end() == serde_json::to_string_pretty(asked)?,
        "`{}` has results of other settings or policies (`{FILE}` there says which): name another \
         folder",
        folder.display()
    );
    Ok(())
}
