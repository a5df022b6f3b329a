use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use sparserl_trainer::ablation::{AblationTable, Ablations, SeedResult, Variant};
use sparserl_trainer::configuration;
use sparserl_trainer::corpus::{Role, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::network::{Compute, ModelFile, NetworkPolicy, Processor};
use sparserl_trainer::stages::{Stage, StageConfig};

use super::replay::choices;
use super::stage::train;
use super::train::{INTERRUPTED, read_stages};
use super::{results_folder, write_json};
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
}

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
        let asked =
            Asked { whole: &whole, split: &ablations.split, dataset: dataset.fingerprint() };
        results_folder(&self.output, &asked)?;
        let mut results = Vec::new();
        // One seed of all variants before the next: there is something to compare soon.
        for &seed in &ablations.seeds {
            for variant in &ablations.variants {
                results.push(self.result(&ablations, variant, &whole, seed, &dataset)?);
                let table = AblationTable::new(&results);
                write_json(&self.output.join("table.json"), &table)?;
            }
        }
        print(&AblationTable::new(&results).to_string());
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
        let folder = self.output.join(&variant.name).join(seed.to_string());
        results_folder(&folder, &AskedOfOne { variant, seed })?;
        let path = folder.join("choices.json");
        if path.exists() {
            return read(&path);
        }
        say(&format!("{}, seed {seed}:", variant.name));
        let mut from: Option<PathBuf> = None;
        for (stage, config) in ablations.stages(variant, whole, seed) {
            let (begin, place) = (from.as_deref(), folder.join(stage.to_string()));
            let model = train((stage, &config), dataset, begin, &place, self.device)?;
            from = Some(model.context(INTERRUPTED)?);
        }
        let model = from.with_context(|| format!("`{}` leaves out all stages", variant.name))?;
        let network = NetworkPolicy::<Processor>::new(
            &ModelFile::read(&model)?,
            variant.shown,
            Default::default(),
        );
        let networks = [(variant.name.clone(), network)];
        let cases = choices(dataset, &ablations.split, &networks)?;
        let result = SeedResult { variant: variant.name.clone(), seed, cases };
        write_json(&path, &result)?;
        Ok(result)
    }
}

fn read(path: &Path) -> anyhow::Result<SeedResult> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}
