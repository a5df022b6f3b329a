use std::collections::BTreeMap;

use sparserl_core::decode::{PolicyError, PolicyInput, is_offered};
use sparserl_core::language::{Mask, Program};
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::Inputs;

use super::{Chooser, Experience, PastCase};

/// Chooses what was fastest on the most similar matrices.
#[derive(Clone, Debug)]
pub struct NearestWinners {
    name: String,
    neighbours: usize,
    experience: BTreeMap<Task, (Experience, Scale)>,
}

/// What each scalar is divided by, so that all weigh the same: its standard deviation.
#[derive(Clone, Debug)]
struct Scale(Vec<f32>);

impl Scale {
    fn of(cases: &[PastCase]) -> Self {
        let count = cases.len().max(1) as f32;
        let width = cases.first().map_or(0, |case| case.scalars.len());
        let column = |j: usize| cases.iter().filter_map(move |case| case.scalars.get(j));
        let deviation = |j: usize| {
            let mean = column(j).sum::<f32>() / count;
            (column(j).map(|x| (x - mean).powi(2)).sum::<f32>() / count).sqrt()
        };
        Self((0..width).map(deviation).collect())
    }

    /// What does not vary says nothing.
    fn squared_distance(&self, a: &[f32], b: &[f32]) -> f32 {
        let terms = self.0.iter().zip(a.iter().zip(b)).filter(|(scale, _)| **scale > 1e-6);
        terms.map(|(scale, (a, b))| ((a - b) / scale).powi(2)).sum()
    }
}

impl NearestWinners {
    /// Asks so many neighbours in turn: the fastest program of each, then the second fastest.
    #[must_use]
    pub fn new(experience: &BTreeMap<Task, Experience>, neighbours: usize) -> Self {
        let scaled = |(&task, experience): (&Task, &Experience)| {
            (task, (experience.clone(), Scale::of(&experience.cases)))
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

    fn choose(&self, input: &PolicyInput<'_>, count: usize) -> Result<Vec<Program>, PolicyError> {
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
        Ok(chosen)
    }
}
