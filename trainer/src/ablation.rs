//! What each part of training brings: the same training, with a part left out or changed.
//!
//! ```text
//! Ablations ─► Variant, seed ─► stages ─► network ─► replay on the matrices of the test
//!                                                        └─► AblationTable
//! ```
//!
//! A variant makes as many steps in all as the whole training does, whatever it leaves out.

mod table;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sparserl_core::structure::IndexScaling;

use crate::corpus::Split;
use crate::evaluation::COST_MODEL;
use crate::network::Modalities;
use crate::stages::{Stage, StageConfig};

pub use table::{AblationRow, AblationTable, SeedResult};

/// Trainings that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ablations {
    /// The whole training: a configuration of [`Training`](crate::configuration::Training), relative
    /// to this one.
    pub training: PathBuf,
    /// Which matrices are trained on, and which are the test.
    pub split: Split,
    /// Each variant is trained from each of these.
    pub seeds: Vec<u64>,
    /// The variants; one that changes nothing is the whole training.
    pub variants: Vec<Variant>,
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
}

fn all() -> Modalities {
    Modalities::ALL
}

impl Ablations {
    /// What means nothing, if anything.
    #[must_use]
    pub fn wrong(&self) -> Option<&'static str> {
        let mut names: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        // Each has a folder beside the table, in which the cost model has rows of its own.
        let is_folder = |name: &&str| {
            !name.is_empty() && !name.contains(['/', '\0', '.']) && *name != COST_MODEL
        };
        if names.is_empty() || names.len() != self.variants.len() || !names.iter().all(is_folder) {
            return Some(
                "`variants` must have different names, without `/` and `.` and none of them `cost \
                 model`, and be at least one",
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::configuration;

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
        assert_eq!(named("250 matrices")[0].1.matrices, Some(250));
        // A third of the steps of two stages of 1000 and 2000 is 333 and 667 more.
        let steps: Vec<u64> =
            named("no pre-training").iter().map(|(_, config)| config.steps).collect();
        assert_eq!(steps, [1333, 2667]);
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
        for names in [["a", "a"], ["a", ""], ["a", "../b"], ["a", ".."], ["a", "cost model"]] {
            assert!(of(names).is_some(), "{names:?}");
        }
    }
}
