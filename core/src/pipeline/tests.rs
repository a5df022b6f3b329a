//! What a run does, and how often, with a compiler and an evaluator that only keep a record.

#![allow(clippy::unwrap_used)]

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

use super::*;
use crate::codegen::CudaSource;
use crate::decode::{CostChoices, CostChooser};
use crate::kernel::{Candidate, CudaCompiler};
use crate::layout::{Packed, packings};
use crate::matrix::generate;
use crate::outcome::{Abilities, Measurement, Samples, Timing, Verification};
use crate::structure::MatrixStats;
use crate::target::Target;
use crate::task::{Dtype, Operation, Task};

/// Counts what it compiles.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Compiler for Counting {
    type Code = ();
    type Error = Infallible;

    fn compile(&self, _: &CudaSource) -> Result<Result<(), String>, Infallible> {
        self.0.fetch_add(1, Relaxed);
        Ok(Ok(()))
    }
}

/// Finds every kernel right, each later one faster, and keeps what it was given.
#[derive(Default)]
struct Keeping(Vec<Arc<Packed>>);

impl Evaluator for Keeping {
    type Code = ();
    type Cuda = Infallible;
    type Error = Infallible;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: false, protocol: "counting".into() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), Infallible>],
    ) -> Result<Evaluation, Infallible> {
        let mut outcomes = Vec::new();
        for candidate in candidates {
            if let Candidate::Kernel(kernel) = candidate {
                self.0.push(Arc::clone(&kernel.packed));
            }
            let seconds = 1.0 / self.0.len() as f64;
            let cold = Samples::try_from(alloc::vec![seconds]).ok();
            let timing = Timing { cold, warm: None, back_to_back: None };
            outcomes.push(Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.0, timing }));
        }
        Ok(Evaluation { outcomes, baselines: Vec::new(), copy_bandwidth: None })
    }
}

fn run<E: Evaluator<Code = (), Error = Infallible>>(
    wanted: usize,
    budget: Budget,
    compiler: &Counting,
    evaluator: Option<&mut E>,
) -> Generated<(), Infallible> {
    run_with(&[], wanted, budget, compiler, evaluator)
}

fn run_with<E: Evaluator<Code = (), Error = Infallible>>(
    made: &[Kernel<()>],
    wanted: usize,
    budget: Budget,
    compiler: &Counting,
    evaluator: Option<&mut E>,
) -> Generated<(), Infallible> {
    with_request(wanted, budget, |request| {
        let tools = Tools::<_, _, Infallible> {
            compiler: Some(compiler),
            made,
            evaluator,
            check: None,
            clock: &|| Duration::ZERO,
            observer: &mut |_| {},
        };
        generate(request, &mut CostChooser.choices(request.input), tools).unwrap()
    })
}

fn with_request<R>(wanted: usize, budget: Budget, run: impl FnOnce(&Request<'_, f32>) -> R) -> R {
    let matrix = generate::stencil5(20, 20).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let input = PolicyInput::new(stats, task, Target::H200);
    run(&Request {
        matrix: matrix.view(),
        input: &input,
        wanted,
        objective: Objective::Cold,
        budget,
        spare: 4,
        specialise: false,
    })
}

#[test]
fn a_kernel_that_is_measured_is_packed_and_compiled_once() {
    let (compiler, mut evaluator) = (Counting::default(), Keeping::default());
    let before = packings();
    let generated = run(1, Budget::Candidates(5), &compiler, Some(&mut evaluator));
    let tried = generated.evaluation.unwrap().outcomes.len();
    assert!(tried >= 5, "{tried}");
    assert_eq!(packings() - before, tried, "packings of the programs that were tried");
    assert_eq!(compiler.0.into_inner(), tried);
    let [winner] = generated.artefacts.as_slice() else { panic!("one was wanted") };
    let measured = evaluator.0.last().unwrap();
    assert!(Arc::ptr_eq(&winner.kernel.packed, measured), "what was measured is what comes out");
}

#[test]
fn a_batch_of_the_fastest_comes_out_as_it_was_measured() {
    let (compiler, mut evaluator) = (Counting::default(), Keeping::default());
    let before = packings();
    let generated = run(BATCH, Budget::Candidates(2 * BATCH), &compiler, Some(&mut evaluator));
    let tried = generated.evaluation.unwrap().outcomes.len();
    assert!(tried > BATCH, "{tried}");
    assert_eq!(packings() - before, tried);
    assert_eq!(generated.artefacts.len(), BATCH);
    for (artefact, measured) in generated.artefacts.iter().zip(evaluator.0.iter().rev()) {
        assert!(Arc::ptr_eq(&artefact.kernel.packed, measured));
    }
}

#[test]
fn a_kernel_that_is_there_already_is_measured_as_it_is() {
    let budget = Budget::Candidates(5);
    let generated = run(1, budget, &Counting::default(), None::<&mut Keeping>);
    let mut made = [generated.artefacts.into_iter().next().unwrap().kernel];
    for has_code in [true, false] {
        made[0].code = has_code.then_some(());
        let (compiler, mut evaluator) = (Counting::default(), Keeping::default());
        let before = packings();
        let generated = run_with(&made, 1, budget, &compiler, Some(&mut evaluator));
        let tried = generated.evaluation.unwrap().outcomes.len();
        assert_eq!(packings() - before, tried - 1, "all but what was there");
        assert_eq!(compiler.0.into_inner(), tried - usize::from(has_code));
        assert!(evaluator.0.iter().any(|packed| Arc::ptr_eq(packed, &made[0].packed)));
    }
}

/// Finds every kernel right, each later one faster, and counts those of before that are there yet.
#[derive(Default)]
struct Counted {
    judged: Vec<Weak<Packed>>,
    most_alive: usize,
}

impl Evaluator for Counted {
    type Code = ();
    type Cuda = Infallible;
    type Error = Infallible;

    fn abilities(&self) -> Abilities {
        Keeping::default().abilities()
    }

    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), Infallible>],
    ) -> Result<Evaluation, Infallible> {
        let alive = self.judged.iter().filter(|packed| packed.strong_count() > 0).count();
        self.most_alive = self.most_alive.max(alive);
        let mut keeping = Keeping::default();
        let evaluation = keeping.judge_all(matrix, candidates)?;
        self.judged.extend(keeping.0.iter().map(Arc::downgrade));
        Ok(evaluation)
    }
}

#[test]
fn what_was_judged_and_is_not_wanted_gives_its_arrays_up() {
    let mut evaluator = Counted::default();
    let compiler = Counting::default();
    let generated = run(1, Budget::Candidates(2 * BATCH), &compiler, Some(&mut evaluator));
    assert!(evaluator.judged.len() > BATCH, "{}", evaluator.judged.len());
    assert_eq!(evaluator.most_alive, 1);
    let alive = evaluator.judged.iter().filter(|packed| packed.strong_count() > 0);
    assert_eq!((alive.count(), generated.artefacts.len()), (1, 1));
}

#[test]
fn a_kernel_that_is_not_measured_is_packed_and_compiled_once() {
    let compiler = Counting::default();
    let before = packings();
    let generated = run(3, Budget::Candidates(5), &compiler, None::<&mut Keeping>);
    assert_eq!(generated.artefacts.len(), 3);
    assert_eq!(packings() - before, 3);
    assert_eq!(compiler.0.into_inner(), 3);
}

/// Refuses the first candidates that it is shown, and takes the others.
struct Refusing {
    first: usize,
    shown: Vec<Arc<Packed>>,
}

impl Check<()> for Refusing {
    type Verdict = usize;
    type Error = Infallible;

    fn take(
        &mut self,
        candidates: &mut dyn Iterator<Item = Result<Ranked<()>, Outcome>>,
        wanted: usize,
    ) -> Result<Vec<Taken<(), usize>>, Infallible> {
        let mut taken = Vec::new();
        for ranked in candidates {
            let ranked = ranked.unwrap();
            assert_eq!(ranked.kernel.code, Some(()), "what is written is compiled");
            self.shown.push(Arc::clone(&ranked.kernel.packed));
            if self.shown.len() > self.first {
                taken.push(Taken { ranked, verdict: Some(self.shown.len()) });
            }
            if taken.len() == wanted {
                break;
            }
        }
        Ok(taken)
    }
}

#[test]
fn a_check_is_given_the_kernels_that_come_out_and_each_is_made_once() {
    for measured in [false, true] {
        let (compiler, mut evaluator) = (Counting::default(), Keeping::default());
        let mut check = Refusing { first: 2, shown: Vec::new() };
        let before = packings();
        let generated = with_request(2, Budget::Candidates(5), |request| {
            let tools = Tools {
                compiler: Some(&compiler),
                made: &[],
                evaluator: measured.then_some(&mut evaluator),
                check: Some(&mut check),
                clock: &|| Duration::ZERO,
                observer: &mut |_| {},
            };
            generate(request, &mut CostChooser.choices(request.input), tools).unwrap()
        });
        let made = generated.evaluation.map_or(4, |evaluation| evaluation.outcomes.len());
        assert_eq!((packings() - before, compiler.0.into_inner()), (made, made), "{measured}");
        assert_eq!((generated.artefacts.len(), check.shown.len()), (2, 4), "{measured}");
        for (artefact, shown) in generated.artefacts.iter().zip(&check.shown[2..]) {
            assert!(Arc::ptr_eq(&artefact.kernel.packed, shown), "{measured}");
        }
        assert_eq!(generated.artefacts[1].verdict, Some(4));
    }
}

/// The choices of the cost model, and how many were asked for each time.
struct Asking<'a>(CostChoices<'a>, Vec<usize>);

impl Choices for Asking<'_> {
    fn first(&mut self, count: usize) -> Result<Vec<Choice>, PolicyError> {
        self.1.push(count);
        self.0.first(count)
    }
}

#[test]
fn more_choices_are_asked_for_only_where_too_many_were_refused() {
    for (first, asked) in [(0, &[2][..]), (1, &[2, 2 + 4])] {
        let mut check = Refusing { first, shown: Vec::new() };
        let counts = with_request(2, Budget::Candidates(5), |request| {
            let mut choices = Asking(CostChooser.choices(request.input), Vec::new());
            let tools = Tools {
                compiler: Some(&Counting::default()),
                made: &[],
                evaluator: None::<&mut Keeping>,
                check: Some(&mut check),
                clock: &|| Duration::ZERO,
                observer: &mut |_| {},
            };
            let generated = generate(request, &mut choices, tools).unwrap();
            assert_eq!(generated.artefacts.len(), 2);
            choices.1
        });
        assert_eq!(counts, asked, "{first} refused");
    }
}

/// Finds every other kernel right, and times none.
struct Verifying;

impl Evaluator for Verifying {
    type Code = ();
    type Cuda = Infallible;
    type Error = Infallible;

    fn abilities(&self) -> Abilities {
        Abilities { times: false, findings: true, cuda: false, protocol: "every other".into() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), Infallible>],
    ) -> Result<Evaluation, Infallible> {
        let outcome = |index: usize| match index % 2 {
            0 => Outcome::TimedOut { seconds: 1.0 },
            _ => Outcome::Verified(Verification { checks: index as u32, worst_ratio: 0.0 }),
        };
        let outcomes = (0..candidates.len()).map(outcome).collect();
        Ok(Evaluation { outcomes, baselines: Vec::new(), copy_bandwidth: None })
    }
}

#[test]
fn right_kernels_that_nobody_timed_come_out_as_the_chooser_ranks_them() {
    let generated = run(2, Budget::Candidates(8), &Counting::default(), Some(&mut Verifying));
    let [first, second] = generated.artefacts.as_slice() else { panic!("two were wanted") };
    assert!(first.score >= second.score, "{} {}", first.score, second.score);
    for artefact in [first, second] {
        let Some(outcome) = &artefact.outcome else { panic!("it was judged") };
        assert!(outcome.is_right(), "{outcome}");
    }
    let outcomes = generated.evaluation.unwrap().outcomes;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_right()).count(), outcomes.len() / 2);
}

/// CUDA from anywhere, of which nothing is known but its number.
struct Numbered(usize);

/// Compiles such, but for the multiples of ten, and says how many so far.
struct Ahead(Mutex<usize>, Condvar);

impl Compiler for Ahead {
    type Code = usize;
    type Error = Infallible;

    fn compile(&self, _: &CudaSource) -> Result<Result<usize, String>, Infallible> {
        Ok(Err("no program was asked for".into()))
    }
}

impl CudaCompiler<Numbered> for Ahead {
    fn compile_cuda(&self, cuda: &Numbered) -> Result<Result<usize, String>, Infallible> {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
        Ok(if cuda.0.is_multiple_of(10) { Err("a tenth".into()) } else { Ok(cuda.0) })
    }
}

/// Judges the first of several batches only after more than these was compiled, and keeps the
/// number and the code of all that it was given.
struct Waiting<'a>(&'a Ahead, Vec<(usize, usize)>);

impl Evaluator for Waiting<'_> {
    type Code = usize;
    type Cuda = Numbered;
    type Error = &'static str;

    fn abilities(&self) -> Abilities {
        Abilities { times: false, findings: false, cuda: true, protocol: "waiting".into() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, usize, Numbered>],
    ) -> Result<Evaluation, Self::Error> {
        let Self(Ahead(compiled, more), given) = self;
        let waits = |compiled: &mut usize| given.is_empty() && *compiled < 3 * TOGETHER;
        let guard = compiled.lock().unwrap();
        let (guard, waited) =
            more.wait_timeout_while(guard, Duration::from_secs(20), waits).unwrap();
        drop(guard);
        if waited.timed_out() {
            return Err("nothing is compiled while others are judged");
        }
        for candidate in candidates {
            let Candidate::Cuda { kernel, code: Some(&code), .. } = *candidate else {
                return Err("nothing but CUDA was asked for, and all of it is compiled");
            };
            given.push((kernel.0, code));
        }
        let verified = Outcome::Verified(Verification { checks: 1, worst_ratio: 0.0 });
        let outcomes = alloc::vec![verified; candidates.len()];
        Ok(Evaluation { outcomes, ..Evaluation::default() })
    }
}

#[test]
fn cuda_is_compiled_while_what_comes_before_it_is_judged() {
    let matrix = generate::stencil5(20, 20);
    let compiler = Ahead(Mutex::default(), Condvar::new());
    let kernels: Vec<_> = (1..=4 * TOGETHER).map(Numbered).collect();
    let task = Task::new(Operation::SpMV, Dtype::F64);
    let asked: Vec<_> = kernels.iter().map(|kernel| Asked::Cuda(kernel, task)).collect();
    let maker = Maker::new(matrix.view(), Some(&compiler), &|| Duration::ZERO);
    let mut evaluator = Waiting(&compiler, Vec::new());
    let mut batches = Vec::new();
    maker.judge_each(&asked, &mut evaluator, |judged| batches.push(judged.outcomes)).unwrap();

    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [TOGETHER; 4]);
    for (Numbered(number), outcome) in kernels.iter().zip(batches.iter().flatten()) {
        assert_eq!(outcome.is_right(), !number.is_multiple_of(10), "{number}: {outcome}");
    }
    let right = (1..=4 * TOGETHER).filter(|number| !number.is_multiple_of(10));
    assert_eq!(evaluator.1, right.map(|number| (number, number)).collect::<Vec<_>>());
}
