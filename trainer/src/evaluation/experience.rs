//! Recorded cases as regrets, which choosers that are no networks learn from.

use std::collections::BTreeMap;

use sparserl_core::language::Program;
use sparserl_core::outcome::{Objective, Regime};
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::scalars;
use sparserl_onnx_models::speeds::REGIMES;

use crate::corpus::{RecipeError, Role, Split};
use crate::dataset::{Dataset, DatasetProgram};

/// What choosers that are no networks learn from: the cases of one task, and how much slower than
/// the fastest each program was by the times of an objective.
#[derive(Clone, Debug)]
pub struct Experience {
    /// The programs that were measured in any case.
    pub programs: Vec<Program>,
    /// The cases that are trained on.
    pub cases: Vec<PastCase>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct PastCase {
    /// The [`scalars`](sparserl_onnx_models::inputs::scalars) of matrix, task and GPU.
    pub scalars: Vec<f32>,
    /// For each measured program, by its place in [`Experience::programs`], log2 of its time over
    /// the fastest one's: the mean over the regimes of the objective; least first. At least one.
    pub regrets: Vec<(usize, f32)>,
}

/// In a case where this share of a list was measured, the rest is taken to be what the matrix
/// cannot have.
const LISTED: f32 = 0.5;

/// The mean log2 speed over the regimes of the objective of a program that was timed in all of
/// them.
fn speed(program: &DatasetProgram, objective: Objective) -> Option<f32> {
    let counts = |(_, regime): &(usize, &Regime)| objective.regimes().contains(regime);
    let places = REGIMES.iter().enumerate().filter(counts);
    let sum: Option<f32> = places.map(|(place, _)| program.speed(place)).sum();
    Some(sum? / objective.regimes().len() as f32)
}

impl Experience {
    /// What a dataset has for each of its tasks of the cases that a split trains on.
    ///
    /// # Errors
    /// When a matrix of the dataset has no recipe.
    pub fn of(
        dataset: &Dataset,
        split: &Split,
        objective: Objective,
    ) -> Result<BTreeMap<Task, Self>, RecipeError> {
        let mut found = BTreeMap::<Task, (Self, BTreeMap<Vec<u8>, usize>)>::new();
        for case in &dataset.cases {
            let Some(matrix) = dataset.matrix(case) else { continue };
            if split.role(&matrix.recipe()?) != Role::Train {
                continue;
            }
            let empty = || (Self { programs: Vec::new(), cases: Vec::new() }, BTreeMap::new());
            let (experience, places) = found.entry(case.task).or_insert_with(empty);
            let mut regrets = Vec::new();
            for measured in &case.programs {
                let Some(speed) = speed(measured, objective) else { continue };
                let place = match places.get(&measured.tokens) {
                    Some(&place) => place,
                    None => {
                        let Some(program) = measured.program(case.task) else { continue };
                        places.insert(measured.tokens.clone(), experience.programs.len());
                        experience.programs.push(program);
                        experience.programs.len() - 1
                    }
                };
                regrets.push((place, speed));
            }
            let Some(best) = regrets.iter().map(|(_, speed)| *speed).reduce(f32::max) else {
                continue;
            };
            regrets.iter_mut().for_each(|(_, speed)| *speed = best - *speed);
            regrets.sort_by(|a, b| a.1.total_cmp(&b.1));
            let scalars = scalars(&matrix.features, matrix.size(), case.task, &case.target);
            experience.cases.push(PastCase { scalars: scalars.to_vec(), regrets });
        }
        Ok(found.into_iter().map(|(task, (experience, _))| (task, experience)).collect())
    }

    /// What is known of some programs, from the cases in which at least half of them were measured,
    /// still against the fastest of all: as often and as fairly of one as of another, which
    /// programs that are proposed are not.
    #[must_use]
    pub fn of_programs(&self, listed: &[Program]) -> Self {
        let places: Vec<Option<usize>> = self
            .programs
            .iter()
            .map(|program| listed.iter().position(|other| other == program))
            .collect();
        let restricted = |case: &PastCase| {
            let listed = |&(place, regret): &(usize, f32)| Some(((*places.get(place)?)?, regret));
            let regrets = case.regrets.iter().filter_map(listed).collect();
            PastCase { scalars: case.scalars.clone(), regrets }
        };
        let mut cases: Vec<PastCase> = self.cases.iter().map(restricted).collect();
        let share = |case: &PastCase| case.regrets.len() as f32 / listed.len().max(1) as f32;
        cases.retain(|case| !case.regrets.is_empty() && share(case) >= LISTED);
        Self { programs: listed.to_vec(), cases }
    }

    /// The programs that were measured in at least so many cases, with the cases, by their places,
    /// and the regrets there; those with the least mean regret first.
    #[must_use]
    pub fn well_known(&self, least: usize) -> Vec<(usize, Vec<(usize, f32)>)> {
        let mut met = vec![Vec::new(); self.programs.len()];
        for (number, case) in self.cases.iter().enumerate() {
            for &(place, regret) in &case.regrets {
                if let Some(met) = met.get_mut(place) {
                    met.push((number, regret));
                }
            }
        }
        let mut known: Vec<_> =
            met.into_iter().enumerate().filter(|(_, met)| met.len() >= least.max(1)).collect();
        known.sort_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
        known
    }
}

/// The mean regret of some meetings; at least one.
pub(super) fn mean(met: &[(usize, f32)]) -> f32 {
    met.iter().map(|(_, regret)| regret).sum::<f32>() / met.len().max(1) as f32
}
