//! The search for a better kernel than plain CSR: the same pipeline as that of `sparserl-cli gen`.

mod gain;
mod measured;
mod unmeasured;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use sparserl_core::decode::{Choice, Choices as _, PolicyError, PolicyInput};
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::Objective;
use sparserl_core::pipeline::Budget;
use sparserl_core::structure::{Answers, MatrixStats};
use sparserl_core::task::Values;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_onnx_models::OpenedPolicy;

use crate::context::Gpu;
use crate::effort::{self, Effort};
use crate::kernel::{Known, PlanKernel};
use crate::matrix::Matrix;
use crate::op::Op;
use crate::plan::Plan;
use crate::remembered::{Case, Remembered};
use crate::side::{Side, origins};
use crate::status::{Failure, Status};
use gain::{gaining, pays};

/// Programs that the policy chooses where none is measured: the first is taken that fits.
const CHOSEN: usize = 1;
/// Further ones that are tried where the first is refused.
const SPARE: usize = 3;

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

/// Why a search ends before its last step.
enum Ended {
    Found(Found),
    Failed(Failure),
}

impl From<Found> for Ended {
    fn from(found: Found) -> Self {
        Self::Found(found)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
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

/// A search for one side of a plan.
struct Search<'a, T> {
    plan: &'a Plan,
    op: Op,
    side: &'a Side,
    /// The plan's, of which `matrix` is the whole or the transpose.
    whole: &'a Matrix,
    matrix: CsrView<'a, T>,
    stats: Arc<MatrixStats<'a>>,
    policy: &'a OpenedPolicy,
    costs: CostModel<'a>,
    /// Made when something is chosen: not where what was chosen before is taken as it is.
    input: OnceCell<PolicyInput<'a>>,
    /// The program that the side has now, which is plain CSR.
    csr: Program,
    /// Its predicted time, in seconds.
    csr_predicted: f64,
    /// Counted from the plan's beginning. None where nothing may depend on times, since every run
    /// has to end with the same kernel.
    deadline: Option<Duration>,
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
    let side = plan.side(op)?;
    let (csr, csr_predicted) = {
        let kernel = side.current();
        (kernel.packed.program.clone(), kernel.known.predicted)
    };
    let search = Search {
        plan,
        op,
        side,
        whole,
        matrix,
        policy: context.policy().map_err(Failure::internal)?,
        costs: CostModel::new(Arc::clone(&stats), plan.task, context.target),
        stats,
        input: OnceCell::new(),
        csr,
        csr_predicted,
        deadline: plan.options.deadline.filter(|_| !plan.options.deterministic),
    };
    match search.run(effort) {
        Ok(found) | Err(Ended::Found(found)) => Ok(found),
        Err(Ended::Failed(failure)) => Err(failure),
    }
}

impl<T: Scalar> Search<'_, T> {
    fn run(&self, effort: Effort) -> Result<Found, Ended> {
        self.go_on()?;
        let choices = match effort {
            Effort::Measure(time) => self.choose(effort, Budget::Time(time).candidates(), None)?,
            Effort::None | Effort::Remember | Effort::Choose => self.choose_unmeasured(effort)?,
        };
        self.go_on()?;
        let Some(choices) = choices else {
            return Ok(Found::Nothing(effort::too_few(self.plan.options.expected_calls)));
        };
        let words = self.policy.in_words();
        if choices.is_empty() {
            return Ok(Found::Nothing(format!("plain CSR: {words} found nothing better")));
        }
        let chosen = match (effort, &self.plan.context.gpu) {
            (Effort::Measure(time), Ok(gpu)) => self.measured(gpu, time, choices)?,
            _ => self.unmeasured(&choices)?,
        };
        match chosen {
            Some(chosen) => self.first_that_fits(chosen),
            None => Ok(Found::Nothing(format!(
                "plain CSR: nothing that {words} chose is predicted to be faster"
            ))),
        }
    }

    /// Whether something further may be begun; otherwise what the search has come to.
    fn go_on(&self) -> Result<(), Ended> {
        self.unless_abandoned()?;
        let event = match self.deadline {
            _ if self.plan.is_waited_for() => "the context was destroyed",
            Some(deadline) if self.age() >= deadline => "the deadline came",
            _ => return Ok(()),
        };
        Err(Found::Nothing(format!("plain CSR: {event} before a better one")).into())
    }

    fn unless_abandoned(&self) -> Result<(), Ended> {
        match self.plan.is_abandoned.load(Ordering::Relaxed) {
            true => Err(Found::Nothing("plain CSR: the plan was destroyed".to_owned()).into()),
            false => Ok(()),
        }
    }

    /// How long ago the plan was begun.
    fn age(&self) -> Duration {
        Duration::try_from_secs_f64(self.plan.progress.age()).unwrap_or(Duration::MAX)
    }

    fn input(&self) -> &PolicyInput<'_> {
        let (plan, stats) = (self.plan, &self.stats);
        self.input
            .get_or_init(|| PolicyInput::new(Arc::clone(stats), plan.task, plan.context.target))
    }

    /// What is remembered of this matrix: so many programs, which are faster than another one where
    /// they are not measured.
    fn case<'b>(&'b self, count: usize, beside: Option<&'b Program>) -> Case<'b> {
        let is_fixed = self.plan.task.values == Values::Fixed;
        Case {
            pattern: match self.op {
                Op::None => Cow::Borrowed(self.whole.pattern()),
                Op::Transpose => Cow::Owned(self.whole.transposed_pattern()),
            },
            distinct_values: is_fixed.then(|| self.stats.distinct_values()).flatten(),
            task: self.plan.task,
            target: self.plan.context.target,
            policy: self.policy,
            beside,
            count,
        }
    }

    /// What was chosen for earlier plans. A deterministic plan has the same in every run, whatever
    /// stands in a folder.
    fn remembered(&self) -> Option<&Remembered> {
        self.plan.context.remembered.as_ref().filter(|_| !self.plan.options.deterministic)
    }

    /// Programs that are predicted to be faster than plain CSR.
    fn choose_unmeasured(&self, effort: Effort) -> Result<Option<Vec<Choice>>, Failure> {
        self.choose(effort, CHOSEN + SPARE, Some(&self.csr))
    }

    /// So many programs that the policy chooses, or has chosen for an earlier plan, as far as they
    /// fit the memory that is left, and gain over another one; `None` where only what is remembered
    /// is wanted, and nothing is.
    fn choose(
        &self,
        effort: Effort,
        count: usize,
        beside: Option<&Program>,
    ) -> Result<Option<Vec<Choice>>, Failure> {
        let choose = || -> Result<Vec<Choice>, PolicyError> {
            let mut offered = self.policy.choices(self.input(), OBJECTIVE);
            let choices = offered.first(count)?;
            match beside {
                Some(csr) => gaining(&mut offered, &self.costs, csr, choices),
                None => Ok(choices),
            }
        };
        // The case costs a hash of the pattern.
        let choices = match (effort, self.remembered()) {
            (Effort::Remember, remembered) => {
                Ok(remembered.and_then(|remembered| remembered.find(&self.case(count, beside))))
            }
            (_, Some(remembered)) => remembered.fetch(&self.case(count, beside), choose).map(Some),
            (_, None) => choose().map(Some),
        };
        let Some(mut choices) = choices.map_err(Failure::internal)? else { return Ok(None) };
        if let Some(left) = self.plan.memory_left() {
            choices.retain(|choice| self.costs.cost(&choice.program).matrix_bytes <= left);
        }
        choices.retain(|choice| choice.program != self.csr);
        if beside.is_some() && self.plan.context.gpu.is_ok() {
            choices.retain(pays);
        }
        Ok(Some(choices))
    }

    /// Programs in the order of their times; where none can be measured, in that of the policy.
    fn measured(
        &self,
        gpu: &Gpu,
        time: Duration,
        mut choices: Vec<Choice>,
    ) -> Result<Option<Vec<Chosen>>, Ended> {
        let context = &*self.plan.context;
        let alone = context.measuring.lock().unwrap_or_else(PoisonError::into_inner);
        // Other plans may have measured for long meanwhile.
        self.go_on()?;
        let left = |deadline: Duration| time.min(deadline.saturating_sub(self.age()));
        let time = self.deadline.map_or(time, left);
        // Measured in turn with the others, so that it is known what they gain.
        choices.insert(0, Choice { program: self.csr.clone(), score: f64::NEG_INFINITY });
        let plain = self.side.current().without_ending().map_err(Failure::internal)?;
        let measured = self.measure(gpu, plain, &choices, time);
        drop(alone);
        self.unless_abandoned()?;
        match measured {
            Ok(measured) => {
                // Later plans, of too few calls to measure, take what was fastest.
                if let Some(remembered) = self.remembered() {
                    let gains: Vec<_> = measured.iter().filter_map(Chosen::gain).collect();
                    remembered.keep(&self.case(CHOSEN + SPARE, Some(&self.csr)), &gains);
                }
                Ok(Some(measured))
            }
            Err(why) => {
                context.say(&format!("nothing could be measured: {why}"));
                self.go_on()?;
                let choices = self.choose_unmeasured(Effort::Choose)?.unwrap_or_default();
                self.unmeasured(&choices)
            }
        }
    }

    /// Programs in the order of the policy, unless there are none.
    fn unmeasured(&self, choices: &[Choice]) -> Result<Option<Vec<Chosen>>, Ended> {
        if choices.is_empty() {
            return Ok(None);
        }
        match self.check(choices) {
            Ok(chosen) => Ok(Some(chosen)),
            Err(why) => {
                // What was cut off is no failure.
                self.go_on()?;
                Err(Failure::internal(why).into())
            }
        }
    }

    /// The first that fits what is left of the memory, and that goes with the epilogue.
    fn first_that_fits(&self, chosen: Vec<Chosen>) -> Result<Found, Ended> {
        let is_deterministic = self.plan.options.deterministic;
        let mut refused: Option<Failure> = None;
        for Chosen { program, judged, known } in chosen {
            let mut known = Known { csr_predicted: self.csr_predicted, ..known };
            self.unless_abandoned()?;
            if program == self.csr {
                if let Some(failure) = refused {
                    known.why = format!("plain CSR: {}", failure.text);
                }
                return Ok(Found::PlainCsr(known));
            }
            let recipe = self.plan.recipe(self.side, || origins(self.whole, self.op));
            let made = match judged {
                Some(judged) => recipe.make_of(self.matrix, judged, known),
                None => recipe.make(self.matrix, &program, known),
            };
            match made {
                Ok(kernel) => return Ok(Found::Better(Box::new(kernel))),
                // How much memory is left differs from run to run, and so would the next program.
                Err(failure) if is_deterministic && failure.status == Status::OutOfMemory => {
                    return Err(failure.into());
                }
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        Err(refused.unwrap_or_else(|| Failure::internal("no program was found right")).into())
    }
}
