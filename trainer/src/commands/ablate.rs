//! `ablate`: trains variants of a training and improvements of its network, and compares what they
//! choose. Processes share the networks through the folder of the results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::value_parser;
use serde::Serialize;
use sparserl_trainer::ablation::{AblationTable, Ablations, Improvement, SeedResult, Variant};
use sparserl_trainer::configuration::{self, Stage};
use sparserl_trainer::corpus::{RealMatrices, Role, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::network::{Compute, Modalities, ModelFile, NetworkPolicy, Processor};
use sparserl_trainer::reinforcement::{Known, RecordedOutcomes, ReinforcementConfig};
use sparserl_trainer::shards::Shards;
use sparserl_trainer::stages::{MODEL, StageConfig};

use super::measuring::duration;
use super::ppo::{OutcomeSource, improve};
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
    #[command(flatten)]
    outcomes: OutcomeSource,
    /// Minutes after which a network of a process that was lost is given to another.
    #[arg(long, value_name = "MINUTES", default_value_t = LEASE, value_parser = value_parser!(u64).range(1..))]
    lease: u64,
}

/// Minutes.
const LEASE: u64 = 5;
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
    measured: bool,
}

impl Ablate {
    /// The ablations of a dataset in a folder.
    pub(super) fn of(
        configuration: PathBuf,
        [dataset, output]: [PathBuf; 2],
        device: Compute,
        real: Option<PathBuf>,
        outcomes: OutcomeSource,
    ) -> Self {
        Self { configuration, dataset, output, device, real, outcomes, lease: LEASE }
    }

    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let ablations: Ablations =
            configuration::read_checked(&self.configuration, Ablations::wrong)?;
        let training = self.configuration.with_file_name(&ablations.training);
        let (of_all, whole) = read_stages(&training)?;
        anyhow::ensure!(
            of_all.reinforcement.is_none(),
            "`{}` has a `reinforcement`: name a training without, and what improves its network as \
             `improvements`",
            training.display()
        );
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
        let measured = ablations.measured_reinforcement.as_ref();
        let measured = measured.filter(|_| self.outcomes.measure_on.is_some());
        let reinforcement = measured
            .or(ablations.reinforcement.as_ref())
            .map(|path| ReinforcementConfig::read(&self.configuration.with_file_name(path)));
        let reinforcement = reinforcement.transpose()?;
        let real = real_matrices(self.real.as_deref())?;
        let improves = !ablations.improvements.is_empty();
        self.outcomes.check(&self.configuration, "improvements", improves)?;
        let asked =
            Asked { whole: &whole, split: &ablations.split, dataset: dataset.fingerprint() };
        results_folder(&self.output, &asked)?;
        // One seed of all variants before the next: there is something to compare soon.
        for &seed in &ablations.seeds {
            for variant in &ablations.variants {
                self.make(&variant.name, seed, &AskedOfOne { variant, seed }, &ablations, || {
                    self.train(&ablations, variant, &whole, seed, &dataset)
                })?;
            }
            let Some(config) = &reinforcement else { continue };
            let Some(first) = self.model(&ablations, &whole, seed)? else { continue };
            for improvement in &ablations.improvements {
                let config = improvement.config(config, &ablations.split, seed);
                let (from, measured) = (&first.fingerprint(), self.outcomes.measure_on.is_some());
                let asked = AskedOfImprovement { config: &config, from, measured };
                self.make(&improvement.name, seed, &asked, &ablations, || {
                    self.improve(improvement, &config, &first, (&dataset, &real))
                })?;
            }
        }
        let (table, networks) = self.table(&ablations)?;
        print(&table.to_string())?;
        let all = ablations.seeds.len() * (ablations.variants.len() + ablations.improvements.len());
        if networks < all {
            say(&format!(
                "{networks} of {all} networks are there; other processes are at work on the rest, or \
                 were lost less than {} minutes ago",
                self.lease
            ));
        }
        Ok(())
    }

    /// Has a network made and asked, in a folder of its own, unless it was before or another
    /// process is at work on it.
    fn make(
        &self,
        name: &str,
        seed: u64,
        asked: &impl Serialize,
        ablations: &Ablations,
        make: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let folder = self.folder(name, seed);
        results_folder(&folder, asked)?;
        // Whoever holds its only shard is at work on it.
        let lease = duration(self.lease);
        let Some(claim) = Shards::open(&folder.join("shards"), 1, lease)?.claim()? else {
            return Ok(());
        };
        if read(&folder)?.is_some() {
            return Ok(());
        }
        say(&format!("{name}, seed {seed}:"));
        claim.renew_while(make)?;
        drop(claim);
        let (table, _) = self.table(ablations)?;
        write_json(&self.output.join("table.json"), &table)
    }

    /// The network of the first variant, which improvements go on from, where it is trained.
    fn model(
        &self,
        ablations: &Ablations,
        whole: &[(Stage, StageConfig)],
        seed: u64,
    ) -> anyhow::Result<Option<ModelFile>> {
        let Some(first) = ablations.variants.first() else { return Ok(None) };
        if read(&self.folder(&first.name, seed))?.is_none() {
            return Ok(None);
        }
        Ok(Some(ModelFile::read(&self.path(first, whole, seed)?)?))
    }

    /// Where the network of a variant is, once it is trained.
    fn path(
        &self,
        variant: &Variant,
        whole: &[(Stage, StageConfig)],
        seed: u64,
    ) -> anyhow::Result<PathBuf> {
        let last = whole.iter().rev().find(|(stage, _)| !variant.without.contains(stage));
        let (stage, _) = last.with_context(|| format!("`{}` has no stage", variant.name))?;
        Ok(self.folder(&variant.name, seed).join(stage.to_string()).join(MODEL))
    }

    /// The networks of the first variant from all seeds, and those that are improved from the first
    /// seed; by their names and seeds.
    pub(super) fn trained(
        &self,
        ablations: &Ablations,
        whole: &[(Stage, StageConfig)],
    ) -> anyhow::Result<[Vec<(String, PathBuf)>; 2]> {
        let named = |name: &str, seed: u64| format!("{name} {seed}");
        let (mut whole_ones, mut improved) = (Vec::new(), Vec::new());
        for &seed in &ablations.seeds {
            if let Some(first) = ablations.variants.first() {
                whole_ones.push((named(&first.name, seed), self.path(first, whole, seed)?));
            }
        }
        if let Some(&seed) = ablations.seeds.first() {
            improved.extend(ablations.improvements.iter().map(|improvement| {
                let path = self.folder(&improvement.name, seed).join(MODEL);
                (named(&improvement.name, seed), path)
            }));
        }
        Ok([whole_ones, improved])
    }

    /// The table of the networks that there are, and how many they are.
    fn table(&self, ablations: &Ablations) -> anyhow::Result<(AblationTable, usize)> {
        let variants = ablations.variants.iter().map(|variant| &variant.name);
        let names =
            variants.chain(ablations.improvements.iter().map(|improvement| &improvement.name));
        let names: Vec<&String> = names.collect();
        let mut results = Vec::new();
        for &seed in &ablations.seeds {
            for name in &names {
                results.extend(read(&self.folder(name, seed))?);
            }
        }
        Ok((AblationTable::new(&results), results.len()))
    }

    /// Trains the network of a variant and seed, and has it choose.
    fn train(
        &self,
        ablations: &Ablations,
        variant: &Variant,
        whole: &[(Stage, StageConfig)],
        seed: u64,
        dataset: &Dataset,
    ) -> anyhow::Result<()> {
        let folder = self.folder(&variant.name, seed);
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

    /// Improves the network of the first variant, and has it choose.
    fn improve(
        &self,
        improvement: &Improvement,
        config: &ReinforcementConfig,
        from: &ModelFile,
        (dataset, real): (&Dataset, &RealMatrices),
    ) -> anyhow::Result<()> {
        let folder = self.folder(&improvement.name, config.seed);
        let given = (config, dataset, from, real);
        let improved = match self.outcomes.measure_on {
            Some(_) => self.outcomes.improve(given, &[], &folder, self.device, None)?,
            None => {
                let outcomes = RecordedOutcomes::new(Known::of_dataset(dataset));
                improve(given, outcomes, &folder, self.device, None)?
            }
        };
        anyhow::ensure!(improved.complete, INTERRUPTED);
        let name = (improvement.name.as_str(), Modalities::ALL, config.seed);
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
) -> anyhow::Result<()> {
    let model = ModelFile::read(model)?;
    let network = NetworkPolicy::<Processor>::new(&model, shown, Default::default());
    let replayed = choices(dataset, split, &[(name.to_owned(), network)])?;
    let cases = replayed.into_iter().map(|case| case.result).collect();
    let result = SeedResult { variant: name.to_owned(), seed, cases };
    write_json(&folder.join(PICKS), &result)
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
