//! `fit-cost`: fits the constants of the cost model to recordings.

use std::path::PathBuf;

use sparserl_core::layout::CostConstants;
use sparserl_core::outcome::Regime;
use sparserl_trainer::fit_cost::{Report, Terms};

use super::{real_matrices, write_json};
use crate::console::{ProgressDisplay, print};

#[derive(clap::Args)]
pub(crate) struct FitCost {
    /// Folder of recordings.
    recordings: PathBuf,
    /// Folder of the real matrices that were collected on, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Fit to times of this regime only.
    #[arg(long, value_enum)]
    regime: Option<FittedRegime>,
    /// File for the constants and scores (JSON).
    #[arg(short, long)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FittedRegime {
    /// With an L2 that was overwritten.
    Cold,
    /// In a chain of launches.
    Warm,
}

impl FittedRegime {
    fn regimes(of: Option<Self>) -> &'static [Regime] {
        match of {
            Some(Self::Cold) => &[Regime::Cold],
            Some(Self::Warm) => &[Regime::Warm],
            None => &[Regime::Cold, Regime::Warm],
        }
    }
}

impl FitCost {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let real = real_matrices(self.real.as_deref())?;
        let display = ProgressDisplay::new();
        let show = |what: &'static str| {
            let display = &display;
            move |done: usize, of: usize| display.show(done as u64, of as u64, what.to_owned())
        };
        let regimes = FittedRegime::regimes(self.regime);
        let terms = Terms::read(&self.recordings, &real, regimes, show("matrices made again"))?;
        let folder = self.recordings.canonicalize()?;
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let report = Report::new(name, &terms, CostConstants::FITTED, show("families left out"));
        drop(display);
        print(&report.to_string())?;
        if let Some(path) = &self.output {
            write_json(path, &report)?;
        }
        Ok(())
    }
}
