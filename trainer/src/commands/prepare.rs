//! `prepare`: makes a dataset of recordings, and of the resource usage of their programs.

use std::path::PathBuf;

use sparserl_trainer::compiled::CompiledPrograms;
use sparserl_trainer::dataset::{Dataset, prepare};
use sparserl_trainer::measured::MeasuredCase;

use super::train::INTERRUPTED;
use super::{read_recordings, real_matrices};
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

#[derive(clap::Args)]
pub(crate) struct Prepare {
    /// Folders of recordings.
    #[arg(required = true)]
    pub(super) recordings: Vec<PathBuf>,
    /// The dataset; what it has of these recordings is not made again.
    #[arg(short, long)]
    pub(super) output: PathBuf,
    /// Folder of the real matrices that were collected on, with their `MANIFEST.tsv`.
    #[arg(long)]
    pub(super) real: Option<PathBuf>,
}

impl Prepare {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.prepare()?, INTERRUPTED);
        Ok(())
    }

    /// Whether all is prepared: it was not interrupted.
    pub(super) fn prepare(&self) -> anyhow::Result<bool> {
        let known = match self.output.exists() {
            true => Dataset::read(&self.output)?,
            false => Dataset::empty(),
        };
        let real = real_matrices(self.real.as_deref())?;
        let recordings = self.recordings.iter().map(|folder| read_recordings(folder));
        let recordings = recordings.collect::<anyhow::Result<Vec<_>>>()?;
        let cases = MeasuredCase::all(recordings.iter().flatten())?;
        let mut compiled = CompiledPrograms::default();
        for folder in &self.recordings {
            compiled.extend(CompiledPrograms::read(folder)?);
        }
        let interruption = Interruption::watch()?;
        let display = ProgressDisplay::new();
        let prepared = prepare(
            &cases,
            known,
            &compiled,
            &real,
            || !interruption.was_asked_for(),
            |prepared| {
                display.show(prepared.done as u64, prepared.matrices as u64, String::new());
            },
            |dataset| dataset.write(&self.output),
        );
        drop(display);
        let (dataset, prepared) = prepared?;
        say(&format!(
            "{} of {} matrices, {} cases, {} programs, {} of these compiled, in `{}`",
            prepared.done,
            prepared.matrices,
            dataset.cases.len(),
            dataset.programs(),
            dataset.compiled_programs(),
            self.output.display()
        ));
        Ok(prepared.done == prepared.matrices)
    }
}
