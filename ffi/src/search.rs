//! The search for a better kernel than plain CSR: the same pipeline as that of `sparserl-cli gen`.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sparserl_core::decode::{Choice, Choices as _, PolicyError, PolicyInput};
use sparserl_core::kernel::{Candidate, Kernel};
use sparserl_core::language::Program;
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluator as _, Objective, Outcome, Regime};
use sparserl_core::pipeline::{self, BATCH, Budget, PipelineError, Request, Tools};
use sparserl_core::results::ranking;
use sparserl_core::structure::{Answers, MatrixStats};
use sparserl_core::task::Values;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::emulated::checker::{Checker, Unjudged};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::worker::Protocol;
use sparserl_onnx_models::OpenedChoices;
use sparserl_onnx_models::speeds::mean;

use crate::context::Gpu;
use crate::effort::{self, Effort};
use crate::kernel::{Known, PlanKernel};
use crate::matrix::Matrix;
use crate::plan::Plan;
use crate::remembered::{Case, Remembered};
use crate::side::{Op, origins};
use crate::status::{Failure, Status};

/// Programs that the policy chooses where none is measured: the first is taken that fits.
const CHOSEN: usize = 1;
/// Further ones that are tried where the first is refused.
const SPARE: usize = 3;

/// What a program that is not measured has to gain over plain CSR, in log2, where there is a GPU:
/// less does not pay for what packing takes, and predictions are not that exact. Plans that are
/// made for later cost nobody's time.
const LEAST_GAIN: f64 = 0.05;

/// Plans are for products that follow each other.
const OBJECTIVE: Objective = Objective::Warm;

/// What a search came to.
pub(crate) enum Found {
    /// A better kernel.
    Better(Box<PlanKernel>),
    /// None, and why.
    Nothing(String),
    /// Plain CSR is the fastest of what was measured.
    PlainCsr(Known),
}

/// Finds a better kernel for a matrix, which is that of the plan or its transpose, and of which
/// some statistics were computed before.
///
/// # Errors
/// Why the search could not be made.
pub(crate) fn better<T: Scalar>(
    plan: &Plan,
    op: Op,
    whole: &Matrix,
    (matrix, answers): (CsrView<'_, T>, Arc<Answers>),
    effort: Effort,
) -> Result<Found, Failure> {
    let context = &*plan.context;
    let stats = Arc::new(MatrixStats::again(matrix, answers));
    // Not needed where what was chosen before is taken as it is.
    let input = LazyCell::new(|| PolicyInput::new(Arc::clone(&stats), plan.task, context.target));
    let costs = CostModel::new(Arc::clone(&stats), plan.task, context.target);
    let policy = context.policy().map_err(Failure::internal)?;
    let side = plan.side(op)?;
    let (csr, csr_predicted) = {
        let kernel = side.current();
        (kernel.packed.program.clone(), kernel.known.predicted)
    };
    // Nothing may depend on times where every run has to end with the same kernel.
    let deadline = plan.options.deadline.filter(|_| !plan.options.deterministic);
    let age = || Duration::try_from_secs_f64(plan.progress.age()).unwrap_or(Duration::MAX);
    let is_abandoned = || plan.is_abandoned.load(Ordering::Relaxed);
    let abandoned = || Found::Nothing("plain CSR: the plan was destroyed".to_owned());
    // What the search comes to where nothing further may be begun.
    let over = || {
        let event = match deadline {
            _ if is_abandoned() => return Some(abandoned()),
            _ if plan.is_waited_for() => "the context was destroyed",
            Some(deadline) if age() >= deadline => "the deadline came",
            _ => return None,
        };
        Some(Found::Nothing(format!("plain CSR: {event} before a better one")))
    };
    if let Some(over) = over() {
        return Ok(over);
    }
    let mut offered = LazyCell::new(|| policy.choices(&input, OBJECTIVE));
    let case = |count, beside| {
        let is_fixed = plan.task.values == Values::Fixed;
        Case {
            pattern: match op {
                Op::None => Cow::Borrowed(whole.pattern()),
                Op::Transpose => Cow::Owned(whole.transposed_pattern()),
            },
            distinct_values: is_fixed.then(|| stats.distinct_values()).flatten(),
            task: plan.task,
            target: context.target,
            policy,
            beside,
            count,
        }
    };
    // None where nothing is remembered of a case that only that is wanted for.
    let mut choose = |considered: usize, beside| -> Result<Option<Vec<Choice>>, Failure> {
        let choose = || {
            let choices = offered.first(considered)?;
            match beside {
                Some(csr) => gaining(&mut offered, &costs, csr, choices),
                None => Ok(choices),
            }
        };
        let case = || case(considered, beside);
        let Some(mut choices) = choices_of(plan, effort, case, choose)? else { return Ok(None) };
        if let Some(left) = plan.memory_left() {
            choices.retain(|choice| costs.cost(&choice.program).matrix_bytes <= left);
        }
        choices.retain(|choice| choice.program != csr);
        if beside.is_some() && context.gpu.is_ok() {
            choices.retain(pays);
        }
        Ok(Some(choices))
    };
    let choices = match effort {
        Effort::Measure(time) => choose(Budget::Time(time).candidates(), None)?,
        Effort::None | Effort::Remember | Effort::Choose => choose(CHOSEN + SPARE, Some(&csr))?,
    };
    if let Some(over) = over() {
        return Ok(over);
    }
    let Some(mut choices) = choices else {
        return Ok(Found::Nothing(effort::too_few(plan.options.expected_calls)));
    };
    let words = policy.in_words();
    if choices.is_empty() {
        return Ok(Found::Nothing(format!("plain CSR: {words} found nothing better")));
    }
    let unmeasured = |choices: Vec<Choice>| {
        if choices.is_empty() {
            return Ok(None);
        }
        checked(plan, matrix, &input, csr_predicted, &choices).map(Some).map_err(Failure::internal)
    };
    let chosen = match (effort, &context.gpu) {
        (Effort::Measure(time), Ok(gpu)) => {
            let alone = context.measuring.lock().unwrap_or_else(PoisonError::into_inner);
            // Other plans may have measured for long meanwhile.
            if let Some(over) = over() {
                return Ok(over);
            }
            let time = deadline.map_or(time, |deadline| time.min(deadline.saturating_sub(age())));
            // Measured in turn with the others, so that it is known what they gain.
            let known = Choice { program: csr.clone(), score: f64::NEG_INFINITY };
            choices.insert(0, known);
            let plain = side.current().without_ending().map_err(Failure::internal)?;
            let measured = measure(plan, gpu, matrix, &input, &costs, (plain, &choices, time));
            drop(alone);
            if is_abandoned() {
                return Ok(abandoned());
            }
            match measured {
                Ok(measured) => {
                    // Later plans, of too few calls to measure, take what was fastest.
                    if let Some(remembered) = remembered(plan) {
                        let gains: Vec<_> = measured.iter().filter_map(Chosen::gain).collect();
                        remembered.keep(&case(CHOSEN + SPARE, Some(&csr)), &gains);
                    }
                    Some(measured)
                }
                Err(why) => {
                    context.say(&format!("nothing could be measured: {why}"));
                    if let Some(over) = over() {
                        return Ok(over);
                    }
                    unmeasured(choose(CHOSEN + SPARE, Some(&csr))?.unwrap_or_default())?
                }
            }
        }
        _ => unmeasured(choices)?,
    };
    let Some(chosen) = chosen else {
        return Ok(Found::Nothing(format!(
            "plain CSR: nothing that {words} chose is predicted to be faster"
        )));
    };
    // The first that fits what is left of the memory, and that goes with the epilogue.
    let mut refused: Option<Failure> = None;
    for Chosen { program, judged, known } in chosen {
        let mut known = Known { csr_predicted, ..known };
        if is_abandoned() {
            return Ok(abandoned());
        }
        if program == csr {
            if let Some(failure) = refused {
                known.why = format!("plain CSR: {}", failure.text);
            }
            return Ok(Found::PlainCsr(known));
        }
        let recipe = plan.recipe(|| origins(whole, op));
        let made = match judged {
            Some(judged) => recipe.make_of(matrix, judged, known),
            None => recipe.make(matrix, &program, known),
        };
        match made {
            Ok(kernel) => return Ok(Found::Better(Box::new(kernel))),
            // How much memory is left differs from run to run, and so would the next program.
            Err(failure) if plan.options.deterministic && failure.status == Status::OutOfMemory => {
                return Err(failure);
            }
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| Failure::internal("no program was found right")))
}

/// What was chosen for earlier plans. A deterministic plan has the same in every run, whatever
/// stands in a folder.
fn remembered(plan: &Plan) -> Option<&Remembered> {
    plan.context.remembered.as_ref().filter(|_| !plan.options.deterministic)
}

/// What the policy chooses for a case, or has chosen for an earlier plan; none where only that is
/// wanted, and nothing is remembered. The case costs a hash of the pattern, and is made only where
/// choices are remembered.
fn choices_of<'a>(
    plan: &Plan,
    effort: Effort,
    case: impl FnOnce() -> Case<'a>,
    choose: impl FnOnce() -> Result<Vec<Choice>, PolicyError>,
) -> Result<Option<Vec<Choice>>, Failure> {
    let choices = match (effort, remembered(plan)) {
        (Effort::Remember, remembered) => {
            return Ok(remembered.and_then(|remembered| remembered.find(&case())));
        }
        (_, Some(remembered)) => remembered.fetch(&case(), choose),
        (_, None) => choose(),
    };
    choices.map(Some).map_err(Failure::internal)
}

/// Those of some choices that their chooser predicts to be faster than plain CSR: what is not
/// measured takes its place only then. Their scores are the gain over it, in log2.
fn gaining(
    offered: &mut OpenedChoices<'_>,
    costs: &CostModel<'_>,
    csr: &Program,
    choices: Vec<Choice>,
) -> Result<Vec<Choice>, PolicyError> {
    let chosen = choices.into_iter().map(|choice| choice.program);
    let programs: Vec<Program> = [csr.clone()].into_iter().chain(chosen).collect();
    let speeds: Vec<f64> = match offered.speeds(&programs)? {
        Some(speeds) => speeds.iter().map(|speeds| mean(speeds, OBJECTIVE).into()).collect(),
        None => programs.iter().map(|program| -costs.cost(program).seconds.log2()).collect(),
    };
    let of_csr = speeds.first().copied().unwrap_or(f64::INFINITY);
    let gains = programs.into_iter().zip(speeds).skip(1);
    let gains = gains.map(|(program, speed)| Choice { program, score: speed - of_csr });
    Ok(gains.filter(|choice| choice.score > 0.0).collect())
}

/// Whether a program gains enough over plain CSR where there is a GPU.
fn pays(choice: &Choice) -> bool {
    choice.score >= LEAST_GAIN
}

/// A program, and what is known of it.
struct Chosen {
    program: Program,
    /// Its kernel as it was judged, where one was made and kept.
    judged: Option<Kernel<Cubin>>,
    known: Known,
}

impl Chosen {
    /// The program with the speed over plain CSR that was measured, in log2; none where it is not
    /// faster.
    fn gain(&self) -> Option<Choice> {
        let score = (self.known.csr? / self.known.measured?).log2();
        (score > 0.0).then(|| Choice { program: self.program.clone(), score })
    }
}

/// Programs in the order of the policy, with the times that their gains over plain CSR make of its
/// own. Without a GPU, those that emulation finds right.
fn checked<T: Scalar>(
    plan: &Plan,
    matrix: CsrView<'_, T>,
    input: &PolicyInput<'_>,
    csr_predicted: f64,
    choices: &[Choice],
) -> Result<Vec<Chosen>, String> {
    let context = &*plan.context;
    let words = context.policy()?.in_words();
    let chosen = |program: Program, judged, how: String| {
        let gain = choices.iter().find(|choice| choice.program == program);
        let predicted = csr_predicted / gain.map_or(1.0, |choice| choice.score.exp2());
        let why = format!("chosen by {words}, {how}");
        Chosen { program, judged, known: Known { predicted, why, ..Known::default() } }
    };
    if context.gpu.is_ok() {
        let unmeasured = |Choice { program, .. }: &Choice| {
            chosen(program.clone(), None, "not measured".to_owned())
        };
        return Ok(choices.iter().map(unmeasured).collect());
    }
    let mut checker =
        Checker::open(&context.compiler, matrix, plan.task.operation, Unjudged::Never)
            .map_err(|error| error.to_string())?;
    let budget = Budget::Candidates(0);
    let (wanted, objective) = (CHOSEN, OBJECTIVE);
    let request = Request { matrix, input, wanted, objective, budget, spare: 0, specialise: false };
    let start = Instant::now();
    let tools = Tools {
        // Nothing launches a kernel without the epilogue.
        compiler: plan.epilogue.is_none().then_some(&context.compiler),
        made: &[],
        evaluator: None::<&mut GpuEvaluator>,
        check: Some(&mut checker),
        clock: &move || start.elapsed(),
        observer: &mut |_| (),
    };
    let generated = pipeline::generate_from(&request, tools, choices);
    let generated = generated.map_err(|error| error.to_string())?;
    let artefacts = generated.artefacts.into_iter().filter_map(|artefact| {
        let program = artefact.kernel.packed.program.clone();
        let how = format!("emulated on {} and found right", artefact.verdict?.extent);
        Some(chosen(program, Some(artefact.kernel), how))
    });
    Ok(artefacts.collect())
}

/// Programs that a process which measures beside this one found right, the fastest first. Plain
/// CSR is measured as the plan has it. Whether they fit the memory that is left is for the caller
/// to see. Kernels are measured without the plan's epilogue, whose arrays only callers have, and
/// without gaps between rows.
fn measure<T: Scalar>(
    plan: &Plan,
    gpu: &Gpu,
    matrix: CsrView<'_, T>,
    input: &PolicyInput<'_>,
    costs: &CostModel<'_>,
    (plain, choices, time): (Kernel<Cubin>, &[Choice], Duration),
) -> Result<Vec<Chosen>, String> {
    let context = &*plan.context;
    let (server, pool) = (context.server.clone(), Arc::clone(&context.pool));
    let opened = GpuEvaluator::open(server, pool, gpu.ordinal, Protocol::full());
    let mut evaluator = opened.map_err(|error| error.to_string())?;
    let budget = Budget::Time(time);
    // The fastest is used as it was measured. The others, of which one takes its place only where
    // memory or the epilogue refuse it, would keep their arrays for nothing. Machine code that
    // serves other matrices, too, is not compiled anew for each.
    let (wanted, objective) = (1, OBJECTIVE);
    let request = Request { matrix, input, wanted, objective, budget, spare: 0, specialise: false };
    let start = Instant::now();
    // To a search that is abandoned, or waited for, each look at the clock is another budget later,
    // so that it ends with the batch that it is at, whenever that became so.
    let leaps = AtomicU32::new(0);
    let clock = || {
        let now = start.elapsed();
        if !plan.is_abandoned.load(Ordering::Relaxed) && !plan.is_waited_for() {
            return now;
        }
        now.saturating_add(time.saturating_mul(leaps.fetch_add(1, Ordering::Relaxed) + 1))
    };
    let made = [plain];
    let tools = Tools {
        compiler: Some(&context.compiler),
        made: &made,
        evaluator: Some(&mut evaluator),
        check: None::<&mut Infallible>,
        clock: &clock,
        observer: &mut |_| (),
    };
    let generated = match pipeline::generate_from(&request, tools, choices) {
        Ok(generated) => generated,
        // They were measured: none of them may be taken unmeasured.
        Err(error @ PipelineError::NoneRight { .. }) => {
            context.say(&error.to_string());
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.to_string()),
    };
    let Some(evaluation) = generated.evaluation else { return Ok(Vec::new()) };
    let regime = Regime::Warm;
    let median = |outcome: &Outcome| outcome.measurement()?.timing.median(regime);
    let outcomes = &evaluation.outcomes;
    let right = ranking(outcomes, OBJECTIVE);
    let first_batch = right.first().map(|index| index / BATCH);
    let mut kept = generated.artefacts.into_iter().next().map(|artefact| artefact.kernel);
    // Clocks drift: where the fastest was not measured in turn with plain CSR, it is once more.
    let is_apart = first_batch.is_some_and(|batch| batch > 0);
    let in_turn = kept.as_ref().filter(|_| is_apart).and_then(|fastest| {
        let pair = [&made[0], fastest].map(Candidate::Kernel);
        evaluator.judge_all(matrix, &pair).ok()
    });
    let chosen = right.iter().zip(1..).filter_map(|(&index, place)| {
        let program = choices.get(index)?.program.clone();
        let judged = kept.take_if(|kernel| kernel.packed.program == program);
        // Plain CSR is the first of each.
        let (of, own, is_in_turn) = match &in_turn {
            Some(again) if judged.is_some() => (again, 1, true),
            _ => (&evaluation, index, index / BATCH == 0),
        };
        let own = of.outcomes.get(own).filter(|outcome| outcome.is_right())?;
        let measured = median(own);
        let csr = of.outcomes.first().filter(|_| is_in_turn).and_then(median);
        let gain = match (measured, csr) {
            (Some(own), Some(csr)) if index != 0 => {
                format!(", {:.2} times as fast as plain CSR", csr / own)
            }
            _ => String::new(),
        };
        let which = if index == 0 { "plain CSR: the" } else { "the" };
        let rank = match place {
            1 => "fastest".to_owned(),
            place => format!("number {place} in speed"),
        };
        let (count, name) = (outcomes.len(), &gpu.facts.name);
        let why = format!("{which} {rank} of {count} programs measured on {name}{gain}");
        // The baselines are those that were measured in turn with the fastest.
        let cusparse = of.best_baseline(regime).filter(|_| first_batch == Some(index / BATCH));
        let predicted = costs.cost(&program).seconds;
        let known = Known { predicted, measured, csr, cusparse, why, ..Known::default() };
        Some(Chosen { program, judged, known })
    });
    Ok(chosen.collect())
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;
    use sparserl_core::target::Target;
    use sparserl_core::task::{Dtype, Operation, Task};
    use sparserl_onnx_models::{Engine, OpenedPolicy, PolicySource};

    use super::*;
    use crate::plain::plain_csr;

    #[test]
    fn what_is_chosen_has_to_gain_over_plain_csr() {
        let matrix = generate::stencil5(60, 60);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        let costs = CostModel::new(Arc::clone(&stats), task, Target::H200);
        let (csr, seconds) = plain_csr(&costs, task).next().unwrap();
        for source in [PolicySource::Cost, PolicySource::Learned] {
            let policy = OpenedPolicy::open(&source, &Engine::Embedded).unwrap();
            let mut offered = policy.choices(&input, OBJECTIVE);
            let choices = offered.first(CHOSEN + SPARE).unwrap();
            let found = gaining(&mut offered, &costs, &csr, choices.clone()).unwrap();
            let best = found.first().unwrap();
            assert!(best.program == choices[0].program && pays(best), "{source:?}: {best:?}");
            if source == PolicySource::Cost {
                let gain = (seconds / costs.cost(&best.program).seconds).log2();
                assert!((best.score - gain).abs() < 1e-9, "{} instead of {gain}", best.score);
            }
            // Nothing gains over itself.
            let same = gaining(&mut offered, &costs, &best.program, vec![best.clone()]).unwrap();
            assert_eq!(same, []);
            let worse = Choice { program: csr.clone(), score: 9.0 };
            assert_eq!(gaining(&mut offered, &costs, &best.program, vec![worse]).unwrap(), []);
        }
        let choice = |score| Choice { program: csr.clone(), score };
        assert!(pays(&choice(0.051)) && !pays(&choice(0.049)));
    }
}
