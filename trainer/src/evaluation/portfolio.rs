//! The chooser that looks at no matrix: one fixed list of programs. Whatever learns has to beat it.

use std::collections::BTreeMap;

use sparserl_core::decode::{Choice, Chooser, PolicyError, PolicyInput, is_offered};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Objective;
use sparserl_core::task::Task;

use super::experience::mean;
use super::{Experience, in_order};

/// A program is known well enough after so many cases.
const LEAST_CASES: usize = 20;
/// Programs that are chosen from: those with the least mean regret.
const CONSIDERED: usize = 400;

/// A chooser of one list of programs for every matrix: the first is the best single one, and each
/// next one gains most where the best of those before it is measured.
#[derive(Clone, Debug)]
pub struct FixedPortfolio {
    programs: BTreeMap<Task, Vec<Program>>,
}

impl FixedPortfolio {
    /// So many programs for each task. In cases where a program was not measured it counts as slow
    /// as in the mean of the others.
    #[must_use]
    pub fn new(experience: &BTreeMap<Task, Experience>, count: usize) -> Self {
        let chosen = |(&task, experience): (&Task, &Experience)| (task, greedy(experience, count));
        Self { programs: experience.iter().map(chosen).collect() }
    }

    /// The programs, task by task.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.programs.values().flatten()
    }
}

fn greedy(experience: &Experience, count: usize) -> Vec<Program> {
    let mut known = experience.well_known(LEAST_CASES);
    known.truncate(CONSIDERED);
    let regrets: Vec<(usize, Vec<f32>)> = known
        .into_iter()
        .map(|(place, met)| {
            let mut regrets = vec![mean(&met); experience.cases.len()];
            for (case, regret) in met {
                if let Some(known) = regrets.get_mut(case) {
                    *known = regret;
                }
            }
            (place, regrets)
        })
        .collect();
    let mut best = vec![f32::INFINITY; experience.cases.len()];
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let total = |(_, regrets): &(usize, Vec<f32>)| -> f32 {
            regrets.iter().zip(&best).map(|(regret, best)| regret.min(*best)).sum()
        };
        let open = regrets.iter().filter(|(place, _)| !chosen.contains(place));
        let Some((place, regrets)) = open.min_by(|a, b| total(a).total_cmp(&total(b))) else {
            break;
        };
        chosen.push(*place);
        best.iter_mut().zip(regrets).for_each(|(best, regret)| *best = best.min(*regret));
    }
    chosen.iter().filter_map(|&place| experience.programs.get(place).cloned()).collect()
}

impl Chooser for FixedPortfolio {
    fn name(&self) -> &str {
        "fixed portfolio"
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        _: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let mask = Mask::legal(&input.stats, input.task);
        let programs = self.programs.get(&input.task).into_iter().flatten();
        Ok(in_order(programs.filter(|program| is_offered(mask, program)).take(count).cloned()))
    }
}
