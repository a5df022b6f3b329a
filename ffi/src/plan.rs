//! A plan: the kernels of a matrix.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sparserl_core::task::{Dtype, Operation, Task, Values};

use crate::code::Recipe;
use crate::context::Context;
use crate::copies::{Copies, copies_bytes};
use crate::handle::{Handles, Kind};
use crate::matrix::Matrix;
use crate::op::Op;
use crate::options::PlanOptions;
use crate::pattern::Pattern;
use crate::progress::Progress;
use crate::side::Side;
use crate::status::{Failure, Status};
use crate::workspace::Workspaces;

/// The live ones.
pub(crate) static PLANS: Handles<Plan> = Handles::new(Kind::Plan);

/// What a handle of a plan stands for.
pub(crate) struct Plan {
    pub(crate) context: Arc<Context>,
    pub(crate) options: PlanOptions,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) task: Task,
    /// Of the matrix's pattern.
    pub(crate) pattern: Pattern,
    pub(crate) forward: Side,
    /// For Aᵀ.
    pub(crate) backward: Option<Side>,
    /// Those of column-major operands, on a GPU.
    pub(crate) copies: Option<Copies>,
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

impl Plan {
    /// A plan of kernels that are there.
    pub(crate) fn new(
        context: &Arc<Context>,
        matrix: &Matrix,
        options: PlanOptions,
        forward: Side,
        backward: Option<Side>,
        created: Instant,
    ) -> Result<Self, Failure> {
        let (rows, cols) = (matrix.entries.rows(), matrix.entries.cols());
        let task = task(&options, matrix.entries.dtype());
        Ok(Self {
            copies: Copies::new(context, options.dense, task, (rows, cols))?,
            context: Arc::clone(context),
            rows,
            cols,
            nnz: matrix.entries.nnz(),
            task,
            pattern: matrix.kept_pattern(),
            options,
            forward,
            backward,
            workspaces: Workspaces::default(),
            calls: AtomicU64::new(0),
            updates: Mutex::new(Updates::default()),
            is_abandoned: AtomicBool::new(false),
            progress: Arc::new(Progress::new(created)),
        })
    }

    /// Bytes of the copies of column-major operands.
    pub(crate) fn copies_bytes(&self) -> u64 {
        copies_bytes(self.options.dense, self.task, (self.rows, self.cols))
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

    /// Bytes of device memory that another kernel may take.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        // Those that are there stay: a graph may have them.
        let used: u64 = self.sides().map(Side::device_bytes).sum();
        self.options.memory_limit.map(|limit| limit.saturating_sub(used + self.copies_bytes()))
    }

    /// Whether its context waits for the search to end, where that goes on in the background.
    pub(crate) fn is_waited_for(&self) -> bool {
        let in_background = self.context.gpu.is_ok() && !self.options.deterministic;
        in_background && self.context.is_closed()
    }

    /// How a kernel of a side of this plan is made.
    pub(crate) fn recipe<'a>(
        &'a self,
        side: &'a Side,
        origins: impl FnOnce() -> Option<&'a [u64]>,
    ) -> Recipe<'a> {
        Recipe {
            context: &self.context,
            epilogue: side.epilogue.as_ref(),
            dense: self.options.dense,
            origins: self.options.values_variable.then(origins),
            memory_limit: self.memory_left(),
        }
    }
}

/// What its kernels compute.
pub(crate) fn task(options: &PlanOptions, dtype: Dtype) -> Task {
    let values = if options.values_variable { Values::Variable } else { Values::Fixed };
    let operation = match options.columns {
        Some(columns) => Operation::SpMM { columns },
        None => Operation::SpMV,
    };
    Task::new(operation, dtype).with_values(values)
}
