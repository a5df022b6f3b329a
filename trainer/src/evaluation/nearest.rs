//! A chooser by nearest neighbours: what was fastest on the matrices with the most similar
//! features.

use std::collections::BTreeMap;

use sparserl_core::decode::{Choice, Chooser, PolicyError, PolicyInput, is_offered};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Objective;
use sparserl_core::structure::FeatureScale;
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::Inputs;

use super::{Experience, PastCase, in_order};

/// Chooses what was fastest on the most similar matrices.
#[derive(Clone, Debug)]
pub struct NearestWinners {
    name: String,
    neighbours: usize,
    experience: BTreeMap<Task, (Experience, FeatureScale)>,
}

impl NearestWinners {
    /// Asks so many neighbours in turn: the fastest program of each, then the second fastest.
    #[must_use]
    pub fn new(experience: &BTreeMap<Task, Experience>, neighbours: usize) -> Self {
        let scaled = |(&task, experience): (&Task, &Experience)| {
            let scalars: Vec<&[f32]> =
                experience.cases.iter().map(|case| case.scalars.as_slice()).collect();
            (task, (experience.clone(), FeatureScale::of(&scalars)))
        };
        Self {
            name: match neighbours {
                1 => "nearest neighbour".to_owned(),
                _ => format!("{neighbours} nearest neighbours"),
            },
            neighbours,
            experience: experience.iter().map(scaled).collect(),
        }
    }
}

impl Chooser for NearestWinners {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        _: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let Some((experience, scale)) = self.experience.get(&input.task) else {
            return Ok(Vec::new());
        };
        let scalars = Inputs::scalars(input);
        let distance = |case: &PastCase| scale.squared_distance(&case.scalars, &scalars);
        let mut cases: Vec<(f32, &PastCase)> =
            experience.cases.iter().map(|case| (distance(case), case)).collect();
        cases.sort_by(|a, b| a.0.total_cmp(&b.0));
        cases.truncate(self.neighbours);
        let longest = cases.iter().map(|(_, case)| case.regrets.len()).max().unwrap_or(0);
        let mask = Mask::legal(&input.stats, input.task);
        let mut chosen: Vec<Program> = Vec::new();
        let in_turn = (0..longest)
            .flat_map(|rank| cases.iter().filter_map(move |(_, case)| case.regrets.get(rank)));
        for program in in_turn.filter_map(|(place, _)| experience.programs.get(*place)) {
            if chosen.len() >= count {
                break;
            }
            if !chosen.contains(program) && is_offered(mask, program) {
                chosen.push(program.clone());
            }
        }
        Ok(in_order(chosen))
    }
}
