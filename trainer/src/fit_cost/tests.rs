//! Of fits to times that follow from known constants, which have to be found again.

use std::sync::Arc;

use sparserl_core::decode::random_walk;
use sparserl_core::language::Mask;
use sparserl_core::layout::CostModel;
use sparserl_core::outcome::Regime;
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::Task;

use super::*;
use crate::corpus::{Corpus, RealMatrices};

/// Programs drawn for matrices of a corpus, as slow as these constants say, times a factor of each
/// case and noise of so many per cent.
fn planted(matrices: u64, constants: impl Fn(&str) -> CostConstants, noise: f64) -> Vec<CaseTerms> {
    let corpus = Corpus { seed: 5, share_of_real: 0.0, largest_nnz: 300_000, ..Corpus::default() };
    let real = RealMatrices::none();
    let mut random = SplitMix64::new(11);
    let mut cases = Vec::new();
    for index in 0..matrices {
        let recipe = corpus.recipe(index, &real);
        let constants = constants(recipe.family());
        let matrix = recipe.build(&real).unwrap();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        for task in ["spmv f32", "spmm 32 f32"] {
            let task: Task = task.parse().unwrap();
            let model = CostModel::new(Arc::clone(&stats), task, Target::H200);
            let case = CaseTerms {
                recipe: recipe.clone(),
                task,
                target: Target::H200,
                regime: Regime::Cold,
                dense_bytes: model.dense_bytes(),
                programs: Vec::new(),
            };
            let drawn = (0..60).filter_map(|_| random_walk(Mask::legal(&stats, task), &mut random));
            let parts = drawn.map(|program| model.parts(&program).into());
            let programs = parts.map(|parts| ProgramTerms { parts, slowness: 0.0 }).collect();
            let mut case = CaseTerms { programs, ..case };
            let factor = 3.0 * random.uniform() - 1.0;
            let slowness = case.predict(&constants);
            for (program, slowness) in case.programs.iter_mut().zip(slowness) {
                program.slowness =
                    slowness + factor + noise / 100.0 * (2.0 * random.uniform() - 1.0);
            }
            cases.push(case);
        }
    }
    cases
}

/// The present constants, each times a factor.
fn changed(factor: impl Fn(usize) -> f64) -> CostConstants {
    let present = CostConstants::FITTED.to_array();
    CostConstants::from_array(std::array::from_fn(|i| present[i] * factor(i)))
}

/// Rates as seconds, so that all constants but the last are proportional to the time, and the ratio
/// of each to a step's.
fn in_steps(constants: &CostConstants) -> Vec<f64> {
    let step = constants.seconds_per_step;
    let rates = [constants.attained_bandwidth, constants.transactions_per_second];
    let seconds = constants.to_array()[4..].to_vec();
    let mut all: Vec<f64> = rates.iter().map(|rate| 1.0 / rate / step).collect();
    all.extend(seconds.iter().map(|seconds| seconds / step));
    all.push(constants.saturating_warps);
    all
}

#[test]
fn planted_constants_are_found_but_for_the_unit_of_time() {
    // Lists and splits cost so little that their cost is hardly seen, unless it is raised.
    let factors = [0.5, 0.7, 1.3, 0.7, 5.0, 4.0, 1.2, 0.7, 1.3, 0.8, 1.5, 1.2, 1.4, 0.9, 1.1];
    let planted_constants = changed(|i| factors[i]);
    let cases = planted(16, |_| planted_constants, 1.0);
    let cases: Vec<&CaseTerms> = cases.iter().collect();
    let found = fit(&cases, &CostConstants::FITTED);
    // What is asked to stay near the start pulls a little.
    let start = in_steps(&CostConstants::FITTED);
    let both = in_steps(&found).into_iter().zip(in_steps(&planted_constants));
    for (place, ((found, planted), start)) in both.zip(start).enumerate() {
        let (off, distance) = ((found / planted).ln().abs(), (start / planted).ln().abs());
        assert!(off < 0.03 + distance / 6.0, "{place}: {found} is not {planted}");
    }
    let objective = |constants| {
        let scores: Vec<_> = cases.iter().map(|case| CaseScore::of(case, constants)).collect();
        Scores::of(&scores).unwrap().objective
    };
    let [before, after] = [&CostConstants::FITTED, &found].map(objective);
    assert!(after < before / 20.0, "{before} {after}");
}

#[test]
fn what_no_program_has_stays_where_it_is() {
    let mut cases = planted(8, |_| changed(|i| 1.0 + i as f64 / 10.0), 0.0);
    for case in &mut cases {
        let plain = |program: &ProgramTerms| program.parts.len() == 1 && !program.parts[0].listed;
        case.programs.retain(plain);
    }
    let found = fit(&cases.iter().collect::<Vec<_>>(), &CostConstants::FITTED);
    let still = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    still(found.seconds_of_list, CostConstants::FITTED.seconds_of_list);
    still(found.seconds_of_split, CostConstants::FITTED.seconds_of_split);
    assert!((found.seconds_per_step / CostConstants::FITTED.seconds_per_step).ln().abs() > 0.01);
}

#[test]
fn a_case_is_scored_by_constants_of_other_families() {
    let cases = planted(6, |family| changed(|i| 1.0 + (i * family.len() % 5) as f64 / 4.0), 0.0);
    let all: Vec<&CaseTerms> = cases.iter().collect();
    let held_out = held_out(&all, &CostConstants::FITTED, |_, _| ());
    assert_eq!(held_out.len(), cases.len());
    let mut better = 0;
    for family in all.iter().map(|case| case.family()) {
        let others: Vec<&CaseTerms> =
            all.iter().copied().filter(|case| !case.is_from(family)).collect();
        assert!(!others.is_empty() && others.iter().all(|case| case.family() != family));
        let (constants, to_all) =
            (fit(&others, &CostConstants::FITTED), fit(&all, &CostConstants::FITTED));
        for (case, score) in held_out.iter().filter(|(case, _)| case.family() == family) {
            assert_eq!(*score, CaseScore::of(case, &constants));
            better += u32::from(score.objective > CaseScore::of(case, &to_all).objective);
        }
    }
    assert!(better * 2 > all.len() as u32);
}

#[test]
fn scores_by_hand() {
    let mut case = planted(1, |_| CostConstants::FITTED, 0.0).remove(0);
    let mut programs: Vec<ProgramTerms> = case.programs.clone();
    programs.dedup_by(|a, b| a.slowness == b.slowness);
    programs.sort_by(|a, b| a.slowness.total_cmp(&b.slowness));
    programs.dedup_by(|a, b| a.slowness == b.slowness);
    programs.truncate(3);
    case.programs = programs;
    let right = CaseScore::of(&case, &CostConstants::FITTED);
    assert!(right.objective < 1e-20 && right.first_pick == 1.0);
    assert_eq!(right.rank_correlation, Some(1.0));
    // What is predicted to be the fastest takes twice the time of what is.
    let seconds = [0.0, 2.0_f64.ln(), -(2.0_f64.ln())];
    for (program, slowness) in case.programs.iter_mut().zip(seconds) {
        program.slowness = slowness;
    }
    let wrong = CaseScore::of(&case, &CostConstants::FITTED);
    assert!((wrong.first_pick - 0.5).abs() < 1e-12, "{wrong:?}");
    // Ranks 1, 2, 3 against 2, 3, 1.
    assert_eq!(wrong.rank_correlation, Some(-0.5));
    let both = Scores::of([&right, &wrong]).unwrap();
    assert!((both.first_pick - 0.5_f64.sqrt()).abs() < 1e-12);
    assert_eq!((both.cases, both.rank_correlation), (2, Some(0.25)));
    assert!((both.least_first_pick - 0.5).abs() < 1e-12);
    assert_eq!(Scores::of([]), None);
}
