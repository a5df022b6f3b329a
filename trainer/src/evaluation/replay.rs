//! Lets networks choose among the programs of a dataset. What those took is known, so no GPU is
//! needed; but nothing is chosen that was not measured.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sparserl_core::decode::{PolicyError, beam_search_among};
use sparserl_core::outcome::Objective;
use sparserl_onnx_models::programs::token_ids;
use sparserl_onnx_models::speeds::{ENSEMBLE, MemberSpeeds, REGIMES, expected_fastest};
use sparserl_onnx_models::terms::ProgramTerms;

use super::{
    CaseResult, ONE_REGIME, Oracle, Picks, PredictedCase, PredictedProgram, PredictedSpeed,
    TimedProgram,
};
use crate::corpus::{Recipe, RecipeError, Role, Split};
use crate::dataset::{Dataset, DatasetCase, DatasetProgram, fastest};
use crate::network::{Backend, NetworkPolicy};

/// What the cost model is called among networks.
pub const COST_MODEL: &str = "cost model";

/// Picks of each chooser.
const PICKS: usize = 8;
/// Width of the beam that finds what a network would write.
const WIDTH: usize = 16;

/// What networks, and the cost model, make of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// What they choose.
    pub result: CaseResult,
    /// How fast each of them finds the programs.
    pub predicted: Vec<PredictedCase>,
}

/// What was measured cannot be chosen from.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A matrix of the dataset has no recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A network failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// The name of a network as a chooser that goes by how likely it finds programs, in place of how
/// fast: by what it writes where it has to write one of those that were measured.
#[must_use]
pub fn likeliest(network: &str) -> String {
    format!("{network}, likeliest")
}

/// Lets networks, and the cost model, choose among the programs of a dataset instead of writing
/// their own: what that gives is known without a GPU. Only cases that the split tests on are asked
/// about.
///
/// What each of them predicts of all these programs comes with it.
///
/// A network chooses twice: by how fast it finds programs in a regime, under its name, and by how
/// [`likeliest`] they are.
///
/// Programs count that were timed in both regimes. Times are in units of the reference program's.
/// The oracle of a regime is the fastest of them, so that no ratio is above 1, and luck of its
/// samples counts against all choosers alike.
///
/// # Errors
/// When a matrix has no recipe, or a network fails.
pub fn replay<B: Backend>(
    dataset: &Dataset,
    split: &Split,
    networks: &[(String, NetworkPolicy<B>)],
    observe: impl Fn(usize, usize) + Sync,
) -> Result<Vec<Replayed>, ReplayError> {
    let mut cases = Vec::new();
    for case in &dataset.cases {
        let Some(matrix) = dataset.matrix(case) else { continue };
        let recipe = matrix.recipe()?;
        if split.role(&recipe) == Role::Test {
            cases.push((case, recipe));
        }
    }
    let done = AtomicUsize::new(0);
    let results = cases.par_iter().map(|(case, recipe)| {
        let result = choices(dataset, case, recipe, networks);
        observe(done.fetch_add(1, Ordering::Relaxed) + 1, cases.len());
        result
    });
    results.collect()
}

/// What is chosen for a case.
fn choices<B: Backend>(
    dataset: &Dataset,
    case: &DatasetCase,
    recipe: &Recipe,
    networks: &[(String, NetworkPolicy<B>)],
) -> Result<Replayed, ReplayError> {
    let programs: Vec<&DatasetProgram> =
        case.programs.iter().filter(|p| p.speed(0).is_some() && p.speed(1).is_some()).collect();
    let timed = |places: Vec<usize>| -> Vec<TimedProgram> {
        places.into_iter().filter_map(|p| programs.get(p)).map(|p| timed(case, p)).collect()
    };
    let tokens = case.tokens_of(programs.iter().copied());
    let nnz = dataset.matrix(case).map_or(0, |matrix| matrix.nnz);
    let predictions = |chooser: &str, speeds: &[MemberSpeeds]| PredictedCase {
        chooser: chooser.to_owned(),
        task: case.task,
        nnz,
        programs: programs.iter().zip(speeds).filter_map(|(p, s)| predicted(case, p, s)).collect(),
    };
    let (mut choosers, mut all_predicted) = (Vec::new(), Vec::new());
    let mut choose = |chooser: String, places: &dyn Fn(Objective) -> Vec<usize>| {
        for (objective, regime) in ONE_REGIME {
            let (chooser, programs) = (chooser.clone(), timed(places(objective)));
            choosers.push(Picks { chooser, regime, programs });
        }
    };
    for (name, network) in networks {
        let Some(inputs) = dataset.inputs(case, network.scaling()) else { continue };
        let asked: Vec<_> = programs.iter().map(|p| (p.tokens.clone(), p.terms)).collect();
        let speeds = network.speeds_of(&inputs, &asked)?;
        all_predicted.push(predictions(name, &speeds));
        choose(name.clone(), &|objective| expected_fastest(&speeds, &[], objective, PICKS));
        let mut reading = network.read_inputs(&inputs);
        let written = beam_search_among(&mut *reading, case.task, &tokens, WIDTH)?;
        let ids = written.iter().map(|hypothesis| token_ids(&hypothesis.program));
        let place = |ids: Vec<u8>| programs.iter().position(|program| program.tokens == ids);
        let chosen: Vec<usize> = ids.filter_map(place).take(PICKS).collect();
        choose(likeliest(name), &|_| chosen.clone());
    }
    let mut ranked: Vec<usize> = (0..programs.len()).collect();
    let by_cost = |place: usize| programs[place].terms[ProgramTerms::PREDICTED];
    ranked.sort_by(|&a, &b| by_cost(b).total_cmp(&by_cost(a)));
    // The cost model has no members, and predicts the same in both regimes.
    let by_cost: Vec<MemberSpeeds> =
        (0..programs.len()).map(|place| [[by_cost(place); REGIMES.len()]; ENSEMBLE]).collect();
    all_predicted.push(predictions(COST_MODEL, &by_cost));
    ranked.truncate(PICKS);
    choose(COST_MODEL.to_owned(), &|_| ranked.clone());
    let best = |regime: usize| {
        fastest(programs.iter().copied(), regime).map(|speed| f64::from(-speed).exp2())
    };
    let fastest = TimedProgram { program: String::new(), cold: best(0), warm: best(1) };
    let result = CaseResult {
        recipe: recipe.to_string(),
        family: recipe.family().to_owned(),
        task: case.task.to_string(),
        choosers,
        oracle: Oracle { cold: fastest.clone(), warm: fastest },
        searched: programs.len(),
    };
    Ok(Replayed { result, predicted: all_predicted })
}

/// A program with the speeds that members of an ensemble predict; absent where its tokens are none.
fn predicted(
    case: &DatasetCase,
    measured: &DatasetProgram,
    members: &MemberSpeeds,
) -> Option<PredictedProgram> {
    let program = measured.program(case.task)?;
    let parts = program.parts();
    let speed = |place| Some(PredictedSpeed::of_members(members, place, measured.speed(place)?));
    Some(PredictedProgram {
        layout: parts.first()?.layout.word(),
        is_split: parts.len() > 1,
        speeds: [speed(0)?, speed(1)?],
    })
}

fn timed(case: &DatasetCase, measured: &DatasetProgram) -> TimedProgram {
    let time = |regime| measured.speed(regime).map(|speed| f64::from(-speed).exp2());
    let program = measured.program(case.task).map(|program| program.to_string());
    TimedProgram { program: program.unwrap_or_default(), cold: time(0), warm: time(1) }
}
