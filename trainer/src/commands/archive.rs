//! `archive`: keeps recordings, and the results of an evaluation, in little space.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_trainer::compiled::CompiledPrograms;
use sparserl_trainer::evaluation::{ARCHIVED, CaseResult, archive_cases, read_cases};

use super::read_recordings;
use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Archive {
    /// Folder of recordings.
    recordings: PathBuf,
    /// The folder `results` within the output of `evaluate`: what its choosers picked is kept
    /// beside the recordings, in `cases.json.gz`, of which `table` makes the table again.
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Folder that they are added to, and the resource usage of their programs.
    #[arg(short, long)]
    output: PathBuf,
}

impl Archive {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let path = self.output.join(ARCHIVED);
        let results = self.results.as_deref().map(|folder| results(folder, &path)).transpose()?;
        let recordings = read_recordings(&self.recordings)?;
        recordings.archive(&self.output)?;
        let evaluations = recordings.as_slice().len();
        say(&format!("{evaluations} evaluations in `{}`", self.output.display()));
        let mut compiled = CompiledPrograms::read(&self.recordings)?;
        if !compiled.is_empty() {
            compiled.extend(CompiledPrograms::read(&self.output)?);
            compiled.write(&self.output)?;
        }
        if let Some(cases) = results {
            archive_cases(&cases, &path)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            say(&format!("results of {} cases in `{}`", cases.len(), path.display()));
        }
        Ok(())
    }
}

/// What is to be kept at a path where nothing is yet.
fn results(folder: &Path, path: &Path) -> anyhow::Result<Vec<CaseResult>> {
    let there = "has the results of an evaluation already: remove it, or name another folder";
    anyhow::ensure!(!path.exists(), "`{}` {there}", path.display());
    let cases: Vec<CaseResult> = read_cases(folder)?;
    anyhow::ensure!(!cases.is_empty(), "no results in `{}`", folder.display());
    Ok(cases)
}
