//! `replay`: lets networks choose among what was measured.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;
use sparserl_trainer::corpus::Split;
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{
    COST_MODEL, Calibration, CalibrationTable, CaseResult, Replayed, Table, replay,
};
use sparserl_trainer::network::{Modalities, ModelFile, NetworkPolicy, Processor};

use super::models::{ensure_no_real, names, split};
use super::write_json;
use crate::console::{ProgressDisplay, print};

/// What networks that leave out families are called together.
const LEFT_OUT: &str = "left out";

#[derive(clap::Args)]
pub(crate) struct Replay {
    /// Networks; each is called by its file's name. Those that were trained by the split
    /// `leave_out` are one chooser together, `left out`: each chooses for the families that it has
    /// not seen.
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// A dataset with matrices that were left out, the real ones by the split `no_real`: these
    /// alone are asked about.
    #[arg(short, long, value_name = "FILE")]
    dataset: PathBuf,
    /// The tables as JSON.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print where predicted speeds are off, too: by how much the ensemble's members disagree, by
    /// how fast programs are predicted, by layout, and by size of the matrix.
    #[arg(long)]
    calibration: bool,
}

/// What is written as JSON.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    table: &'a Table,
    calibration: &'a [Calibration],
}

impl Replay {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let dataset = Dataset::read(&self.dataset)?;
        let (mut networks, mut folds) = (Vec::new(), Vec::new());
        for (name, path) in names(&self.models)? {
            let file = ModelFile::read(path)?;
            let policy =
                NetworkPolicy::<Processor>::new(&file, Modalities::ALL, Default::default());
            match split(&file.provenance).with_context(|| path.display().to_string())? {
                Split::LeaveOut(families) => folds.push((families, (LEFT_OUT.to_owned(), policy))),
                Split::NoReal | Split::Everything => {
                    ensure_no_real(&name, &file.provenance)?;
                    networks.push((name, policy));
                }
            }
        }
        let mut left_out = BTreeSet::new();
        anyhow::ensure!(
            folds.iter().flat_map(|(families, _)| families).all(|family| left_out.insert(family)),
            "two networks leave out the same family: each may be chosen for once"
        );
        let mut replayed = match networks.is_empty() {
            true => Vec::new(),
            false => choices(&dataset, &Split::NoReal, &networks)?,
        };
        for (families, network) in &folds {
            let split = Split::LeaveOut(families.clone());
            for mut case in choices(&dataset, &split, std::slice::from_ref(network))? {
                let named = |of: &Replayed| (of.result.recipe.clone(), of.result.task.clone());
                let name = named(&case);
                match replayed.iter_mut().find(|known| named(known) == name) {
                    // The cost model has chosen there already.
                    Some(known) => {
                        case.result.choosers.retain(|picks| picks.chooser != COST_MODEL);
                        known.result.choosers.append(&mut case.result.choosers);
                        case.predicted.retain(|predicted| predicted.chooser != COST_MODEL);
                        known.predicted.append(&mut case.predicted);
                    }
                    None => replayed.push(case),
                }
            }
        }
        anyhow::ensure!(
            !replayed.is_empty(),
            "`{}` has no matrix to choose for: prepare one of recordings of `evaluate`",
            self.dataset.display()
        );
        let calibration = Calibration::all(replayed.iter().flat_map(|case| &case.predicted));
        let results: Vec<CaseResult> = replayed.into_iter().map(|case| case.result).collect();
        let table = Table::new(&results);
        print(&format!("{table}\n\n{}", CalibrationTable(&calibration)))?;
        if self.calibration {
            for one in &calibration {
                print(&format!("\n{one}"))?;
            }
        }
        if let Some(path) = &self.output {
            write_json(path, &Written { table: &table, calibration: &calibration })?;
        }
        Ok(())
    }
}

/// What networks choose among what was measured of the test, with the progress shown.
pub(super) fn choices(
    dataset: &Dataset,
    split: &Split,
    networks: &[(String, NetworkPolicy<Processor>)],
) -> anyhow::Result<Vec<Replayed>> {
    let display = ProgressDisplay::new();
    let results = replay(dataset, split, networks, |done, cases| {
        display.show(done as u64, cases as u64, String::new());
    });
    Ok(results?)
}
