//! `train`: from recordings to a policy that can be used.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_trainer::configuration::{self, Stage, Training, TrainingStage};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::network::{Compute, ModelFile};
use sparserl_trainer::reinforcement::ReinforcementConfig;
use sparserl_trainer::stages::StageConfig;

use super::ppo::OutcomeSource;
use super::stage::train;
use super::{Export, Prepare, real_matrices};

/// Nothing can be used yet.
pub(super) const INTERRUPTED: &str = "interrupted: started again, it goes on";

/// All of it: from recordings to a policy.
#[derive(clap::Args)]
pub(crate) struct Train {
    /// The stages (TOML).
    configuration: PathBuf,
    /// Folders of recordings.
    #[arg(long, required = true, num_args = 1.., value_name = "FOLDER")]
    recordings: Vec<PathBuf>,
    /// Folder of the real matrices that were collected on, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Folder of the dataset, the stages, and the policy that comes of them, `policy`.
    #[arg(short, long)]
    output: PathBuf,
    /// What to compute on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    device: Compute,
    #[command(flatten)]
    outcomes: OutcomeSource,
}

impl Train {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (training, stages) = read_stages(&self.configuration)?;
        let mut reinforcement = None;
        if let Some(path) = &training.reinforcement {
            let config = ReinforcementConfig::read(&self.configuration.with_file_name(path))?;
            let split = training.split.clone();
            reinforcement = Some(ReinforcementConfig { split, ..config });
        }
        self.device.check()?;
        self.outcomes.check(&self.configuration, "reinforcement", reinforcement.is_some())?;
        if let Some(config) = &reinforcement {
            let checked = self.outcomes.check_decoding(&self.configuration, config);
            checked.context("`trainer/stages.toml` trains without `reinforcement`")?;
        }
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make `{}`", self.output.display()))?;

        let dataset = self.output.join("dataset");
        let prepare = Prepare {
            recordings: self.recordings.clone(),
            output: dataset.clone(),
            real: self.real.clone(),
        };
        anyhow::ensure!(prepare.prepare()?, INTERRUPTED);
        let mut from = None;
        let known = Dataset::read(&dataset)?;
        for (stage, config) in &stages {
            let folder = self.output.join(stage.to_string());
            let begin = from.as_deref();
            let model = train((*stage, config), &known, begin, &folder, self.device)?;
            from = Some(model.context(INTERRUPTED)?);
        }
        let mut model = from.context("the configuration has no stages")?;
        if let Some(config) = &reinforcement {
            let (from, real) = (ModelFile::read(&model)?, real_matrices(self.real.as_deref())?);
            let given = (config, &known, &from, &real);
            let folder = self.output.join(config.algorithm.to_string());
            let (recordings, device) = (&self.recordings, self.device);
            let improved = self.outcomes.improve(given, recordings, &folder, device, None)?;
            anyhow::ensure!(improved.complete, INTERRUPTED);
            model = improved.path;
        }
        let output = self.output.join("policy");
        Export { model, output, name: Some(training.name) }.run()
    }
}

/// A training, and the configurations of its stages.
pub(super) fn read_stages(path: &Path) -> anyhow::Result<(Training, Vec<(Stage, StageConfig)>)> {
    let training: Training = configuration::read(path)?;
    let read = |stage: &TrainingStage| {
        let mut config = StageConfig::read(&path.with_file_name(&stage.configuration))?;
        config.split = training.split.clone();
        Ok((stage.stage, config))
    };
    // All of them before the first begins.
    let stages = training.stages.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let places = || stages.iter().map(|(stage, _)| stage);
    let differ = places().enumerate().all(|(i, stage)| places().take(i).all(|s| s != stage));
    anyhow::ensure!(
        !stages.is_empty() && differ,
        "`{}`: name at least one stage, and each of them once",
        path.display()
    );
    Ok((training, stages))
}
