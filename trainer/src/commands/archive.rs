//! `archive`: keeps recordings in little space.

use std::path::PathBuf;

use super::read_recordings;
use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Archive {
    /// Folder of recordings.
    recordings: PathBuf,
    /// Folder that they are added to.
    #[arg(short, long)]
    output: PathBuf,
}

impl Archive {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let recordings = read_recordings(&self.recordings)?;
        recordings.archive(&self.output)?;
        let evaluations = recordings.as_slice().len();
        say(&format!("{evaluations} evaluations in `{}`", self.output.display()));
        Ok(())
    }
}
