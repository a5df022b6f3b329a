//! Measures programs on the matrices of a corpus, for training and for fitting.
//!
//! ```text
//! recipe ─► matrix ─► Experiment ─► programs ─► Evaluator ─► Recorder
//!  shard                   └───────────────◄────────┘
//! ```
//!
//! Which programs are measured, in view of what was found before, is the [`Experiment`]'s business.
//! A shard is the matrix of one recipe with every task. Several [threads](Collector::run) make
//! matrices, programs and kernels at the same time, each of a shard of its own, so that the one
//! evaluator always has something to judge. A task of which nothing can be verified on a matrix, as
//! where its results overflow, is passed over. The [`reference()`] program is measured before every
//! [`BETWEEN_REFERENCES`] others, so that what drifts can be taken out of their times. A recording
//! names its matrix by the recipe.

mod check;
mod judge;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sparserl_core::decode::{PolicyError, PolicyInput};
use sparserl_core::kernel::Compiler;
use sparserl_core::language::{Program, TextError};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator, Outcome};
use sparserl_core::pipeline::{MakeError, Maker};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_gpu::store::recording::{Context, Recorder, RecordingError};
use sparserl_onnx_models::reference::reference;

pub use check::{CheckError, check};
pub use judge::BETWEEN_REFERENCES;
pub(crate) use judge::{Judge, Subject, with_references, without_references};

use crate::corpus::{BuildError, RealMatrices, Recipe, Recipes};
use crate::shards::{Claim, ShardError, Shards};

/// Recordings are written, and their shards done, after so long: a lost process loses no more.
const FLUSH_AFTER: Duration = Duration::from_secs(60);

/// Collecting stopped: what failed is the evaluator, with an `E`, the compiler, with a `K`, or one
/// of those below.
#[derive(Debug, thiserror::Error)]
pub enum CollectError<E, K> {
    /// What measures is broken.
    #[error("{task} on {matrix}: {source}")]
    Evaluator {
        /// The text of the matrix's recipe.
        matrix: String,
        /// What was to be measured.
        task: Task,
        /// The reason.
        source: E,
    },
    /// Kernels cannot be made.
    #[error("{task} on {matrix}: {source}")]
    Make {
        /// The text of the matrix's recipe.
        matrix: String,
        /// What they were to compute.
        task: Task,
        /// The reason.
        source: MakeError<K>,
    },
    /// Shards cannot be shared.
    #[error(transparent)]
    Shards(#[from] ShardError),
    /// Recordings cannot be written.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// A real matrix cannot be read.
    #[error("recipe {index}: {source}")]
    Real {
        /// Number of the recipe.
        index: u64,
        /// The reason.
        source: BuildError,
    },
    /// A policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The language lacks the reference program.
    #[error("no reference program: {0}")]
    Reference(#[from] TextError),
    /// What the experiment wanted to keep could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Decides which programs are measured.
pub trait Experiment: Sync {
    /// Has programs measured for the matrix and task of `input`, by calls of `measure`, which gives
    /// an outcome for each of the programs of a call. Shard and recipe are the matrix's; what is
    /// random follows from `seed`.
    ///
    /// # Errors
    /// When it cannot go on, or when `measure` says that the run is over.
    fn run(
        &self,
        place: (u64, &Recipe),
        input: &PolicyInput<'_>,
        seed: u64,
        measure: &mut Measure<'_>,
    ) -> Result<(), Stopped>;
}

/// Measures programs: an outcome for each.
pub type Measure<'a> = dyn FnMut(&[Program]) -> Result<Vec<Outcome>, Stopped> + 'a;

/// Why an [`Experiment`] does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Nobody judges any more.
    #[error("the run is over")]
    Over,
    /// Nothing can be verified for this matrix and task; the run goes on with others.
    #[error("nothing can be verified for this matrix and task")]
    Unverifiable,
    /// A policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// What it wanted to keep could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// What one run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Matrices.
    pub matrices: u64,
    /// Programs that were judged, the reference among them.
    pub programs: u64,
    /// Judged programs that were right.
    pub right: u64,
    /// Time that the evaluator was at work; for the rest of it, it waited for kernels.
    pub judging: Duration,
}

/// Where a run stands, for whoever shows it.
pub struct Progress<'a> {
    /// The shard that is done.
    pub shard: u64,
    /// Its matrix.
    pub recipe: &'a Recipe,
    /// So far.
    pub collected: Collected,
}

/// Collects on one evaluator what others have not collected yet.
#[derive(Debug)]
pub struct Collector<'a, X, E, K> {
    assignment: Assignment<'a, X, K>,
    judge: Judge<E>,
}

/// What is measured on which matrices, and how its kernels are made.
#[derive(Debug)]
struct Assignment<'a, X, K> {
    experiment: X,
    tasks: &'a [Task],
    recipes: &'a Recipes<'a>,
    compiler: K,
    target: Target,
}

/// Why a run ends early.
type Failure<E, K> = CollectError<<E as Evaluator>::Error, <K as Compiler>::Error>;

/// Has the judge measure something; an error ends the run.
type Job<'a, E, F> = Box<dyn FnOnce(&mut Judge<E>) -> Result<(), F> + Send + 'a>;

/// What a producer has to say to the judge.
enum Message<'a, E, F> {
    /// Measure something.
    Judge(Job<'a, E, F>),
    /// A shard is done but for writing.
    Done(Claim, Recipe),
    /// Something else than a program failed.
    Failed(F),
}

/// A thread that makes matrices, programs and kernels, of one shard at a time.
struct Producer<'a, X, E: Evaluator, K: Compiler> {
    assignment: &'a Assignment<'a, X, K>,
    judge: Sender<Message<'a, E, Failure<E, K>>>,
}

impl<'a, X, E, K> Collector<'a, X, E, K>
where
    X: Experiment,
    E: Evaluator<Code: Clone + Send + Sync + 'static, Error: Send>,
    K: Compiler<Code = E::Code, Error: Send> + Sync,
{
    /// A collector; `compiler`, `target` and `context` are of the evaluator.
    #[must_use]
    pub fn new(
        experiment: X,
        (recipes, tasks): (&'a Recipes<'a>, &'a [Task]),
        (evaluator, compiler): (E, K),
        target: Target,
        (recorder, context): (Recorder, Context),
    ) -> Self {
        let assignment = Assignment { experiment, tasks, recipes, compiler, target };
        Self { assignment, judge: Judge::new(evaluator, recorder, context) }
    }

    /// Takes shards until there are none or `go_on` says no; what is begun is finished. So many
    /// threads make matrices, programs and kernels `ahead`, each of a shard of its own; the calling
    /// one judges.
    ///
    /// # Errors
    /// When something other than a program fails. Finished matrices are recorded.
    pub fn run(
        &mut self,
        shards: &mut Shards,
        ahead: NonZeroUsize,
        go_on: impl Fn() -> bool + Sync,
        mut observe: impl FnMut(&Progress<'_>),
    ) -> Result<Collected, Failure<E, K>> {
        let Self { assignment, judge } = self;
        judge.collected = Collected::default();
        let (assignment, go_on, shards) = (&*assignment, &go_on, &Mutex::new(shards));
        thread::scope(|scope| {
            let (to_judge, messages) = channel();
            for _ in 0..ahead.get() {
                let producer = Producer { assignment, judge: to_judge.clone() };
                scope.spawn(move || {
                    while go_on() {
                        let claim = lock(shards).claim().transpose();
                        let Some(claim) = claim else { break };
                        if producer.work_on(claim.map_err(Into::into)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(to_judge);
            // When this returns, the producers find that nobody listens, and end.
            judge.serve(&messages, &mut observe)
        })
    }
}

impl<E: Evaluator> Judge<E> {
    /// Does what it is asked to, and writes what was found from time to time.
    fn serve<'a, K>(
        &mut self,
        messages: &Receiver<Message<'a, E, CollectError<E::Error, K>>>,
        observe: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Collected, CollectError<E::Error, K>>
    where
        E: 'a,
        K: 'a,
    {
        let mut unwritten: Vec<Claim> = Vec::new();
        let mut flushed = Instant::now();
        loop {
            let left = FLUSH_AFTER.saturating_sub(flushed.elapsed());
            match messages.recv_timeout(left) {
                Ok(Message::Judge(job)) => {
                    let start = Instant::now();
                    job(self)?;
                    self.collected.judging += start.elapsed();
                }
                Ok(Message::Failed(error)) => return Err(error),
                Ok(Message::Done(claim, recipe)) => {
                    self.collected.matrices += 1;
                    let collected = self.collected;
                    observe(&Progress { shard: claim.number(), recipe: &recipe, collected });
                    unwritten.push(claim);
                    for claim in &unwritten {
                        // One that cannot be renewed is lost to another process, which does no
                        // harm.
                        let _ = claim.renew();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if flushed.elapsed() >= FLUSH_AFTER {
                self.write(&mut unwritten)?;
                flushed = Instant::now();
            }
        }
        self.write(&mut unwritten)?;
        Ok(self.collected)
    }

    /// Shards are done once their recordings are on the disk.
    fn write<K>(&mut self, unwritten: &mut Vec<Claim>) -> Result<(), CollectError<E::Error, K>> {
        self.recorder.flush()?;
        for claim in unwritten.drain(..) {
            claim.finish()?;
        }
        Ok(())
    }
}

impl<'a, X, E, K> Producer<'a, X, E, K>
where
    X: Experiment,
    E: Evaluator<Code: Clone + Send + Sync + 'static, Error: Send>,
    K: Compiler<Code = E::Code, Error: Send> + Sync,
{
    fn say(&self, message: Message<'a, E, Failure<E, K>>) -> Result<(), Stopped> {
        self.judge.send(message).map_err(|_| Stopped::Over)
    }

    /// Ends the run.
    fn fail(&self, error: impl Into<Failure<E, K>>) -> Stopped {
        // Where nobody listens, it has ended.
        drop(self.say(Message::Failed(error.into())));
        Stopped::Over
    }

    fn work_on(&self, claim: Result<Claim, Failure<E, K>>) -> Result<(), Stopped> {
        let claim = claim.map_err(|error| self.fail(error))?;
        let (shard, recipes) = (claim.number(), self.assignment.recipes);
        let Some(recipe) = recipes.recipe(shard) else { return Err(Stopped::Over) };
        claim.renew_while(|| {
            let matrix = usable(&recipe, recipes.real())
                .map_err(|source| self.fail(CollectError::Real { index: shard, source }))?;
            match matrix {
                Some(matrix) => self.collect((shard, &recipe), &matrix),
                None => Ok(()),
            }
        })?;
        self.say(Message::Done(claim, recipe))
    }

    fn collect(&self, place: (u64, &Recipe), matrix: &Csr<f64>) -> Result<(), Stopped> {
        let (_, recipe) = place;
        let value_source = recipe.values.source();
        let identity = Arc::new(identity(recipe.to_string(), matrix.view()));
        for dtype in dtypes(self.assignment.tasks) {
            with_scalar!(dtype, T => {
                if let Some(matrix) = held_in::<T>(matrix) {
                    let (matrix, identity) = (Arc::new(matrix), Arc::clone(&identity));
                    self.measure_all(place, &Subject { matrix, identity, value_source })?;
                }
            });
        }
        Ok(())
    }

    /// Measures every task whose matrix is of this type; what is asked of the matrix is asked once.
    fn measure_all<T: Scalar>(
        &self,
        place: (u64, &Recipe),
        subject: &Subject<T>,
    ) -> Result<(), Stopped> {
        let (shard, _) = place;
        let Assignment { experiment, tasks, recipes, target, .. } = self.assignment;
        let seed = recipes.seed(shard);
        for_each_task(&subject.matrix, tasks, *target, |input| {
            let reference = reference(input.task).map_err(|error| self.fail(error))?;
            let mut measure = |programs: &[Program]| self.ask(subject, &reference, programs);
            let done = experiment.run(place, input, seed, &mut measure);
            done.or_else(|stopped| match stopped {
                Stopped::Unverifiable => Ok(()),
                Stopped::Over => Err(Stopped::Over),
                Stopped::Policy(error) => Err(self.fail(error)),
                Stopped::Write { path, source } => {
                    Err(self.fail(CollectError::Write { path, source }))
                }
            })
        })
    }

    /// Has programs judged, with the reference before every few of them.
    fn ask<T: Scalar>(
        &self,
        subject: &Subject<T>,
        reference: &Program,
        programs: &[Program],
    ) -> Result<Vec<Outcome>, Stopped> {
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let (task, asked) = (reference.task, with_references(reference, programs));
        let matrix = subject.matrix.view();
        let start = Instant::now();
        let clock = || start.elapsed();
        let maker = Maker::new(matrix, Some(&self.assignment.compiler), &clock);
        let made = maker.make_all(&asked).map_err(|source| {
            let matrix = subject.identity.name.clone();
            self.fail(CollectError::Make { matrix, task, source })
        })?;
        let (answer, answered) = sync_channel(1);
        let subject = subject.clone();
        self.say(Message::Judge(Box::new(move |judge: &mut Judge<E>| {
            let evaluation = judge.judge(&subject, (task, &asked), &made)?;
            // Who asked waits for it, unless the run is over.
            drop(answer.send(evaluation));
            Ok(())
        })))?;
        let evaluation: Option<Evaluation> = answered.recv().map_err(|_| Stopped::Over)?;
        let evaluation = evaluation.ok_or(Stopped::Unverifiable)?;
        Ok(without_references(evaluation.outcomes).collect())
    }
}

/// The matrix of a recipe; `None` where what its steps came to is no use, since there are others.
fn usable(recipe: &Recipe, real: &RealMatrices) -> Result<Option<Csr<f64>>, BuildError> {
    match recipe.build(real) {
        Ok(matrix) => Ok(Some(matrix)),
        Err(error @ (BuildError::Real(_) | BuildError::OtherMatrix { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The types that matrices of these tasks have.
fn dtypes(tasks: &[Task]) -> impl Iterator<Item = Dtype> {
    let is_asked = |dtype: &Dtype| tasks.iter().any(|task| task.precision.matrix() == *dtype);
    Dtype::ALL.into_iter().filter(is_asked)
}

/// The matrix in another type; `None` where that does not hold its values, so that nobody computes
/// with them in it.
fn held_in<T: Scalar>(matrix: &Csr<f64>) -> Option<Csr<T>> {
    matrix.cast().ok()
}

/// Calls `run` with what policies are given for each task whose matrix is of this type. What is
/// asked of the matrix is asked once.
fn for_each_task<'m, T: Scalar, F>(
    matrix: &'m Csr<T>,
    tasks: &[Task],
    target: Target,
    mut run: impl FnMut(&PolicyInput<'m>) -> Result<(), F>,
) -> Result<(), F> {
    let mut input: Option<PolicyInput<'m>> = None;
    for &task in tasks.iter().filter(|task| task.precision.matrix() == T::DTYPE) {
        let input = input.get_or_insert_with(|| {
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            PolicyInput::new(stats, task, target)
        });
        input.task = task;
        run(input)?;
    }
    Ok(())
}

/// Locks what stays whole whoever panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
