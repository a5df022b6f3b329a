//! How a plan is made: plain CSR at once, and what is better when a search has found it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use sparserl_core::codegen::Epilogue;
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::structure::{Answers, MatrixStats};
use sparserl_core::task::Task;

use crate::code::Recipe;
use crate::context::{Context, Searching};
use crate::copies::{copies_bytes, limit_left};
use crate::effort::{self, Effort};
use crate::epilogue::Epilogues;
use crate::kernel::{Known, PlanKernel};
use crate::matrix::{Matrix, with_view};
use crate::op::Op;
use crate::options::PlanOptions;
use crate::plain::plain_csr;
use crate::plan::{Plan, task};
use crate::side::{Side, entries, origins};
use crate::status::{Failure, Status, panicked};
use crate::{search, verbose};

impl Plan {
    /// Makes a plan, and begins to search for a better one; `searching` is kept until that ends.
    pub(crate) fn create(
        context: &Arc<Context>,
        matrix: &Arc<Matrix>,
        options: PlanOptions,
        searching: Searching,
    ) -> Result<Arc<Self>, Failure> {
        let created = Instant::now();
        let task = task(&options, matrix.entries.dtype());
        let epilogues = Epilogues::of(&options, task.operation)?;
        let side = |op: Op, limit: Option<u64>| {
            let epilogue = epilogues.side(op);
            let made = csr_kernel(context, matrix, op, &options, epilogue, limit, task);
            let (kernel, answers) = made.map_err(|failure| op.naming_side(failure))?;
            Ok::<_, Failure>((Side::new(kernel, epilogue.cloned()), answers))
        };
        let size = (matrix.entries.rows(), matrix.entries.cols());
        let copies = copies_bytes(options.dense, task, size);
        let (forward, backward) = match limit_left(options.memory_limit, copies)? {
            None => std::thread::scope(|scope| {
                let backward =
                    options.transpose_too.then(|| scope.spawn(|| side(Op::Transpose, None)));
                let forward = side(Op::None, None);
                let backward = backward.map(|made| made.join().map_err(panicked)?);
                Ok::<_, Failure>((forward?, backward.transpose()?))
            })?,
            // The one may take what the other leaves.
            Some(limit) => {
                let forward = side(Op::None, Some(limit))?;
                let left = limit.saturating_sub(forward.0.device_bytes());
                let backward = options.transpose_too.then(|| side(Op::Transpose, Some(left)));
                (forward, backward.transpose()?)
            }
        };
        let (forward, own) = forward;
        let mut answers = vec![own];
        let backward = backward.map(|(side, own)| {
            answers.push(own);
            side
        });
        if let (true, Ok(gpu)) = (options.values_variable, &context.gpu) {
            context.scatter.prepare(&context.compiler, &gpu.device, matrix.entries.dtype())?;
        }
        let plan = Self::new(context, matrix, options, forward, backward, created).map(Arc::new)?;
        verbose::note();
        plan.begin(matrix, answers, searching)?;
        Ok(plan)
    }

    /// Searches for better kernels: in the background where calls can be made meanwhile and may
    /// change, before this returns otherwise. `answers` are statistics of the matrix of each
    /// side.
    fn begin(
        self: &Arc<Self>,
        matrix: &Arc<Matrix>,
        answers: Vec<Arc<Answers>>,
        searching: Searching,
    ) -> Result<(), Failure> {
        let has_gpu = self.context.gpu.is_ok();
        let seconds = self.forward.current().known.predicted;
        // What programs differ in is how they read entries.
        let effort = match self.nnz {
            0 => Effort::None,
            _ => Effort::of(&self.options, seconds, has_gpu),
        };
        if effort == Effort::None {
            let why = match (self.options.expected_calls, self.nnz) {
                (0, _) => {
                    "plain CSR: no calls are expected, so nothing was searched for".to_owned()
                }
                (_, 0) => {
                    "plain CSR: the matrix has no entries, so nothing was searched for".to_owned()
                }
                (calls, _) => effort::too_few(calls),
            };
            self.sides().for_each(|side| side.settle(&why));
            return Ok(());
        }
        self.progress.begin();
        if !has_gpu || self.options.deterministic {
            let searched = self.search(matrix, answers, effort);
            self.progress.end();
            return searched;
        }
        let (plan, progress) = (Arc::clone(self), Arc::clone(&self.progress));
        let matrix = Arc::clone(matrix);
        let background = move || {
            if let Err(failure) = plan.search(&matrix, answers, effort) {
                plan.context.say(&failure.text);
            }
            // Whoever waits finds nothing at work, and nothing kept.
            drop((plan, matrix));
            progress.end();
            drop(searching);
        };
        let spawned = std::thread::Builder::new().name("sparserl-search".into()).spawn(background);
        if let Err(error) = spawned {
            let why = format!("plain CSR: nothing searches in the background: {error}");
            self.sides().for_each(|side| side.settle(&why));
            self.progress.end();
        }
        Ok(())
    }

    /// Finds a better kernel for each side. Whatever goes wrong, there is plain CSR; but not where
    /// every run has to end with the same kernel, and memory did not suffice in this one.
    fn search(
        &self,
        matrix: &Matrix,
        answers: Vec<Arc<Answers>>,
        effort: Effort,
    ) -> Result<(), Failure> {
        for ((side, op), answers) in self.sides().zip([Op::None, Op::Transpose]).zip(answers) {
            if self.is_abandoned.load(Ordering::Relaxed) {
                break;
            }
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(
                || with_view!(entries(matrix, op), view => search::better(self, op, matrix, (view, answers), effort)),
            ));
            let found = found.unwrap_or_else(|panic| Err(panicked(panic)));
            match found {
                Ok(search::Found::Better(kernel)) => {
                    self.context.say(&kernel.known.why);
                    // What was packed has the values that planning began with.
                    let updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
                    side.put(*kernel, !updates.has_new_values);
                    if updates.is_captured {
                        side.keep_current();
                    }
                }
                Ok(search::Found::Nothing(why)) => side.settle(&why),
                Ok(search::Found::PlainCsr(known)) => side.settle_as(known),
                Err(failure)
                    if self.options.deterministic && failure.status == Status::OutOfMemory =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    let why = format!("plain CSR: {}", failure.text);
                    self.context.say(&why);
                    side.settle(&why);
                }
            }
        }
        Ok(())
    }
}

/// The kernel that is there at once, and what was computed of the matrix to choose it.
fn csr_kernel(
    context: &Context,
    matrix: &Matrix,
    op: Op,
    options: &PlanOptions,
    epilogue: Option<&Epilogue>,
    memory_limit: Option<u64>,
    task: Task,
) -> Result<(PlanKernel, Arc<Answers>), Failure> {
    fn make<T: Scalar>(
        recipe: &Recipe<'_>,
        matrix: CsrView<'_, T>,
        task: Task,
    ) -> Result<(PlanKernel, Arc<Answers>), Failure> {
        let stats = Arc::new(MatrixStats::new(matrix));
        let answers = stats.answers();
        let costs = CostModel::new(stats, task, recipe.context.target);
        let mut last = Err(Failure::internal("there is no plain CSR"));
        for (program, predicted) in plain_csr(&costs, task) {
            let why = "plain CSR, while better programs are searched for".to_owned();
            let known = Known { predicted, csr_predicted: predicted, why, ..Known::default() };
            last = recipe.make(matrix, &program, known);
            // The next one may take less; a workspace may be more than there are for any plan.
            let takes_less = [Status::MemoryLimit, Status::Unsupported];
            if !matches!(&last, Err(failure) if takes_less.contains(&failure.status)) {
                break;
            }
        }
        Ok((last?, answers))
    }
    if op == Op::Transpose {
        matrix.has_room_to_transpose()?;
    }
    let origins = options.values_variable.then(|| origins(matrix, op));
    let recipe = Recipe { context, epilogue, dense: options.dense, origins, memory_limit };
    with_view!(entries(matrix, op), view => make(&recipe, view, task))
}
