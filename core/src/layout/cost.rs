use alloc::sync::Arc;

use super::{LayoutModule, Mapping, Node, Part, Program, each_layout};
use crate::structure::{MatrixStats, RowSetId, Rows, SplitRule};
use crate::syntax::grammar::Site;
use crate::target::Target;
use crate::task::Task;

/// Prices programs for one matrix, task and GPU.
#[derive(Clone, Debug)]
pub struct CostModel<'m> {
    stats: Arc<MatrixStats<'m>>,
    task: Task,
    target: Target,
}

/// Loop iterations of a part, by warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpSteps {
    /// Number of warps.
    pub(crate) warps: u64,
    /// Over all warps.
    pub(crate) total: u64,
    /// Of the warp with most: the critical path.
    pub(crate) longest: u64,
}

/// What a part is predicted to cost, before it is packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartCost {
    /// Bytes of the matrix arrays that one product reads.
    pub matrix_bytes: u64,
    /// Warp-wide memory transactions (up to 128 bytes each) that the load units handle.
    pub transactions: f64,
    /// Loop iterations of the warp with most, divided by those in flight.
    pub critical_steps: f64,
    /// Seconds before the first entry and after the last: the layout's chain of dependent loads.
    pub latency: f64,
    workspace_bytes: u64,
    warps: f64,
    warp_steps: f64,
    longest: f64,
}

// The constants were fitted to the times of 1,900 programs on an H200 with a cold L2, 2026-11-21;
// other GPUs are taken to have the same share of their bandwidth, and load units that are as fast
// on each multiprocessor. The model ranks programs against each other, and its seconds are no
// claim.
/// Share of the data sheet's bandwidth that large kernels reach.
const ATTAINED_BANDWIDTH: f64 = 0.875;
/// Transactions of an H200.
const TRANSACTIONS_PER_SECOND: f64 = 1.3e11;
const SATURATING_WARPS_PER_MULTIPROCESSOR: f64 = 16.0;
const SECONDS_PER_STEP: f64 = 0.65e-6;
const SECTORS_PER_TRANSACTION: f64 = 4.0;
/// Matrices of more than this share of the L2 stream through it; of smaller ones, enough is found
/// there again.
const CACHED_SHARE: (u64, u64) = (8, 15);

impl<'m> CostModel<'m> {
    /// A model for the matrix of `stats`.
    #[must_use]
    pub fn new(stats: Arc<MatrixStats<'m>>, task: Task, target: Target) -> Self {
        Self { stats, task, target }
    }

    /// Statistics of the matrix.
    #[must_use]
    pub fn stats(&self) -> &MatrixStats<'m> {
        &self.stats
    }

    /// What the programs compute.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// Bytes of the matrix as plain CSR with 32-bit columns: what generic kernels read.
    #[must_use]
    pub fn csr_bytes(&self) -> u64 {
        let (rows, nnz) = (self.stats.rows_count() as u64, self.stats.nnz() as u64);
        let value = self.task.precision.matrix().size() as u64;
        nnz * (4 + value) + (rows + 1) * self.stats.offset_bytes()
    }

    /// True when the matrix is too large to be found in the L2 again.
    pub(crate) fn streams(&self) -> bool {
        let (share, whole) = CACHED_SHARE;
        u128::from(self.csr_bytes()) * u128::from(whole)
            > u128::from(self.target.l2_bytes) * u128::from(share)
    }

    /// Steps of warps in which `lanes × stride` threads share each row.
    pub(crate) fn row_steps(&self, site: Site, lanes: u32, stride: u32) -> WarpSteps {
        let at_once = 32 / (lanes * stride);
        let rows = self.stats.row_groups(site.rows, site.order, at_once.max(1), lanes);
        // Offsets, the reduction and the store cost about two steps more.
        let total = rows.steps + 2 * rows.groups;
        WarpSteps { warps: rows.groups, total, longest: rows.longest }
    }

    /// Predicted cost of a part at its site.
    #[must_use]
    pub fn part_cost(&self, site: Site, part: &Part) -> PartCost {
        let cost = each_layout!(&part.layout, layout => layout.cost(site, self));
        match &*self.stats.ordered(site.rows, site.order) {
            Rows::List(rows) => cost.listed(rows.len() as u64),
            Rows::Range { .. } => cost,
        }
    }

    /// Predicted time of a part at its site.
    #[must_use]
    pub fn part_time(&self, site: Site, part: &Part) -> PartTime {
        self.part_cost(site, part).time(&self.target)
    }

    /// Predicted cost of a program; parts without rows cost nothing.
    #[must_use]
    pub fn cost(&self, program: &Program) -> Cost {
        let columns = u64::from(self.task.operation.columns());
        let vectors = (self.stats.rows_count() + self.stats.cols()) as u64;
        let mut cost = Cost {
            matrix_bytes: 0,
            dense_bytes: vectors * columns * self.task.precision.dense().size() as u64,
            flops: 2 * self.stats.nnz() as u64 * columns,
            seconds: 0.0,
        };
        let block = program.block.threads();
        cost.seconds = self.node_time(&program.body, RowSetId::ALL, block, &mut cost).seconds();
        cost
    }

    fn node_time(&self, node: &Node, rows: RowSetId, block: u32, cost: &mut Cost) -> PartTime {
        match node {
            Node::Split { rule, low, high } => match self.stats.split(rows, *rule) {
                Some((low_rows, high_rows)) => {
                    let low = self.node_time(low, low_rows, block, cost);
                    low.beside(self.node_time(high, high_rows, block, cost))
                }
                // All rows are on one side, and the other has no blocks.
                None => {
                    let side = if self.all_are_high(rows, *rule) { high } else { low };
                    self.node_time(side, rows, block, cost)
                }
            },
            Node::Part(part) => {
                let site = Site { block, rows, order: part.order };
                let part = self.part_cost(site, part);
                cost.matrix_bytes += part.matrix_bytes;
                part.time(&self.target)
            }
        }
    }

    /// Whether a split that leaves a side empty leaves the low one empty.
    fn all_are_high(&self, rows: RowSetId, rule: SplitRule) -> bool {
        let set = self.stats.rows(rows);
        match rule {
            SplitRule::Length { threshold } => {
                set.shortest > threshold as usize || set.rows.is_empty()
            }
            // The first row is low as long as there is anything to share.
            SplitRule::Nonzeros { .. } => set.nnz == 0,
        }
    }
}

impl PartCost {
    pub(crate) fn new(mapping: &Mapping, steps: WarpSteps) -> Self {
        let tiles = f64::from(mapping.column_tiles);
        // Shuffles go through the load units as well.
        let lanes = mapping.lanes.min(32 / mapping.stride).max(1);
        let shuffles = steps.warps as f64 * tiles * f64::from(lanes.ilog2() * mapping.vector);
        let total = steps.total as f64 * tiles;
        Self {
            latency: 0.0,
            workspace_bytes: 0,
            warps: steps.warps as f64 * tiles,
            matrix_bytes: 0,
            transactions: shuffles,
            critical_steps: steps.longest as f64,
            warp_steps: total,
            longest: steps.longest as f64,
        }
    }

    /// Adds the list of a part's rows, when it needs one.
    pub(crate) fn listed(mut self, rows: u64) -> Self {
        self.matrix_bytes += 4 * rows;
        self.latency += 0.2e-6;
        self
    }

    /// Bytes of scratch memory that is written and read back.
    pub(crate) fn workspace(mut self, bytes: u64) -> Self {
        self.workspace_bytes = bytes;
        self
    }

    /// Bytes of the arrays, and sectors (32 bytes) that one warp step touches.
    pub(crate) fn matrix(mut self, bytes: u64, sectors: f64) -> Self {
        self.matrix_bytes = bytes;
        // Two loads, index and value, each at least one transaction.
        let transactions = (sectors / SECTORS_PER_TRANSACTION).max(2.0);
        self.transactions += self.warp_steps * transactions;
        self
    }

    /// Rows of the input anywhere: each lane group reads a run of its own.
    pub(crate) fn scattered_input(self, mapping: &Mapping, task: Task) -> Self {
        self.input(mapping, task, 1.0)
    }

    /// `sharing` neighbouring lanes read the same rows of the input.
    pub(crate) fn shared_input(self, mapping: &Mapping, task: Task, sharing: u32) -> Self {
        self.input(mapping, task, f64::from(sharing))
    }

    /// Neighbouring lanes read neighbouring rows of the input.
    pub(crate) fn contiguous_input(self, mapping: &Mapping, task: Task) -> Self {
        self.input(mapping, task, f64::from(32 / mapping.stride))
    }

    fn input(mut self, mapping: &Mapping, task: Task, sharing: f64) -> Self {
        let run = f64::from(mapping.stride * mapping.vector) * task.precision.dense().size() as f64;
        let runs = (f64::from(32 / mapping.stride) / sharing).max(1.0);
        // Half of the scattered sectors are taken to be shared with a neighbour.
        let sectors = runs * (run / 32.0).max(1.0);
        self.transactions += self.warp_steps * (sectors / SECTORS_PER_TRANSACTION / 2.0).max(1.0);
        self
    }

    /// The layout's chain of dependent loads, in seconds.
    pub(crate) fn latency(mut self, seconds: f64) -> Self {
        self.latency = seconds;
        self
    }

    /// Entries in flight per thread. Unrolling past a short row only adds registers.
    pub(crate) fn unroll(mut self, unroll: u32) -> Self {
        let useful = f64::from(unroll).min(self.longest.max(1.0));
        // The compiler overlaps some iterations unasked.
        self.critical_steps = self.longest / (1.0 + useful);
        self.transactions *= 1.0 + 0.005 * (f64::from(unroll) - useful).max(0.0);
        self
    }

    /// Predicted time on a GPU, launch excluded.
    #[must_use]
    pub fn time(&self, target: &Target) -> PartTime {
        let bytes = self.matrix_bytes + 2 * self.workspace_bytes;
        let multiprocessors = f64::from(target.multiprocessors.max(1));
        let bandwidth = target.bandwidth.max(1) as f64 * ATTAINED_BANDWIDTH;
        let fitted_on = f64::from(Target::H200.multiprocessors);
        let transactions = TRANSACTIONS_PER_SECOND * (multiprocessors / fitted_on);
        // Few warps leave load units idle.
        let saturating = multiprocessors * SATURATING_WARPS_PER_MULTIPROCESSOR;
        let idle = (saturating / self.warps.max(1.0)).max(1.0);
        PartTime {
            busy: bytes as f64 / bandwidth + self.transactions * idle / transactions,
            delay: self.latency + self.critical_steps * SECONDS_PER_STEP,
        }
    }
}

/// Predicted seconds of parts that run in one launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartTime {
    /// Seconds of the memory system, which parts share.
    pub busy: f64,
    /// Seconds of the longest chain of dependent steps, which parts go through side by side.
    pub delay: f64,
}

impl PartTime {
    /// A part that there is no program for.
    pub(crate) const NEVER: Self = Self { busy: f64::INFINITY, delay: f64::INFINITY };
    /// Seconds that a further part costs, for its branch and its partly filled last blocks.
    const SPLIT: f64 = 0.3e-6;

    /// Seconds of the launch.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.busy + self.delay
    }

    /// Both in one launch.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self { busy: self.busy + other.busy + Self::SPLIT, delay: self.delay.max(other.delay) }
    }
}

/// What a program is predicted to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes of the matrix arrays that one product reads.
    pub matrix_bytes: u64,
    /// Bytes of the dense operands, each element moved once (β ≠ 0 reads the output as well).
    pub dense_bytes: u64,
    /// Floating-point operations: two for each entry and column.
    pub flops: u64,
    /// Predicted seconds on the model's GPU; for ranking only.
    pub seconds: f64,
}
