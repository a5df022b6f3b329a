//! A plan: the kernels of a matrix, made for the calls that are expected.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use sparserl_core::codegen::Epilogue;
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Task, Values};
use sparserl_gpu::run::operator::ForeignStream;

use crate::context::{Context, Searching};
use crate::effort::Effort;
use crate::epilogue;
use crate::kernel::{Known, PlanKernel, Recipe, plain_csr};
use crate::matrix::{Entries, Matrix, with_view};
use crate::options::PlanOptions;
use crate::progress::Progress;
use crate::search;
use crate::status::{Failure, Status};
use crate::workspace::Workspaces;

/// What a handle of a plan stands for.
pub(crate) struct Plan {
    pub(crate) context: Arc<Context>,
    pub(crate) options: PlanOptions,
    pub(crate) epilogue: Option<Epilogue>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) task: Task,
    /// Of the matrix's pattern.
    pub(crate) pattern: String,
    pub(crate) forward: Side,
    /// For Aᵀ.
    pub(crate) backward: Option<Side>,
    /// Memory of the caller's in the place of the kernels' own.
    pub(crate) workspaces: Workspaces,
    /// Products that were asked for.
    pub(crate) calls: AtomicU64,
    /// Held while values are updated, and while a kernel that was made for the first ones takes its
    /// place.
    pub(crate) updates: Mutex<Updates>,
    /// Nobody wants what is still searched for.
    pub(crate) is_abandoned: AtomicBool,
    pub(crate) progress: Arc<Progress>,
}

/// What became of a plan's values.
#[derive(Default)]
pub(crate) struct Updates {
    /// Whether they were ever updated.
    pub(crate) has_new_values: bool,
    /// Whether a graph may update them: it knows the kernels that there were, so none is swapped
    /// any more.
    pub(crate) is_captured: bool,
}

/// The kernels for A, or for Aᵀ.
pub(crate) struct Side {
    current: RwLock<Arc<PlanKernel>>,
    /// A better one that waits for values.
    pending: Mutex<Option<Arc<PlanKernel>>>,
    /// Those that were used before: graphs may have them.
    retired: Mutex<Vec<Arc<PlanKernel>>>,
}

/// A or Aᵀ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    None,
    Transpose,
}

impl Side {
    pub(crate) fn new(kernel: PlanKernel) -> Self {
        Self {
            current: RwLock::new(Arc::new(kernel)),
            pending: Mutex::new(None),
            retired: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn current(&self) -> Arc<PlanKernel> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The current kernel, marked as one that a graph may have.
    pub(crate) fn current_for_graph(&self) -> Arc<PlanKernel> {
        // Marked under the lock: whoever puts another in its place then sees the mark.
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &current.loaded {
            loaded.captured.store(true, Ordering::Relaxed);
        }
        Arc::clone(&current)
    }

    /// Bytes of device memory that its kernels take, those that wait or were used before included.
    fn device_bytes(&self) -> u64 {
        // Held, so that none is missed on its way from one place to another.
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current();
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = pending.iter().chain(retired.iter()).chain(std::iter::once(&current));
        kernels.map(|kernel| kernel.device_bytes()).sum()
    }

    /// The kernel that is best, whether it is in use yet or waits for values.
    pub(crate) fn best(&self) -> Arc<PlanKernel> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.clone().unwrap_or_else(|| self.current())
    }

    /// Puts a better kernel in the place of the current one: at once, or with the next values.
    fn put(&self, kernel: PlanKernel, at_once: bool) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(kernel));
        if at_once {
            self.take_pending();
        }
    }

    /// Begins to use what waits for values, if anything does.
    pub(crate) fn take_pending(&self) {
        // Held until it is in its place, so that it is always seen in one of the two.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(better) = pending.take() {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            let old = std::mem::replace(&mut *current, better);
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(old);
        }
    }

    /// Says why the kernel stays the one it is.
    fn settle(&self, why: &str) {
        self.settle_as(Known { why: why.to_owned(), ..self.current().known.clone() });
    }

    /// Says what was found out about the kernel, which stays the one it is.
    fn settle_as(&self, known: Known) {
        let kernel = self.current();
        *kernel.settled.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// Kernels that graphs may have.
    pub(crate) fn captured(&self) -> Vec<Arc<PlanKernel>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let is_captured = |kernel: &&Arc<PlanKernel>| {
            kernel.loaded.as_ref().is_some_and(|loaded| loaded.captured.load(Ordering::Relaxed))
        };
        retired.iter().filter(is_captured).cloned().collect()
    }
}

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
        let epilogue = epilogue::of(&options, task.operation)?;
        let mut limit = options.memory_limit;
        let mut side = |op: Op| {
            let kernel = csr_kernel(context, matrix, op, &options, epilogue.as_ref(), limit, task)?;
            if let Some(limit) = &mut limit {
                *limit = limit.saturating_sub(kernel.device_bytes());
            }
            Ok::<_, Failure>(Side::new(kernel))
        };
        let forward = side(Op::None)?;
        let backward = options.transpose_too.then(|| side(Op::Transpose)).transpose()?;
        if options.values_variable && context.gpu.is_ok() {
            context.scatter.prepare(context, matrix.entries.dtype())?;
        }
        let plan =
            Arc::new(Self::new(context, matrix, options, epilogue, forward, backward, created));
        crate::verbose::note();
        plan.begin(matrix, searching)?;
        Ok(plan)
    }

    /// A plan of kernels that are there.
    pub(crate) fn new(
        context: &Arc<Context>,
        matrix: &Matrix,
        options: PlanOptions,
        epilogue: Option<Epilogue>,
        forward: Side,
        backward: Option<Side>,
        created: Instant,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            epilogue,
            rows: matrix.entries.rows(),
            cols: matrix.entries.cols(),
            nnz: matrix.entries.nnz(),
            task: task(&options, matrix.entries.dtype()),
            pattern: matrix.pattern.clone(),
            options,
            forward,
            backward,
            workspaces: Workspaces::default(),
            calls: AtomicU64::new(0),
            updates: Mutex::new(Updates::default()),
            is_abandoned: AtomicBool::new(false),
            progress: Arc::new(Progress::new(created)),
        }
    }

    /// Searches for better kernels: in the background where calls can be made meanwhile and may
    /// change, before this returns otherwise.
    fn begin(self: &Arc<Self>, matrix: &Arc<Matrix>, searching: Searching) -> Result<(), Failure> {
        let has_gpu = self.context.gpu.is_ok();
        let seconds = self.forward.current().known.predicted;
        let effort = Effort::of(&self.options, seconds, has_gpu);
        if effort == Effort::None {
            let why = match self.options.expected_calls {
                0 => "plain CSR: no calls are expected, so nothing was searched for".to_owned(),
                calls => format!("plain CSR: {calls} calls are too few to pay for a search"),
            };
            self.sides().for_each(|side| side.settle(&why));
            return Ok(());
        }
        self.progress.begin();
        if !has_gpu || self.options.deterministic {
            let searched = self.search(matrix, effort);
            self.progress.end();
            return searched;
        }
        let (plan, progress) = (Arc::clone(self), Arc::clone(&self.progress));
        let matrix = Arc::clone(matrix);
        let background = move || {
            if let Err(failure) = plan.search(&matrix, effort) {
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
    fn search(&self, matrix: &Matrix, effort: Effort) -> Result<(), Failure> {
        for (side, op) in self.sides().zip([Op::None, Op::Transpose]) {
            if self.is_abandoned.load(Ordering::Relaxed) {
                break;
            }
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(
                || with_view!(entries(matrix, op), view => search::better(self, op, matrix, view, effort)),
            ));
            let found = found.unwrap_or_else(|panic| {
                let what = crate::status::message(&*panic);
                Err(Failure::internal(format_args!("a defect of SparseRL: {what}")))
            });
            match found {
                Ok(search::Found::Better(kernel)) => {
                    self.context.say(&kernel.known.why);
                    // What was packed has the values that planning began with.
                    let updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
                    side.put(*kernel, !updates.has_new_values);
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

    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        std::iter::once(&self.forward).chain(&self.backward)
    }

    pub(crate) fn side(&self, op: Op) -> Result<&Side, Failure> {
        match op {
            Op::None => Ok(&self.forward),
            Op::Transpose => self.backward.as_ref().ok_or_else(|| {
                let text = "the plan has no kernel for the transposed matrix: make it with \
                            SPARSERL_OPTION_TRANSPOSE_TOO = 1";
                Failure::new(Status::Unsupported, text)
            }),
        }
    }

    /// Refuses a stream of another device.
    pub(crate) fn check_stream(&self, stream: ForeignStream) -> Result<(), Failure> {
        let gpu = self.context.gpu()?;
        if gpu.device.owns(stream)? {
            return Ok(());
        }
        let text =
            format!("the stream is not one of device {}, which the plan is for", gpu.ordinal);
        Err(Failure::new(Status::WrongDevice, text))
    }

    /// Bytes of device memory that another kernel may take.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        // Those that are there stay: a graph may have them.
        let used: u64 = self.sides().map(Side::device_bytes).sum();
        self.options.memory_limit.map(|limit| limit.saturating_sub(used))
    }

    /// How a kernel of this plan is made.
    pub(crate) fn recipe<'a>(&'a self, origins: Option<&'a [u64]>) -> Recipe<'a> {
        Recipe {
            context: &self.context,
            epilogue: self.epilogue.as_ref(),
            origins: self.options.values_variable.then_some(origins),
            memory_limit: self.memory_left(),
        }
    }
}

fn task(options: &PlanOptions, dtype: Dtype) -> Task {
    let values = if options.values_variable { Values::Variable } else { Values::Fixed };
    let operation = match options.columns {
        Some(columns) => Operation::SpMM { columns },
        None => Operation::SpMV,
    };
    Task::new(operation, dtype).with_values(values)
}

/// The entries of A or Aᵀ.
pub(crate) fn entries(matrix: &Matrix, op: Op) -> &Entries {
    match op {
        Op::None => &matrix.entries,
        Op::Transpose => &matrix.transposed().0,
    }
}

/// Which entry of A each entry is, for Aᵀ.
pub(crate) fn origins(matrix: &Matrix, op: Op) -> Option<&[u64]> {
    match op {
        Op::None => None,
        Op::Transpose => Some(&matrix.transposed().1),
    }
}

/// The kernel that is there at once.
fn csr_kernel(
    context: &Context,
    matrix: &Matrix,
    op: Op,
    options: &PlanOptions,
    epilogue: Option<&Epilogue>,
    memory_limit: Option<u64>,
    task: Task,
) -> Result<PlanKernel, Failure> {
    fn make<T: Scalar>(
        recipe: &Recipe<'_>,
        matrix: CsrView<'_, T>,
        task: Task,
    ) -> Result<PlanKernel, Failure> {
        let stats = Arc::new(MatrixStats::new(matrix));
        let costs = CostModel::new(stats, task, recipe.context.target);
        let (program, predicted) = plain_csr(&costs, task)?;
        let why = "plain CSR, while better programs are searched for".to_owned();
        recipe.make(
            matrix,
            &program,
            Known { predicted, csr_predicted: predicted, why, ..Known::default() },
        )
    }
    let origins = options.values_variable.then(|| origins(matrix, op));
    let recipe = Recipe { context, epilogue, origins, memory_limit };
    with_view!(entries(matrix, op), view => make(&recipe, view, task))
}
