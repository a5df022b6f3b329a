//! What becomes of programs, by measuring them: each once, and recorded.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use sparserl_core::kernel::{Compiler, SharedCompiler};
use sparserl_core::language::{Program, TextError};
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Evaluator, Outcome};
use sparserl_core::pipeline::{Made, MakeError, Maker};
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_gpu::store::recording::{Context, Recorder};

use super::cases::{TypedSubject, with_subject};
use super::{Cases, Judgement, Judgements, Known, MatrixError, Outcomes, Request};
use crate::collect::{CollectError, Judge, Subject, with_references, without_references};
use crate::dataset::DatasetCase;
use crate::measured::AgainstReference;
use crate::proposals::reference;

/// Outcomes that are measured, each once, and recorded. Kernels for several cases are made at the
/// same time, so that the one evaluator always has something to judge.
#[derive(Debug)]
pub struct MeasuredOutcomes<E, K> {
    judge: Judge<E>,
    compiler: K,
    target: Target,
    device: String,
    known: Known,
    ahead: NonZeroUsize,
}

/// Outcomes cannot be measured: what fails is the evaluator, with an `E`, the compiler, with a `K`,
/// or a matrix.
#[derive(Debug, thiserror::Error)]
pub enum MeasuringError<E, K> {
    /// Measuring itself.
    #[error(transparent)]
    Collect(#[from] CollectError<E, K>),
    /// A matrix.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

/// What fails of an evaluator and a compiler.
type Failure<E, K> = MeasuringError<<E as Evaluator>::Error, <K as Compiler>::Error>;

/// Programs of a case on their way to the judge.
struct Work<'d, C> {
    case: &'d DatasetCase,
    /// With the reference among them.
    asked: Vec<Program>,
    made: Made<C>,
}

impl<E, K> MeasuredOutcomes<E, K>
where
    E: Evaluator<Code: Clone + Send + Sync + 'static>,
    K: Compiler<Code = E::Code, Error: Send> + Sync,
{
    /// Measures what is not `known` already; `compiler` and `context` are of the evaluator. So many
    /// cases are made ahead of the one that is judged.
    #[must_use]
    pub fn new(
        (evaluator, compiler): (E, K),
        (recorder, context): (Recorder, Context),
        known: Known,
        ahead: NonZeroUsize,
    ) -> Self {
        let (target, device) = (context.device.target, context.device.name.clone());
        let judge = Judge::new(evaluator, recorder, context);
        Self { judge, compiler, target, device, known, ahead }
    }

    /// Programs that were measured, the reference among them.
    #[must_use]
    pub fn measured(&self) -> u64 {
        self.judge.collected.programs
    }
}

/// What became of the programs of one case, which is known from now on; nothing of a case in which
/// nothing can be verified.
fn measure<E: Evaluator, K>(
    judge: &mut Judge<E>,
    known: &mut Known,
    cases: &Cases<'_>,
    work: &Work<'_, E::Code>,
) -> Result<(), MeasuringError<E::Error, K>> {
    let Work { case, asked, made } = work;
    let subject = cases.subject(case)?;
    let evaluation =
        with_subject!(subject, subject => judge.judge(subject, (case.task, asked), made)?);
    let Some(evaluation) = evaluation else { return Ok(()) };
    let mut compared = AgainstReference::new(case.task).map_err(CollectError::from)?;
    let compare = |(program, outcome): (&Program, &Outcome)| {
        let speeds = compared.next(program, outcome);
        let speeds = speeds.map(|speed| speed.map(|speed| speed.relative as f32));
        (program.clone(), Judgement { tier: outcome.tier(), speeds })
    };
    let judged: Vec<_> = asked.iter().zip(&evaluation.outcomes).map(compare).collect();
    for (program, judgement) in without_references(judged) {
        known.add(cases.dataset(), case, &program, judgement);
    }
    Ok(())
}

/// Makes kernels of programs for one case.
fn make<K: SharedCompiler>(
    compiler: &K,
    cases: &Cases<'_>,
    case: &DatasetCase,
    asked: &[Program],
) -> Result<Made<K::Code>, MakingError<K::Error>> {
    fn of<T: Scalar, K: SharedCompiler>(
        compiler: &K,
        subject: &Subject<T>,
        (task, asked): (Task, &[Program]),
    ) -> Result<Made<K::Code>, MakingError<K::Error>> {
        let start = Instant::now();
        let clock = || start.elapsed();
        let matrix = subject.matrix.view();
        let made = Maker::new(matrix, Some(compiler), &clock).make_all(asked);
        made.map_err(|source| {
            let matrix = subject.identity.name.clone();
            MakingError::Make { matrix, task, source }
        })
    }
    with_subject!(cases.subject(case)?, subject => of(compiler, subject, (case.task, asked)))
}

/// Kernels cannot be made.
enum MakingError<K> {
    Matrix(MatrixError),
    Make { matrix: String, task: Task, source: MakeError<K> },
    Reference(TextError),
}

impl<K> From<MatrixError> for MakingError<K> {
    fn from(error: MatrixError) -> Self {
        Self::Matrix(error)
    }
}

impl<E, K> From<MakingError<K>> for MeasuringError<E, K> {
    fn from(error: MakingError<K>) -> Self {
        match error {
            MakingError::Matrix(error) => Self::Matrix(error),
            MakingError::Make { matrix, task, source } => {
                Self::Collect(CollectError::Make { matrix, task, source })
            }
            MakingError::Reference(error) => Self::Collect(CollectError::Reference(error)),
        }
    }
}

impl<E, K> Outcomes for MeasuredOutcomes<E, K>
where
    E: Evaluator<Code: Clone + Send + Sync + 'static>,
    K: Compiler<Code = E::Code, Error: Send> + Sync,
    Failure<E, K>: std::fmt::Debug + std::fmt::Display,
{
    type Error = Failure<E, K>;

    fn judge(
        &mut self,
        cases: &Cases<'_>,
        requests: &[Request<'_>],
    ) -> Result<Judgements, Self::Error> {
        let Self { judge, compiler, known, ahead, .. } = self;
        let (dataset, compiler, next) = (cases.dataset(), &*compiler, AtomicUsize::new(0));
        let wanted: Vec<Vec<Program>> =
            requests.iter().map(|request| known.missing(dataset, request)).collect();
        let work_on = |number: usize| -> Result<Option<Work<'_, E::Code>>, MakingError<K::Error>> {
            let (Some(request), Some(programs)) = (requests.get(number), wanted.get(number)) else {
                return Ok(None);
            };
            let case = request.case;
            let reference = reference(case.task).map_err(MakingError::Reference)?;
            let asked = with_references(&reference, programs);
            let made = make(compiler, cases, case, &asked)?;
            Ok(Some(Work { case, asked, made }))
        };
        let workers = ahead.get().min(requests.len());
        thread::scope(|scope| {
            let (done, finished) = sync_channel(workers);
            for _ in 0..workers {
                let (done, next, work_on, wanted) = (done.clone(), &next, &work_on, &wanted);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if wanted.get(number).is_some_and(Vec::is_empty) {
                            continue;
                        }
                        let work = work_on(number).transpose();
                        let Some(work) = work else { break };
                        // When nobody listens, judging has failed.
                        let failed = work.is_err();
                        if done.send(work).is_err() || failed {
                            break;
                        }
                    }
                });
            }
            drop(done);
            finished.into_iter().try_for_each(|work| measure(judge, known, cases, &work?))
        })?;
        Ok(requests.iter().map(|request| known.all(dataset, request)).collect())
    }

    fn keep(&mut self) -> Result<(), Self::Error> {
        Ok(self.judge.recorder.flush().map_err(CollectError::from)?)
    }

    fn target(&self) -> Option<Target> {
        Some(self.target)
    }

    fn description(&self) -> String {
        format!("measured on {}", self.device)
    }
}
