//! A chooser by extremely randomised trees on the features of a matrix: what can be learned without
//! a neural network.

use std::collections::BTreeMap;

use rayon::prelude::*;
use smartcore::ensemble::extra_trees_regressor::{
    ExtraTreesRegressor, ExtraTreesRegressorParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;
use sparserl_core::decode::{Choice, Chooser, PolicyError, PolicyInput, is_offered};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Objective;
use sparserl_core::task::Task;
use sparserl_onnx_models::inputs::Inputs;

use super::Experience;

/// Programs of a task that are chosen from.
const PROGRAMS: usize = 50;
/// A program is known well enough after so many cases.
const LEAST_CASES: usize = 20;
/// Trees for each program.
const TREES: usize = 60;

type Forest = ExtraTreesRegressor<f32, f32, DenseMatrix<f32>, Vec<f32>>;

/// Predicts, for each of the programs that were best, how much slower than the fastest it will be:
/// extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006) on the
/// scalars.
pub struct ExtraTrees {
    forests: BTreeMap<Task, Vec<(Program, Forest)>>,
}

/// Trees cannot be grown or asked.
#[derive(Debug, thiserror::Error)]
#[error("extra trees: {0}")]
pub struct TreesError(#[from] smartcore::error::Failed);

impl ExtraTrees {
    /// Trees for each task; the same for the same seed.
    ///
    /// # Errors
    /// When they cannot be grown.
    pub fn new(experience: &BTreeMap<Task, Experience>, seed: u64) -> Result<Self, TreesError> {
        let of_task = |(&task, experience): (&Task, &Experience)| {
            let mut known = experience.well_known(LEAST_CASES);
            known.truncate(PROGRAMS);
            let grow = |(place, met): (usize, Vec<(usize, f32)>)| {
                let Some(program) = experience.programs.get(place) else { return Ok(None) };
                let scalars = |case: usize| experience.cases.get(case).map(|c| c.scalars.clone());
                let (rows, regrets): (Vec<_>, Vec<_>) = met
                    .into_iter()
                    .filter_map(|(case, regret)| Some((scalars(case)?, regret)))
                    .unzip();
                let parameters = ExtraTreesRegressorParameters::default()
                    .with_n_trees(TREES)
                    .with_min_samples_leaf(2)
                    .with_seed(seed);
                let rows = DenseMatrix::from_2d_vec(&rows)?;
                let forest = ExtraTreesRegressor::fit(&rows, &regrets, parameters)?;
                Ok(Some((program.clone(), forest)))
            };
            let forests: Result<Vec<_>, TreesError> = known.into_par_iter().map(grow).collect();
            Ok((task, forests?.into_iter().flatten().collect()))
        };
        Ok(Self { forests: experience.iter().map(of_task).collect::<Result<_, TreesError>>()? })
    }
}

impl Chooser for ExtraTrees {
    fn name(&self) -> &str {
        "extra trees"
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        _: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let failed = |error: TreesError| PolicyError::Failed(Box::new(error));
        let mask = Mask::legal(&input.stats, input.task);
        let scalars = Inputs::scalars(input).to_vec();
        let row = DenseMatrix::from_2d_vec(&vec![scalars]).map_err(|e| failed(e.into()))?;
        let mut predicted = Vec::new();
        for (program, forest) in self.forests.get(&input.task).into_iter().flatten() {
            if is_offered(mask, program) {
                let regret = forest.predict(&row).map_err(|e| failed(e.into()))?;
                predicted.push((regret.first().copied().unwrap_or(f32::INFINITY), program));
            }
        }
        predicted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let choice = |(regret, program): (f32, &Program)| Choice {
            program: program.clone(),
            score: f64::from(-regret),
        };
        Ok(predicted.into_iter().take(count).map(choice).collect())
    }
}
