//! From a matrix to kernels that are judged and chosen.
//!
//! ```text
//! Choices ─► programs ─► make: pack, emit, compile ─► Kernel ─► Evaluator ─► Outcome
//!                                                                │           │
//!                     artefacts ◄─ the kernels themselves ◄──────┴── choose ◄┘
//! ```
//!
//! A kernel is made once. What was measured is what comes out: the same arrays, source and code.
//! The fastest may be made once more, with its sizes as constants, and is measured beside itself.

mod ahead;
mod make;
mod measure;
mod none_right;
mod prediction;
mod selection;
mod specialise;
#[cfg(all(test, feature = "std"))]
mod tests;

use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

pub use make::{Asked, JudgeError, Made, MakeError, Maker, TOGETHER};
pub use measure::{BATCH, Budget};
pub use none_right::NoneRight;
pub use prediction::Prediction;

use crate::codegen::EmitError;
use crate::decode::{Choice, Choices, PolicyError, PolicyInput};
use crate::kernel::{Compiler, Kernel, Refusal, SharedCompiler};
use crate::layout::PackError;
use crate::matrix::{CsrView, Scalar};
use crate::outcome::{Baseline, Evaluation, Evaluator, Objective, Outcome};
use selection::Selection;

/// What is wanted.
pub struct Request<'a, T> {
    /// The matrix, with values in the task's precision.
    pub matrix: CsrView<'a, T>,
    /// What the policy sees of the matrix, and what masks ask.
    pub input: &'a PolicyInput<'a>,
    /// Kernels, at most.
    pub wanted: usize,
    /// The regime in which kernels are to be fast.
    pub objective: Objective,
    /// What measuring may cost.
    pub budget: Budget,
    /// Further candidates that [`generate`] asks for where the check refuses those that were
    /// wanted, and none was measured.
    pub spare: usize,
    /// Whether the fastest of those that were measured may be a kernel for the sizes of this matrix
    /// alone, where that is faster.
    pub specialise: bool,
}

/// Who does it.
pub struct Tools<'a, K: Compiler, E, X> {
    /// Compiles them; without one, kernels have no code, and there is no evaluator.
    pub compiler: Option<&'a K>,
    /// Kernels that are there already: of their programs no others are made. What has no code is
    /// compiled.
    pub made: &'a [Kernel<K::Code>],
    /// Measures them; without one, those with the highest scores are taken.
    pub evaluator: Option<&'a mut E>,
    /// Has the last word on candidates, where there is one.
    pub check: Option<&'a mut X>,
    /// Time since some moment.
    pub clock: &'a (dyn Fn() -> Duration + Sync),
    /// Is told what is done next.
    pub observer: &'a mut dyn FnMut(Step),
}

/// Has the last word on candidates, measured or not; `C` is the code of their kernels.
pub trait Check<C> {
    /// What it says of one that it takes.
    type Verdict;
    /// Why it takes none.
    type Error;

    /// Takes at most `wanted` of the candidates, which come best first, each with its kernel as it
    /// will be written, or with what became of one that has none; each with a verdict, but for
    /// those of which nothing can be said. More are made only when the iterator is asked for them.
    ///
    /// # Errors
    /// When there are candidates and none can be taken.
    fn take(
        &mut self,
        candidates: &mut dyn Iterator<Item = Result<Ranked<C>, Outcome>>,
        wanted: usize,
    ) -> Result<Vec<Taken<C, Self::Verdict>>, Self::Error>;
}

/// The check of who has none.
impl<C> Check<C> for Infallible {
    type Verdict = Self;
    type Error = Self;

    fn take(
        &mut self,
        _: &mut dyn Iterator<Item = Result<Ranked<C>, Outcome>>,
        _: usize,
    ) -> Result<Vec<Taken<C, Self>>, Self> {
        match *self {}
    }
}

/// A candidate that a check has taken.
#[derive(Clone, Debug)]
pub struct Taken<C, V> {
    /// The candidate.
    pub ranked: Ranked<C>,
    /// What is said of it; absent where nothing can be said.
    pub verdict: Option<V>,
}

/// A candidate and where it stands.
#[derive(Clone, Debug)]
pub struct Ranked<C> {
    /// Its place among the programs that were measured; past them all for one that was not.
    pub index: usize,
    /// How good the chooser finds the program.
    pub score: f64,
    /// The program's kernel.
    pub kernel: Kernel<C>,
}

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Programs are searched for.
    Search,
    /// Kernels are made and measured.
    Measure,
    /// Candidates are checked.
    Check,
    /// The kernel with this number, from 1, is made, or is there already.
    Make(usize),
}

/// A kernel, and all that is known of it.
#[derive(Clone, Debug)]
pub struct Artefact<C, V> {
    /// Program, arrays, source, launch and code.
    pub kernel: Kernel<C>,
    /// How good the chooser finds the program, higher being better.
    pub score: f64,
    /// What the cost model expects of it on the GPU that was asked for.
    pub predicted: Prediction,
    /// What was measured; absent where nothing was.
    pub outcome: Option<Outcome>,
    /// What was measured, in turn with this kernel, of the one that is given its sizes; only where
    /// this one is for the sizes of its matrix alone, and so faster.
    pub general: Option<Outcome>,
    /// What the check says of it; absent where there was none, or where it can say nothing.
    pub verdict: Option<V>,
    /// The opponents' algorithms that were measured in turn with it, which alone its times can be
    /// compared with: clocks drift from batch to batch. Empty where nothing was measured.
    pub baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a copy in the same run; absent where nothing was
    /// measured.
    pub copy_bandwidth: Option<f64>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Generated<C, V> {
    /// Best first.
    pub artefacts: Vec<Artefact<C, V>>,
    /// What was found out about all candidates, with the baselines that were measured in turn with
    /// the fastest; absent without an evaluator.
    pub evaluation: Option<Evaluation>,
    /// How long the steps took.
    pub times: Times,
}

/// How long the steps of a run took; making kernels is in the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Searching.
    pub search: Duration,
    /// Measuring, with the making of what was measured.
    pub measure: Duration,
    /// Checking.
    pub check: Duration,
}

/// There are no kernels.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError<K, E, X> {
    /// The policy failed.
    #[error(transparent)]
    Policy(PolicyError),
    /// The compiler failed, and not because of a source.
    #[error("{0}")]
    Compiler(K),
    /// The evaluator failed, and not because of a kernel.
    #[error("{0}")]
    Evaluator(E),
    /// No candidate passed the check.
    #[error("{0}")]
    Check(#[source] X),
    /// The policy found nothing.
    #[error("the search found no program (a defect of SparseRL)")]
    NoProgram,
    /// Candidates were measured, and none is right.
    #[error("{0}")]
    NoneRight(#[source] NoneRight),
    /// A program that nobody measured does not fit the matrix, although it is legal.
    #[error("packing (a defect of SparseRL): {0}")]
    Pack(#[from] PackError),
    /// A kernel could not be written down.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// A generated source that nobody measured is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// What a compiler, an evaluator and a check make of a request.
pub type GenerateResult<K, E, X> = Result<
    Generated<<K as Compiler>::Code, <X as Check<<K as Compiler>::Code>>::Verdict>,
    PipelineError<
        <K as Compiler>::Error,
        <E as Evaluator>::Error,
        <X as Check<<K as Compiler>::Code>>::Error,
    >,
>;

/// Finds programs for a matrix, makes kernels of them, has them judged, and gives those that are
/// best.
///
/// # Errors
/// When there is no kernel to give, or when a tool fails for a reason that is not a kernel's.
pub fn generate<T, K, E, X>(
    request: &Request<'_, T>,
    choices: &mut dyn Choices,
    tools: Tools<'_, K, E, X>,
) -> GenerateResult<K, E, X>
where
    T: Scalar,
    K: SharedCompiler,
    E: Evaluator<Code = K::Code>,
    X: Check<K::Code>,
{
    (tools.observer)(Step::Search);
    let clock = tools.clock;
    let start = clock();
    let &Request { wanted, budget, spare, .. } = request;
    let (considered, spare) = match &tools.evaluator {
        Some(_) => (budget.candidates().max(wanted), 0),
        None => (wanted, spare),
    };
    let candidates = choices.first(considered).map_err(PipelineError::Policy)?;
    let searched = clock() - start;
    let others = || match spare {
        0 => Vec::new(),
        // That nothing more is found is no reason to give up what there is.
        _ => choices.first(wanted + spare).unwrap_or_default(),
    };
    let mut generated = generate_best(request, tools, &candidates, others)?;
    generated.times.search = searched;
    Ok(generated)
}

/// Makes kernels of programs that were chosen already, has them judged, and gives those that are
/// best. There are no others.
///
/// # Errors
/// As [`generate`].
pub fn generate_from<T, K, E, X>(
    request: &Request<'_, T>,
    tools: Tools<'_, K, E, X>,
    candidates: &[Choice],
) -> GenerateResult<K, E, X>
where
    T: Scalar,
    K: SharedCompiler,
    E: Evaluator<Code = K::Code>,
    X: Check<K::Code>,
{
    generate_best(request, tools, candidates, Vec::new)
}

/// The best of the candidates, and of `others` where the check refuses too many of them.
fn generate_best<T, K, E, X>(
    request: &Request<'_, T>,
    tools: Tools<'_, K, E, X>,
    candidates: &[Choice],
    others: impl FnOnce() -> Vec<Choice>,
) -> GenerateResult<K, E, X>
where
    T: Scalar,
    K: SharedCompiler,
    E: Evaluator<Code = K::Code>,
    X: Check<K::Code>,
{
    let Tools { compiler, made, evaluator, check, clock, observer } = tools;
    let maker = Maker::new(request.matrix, compiler, clock).with(made);
    if candidates.is_empty() {
        return Err(PipelineError::NoProgram);
    }
    let wanted = request.wanted;
    let mut times = Times::default();
    let mut selection = Selection::new(maker, candidates);
    if let Some(evaluator) = evaluator {
        let start = clock();
        observer(Step::Measure);
        // A check may refuse the first.
        let kept = if check.is_some() { wanted.max(BATCH) } else { wanted };
        selection.measure(evaluator, request, kept)?;
        times.measure = clock() - start;
    }
    let chosen = match check {
        None => selection.best(wanted, observer)?,
        Some(check) => {
            observer(Step::Check);
            let (chosen, time) = selection.checked(check, wanted, others)?;
            times.check = time;
            (1..=chosen.len()).for_each(|number| observer(Step::Make(number)));
            chosen
        }
    };
    let artefacts = chosen.into_iter().map(|taken| selection.artefact(taken, request.input));
    let artefacts = artefacts.collect();
    Ok(Generated { artefacts, evaluation: selection.into_evaluation(), times })
}
