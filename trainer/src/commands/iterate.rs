//! `iterate`: rounds of measuring what a policy writes, and of training on it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;
use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::{Engine, OnnxPolicy};
use sparserl_trainer::configuration::{self, Rounds, Stage};
use sparserl_trainer::corpus::{Recipe, Recipes};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::export::export;
use sparserl_trainer::iteration::{PolicySamples, gain};
use sparserl_trainer::measured::MeasuredCase;
use sparserl_trainer::network::{Compute, ModelFile};
use sparserl_trainer::stages::StageConfig;

use super::stage::train;
use super::train::{INTERRUPTED, read_stages};
use super::{Export, Measuring, Prepare, write_json};
use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Iterate {
    /// The rounds (TOML); `trainer/iterate.toml` is one.
    configuration: PathBuf,
    /// The pre-trained network that each round is trained from.
    #[arg(long, value_name = "MODEL")]
    base: PathBuf,
    /// The policy of the first round; the base without.
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,
    /// Folders of recordings that there are already.
    #[arg(long, required = true, num_args = 1.., value_name = "FOLDER")]
    recordings: Vec<PathBuf>,
    /// What to train on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    train_on: Compute,
    #[command(flatten)]
    measuring: Measuring,
}

/// What a round measures.
#[derive(Serialize)]
struct Asked<'a> {
    settings: &'a Rounds,
    /// The fingerprint of the network.
    policy: String,
}

/// Not all of a round is measured.
const UNFINISHED: &str = "not all matrices of the round are measured: it was interrupted, or other \
    processes hold some, or held them when they were lost; start it again, after the time of \
    --lease at the latest";

/// What a round came to.
#[derive(Serialize)]
struct Round {
    round: u32,
    /// The policy that wrote the programs.
    policy: PathBuf,
    /// Programs that were measured before it, and after it.
    programs: [usize; 2],
    /// By how much the fastest of the cases that were known have become faster.
    gain: f64,
}

impl Iterate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let settings: Rounds = configuration::read_checked(&self.configuration, Rounds::wrong)?;
        let training = self.configuration.with_file_name(&settings.training);
        let (training, stages) = read_stages(&training)?;
        anyhow::ensure!(
            training.reinforcement.is_none(),
            "`{}`: the training of a round has no `reinforcement`",
            settings.training.display()
        );
        self.train_on.check()?;
        if self.from.is_some() {
            // It is needed only when hours of measuring are over.
            ModelFile::read(&self.base)?;
        }
        let real = self.measuring.real()?;
        let recipes = Recipes::of_corpus(settings.corpus, settings.matrices, &real);
        let mut folders = self.recordings.clone();
        let mut recordings = folders.iter().map(Recordings::read).collect::<Result<Vec<_>, _>>()?;
        let mut known = MeasuredCase::all(recordings.iter().flatten())?;
        let mut model = self.from.as_ref().unwrap_or(&self.base).clone();
        let names: BTreeSet<String> = known.iter().map(|case| case.recipe.to_string()).collect();
        let is_known = |recipe: &Recipe| names.contains(&recipe.to_string());
        anyhow::ensure!(
            (0..recipes.count()).filter_map(|number| recipes.recipe(number)).any(|r| is_known(&r)),
            "the recordings have none of the corpus's matrices, so nothing could be gained on them: \
             name recordings of the same corpus"
        );
        for round in 1..=settings.rounds {
            let folder = self.measuring.output.join(format!("round-{round}"));
            let file = ModelFile::read(&model)?;
            let policy = export(&file, "iterate")?;
            let policy = OnnxPolicy::open(&policy, &Engine::Embedded)?;
            let samples = PolicySamples::new(&settings, ("iterate".to_owned(), Arc::new(policy)));
            let asked = Asked { settings: &settings, policy: file.fingerprint() };
            let measuring = self.measuring.at(&folder);
            let complete = measuring.run(&recipes, &settings.tasks, samples, &asked)?;
            anyhow::ensure!(complete, UNFINISHED);
            folders.push(folder.join("recordings"));
            let of_round = Recordings::read(folder.join("recordings"))?;
            let gained = gain(&known, &MeasuredCase::all(&of_round)?)
                .context("no case of this round was recorded before")?;
            recordings.push(of_round);
            let now = MeasuredCase::all(recordings.iter().flatten())?;
            let count = |cases: &[MeasuredCase]| cases.iter().map(|c| c.programs.len()).sum();
            let programs = [count(&known), count(&now)];
            let result = Round { round, policy: model.clone(), programs, gain: gained };
            write_json(&folder.join("round.json"), &result)?;
            say(&format!(
                "round {round}: {} new programs, the fastest known are {:.2} % faster",
                programs[1] - programs[0],
                100.0 * (gained - 1.0)
            ));
            known = now;
            if gained < 1.0 + settings.least_gain {
                break;
            }
            model = self.train(&folder, &folders, &stages)?;
        }
        let output = self.measuring.output.join("policy");
        Export { model, output, name: Some(training.name) }.run()
    }

    /// A network that has learned from all recordings, from the base.
    fn train(
        &self,
        folder: &Path,
        recordings: &[PathBuf],
        stages: &[(Stage, StageConfig)],
    ) -> anyhow::Result<PathBuf> {
        let dataset = folder.join("dataset");
        let prepare = Prepare {
            recordings: recordings.to_vec(),
            output: dataset.clone(),
            real: self.measuring.real_folder().map(Path::to_path_buf),
        };
        anyhow::ensure!(prepare.prepare()?, INTERRUPTED);
        let dataset = Dataset::read(&dataset)?;
        let mut model = self.base.clone();
        for (stage, config) in stages {
            let place = folder.join(stage.to_string());
            let trained = train((*stage, config), &dataset, Some(&model), &place, self.train_on)?;
            model = trained.context(INTERRUPTED)?;
        }
        Ok(model)
    }
}
