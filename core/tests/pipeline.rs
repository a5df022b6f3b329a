//! The whole line in one call, with an evaluator that says what it is told to.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sparserl_core::codegen::CudaSource;
use sparserl_core::decode::{CostChooser, PolicyInput};
use sparserl_core::kernel::{Candidate, Compiler};
use sparserl_core::matrix::{CsrView, Scalar, generate};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Objective, Outcome, Regime, Timing,
};
use sparserl_core::pipeline::{self, BATCH, Budget, Generated, Request, Tools};
use sparserl_core::results::{Figures, Work};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};

/// Is never asked: kernels are judged as they are.
struct NoCompiler;

impl Compiler for NoCompiler {
    type Code = ();
    type Error = Infallible;

    fn compile(&self, _: &CudaSource) -> Result<Result<(), String>, Infallible> {
        Ok(Err("there is no compiler".to_owned()))
    }
}

/// Knows of each batch the seconds of its kernels and of the one opponent.
struct Scripted<'a> {
    batches: std::slice::Iter<'a, ([f64; BATCH], f64)>,
}

impl Evaluator for Scripted<'_> {
    type Code = ();
    type Cuda = ();
    type Error = &'static str;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: false, protocol: "full".to_owned() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), ()>],
    ) -> Result<Evaluation, Self::Error> {
        let (kernels, opponent) = self.batches.next().ok_or("a batch too many")?;
        assert_eq!(candidates.len(), BATCH);
        let measured = |&seconds: &f64| {
            let timing = timing(seconds);
            Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
        };
        let baseline = Baseline {
            library: "cuSPARSE 1.2.3".to_owned(),
            algorithm: "DEFAULT".to_owned(),
            is_default: true,
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: Ok(timing(*opponent)),
        };
        Ok(Evaluation {
            outcomes: kernels.iter().map(measured).collect(),
            baselines: vec![baseline],
            copy_bandwidth: Some(1.0 / opponent),
        })
    }
}

fn timing(seconds: f64) -> Timing {
    Timing { cold: Some(vec![seconds].try_into().unwrap()), ..Timing::default() }
}

fn generated(batches: &[([f64; BATCH], f64)], wanted: usize) -> Generated<(), Infallible> {
    let matrix = generate::stencil5(30, 30).cast::<f32>().unwrap();
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let input = PolicyInput::new(stats, task, Target::H200);
    let budget = Budget::Candidates(BATCH * batches.len());
    let request = Request {
        matrix: matrix.view(),
        input: &input,
        wanted,
        objective: Objective::Cold,
        budget,
        spare: 0,
    };
    let tools = Tools::<NoCompiler, _, Infallible> {
        compiler: None,
        made: &[],
        evaluator: Some(&mut Scripted { batches: batches.iter() }),
        check: None,
        clock: &|| Duration::ZERO,
        observer: &mut |_| {},
    };
    pipeline::generate(&request, &mut CostChooser.choices(&input), tools).unwrap()
}

#[test]
fn each_kernel_is_compared_with_what_was_measured_in_turn_with_it() {
    // The clock is at half its rate from the second batch on.
    let mut first = [9.0; BATCH];
    let mut second = [18.0; BATCH];
    (first[1], first[2]) = (2.0, 4.0);
    second[5] = 3.0;
    let Generated { artefacts, evaluation, .. } = generated(&[(first, 10.0), (second, 20.0)], 3);
    let ratios: Vec<_> = artefacts
        .iter()
        .map(|artefact| {
            let measurement = artefact.outcome.as_ref().unwrap().measurement().unwrap();
            let work = Work::new(1, Operation::SpMV);
            let figures =
                Figures::new(measurement, &artefact.baselines, Regime::Cold, work).unwrap();
            (figures.seconds, figures.default.unwrap().ratio, artefact.copy_bandwidth)
        })
        .collect();
    let expected = [(2.0, 5.0, Some(0.1)), (3.0, 20.0 / 3.0, Some(0.05)), (4.0, 2.5, Some(0.1))];
    assert_eq!(ratios, expected);

    let evaluation = evaluation.unwrap();
    assert_eq!(evaluation.outcomes.len(), 2 * BATCH);
    assert_eq!(evaluation.best_baseline(Regime::Cold), Some(10.0));
}

#[test]
fn the_baselines_of_the_whole_are_those_beside_the_fastest() {
    let batches = [([2.0; BATCH], 10.0), ([1.0; BATCH], 20.0), ([3.0; BATCH], 30.0)];
    let Generated { artefacts, evaluation, .. } = generated(&batches, 1);
    let evaluation = evaluation.unwrap();
    assert_eq!(evaluation.best_baseline(Regime::Cold), Some(20.0));
    assert_eq!(evaluation.copy_bandwidth, Some(1.0 / 20.0));
    assert_eq!(artefacts[0].baselines, evaluation.baselines);
}
