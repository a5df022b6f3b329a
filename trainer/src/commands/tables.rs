//! `tables`: all that a policy is judged by, on matrices of families that it was not trained on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_trainer::ablation::Ablations;
use sparserl_trainer::configuration::{self, Tabulated};
use sparserl_trainer::corpus::Split;
use sparserl_trainer::network::Compute;

use super::measuring::open_gpu;
use super::ppo::OutcomeSource;
use super::train::{INTERRUPTED, read_stages};
use super::{Ablate, Evaluate, Measuring, PassAtK, Prepare};
use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Tables {
    /// What is compared (TOML); `trainer/tables.toml` is one.
    configuration: PathBuf,
    /// Folders of recordings, of those that are trained on and of real matrices: `collect` and
    /// `evaluate` have made them.
    #[arg(long, required = true, num_args = 1.., value_name = "FOLDER")]
    recordings: Vec<PathBuf>,
    /// What to train on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    train_on: Compute,
    #[command(flatten)]
    measuring: Measuring,
}

impl Tables {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let tabulated: Tabulated =
            configuration::read_checked(&self.configuration, Tabulated::wrong)?;
        let beside = |path: &Path| self.configuration.with_file_name(path);
        let configuration = beside(&tabulated.ablations);
        let ablations: Ablations = configuration::read_checked(&configuration, Ablations::wrong)?;
        anyhow::ensure!(
            ablations.split == Split::NoReal,
            "`{}`: networks that are asked about real matrices are trained by the split `no_real`",
            tabulated.ablations.display()
        );
        self.train_on.check()?;
        let training = configuration.with_file_name(&ablations.training);
        let (_, whole) = read_stages(&training)?;
        // What needs a GPU comes after hours of training.
        drop(open_gpu(self.measuring.device)?);
        let folder = &self.measuring.output;
        let networks = folder.join("networks");
        fs::create_dir_all(&networks).with_context(|| networks.display().to_string())?;

        let dataset = folder.join("dataset");
        let real = self.measuring.real_folder().map(Path::to_path_buf);
        let recordings = self.recordings.clone();
        let prepare = Prepare { recordings, output: dataset.clone(), real: real.clone() };
        anyhow::ensure!(prepare.prepare()?, INTERRUPTED);

        say("what parts of the training bring:");
        let places = [dataset.clone(), folder.join("ablations")];
        let improves = !ablations.improvements.is_empty();
        let outcomes = OutcomeSource::new(improves.then_some(self.measuring.device));
        let ablate = Ablate::of(configuration, places, self.train_on, real, outcomes);
        ablate.run()?;
        // Networks are called by their files.
        let copied = |trained: Vec<(String, PathBuf)>| {
            let copy = |(name, path): (String, PathBuf)| {
                let copied = networks.join(name);
                let made = fs::copy(&path, &copied);
                made.with_context(|| format!("`{}` is not there yet", path.display()))?;
                Ok(copied)
            };
            trained.into_iter().map(copy).collect::<anyhow::Result<Vec<PathBuf>>>()
        };
        let [whole, improved] = ablate.trained(&ablations, &whole)?;
        let (whole, improved) = (copied(whole)?, copied(improved)?);

        say("what networks choose beside a search:");
        let measuring = self.measuring.at(&folder.join("evaluation"));
        let all = [whole.clone(), improved].concat();
        let evaluate = Evaluate::of(beside(&tabulated.evaluation), dataset, all, measuring);
        anyhow::ensure!(evaluate.evaluate()?, INTERRUPTED);
        for (number, samples) in tabulated.samples.iter().enumerate() {
            say(&format!("how much of what they write is right, by `{}`:", samples.display()));
            let measuring = self.measuring.at(&folder.join(format!("pass-at-k-{}", number + 1)));
            let sampling = PassAtK::of(beside(samples), whole.clone(), measuring);
            anyhow::ensure!(sampling.sample()?, INTERRUPTED);
        }
        Ok(())
    }
}
