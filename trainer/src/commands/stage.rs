//! `pretrain`, `sft` and `value`: one stage of training, which `train`, `iterate` and `ablate` run
//! as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_onnx_models::speeds::REGIMES;
use sparserl_trainer::configuration::Stage;
use sparserl_trainer::corpus::Split;
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::network::{Compute, ModelFile, on_device};
use sparserl_trainer::stages::{Picks, Progress, StageConfig, StageRun};

use super::train::INTERRUPTED;
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

/// A stage that trains a network on a dataset.
#[derive(clap::Args)]
pub(crate) struct StageArgs {
    /// How to train (TOML); `trainer/configurations` has one for each stage.
    pub(super) configuration: PathBuf,
    /// What to train on.
    #[arg(short, long, value_name = "FILE")]
    pub(super) dataset: PathBuf,
    /// Folder of the model, its checkpoint and its log.
    #[arg(short, long)]
    pub(super) output: PathBuf,
    /// The network to go on with; without, a new one begins.
    #[arg(long, value_name = "MODEL")]
    pub(super) from: Option<PathBuf>,
    /// What to compute on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    pub(super) device: Compute,
}

impl StageArgs {
    pub(crate) fn run(&self, stage: Stage) -> anyhow::Result<()> {
        let model = self.train(stage, &StageConfig::read(&self.configuration)?)?;
        model.map(drop).context(INTERRUPTED)
    }

    /// The model, if the stage was not interrupted before its end.
    pub(super) fn train(
        &self,
        stage: Stage,
        config: &StageConfig,
    ) -> anyhow::Result<Option<PathBuf>> {
        let dataset = Dataset::read(&self.dataset)?;
        train((stage, config), &dataset, self.from.as_deref(), &self.output, self.device)
    }
}

/// Trains a network by a stage: the model, if that was not interrupted before its end.
pub(super) fn train(
    (stage, config): (Stage, &StageConfig),
    dataset: &Dataset,
    from: Option<&Path>,
    folder: &Path,
    device: Compute,
) -> anyhow::Result<Option<PathBuf>> {
    let from = from.map(ModelFile::read).transpose()?;
    check_split(dataset, &config.split)?;
    let interruption = Interruption::watch()?;
    let (display, mut loss) = (ProgressDisplay::new(), String::new());
    let run = StageRun {
        stage,
        config,
        dataset,
        from: from.as_ref(),
        folder,
        go_on: || !interruption.was_asked_for(),
        observe: |progress: &Progress<'_>| {
            if let Some(losses) = progress.losses {
                loss = format!("loss {:.4}", losses.total);
            }
            display.show(progress.step, config.steps, loss.clone());
        },
    };
    let finished = on_device(device, run);
    drop(display);
    let finished = finished??;
    let path = finished.path.display();
    match finished.complete {
        true => say(&format!("{stage}: {} steps, `{path}`", finished.step)),
        false => say(&format!(
            "{stage}: interrupted after {} of {} steps, goes on from `{path}`",
            finished.step, config.steps
        )),
    }
    if let Some(validation) = finished.validation {
        say(&format!("on {} cases of other families:", validation.cases));
        say(&line("network", &validation.network));
        say(&line("cost model", &validation.cost_model));
    }
    Ok(finished.complete.then_some(finished.path))
}

/// Families that are left out have to be there: of one that is misspelt all would be trained on.
fn check_split(dataset: &Dataset, split: &Split) -> anyhow::Result<()> {
    let Split::LeaveOut(left_out) = split else { return Ok(()) };
    let mut families = BTreeSet::new();
    for matrix in &dataset.matrices {
        let recipe = matrix.recipe()?;
        families.extend(recipe.origins().into_iter().map(|(family, _)| family.to_owned()));
    }
    anyhow::ensure!(!left_out.is_empty(), "`leave_out` names no family");
    if let Some(name) = left_out.iter().find(|&name| !families.contains(name)) {
        let families: Vec<&str> = families.iter().map(String::as_str).collect();
        anyhow::bail!(
            "`leave_out` names `{name}`, of which the dataset has no matrix; it has {}",
            families.join(", ")
        );
    }
    Ok(())
}

fn line(of: &str, picks: &Picks) -> String {
    let regimes = REGIMES.iter().enumerate().map(|(i, regime)| {
        let (first, of_eight) = (picks.first[i], picks.of_eight[i]);
        format!("{} first pick {first:.3}, best of 8 {of_eight:.3}", regime.name())
    });
    format!("  {of}: {}", regimes.collect::<Vec<_>>().join("; "))
}
