use super::Mapping;
use crate::task::Task;

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

// A nominal large GPU. The constants were fitted to the times of 1,900 programs on an H200 with a
// cold L2, 2026-11-21; the model ranks programs against each other, and its seconds are no claim.
const BYTES_PER_SECOND: f64 = 4.2e12;
const TRANSACTIONS_PER_SECOND: f64 = 1.3e11;
const SATURATING_WARPS: f64 = 132.0 * 16.0;
const SECONDS_PER_STEP: f64 = 0.65e-6;
const SECTORS_PER_TRANSACTION: f64 = 4.0;

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

    /// Predicted time on the nominal GPU, launch excluded.
    #[must_use]
    pub fn time(&self) -> PartTime {
        let bytes = self.matrix_bytes + 2 * self.workspace_bytes;
        // Few warps leave load units idle.
        let idle = (SATURATING_WARPS / self.warps.max(1.0)).max(1.0);
        PartTime {
            busy: bytes as f64 / BYTES_PER_SECOND
                + self.transactions * idle / TRANSACTIONS_PER_SECOND,
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
    /// Predicted seconds on a nominal GPU; for ranking only.
    pub seconds: f64,
}
