use std::path::PathBuf;

use sparserl_trainer::corpus::Split;
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{CaseResult, Table, replay};
use sparserl_trainer::network::{Modalities, ModelFile, NetworkPolicy, Processor};

use super::models::{ensure_no_real, names};
use super::write_json;
use crate::console::{print, progress_bar};

#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Networks; each is called by its file's name.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// A dataset with real matrices, which alone are asked about.
    #[arg(short, long, value_name = "FILE")]
    dataset: PathBuf,
    /// The table as JSON.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Replay {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let dataset = Dataset::read(&self.dataset)?;
        let mut networks = Vec::new();
        for (name, path) in names(&self.models)? {
            let file = ModelFile::read(path)?;
            ensure_no_real(&name, &file.provenance)?;
            let policy =
                NetworkPolicy::<Processor>::new(&file, Modalities::ALL, Default::default());
            networks.push((name, policy));
        }
        let results = choices(&dataset, &Split::NoReal, &networks)?;
        anyhow::ensure!(
            !results.is_empty(),
            "`{}` has no real matrix to choose for: prepare one of recordings of `evaluate`",
            self.dataset.display()
        );
        let table = Table::new(&results);
        if let Some(path) = &self.output {
            write_json(path, &table)?;
        }
        print(&table.to_string());
        Ok(())
    }
}

/// What networks choose among what was measured of the test, with the progress shown.
pub(super) fn choices(
    dataset: &Dataset,
    split: &Split,
    networks: &[(String, NetworkPolicy<Processor>)],
) -> anyhow::Result<Vec<CaseResult>> {
    let bar = progress_bar(0);
    let results = replay(dataset, split, networks, |done, cases| {
        bar.set_length(cases as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(results?)
}
