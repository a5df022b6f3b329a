//! The file of an evaluation: the results, and what follows from them.

use std::path::Path;

use serde::Serialize;

use super::results::EvalResults;
use super::summary::Summary;
use crate::whole_file;

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    #[serde(flatten)]
    results: &'a EvalResults,
    /// Not read back.
    summary: Summary,
}

impl<'a> Document<'a> {
    /// Of results, with pass@k for some k.
    pub(crate) fn new(results: &'a EvalResults, sizes: &[u32]) -> Self {
        Self { results, summary: Summary::new(results, sizes) }
    }

    /// Writes it into a file.
    ///
    /// # Errors
    /// When it cannot be written; then what was there is still there.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        whole_file::write(path, self.json()?.as_bytes())
    }

    /// The text, with a line break at its end.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}
