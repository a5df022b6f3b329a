//! What each part of training brings: the same training, with a part left out or changed.
//!
//! ```text
//! Ablations ─► Variant, seed ─► stages ─► network ─┬──────────────────────► replay on the test
//!                                                  └─► Improvement, network ─►──┘  └─► AblationTable
//! ```
//!
//! A variant makes as many steps in all as the whole training does, whatever it leaves out. An
//! improvement goes on from the network of the first variant, by what is recorded or measured of
//! the programs that it writes; all improvements ask about as many programs.

mod table;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sparserl_core::structure::IndexScaling;

use crate::configuration::Stage;
use crate::corpus::Split;
use crate::evaluation::{COST_MODEL, likeliest};
use crate::network::Modalities;
use crate::reinforcement::{Algorithm, ReinforcementConfig, Reward};
use crate::stages::StageConfig;

pub use table::{AblationRow, AblationTable, SeedResult};

/// Trainings that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ablations {
    /// The whole training: a configuration of [`Training`](crate::configuration::Training),
    /// relative to this one.
    pub training: PathBuf,
    /// Which matrices are trained on, and which are the test.
    pub split: Split,
    /// Each variant is trained from each of these.
    pub seeds: Vec<u64>,
    /// The variants; one that changes nothing is the whole training.
    pub variants: Vec<Variant>,
    /// How networks are improved, where they are: a configuration of a [`ReinforcementConfig`],
    /// relative to this one. What becomes of programs is as the dataset has it, unless a GPU
    /// measures it.
    #[serde(default)]
    pub reinforcement: Option<PathBuf>,
    /// How networks are improved where a GPU measures what they write.
    #[serde(default)]
    pub measured_reinforcement: Option<PathBuf>,
    /// What is compared of it.
    #[serde(default)]
    pub improvements: Vec<Improvement>,
}

/// A training that differs from the whole one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called in tables.
    pub name: String,
    /// Stages that are left out; the others make their steps, too.
    #[serde(default)]
    pub without: Vec<Stage>,
    /// What the network is shown of a matrix, in training and in use.
    #[serde(default = "all")]
    pub shown: Modalities,
    /// How it is given the positions of nonzeros, instead of as the whole training says.
    #[serde(default)]
    pub positions: Option<IndexScaling>,
    /// It is trained on so many matrices only: on a part of those of a larger number.
    #[serde(default)]
    pub matrices: Option<usize>,
    /// Whether it learns to guess resource usage, where the whole training does.
    #[serde(default = "yes")]
    pub resources: bool,
}

/// A way to improve the network of the first variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Improvement {
    /// What it is called in tables.
    pub name: String,
    /// What is made of rewards.
    pub algorithm: Algorithm,
    /// What programs are worth.
    pub reward: Reward,
}

fn all() -> Modalities {
    Modalities::ALL
}

fn yes() -> bool {
    true
}

impl Ablations {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let variants = self.variants.iter().map(|variant| variant.name.as_str());
        let improvements = self.improvements.iter().map(|improvement| improvement.name.as_str());
        let mut names: Vec<&str> = variants.chain(improvements).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // Each has a folder beside the table, in which the cost model has rows of its own.
        let is_folder = |name: &&str| {
            !name.trim().is_empty()
                && !name.contains(['/', '\\', '.'])
                && !name.contains(char::is_control)
                && *name != COST_MODEL
        };
        if self.variants.is_empty() || names.len() != count || !names.iter().all(is_folder) {
            return Some(
                "`variants` and `improvements` must have different names that are not blank, \
                 without `/`, `\\`, `.` and line breaks, none of them `cost model`, and there must \
                 be a variant",
            );
        }
        if names.iter().any(|name| names.iter().any(|other| *name == likeliest(other))) {
            return Some("a name is that of another one\'s network as it is listed by likelihood");
        }
        if self.reinforcement.is_none() && !self.improvements.is_empty() {
            return Some("`improvements` need a configuration: `reinforcement = \"FILE\"`");
        }
        let worth = self.improvements.iter().map(|improvement| improvement.reward.efficiency());
        if !worth.into_iter().all(|efficiency| efficiency.is_finite() && efficiency >= 0.0) {
            return Some("the `efficiency` of a `reward` must be finite and must not be negative");
        }
        let is_whole = |first: &Variant| first.shown == Modalities::ALL && first.matrices.is_none();
        if !self.improvements.is_empty() && !self.variants.first().is_some_and(is_whole) {
            return Some(
                "`improvements` are of the first variant, which has to be shown everything on all \
                 matrices",
            );
        }
        if self.variants.iter().any(|variant| variant.matrices == Some(0)) {
            return Some("`matrices` has to be at least 1");
        }
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        seeds.dedup();
        (seeds.is_empty() || seeds.len() != self.seeds.len())
            .then_some("`seeds` must be different, and at least one")
    }

    /// The stages of a variant, from a seed; none where it leaves all out.
    #[must_use]
    pub fn stages(
        &self,
        variant: &Variant,
        whole: &[(Stage, StageConfig)],
        seed: u64,
    ) -> Vec<(Stage, StageConfig)> {
        let steps = |stages: &[(Stage, StageConfig)]| -> u64 {
            stages.iter().fold(0, |sum: u64, (_, config)| sum.saturating_add(config.steps))
        };
        let mut kept: Vec<(Stage, StageConfig)> =
            whole.iter().filter(|(stage, _)| !variant.without.contains(stage)).cloned().collect();
        let (all, left) = (steps(whole), steps(&kept));
        for (_, config) in &mut kept {
            config.seed = seed;
            let share = (u128::from(config.steps) * u128::from(all)).checked_div(left.into());
            config.steps = share.map_or(config.steps, |steps| steps as u64);
            config.matrices = variant.matrices.or(config.matrices);
            config.split = self.split.clone();
            config.network.positions = variant.positions.unwrap_or(config.network.positions);
            if !variant.resources {
                config.weights.resources = 0.0;
            }
            let hidden = &mut config.hidden;
            for (shown, share) in [
                (variant.shown.features, &mut hidden.features),
                (variant.shown.grids, &mut hidden.grids),
                (variant.shown.positions, &mut hidden.positions),
            ] {
                if !shown {
                    *share = 1.0;
                }
            }
        }
        // What rounding has taken.
        let made = steps(&kept);
        if let Some((_, last)) = kept.last_mut() {
            last.steps += all.saturating_sub(made);
        }
        kept
    }
}

impl Improvement {
    /// How a network is improved, from a seed.
    #[must_use]
    pub fn config(
        &self,
        whole: &ReinforcementConfig,
        split: &Split,
        seed: u64,
    ) -> ReinforcementConfig {
        let Self { algorithm, reward, .. } = *self;
        ReinforcementConfig { algorithm, reward, seed, split: split.clone(), ..whole.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::configuration::{self, Contests, Samples, Tabulated};
    use crate::reinforcement::DecodingMode;

    fn whole() -> Vec<(Stage, StageConfig)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configurations");
        let stages = [(Stage::Pretrain, "pretrain"), (Stage::Sft, "sft"), (Stage::Value, "value")];
        let read = |(stage, name): (Stage, &str)| {
            (stage, StageConfig::read(&folder.join(format!("{name}.toml"))).unwrap())
        };
        stages.map(read).to_vec()
    }

    #[test]
    fn the_shipped_ablations_make_as_many_steps_as_the_whole_training() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ablations.toml");
        let ablations: Ablations = configuration::read_checked(&path, Ablations::wrong).unwrap();
        assert!(ablations.seeds.len() >= 3);
        let whole = whole();
        let all: u64 = whole.iter().map(|(_, config)| config.steps).sum();
        for variant in &ablations.variants {
            let stages = ablations.stages(variant, &whole, 7);
            assert_eq!(stages.iter().map(|(_, config)| config.steps).sum::<u64>(), all);
            assert_eq!(stages.len() + variant.without.len(), whole.len());
            assert!(stages.iter().all(|(_, config)| config.seed == 7));
        }
        let named = |name: &str| {
            let found = ablations.variants.iter().find(|variant| variant.name == name);
            ablations.stages(found.unwrap(), &whole, 1)
        };
        let unchanged = named("all");
        assert!(unchanged.iter().zip(&whole).all(|((_, a), (_, b))| a == b));
        let scalars = named("scalars only");
        assert!(scalars.iter().all(|(_, c)| (c.hidden.grids, c.hidden.positions) == (1.0, 1.0)));
        assert!(scalars.iter().all(|(_, config)| config.hidden.features < 1.0));
        let learns = |stages: &[(Stage, StageConfig)]| {
            stages.iter().any(|(_, config)| config.weights.resources > 0.0)
        };
        assert!(
            learns(&whole) && learns(&named("scalars only")) && !learns(&named("no resources"))
        );
        assert_eq!(named("250 matrices")[0].1.matrices, Some(250));
        // A third of the steps of two stages of 1000 and 2000 is 333 and 667 more.
        let steps: Vec<u64> =
            named("no pre-training").iter().map(|(_, config)| config.steps).collect();
        assert_eq!(steps, [1333, 2667]);
    }

    #[test]
    fn what_the_shipped_tables_name_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let tabulated: Tabulated =
            configuration::read_checked(&root.join("tables.toml"), Tabulated::wrong).unwrap();
        let ablations: Ablations =
            configuration::read_checked(&root.join(tabulated.ablations), Ablations::wrong).unwrap();
        assert_eq!(ablations.split, Split::NoReal);
        assert!(ablations.seeds.len() >= 3);
        let contests: Contests =
            configuration::read_checked(&root.join(tabulated.evaluation), Contests::wrong).unwrap();
        assert!(contests.matrices >= 200);
        for samples in tabulated.samples {
            let samples: Samples =
                configuration::read_checked(&root.join(samples), Samples::wrong).unwrap();
            assert!(samples.matrices >= 200 && samples.corpus.share_of_real == 1.0);
        }
        assert!(
            Tabulated {
                samples: Vec::new(),
                ..configuration::read(&root.join("tables.toml")).unwrap()
            }
            .wrong()
            .is_some()
        );
    }

    #[test]
    fn the_shipped_improvements_differ_in_algorithm_or_reward_alone() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = folder.join("ablations.toml");
        let ablations: Ablations = configuration::read_checked(&path, Ablations::wrong).unwrap();
        let measured = folder.join(ablations.measured_reinforcement.unwrap());
        let measured = ReinforcementConfig::read(&measured).unwrap();
        assert_eq!(measured.decoding, DecodingMode::Masked);
        let config = folder.join(ablations.reinforcement.unwrap());
        let whole = ReinforcementConfig::read(&config).unwrap();
        assert_eq!(whole.decoding, DecodingMode::Measured);
        let split = &ablations.split;
        let configs = ablations.improvements.iter().map(|i| i.config(&whole, split, 3));
        let mut seen: Vec<ReinforcementConfig> = Vec::new();
        for config in configs {
            let (algorithm, reward) = (config.algorithm, config.reward);
            let expected = ReinforcementConfig { algorithm, reward, seed: 3, ..whole.clone() };
            assert_eq!(config, expected);
            assert!(!seen.contains(&config), "{config:?}");
            seen.push(config);
        }
        for algorithm in Algorithm::ALL {
            assert!(seen.iter().any(|config| config.algorithm == algorithm), "{algorithm}");
        }
    }

    #[test]
    fn improvements_without_a_configuration_are_refused() {
        let text = "training = \"train.toml\"\nsplit = \"no_real\"\nseeds = [1]\n";
        let of = |head: &str| {
            let variant = "[[variants]]\nname = \"all\"\n";
            let improvement =
                "[[improvements]]\nname = \"PPO\"\nalgorithm = \"ppo\"\nreward = \"tiered\"\n";
            let text = format!("{text}{head}{variant}{improvement}");
            toml::from_str::<Ablations>(&text).unwrap().wrong()
        };
        assert!(of("").is_some_and(|wrong| wrong.contains("`reinforcement")));
        let head = "reinforcement = \"ppo.toml\"\n";
        assert_eq!(of(head), None);
        let text = text.replace("seeds", "reinforcement = \"ppo.toml\"\nseeds");
        for efficiency in ["-0.1", "nan", "inf"] {
            let improvement = format!(
                "[[improvements]]\nname = \"paper\"\nalgorithm = \"ppo\"\n\
                 reward = {{ paper = {{ efficiency = {efficiency} }} }}\n"
            );
            let text = format!("{text}[[variants]]\nname = \"all\"\n{improvement}");
            let wrong = toml::from_str::<Ablations>(&text).unwrap().wrong();
            assert!(wrong.is_some_and(|wrong| wrong.contains("`efficiency`")), "{efficiency}");
        }
        let part = format!("{head}[[variants]]\nname = \"part\"\nmatrices = 9\n");
        assert!(of(&part).is_some_and(|wrong| wrong.contains("first variant")));
    }

    #[test]
    fn names_that_make_no_folder_or_two_of_a_name_are_refused() {
        let of = |names: [&str; 2]| {
            let variants = names.map(|name| format!("[[variants]]\nname = \"{name}\"\n")).concat();
            let head = "training = \"train.toml\"\nsplit = \"no_real\"\nseeds = [1]\n";
            let text = format!("{head}{variants}");
            toml::from_str::<Ablations>(&text).unwrap().wrong()
        };
        assert_eq!(of(["a", "b"]), None);
        for names in [
            ["a", "a"],
            ["a", "a, likeliest"],
            ["a", ""],
            ["a", "../b"],
            ["a", ".."],
            ["a", "cost model"],
            ["a", " "],
            ["a", "b\\\\c"],
            ["a", "b\\nc"],
        ] {
            assert!(of(names).is_some(), "{names:?}");
        }
    }
}
