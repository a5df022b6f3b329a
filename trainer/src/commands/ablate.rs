//! `ablate`: trains variants of a training and improvements of its network, and compares what they
//! choose.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use sparserl_trainer::ablation::{AblationTable, Ablations, Improvement, SeedResult, Variant};
use sparserl_trainer::configuration::{self, Stage};
use sparserl_trainer::corpus::{RealMatrices, Role, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::network::{Compute, Modalities, ModelFile, NetworkPolicy, Processor};
use sparserl_trainer::reinforcement::{Known, RecordedOutcomes, ReinforcementConfig};
use sparserl_trainer::stages::{MODEL, StageConfig};

use super::ppo::improve;
use super::replay::choices;
use super::stage::train;
use super::train::{INTERRUPTED, read_stages};
use super::{real_matrices, results_folder, write_json};
use crate::console::{print, say};

#[derive(clap::Args)]
pub(crate) struct Ablate {
    /// The variants (TOML); `trainer/ablations.toml` is one.
    configuration: PathBuf,
    /// What to train and to test on.
    #[arg(short, long, value_name = "FILE")]
    dataset: PathBuf,
    /// Folder of the networks, of what they choose, and of the table.
    #[arg(short, long)]
    output: PathBuf,
    /// What to train on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    device: Compute,
    /// Folder of the real matrices that are trained on, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
}

/// What a network picks, in its folder.
const PICKS: &str = "picks.json";

/// What results are of.
#[derive(Serialize)]
struct Asked<'a> {
    whole: &'a [(Stage, StageConfig)],
    split: &'a Split,
    /// Its fingerprint.
    dataset: String,
}

/// What one network is of.
#[derive(Serialize)]
struct AskedOfOne<'a> {
    variant: &'a Variant,
    seed: u64,
}

/// What an improved network is of.
#[derive(Serialize)]
struct AskedOfImprovement<'a> {
    config: &'a ReinforcementConfig,
    from: &'a str,
}

impl Ablate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let ablations: Ablations =
            configuration::read_checked(&self.configuration, Ablations::wrong)?;
        let training = self.configuration.with_file_name("").join(&ablations.training);
        let (_, whole) = read_stages(&training)?;
        self.device.check()?;
        let dataset = Dataset::read(&self.dataset)?;
        let roles = dataset.roles(&ablations.split)?;
        for (role, what) in [(Role::Train, "trained"), (Role::Test, "tested")] {
            anyhow::ensure!(
                roles.contains(&role),
                "`{}` has no matrix that is {what} on: prepare one of recordings of `collect` and of \
                 `evaluate`",
                self.dataset.display()
            );
        }
        for Variant { name, without, .. } in &ablations.variants {
            let left = whole.iter().filter(|(stage, _)| !without.contains(stage)).count();
            anyhow::ensure!(
                left > 0 && left + without.len() == whole.len(),
                "`{}`: the variant `{name}` leaves out all stages, or one that the training has not",
                self.configuration.display()
            );
        }
        let reinforcement = ablations.reinforcement.as_ref().map(|path| {
            ReinforcementConfig::read(&self.configuration.with_file_name("").join(path))
        });
        let reinforcement = reinforcement.transpose()?;
        let real = real_matrices(self.real.as_deref())?;
        let asked =
            Asked { whole: &whole, split: &ablations.split, dataset: dataset.fingerprint() };
        results_folder(&self.output, &asked)?;
        let mut results = Vec::new();
        let mut keep = |result| -> anyhow::Result<()> {
            results.push(result);
            write_json(&self.output.join("table.json"), &AblationTable::new(&results))
        };
        // One seed of all variants before the next: there is something to compare soon.
        for &seed in &ablations.seeds {
            for variant in &ablations.variants {
                keep(self.result(&ablations, variant, &whole, seed, &dataset)?)?;
            }
            let (Some(config), Some(first)) = (&reinforcement, ablations.variants.first()) else {
                continue;
            };
            for improvement in &ablations.improvements {
                let config = improvement.config(config, &ablations.split, seed);
                let first = (first, whole.as_slice());
                keep(self.improved(improvement, &config, first, (&dataset, &real))?)?;
            }
        }
        print(&AblationTable::new(&results).to_string())?;
        Ok(())
    }

    /// What the network of a variant and seed chooses, which is trained where it was not before.
    fn result(
        &self,
        ablations: &Ablations,
        variant: &Variant,
        whole: &[(Stage, StageConfig)],
        seed: u64,
        dataset: &Dataset,
    ) -> anyhow::Result<SeedResult> {
        let folder = self.folder(&variant.name, seed);
        results_folder(&folder, &AskedOfOne { variant, seed })?;
        if let Some(known) = read(&folder)? {
            return Ok(known);
        }
        say(&format!("{}, seed {seed}:", variant.name));
        let mut from: Option<PathBuf> = None;
        for (stage, config) in ablations.stages(variant, whole, seed) {
            let (begin, place) = (from.as_deref(), folder.join(stage.to_string()));
            let model = train((stage, &config), dataset, begin, &place, self.device)?;
            from = Some(model.context(INTERRUPTED)?);
        }
        let model = from.with_context(|| format!("`{}` leaves out all stages", variant.name))?;
        let name = (variant.name.as_str(), variant.shown, seed);
        choose(name, &model, (dataset, &ablations.split), &folder)
    }

    /// What the network of the first variant chooses when it was improved, which it is where it was
    /// not before.
    fn improved(
        &self,
        improvement: &Improvement,
        config: &ReinforcementConfig,
        (first, whole): (&Variant, &[(Stage, StageConfig)]),
        (dataset, real): (&Dataset, &RealMatrices),
    ) -> anyhow::Result<SeedResult> {
        let seed = config.seed;
        let last = whole.iter().rev().find(|(stage, _)| !first.without.contains(stage));
        let (stage, _) = last.with_context(|| format!("`{}` has no stage", first.name))?;
        let from = self.folder(&first.name, seed).join(stage.to_string()).join(MODEL);
        let file = ModelFile::read(&from)?;
        let folder = self.folder(&improvement.name, seed);
        results_folder(&folder, &AskedOfImprovement { config, from: &file.fingerprint() })?;
        if let Some(known) = read(&folder)? {
            return Ok(known);
        }
        say(&format!("{}, seed {seed}:", improvement.name));
        let given = (config, dataset, &file, real);
        let outcomes = RecordedOutcomes::new(Known::of_dataset(dataset));
        let improved = improve(given, outcomes, &folder, self.device, None)?;
        anyhow::ensure!(improved.complete, INTERRUPTED);
        let name = (improvement.name.as_str(), Modalities::ALL, seed);
        choose(name, &improved.path, (dataset, &config.split), &folder)
    }

    /// Where the networks of a variant or improvement are, and what they choose.
    fn folder(&self, name: &str, seed: u64) -> PathBuf {
        self.output.join(name).join(seed.to_string())
    }
}

/// Has a network choose, and keeps what it chooses in a folder.
fn choose(
    (name, shown, seed): (&str, Modalities, u64),
    model: &Path,
    (dataset, split): (&Dataset, &Split),
    folder: &Path,
) -> anyhow::Result<SeedResult> {
    let model = ModelFile::read(model)?;
    let network = NetworkPolicy::<Processor>::new(&model, shown, Default::default());
    let replayed = choices(dataset, split, &[(name.to_owned(), network)])?;
    let cases = replayed.into_iter().map(|case| case.result).collect();
    let result = SeedResult { variant: name.to_owned(), seed, cases };
    write_json(&folder.join(PICKS), &result)?;
    Ok(result)
}

/// What was chosen before, if anything.
fn read(folder: &Path) -> anyhow::Result<Option<SeedResult>> {
    let path = folder.join(PICKS);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(Some(serde_json::from_slice(&text).with_context(|| path.display().to_string())?))
}
