//! The search for a better kernel than plain CSR: the same pipeline as that of `sparserl-cli gen`.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sparserl_core::decode::{Choice, PolicyInput};
use sparserl_core::language::Program;
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Regime};
use sparserl_core::pipeline::{self, Budget, Check, Order, Ranked, Tools};
use sparserl_core::structure::MatrixStats;
use sparserl_gpu::emulated::checker::{Checker, NoneRight, Unjudged, first_right};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::worker::Protocol;

use crate::context::Gpu;
use crate::effort::Effort;
use crate::kernel::{Known, PlanKernel};
use crate::matrix::Matrix;
use crate::plan::{Op, Plan, origins};

/// Programs that the policy chooses where none is measured: the first is taken that fits.
const CHOSEN: usize = 1;
/// Further ones that are tried where the first is refused.
const SPARE: usize = 3;

/// What a search came to.
pub(crate) enum Found {
    /// A better kernel.
    Better(Box<PlanKernel>),
    /// None, and why.
    Nothing(String),
    /// Plain CSR is the fastest of what was measured.
    PlainCsr(Known),
}

/// Finds a better kernel for a matrix, which is that of the plan or its transpose.
///
/// # Errors
/// Why the search could not be made, in a line.
pub(crate) fn better<T: Scalar>(
    plan: &Plan,
    op: Op,
    whole: &Matrix,
    matrix: CsrView<'_, T>,
    effort: Effort,
) -> Result<Found, String> {
    let context = &*plan.context;
    let stats = Arc::new(MatrixStats::new(matrix));
    let input = PolicyInput::new(Arc::clone(&stats), plan.task(), context.target);
    let costs = CostModel::new(stats, plan.task(), context.target);
    let policy = context.policy()?;
    let side = plan.side(op).map_err(|failure| failure.text)?;
    let (csr, csr_predicted) = {
        let kernel = side.current();
        (kernel.packed.program.clone(), kernel.known.predicted)
    };
    let is_late = || {
        let deadline = plan.options.deadline.map(|deadline| deadline.as_secs_f64());
        deadline.is_some_and(|deadline| plan.progress.age() >= deadline)
    };
    let late = || Found::Nothing("plain CSR: the deadline came before a better one".to_owned());
    if is_late() {
        return Ok(late());
    }
    let budget = match effort {
        Effort::Measure(time) => Some(match plan.options.deadline {
            Some(deadline) => {
                time.min(deadline.saturating_sub(Duration::from_secs_f64(plan.progress.age())))
            }
            None => time,
        }),
        Effort::None | Effort::Choose => None,
    };
    let considered = budget.map_or(CHOSEN + SPARE, |time| Budget::Time(time).candidates());
    let mut choices =
        policy.chooser().choose(&input, considered).map_err(|error| error.to_string())?;
    if let Some(limit) = plan.options.memory_limit {
        choices.retain(|choice| costs.cost(&choice.program).matrix_bytes <= limit);
    }
    choices.retain(|choice| choice.program != csr);
    if is_late() {
        return Ok(late());
    }
    if choices.is_empty() {
        return Ok(Found::Nothing(format!(
            "plain CSR: {} found nothing better",
            policy.in_words()
        )));
    }
    let chosen = match (budget, &context.gpu) {
        (Some(time), Ok(gpu)) => {
            // Measured in turn with the others, so that it is known what they gain.
            let known = Choice { program: csr.clone(), score: f64::NEG_INFINITY };
            choices.insert(0, known);
            let measured = measure(plan, gpu, matrix, &input, &choices, time)?;
            if measured.program == csr {
                return Ok(Found::PlainCsr(Known { csr_predicted, ..measured.known }));
            }
            vec![measured]
        }
        _ => checked(plan, matrix, &input, &costs, &choices)?,
    };
    // The first that fits what is left of the memory, and that goes with the epilogue.
    let mut refused = None;
    for Chosen { program, known } in chosen {
        let known = Known { csr_predicted, ..known };
        if plan.is_abandoned.load(Ordering::Relaxed) {
            return Ok(Found::Nothing("plain CSR: the plan was destroyed".to_owned()));
        }
        match plan.recipe(origins(whole, op)).make(matrix, &program, known) {
            Ok(kernel) => return Ok(Found::Better(Box::new(kernel))),
            Err(failure) => refused = refused.or(Some(failure.text)),
        }
    }
    Err(refused.unwrap_or_else(|| "no program was found right".to_owned()))
}

/// A program, and what is known of it.
struct Chosen {
    program: Program,
    known: Known,
}

/// Programs in the order of the policy. Without a GPU, those that emulation finds right.
fn checked<T: Scalar>(
    plan: &Plan,
    matrix: CsrView<'_, T>,
    input: &PolicyInput<'_>,
    costs: &CostModel<'_>,
    choices: &[Choice],
) -> Result<Vec<Chosen>, String> {
    let context = &*plan.context;
    let words = context.policy()?.in_words();
    let chosen = |choice: &Choice, how: String| {
        let known = Known {
            predicted: costs.cost(&choice.program).seconds,
            why: format!("chosen by {words}, {how}"),
            ..Known::default()
        };
        Chosen { program: choice.program.clone(), known }
    };
    if context.gpu.is_ok() {
        return Ok(choices
            .iter()
            .map(|choice| chosen(choice, "not measured".to_owned()))
            .collect());
    }
    let checker = Checker::open(
        Arc::clone(&context.pool),
        context.target.architecture,
        matrix,
        plan.task().operation,
    );
    let checker = checker.map_err(|error| error.to_string())?;
    let order = Order { matrix, input, wanted: CHOSEN, budget: Budget::Candidates(0), spare: 0 };
    let mut extent = None;
    let check: Check<'_, NoneRight> = Box::new(|candidates, wanted| {
        let judge = |ranked: &Ranked| checker.judge(&ranked.candidate);
        let taken = first_right(candidates, wanted, Unjudged::Never, judge)?;
        let (candidates, verdicts): (Vec<_>, Vec<_>) = taken.candidates.into_iter().unzip();
        extent = verdicts.into_iter().flatten().next().map(|checked| checked.extent.to_string());
        Ok(candidates)
    });
    let start = Instant::now();
    let tools = Tools {
        chooser: context.policy()?.chooser(),
        compiler: Some(&context.compiler),
        evaluator: None::<&mut GpuEvaluator>,
        check: Some(check),
        clock: &move || start.elapsed(),
        observer: &mut |_| (),
    };
    let generated = pipeline::generate_from(&order, tools, choices);
    let generated = generated.map_err(|error| error.to_string())?;
    let how = format!("emulated on {} and found right", extent.as_deref().unwrap_or("a sample"));
    let artefacts = generated.artefacts.into_iter().map(|artefact| {
        let program = artefact.kernel.packed.program.clone();
        chosen(&Choice { program, score: artefact.score }, how.clone())
    });
    Ok(artefacts.collect())
}

/// The fastest of some programs, by a process that measures them beside this one.
fn measure<T: Scalar>(
    plan: &Plan,
    gpu: &Gpu,
    matrix: CsrView<'_, T>,
    input: &PolicyInput<'_>,
    choices: &[Choice],
    time: Duration,
) -> Result<Chosen, String> {
    let context = &*plan.context;
    let _alone = context.measuring.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, pool) = (context.server.clone(), Arc::clone(&context.pool));
    let opened = GpuEvaluator::open(server, pool, gpu.ordinal, Protocol::full());
    let mut evaluator = opened.map_err(|error| error.to_string())?;
    let budget = Budget::Time(time);
    let order = Order { matrix, input, wanted: 1, budget, spare: 0 };
    let start = Instant::now();
    let tools = Tools {
        chooser: context.policy()?.chooser(),
        compiler: Some(&context.compiler),
        evaluator: Some(&mut evaluator),
        check: None::<Check<'_, NoneRight>>,
        clock: &move || start.elapsed(),
        observer: &mut |_| (),
    };
    let generated = pipeline::generate_from(&order, tools, choices);
    let generated = generated.map_err(|error| error.to_string())?;
    let Some(artefact) = generated.artefacts.into_iter().next() else {
        return Err("no program was found right".to_owned());
    };
    let regime = Regime::BackToBack;
    let median = |outcome: &Outcome| outcome.measurement()?.timing.median(regime);
    let outcomes = generated.evaluation.map(|evaluation| evaluation.outcomes).unwrap_or_default();
    let (measured, csr) =
        (artefact.outcome.as_ref().and_then(median), outcomes.first().and_then(median));
    let best = artefact.baselines.iter().filter_map(|baseline| baseline.median(regime));
    let cusparse = best.min_by(f64::total_cmp);
    let program = artefact.kernel.packed.program.clone();
    let costs = CostModel::new(Arc::clone(&input.stats), plan.task(), context.target);
    let gain = match (measured, csr) {
        (Some(own), Some(csr)) => format!(", {:.2} times as fast as plain CSR", csr / own),
        _ => String::new(),
    };
    let is_csr = choices.first().is_some_and(|first| first.program == program);
    let which = if is_csr { "plain CSR: the" } else { "the" };
    let gain = if is_csr { String::new() } else { gain };
    let why = format!(
        "{which} fastest of {} programs measured on {}{gain}",
        outcomes.len(),
        gpu.facts.name
    );
    let predicted = costs.cost(&program).seconds;
    Ok(Chosen {
        program,
        known: Known { predicted, measured, csr, cusparse, why, ..Known::default() },
    })
}
