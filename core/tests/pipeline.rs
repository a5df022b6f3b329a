//! The whole line in one call, with an evaluator that says what it is told to.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sparserl_core::codegen::{Argument, ArgumentKind, CudaSource, emit, emit_for};
use sparserl_core::decode::{CostChooser, PolicyInput};
use sparserl_core::kernel::{Candidate, Compiler};
use sparserl_core::language::Program;
use sparserl_core::layout::pack;
use sparserl_core::matrix::{CsrView, Scalar, generate};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Objective, Outcome, Regime, Timing,
    Violation,
};
use sparserl_core::pipeline::{
    self, Artefact, BATCH, Budget, Generated, NoneRight, PipelineError, Request, Tools,
};
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

/// What those can who time kernels of programs.
fn of_timers() -> Abilities {
    Abilities { times: true, findings: false, cuda: false, protocol: "full".to_owned() }
}

impl Evaluator for Scripted<'_> {
    type Code = ();
    type Cuda = ();
    type Error = &'static str;

    fn abilities(&self) -> Abilities {
        of_timers()
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
    with_request(wanted, BATCH * batches.len(), |request| {
        let tools = Tools::<NoCompiler, _, Infallible> {
            compiler: None,
            made: &[],
            evaluator: Some(&mut Scripted { batches: batches.iter() }),
            check: None,
            clock: &|| Duration::ZERO,
            observer: &mut |_| {},
        };
        pipeline::generate(&request, &mut CostChooser.choices(request.input), tools).unwrap()
    })
}

fn with_request<R>(wanted: usize, candidates: usize, run: impl FnOnce(Request<'_, f32>) -> R) -> R {
    let matrix = generate::stencil5(30, 30).cast::<f32>().unwrap();
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let input = PolicyInput::new(stats, task, Target::H200);
    run(Request {
        matrix: matrix.view(),
        input: &input,
        wanted,
        objective: Objective::Cold,
        budget: Budget::Candidates(candidates),
        spare: 0,
        specialise: false,
    })
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

/// Says of general kernels that each takes a microsecond and more, in the order in which they come,
/// and of special ones what it is told to.
struct Paired {
    /// Speed of a special kernel, times that of the general one.
    speed: f64,
    /// Whether special kernels, and general ones that are judged beside one, are right.
    right: [bool; 2],
    /// How many kernels were judged together.
    judged: Vec<usize>,
}

impl Evaluator for Paired {
    type Code = ();
    type Cuda = ();
    type Error = Infallible;

    fn abilities(&self) -> Abilities {
        of_timers()
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), ()>],
    ) -> Result<Evaluation, Infallible> {
        self.judged.push(candidates.len());
        let is_special = |candidate: &Candidate<'_, (), ()>| match candidate {
            Candidate::Kernel(kernel) => !kernel.source.constants.is_empty(),
            Candidate::Cuda { .. } => false,
        };
        let is_pair = candidates.iter().any(is_special);
        let [special_right, general_right] = self.right;
        let outcomes = candidates.iter().zip(1..).map(|(candidate, place)| {
            let is_special = is_special(candidate);
            if is_pair && !(if is_special { special_right } else { general_right }) {
                return Outcome::TimedOut { seconds: 1.0 };
            }
            let seconds = if is_special { 1e-6 / self.speed } else { f64::from(place) * 1e-6 };
            // What drifts, drifts for both.
            let samples = (0..20).map(|round| seconds * (1.0 + 0.1 * f64::from(round % 7)));
            let cold = Some(samples.collect::<Vec<_>>().try_into().unwrap());
            let timing = Timing { cold, ..Timing::default() };
            Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
        });
        let copy_bandwidth = Some(if is_pair { 2.0 } else { 1.0 });
        Ok(Evaluation { outcomes: outcomes.collect(), baselines: Vec::new(), copy_bandwidth })
    }
}

/// What comes of four candidates, of which the first is the fastest.
fn specialised(specialise: bool, evaluator: &mut Paired) -> Generated<(), Infallible> {
    with_request(1, 4, |request| {
        let request = Request { specialise, ..request };
        let tools = Tools::<NoCompiler, _, Infallible> {
            compiler: None,
            made: &[],
            evaluator: Some(evaluator),
            check: None,
            clock: &|| Duration::ZERO,
            observer: &mut |_| {},
        };
        pipeline::generate(&request, &mut CostChooser.choices(request.input), tools).unwrap()
    })
}

#[test]
fn a_kernel_for_the_sizes_of_the_matrix_comes_out_where_it_is_faster_beside_the_general_one() {
    let all_right = [true; 2];
    let cases = [
        (true, 1.1, all_right, true),
        (true, 1.02, all_right, true),
        (true, 1.005, all_right, false),
        (true, 0.5, all_right, false),
        (true, 2.0, [false, true], false),
        (false, 2.0, all_right, false),
    ];
    for (specialise, speed, right, expected) in cases {
        let mut evaluator = Paired { speed, right, judged: Vec::new() };
        let Generated { artefacts, evaluation, .. } = specialised(specialise, &mut evaluator);
        let [Artefact { kernel, outcome, general, copy_bandwidth, .. }] = artefacts.as_slice()
        else {
            panic!("one was wanted")
        };
        let judged: &[usize] = if specialise { &[4, 2] } else { &[4] };
        assert_eq!(evaluator.judged, judged);
        assert_eq!(evaluation.unwrap().outcomes.len(), 4);
        let is_size = |argument: &&Argument| matches!(argument.kind, ArgumentKind::Size(_));
        let sizes = kernel.launch.arguments.iter().filter(is_size).count();
        let constants = kernel.source.constants.len();
        assert_eq!((sizes == 0, constants > 0), (expected, expected), "{speed}");
        assert_eq!(general.is_some(), expected, "{speed}");
        let seconds = |outcome: &Option<Outcome>| {
            outcome.as_ref().unwrap().measurement().unwrap().timing.median(Regime::Cold).unwrap()
        };
        if expected {
            let ratio = seconds(general) / seconds(outcome);
            assert!((ratio - speed).abs() < 1e-9, "{ratio}");
        }
        // What was measured in turn with it.
        assert_eq!(*copy_bandwidth, Some(if expected { 2.0 } else { 1.0 }));
    }
}

/// Says of the kernels, in their order, what it is told to, and of those after them the last.
struct Refusing(Vec<Outcome>);

impl Evaluator for Refusing {
    type Code = ();
    type Cuda = ();
    type Error = Infallible;

    fn abilities(&self) -> Abilities {
        of_timers()
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), ()>],
    ) -> Result<Evaluation, Infallible> {
        let last = self.0.last().cloned();
        let outcomes = self.0.iter().cloned().chain(last.into_iter().cycle());
        Ok(Evaluation {
            outcomes: outcomes.take(candidates.len()).collect(),
            ..Evaluation::default()
        })
    }
}

#[test]
fn where_none_is_right_an_error_says_whether_one_is_known_to_be_wrong() {
    let reason = || "as told".to_owned();
    let violation = Violation::Inexact;
    let uncompiled = Outcome::CompileFailed { reason: reason() };
    let unlaunched = Outcome::LaunchFailed { reason: reason() };
    let faulted = Outcome::Faulted { reason: reason() };
    let wrong = Outcome::WrongResult { violation, reason: reason() };
    for (outcomes, is_wrong, first) in [
        (vec![uncompiled.clone()], false, "it does not compile: as told"),
        (vec![unlaunched.clone()], false, "it does not launch: as told"),
        (vec![uncompiled, unlaunched.clone()], false, "it does not compile: as told"),
        (vec![unlaunched, faulted.clone()], true, "it does not launch: as told"),
        (vec![faulted], true, "it faults: as told"),
        (vec![wrong], true, "it is wrong (inexact): as told"),
        (vec![Outcome::TimedOut { seconds: 1.0 }], true, "it did not end within 1.0 s"),
    ] {
        let error = with_request(1, 4, |request| {
            let tools = Tools::<NoCompiler, _, Infallible> {
                compiler: None,
                made: &[],
                evaluator: Some(&mut Refusing(outcomes)),
                check: None,
                clock: &|| Duration::ZERO,
                observer: &mut |_| {},
            };
            pipeline::generate(&request, &mut CostChooser.choices(request.input), tools)
                .unwrap_err()
        });
        let expected = format!("none of 4 candidates was found right; the first: {first}");
        assert_eq!(error.to_string(), expected);
        let PipelineError::NoneRight(none) = &error else { panic!("{error}") };
        assert_eq!(none.is_wrong, is_wrong, "{first}");
        // Who maps errors to exit codes finds it among the causes.
        let cause = std::error::Error::source(&error).unwrap();
        assert_eq!(cause.downcast_ref::<NoneRight>(), Some(none));
    }
}

#[test]
fn a_kernel_that_is_wrong_beside_its_special_one_does_not_come_out() {
    let fastest = |right| {
        let mut evaluator = Paired { speed: 2.0, right, judged: Vec::new() };
        let mut artefacts = specialised(true, &mut evaluator).artefacts;
        artefacts.remove(0).kernel
    };
    let (right, next) = (fastest([false, true]), fastest([true, false]));
    assert_ne!(right.packed.program, next.packed.program);
    assert!(next.source.constants.is_empty());
}

#[test]
fn a_kernel_for_the_sizes_of_a_matrix_is_launched_for_no_other() {
    let program = "sparserl 7\nspmv f64\nblock 128\nkeep csr index=u16 values=plain cache=cached \
                   vector=1 lanes=2 unroll=1\n";
    let program = Program::parse(program).unwrap();
    let packed = |rows| pack(generate::stencil5(rows, 30).view(), &program).unwrap();
    let source = emit_for(&packed(30)).unwrap();
    let launch = source.launch(&packed(30)).unwrap();
    assert_eq!(launch.geometry, packed(30).geometry);
    let error = source.launch(&packed(31)).unwrap_err();
    assert_eq!((error.name.as_str(), error.value, error.found), ("row_count", 900, Some(930)));
    // The general kernel is for both.
    let general = emit(&program, &packed(30).signature()).unwrap();
    assert_eq!(general, emit(&program, &packed(31).signature()).unwrap());
    assert!(general.launch(&packed(31)).is_ok());
}
