use std::path::PathBuf;

use anyhow::Context as _;
use sparserl_trainer::configuration::{self, Training};
use sparserl_trainer::network::Compute;
use sparserl_trainer::stages::StageConfig;

use super::{Export, Prepare, StageArgs};

/// Nothing can be used yet.
const INTERRUPTED: &str = "interrupted: started again, it goes on";

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
}

impl Train {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let training: Training = configuration::read(&self.configuration)?;
        let beside = |path: &PathBuf| self.configuration.with_file_name("").join(path);
        // All of them before the first begins.
        let stages = training.stages.iter().map(|stage| {
            let configuration = beside(&stage.configuration);
            let mut config = StageConfig::read(&configuration)?;
            config.split = training.split.clone();
            Ok((stage.stage, configuration, config))
        });
        let stages = stages.collect::<anyhow::Result<Vec<_>>>()?;
        let places = || stages.iter().map(|(stage, _, _)| stage);
        let differ = places().enumerate().all(|(i, stage)| places().take(i).all(|s| s != stage));
        anyhow::ensure!(
            !stages.is_empty() && differ,
            "`{}`: name at least one stage, and each of them once",
            self.configuration.display()
        );
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
        for (stage, configuration, config) in stages {
            let (dataset, device) = (dataset.clone(), self.device);
            let output = self.output.join(stage.to_string());
            let args = StageArgs { configuration, dataset, output, from, device };
            from = Some(args.train(stage, &config)?.context(INTERRUPTED)?);
        }
        let model = from.context("the configuration has no stages")?;
        let output = self.output.join("policy");
        Export { model, output, name: Some(training.name) }.run()
    }
}
