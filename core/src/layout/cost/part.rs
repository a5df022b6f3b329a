use super::constants::CostConstants;
use crate::layout::mapping::Mapping;
use crate::target::Target;
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

/// What a part is predicted to cost, before it is packed: terms that follow from the matrix, the
/// layout and the task, and from the sizes of the GPU's L2 cache and shared memory. All are finite
/// and at least 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartCost {
    /// Bytes of the matrix arrays, the list of rows among them.
    pub matrix_bytes: u64,
    /// Column panels, for each of which these are read once.
    pub panels: u32,
    /// Bytes of workspace, each written once and read back once.
    pub workspace_bytes: u64,
    /// Reads of the input that miss the L2 cache, as the bytes of a sequential read that takes as
    /// long: for single elements that is more than is read. The first reads of the input may be
    /// among them.
    pub input_traffic: u64,
    /// Bytes of shared memory that a block needs; 0 where every GPU has enough.
    pub shared_bytes: usize,
    /// Warp-wide memory transactions (up to 128 bytes each) that the load units handle.
    pub transactions: f64,
    /// Warps of the grid.
    pub warps: f64,
    /// Loop iterations over all warps.
    pub total_steps: f64,
    /// Loop iterations of the warp with most.
    pub longest_steps: f64,
    /// Loop iterations of the warp with most, divided by the iterations that are in flight
    /// together.
    pub critical_steps: f64,
    /// What happens before the first entry and after the last.
    pub start_up: StartUp,
    /// Whether a row's number comes from a list, one load more before the first entry.
    pub listed: bool,
}

/// The chain of dependent loads, and barriers, that a warp goes through whatever the length of its
/// rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StartUp {
    /// CSR, a warp for one or several rows, and column vectors, for groups of rows: offsets, then
    /// column indices, then the input.
    Rows,
    /// CSR, a block for each row: the same, and a barrier before the warps' sums are added.
    BlockRows,
    /// SELL: a slice's offset and a row's length, then column indices, then the input.
    Slices,
    /// DIA: diagonals, then the input.
    Diagonals,
    /// Block CSR: offsets of rows of blocks, then their columns, then the input.
    Blocks,
    /// Merge tiles of SpMV: borders, entries to shared memory, barriers, sums, fix-up. Also binned
    /// rows, for which no start-up of their own was fitted.
    StagedTiles,
    /// Chunks of rows: offsets, then column indices, then the input; shares of cut rows.
    Chunks,
    /// ELL: column indices, then the input.
    PaddedRows,
    /// Merge tiles of SpMM: borders, entries, sums that tiles leave for each other.
    Tiles,
}

/// Bytes of a multiprocessor's shared memory that a block cannot have as a buffer: what the system
/// keeps, and what the kernel declares besides.
const SHARED_BESIDES: usize = 2 << 10;
/// Seconds of what a GPU has no room for: longer than any product takes, and finite, since networks
/// are given its logarithm.
const WITHOUT_ROOM: f64 = 1e9;
/// Bytes of a transaction, in sectors of 32.
const SECTORS_PER_TRANSACTION: f64 = 4.0;

impl PartCost {
    /// The steps and shuffles of a part, with nothing read yet.
    pub(crate) fn new(mapping: &Mapping, steps: WarpSteps, start_up: StartUp) -> Self {
        let tiles = f64::from(mapping.column_tiles);
        // Shuffles go through the load units as well.
        let lanes = mapping.lanes.min(32 / mapping.stride).max(1);
        let shuffles = steps.warps as f64 * tiles * f64::from(lanes.ilog2() * mapping.vector);
        let total = steps.total as f64 * tiles;
        Self {
            matrix_bytes: 0,
            panels: mapping.panels,
            workspace_bytes: 0,
            input_traffic: 0,
            shared_bytes: 0,
            transactions: shuffles,
            warps: steps.warps as f64 * tiles,
            total_steps: total,
            longest_steps: steps.longest as f64,
            critical_steps: steps.longest as f64,
            start_up,
            listed: false,
        }
    }

    /// Adds the list of a part's rows, when it needs one.
    pub(crate) fn listed(mut self, rows: u64) -> Self {
        self.matrix_bytes += 4 * rows;
        self.listed = true;
        self
    }

    /// Bytes of workspace that are written and read back.
    pub(crate) fn workspace(mut self, bytes: u64) -> Self {
        self.workspace_bytes = bytes;
        self
    }

    /// Reads of the input that miss the L2 cache, in bytes of a sequential read.
    pub(crate) fn with_input_traffic(self, bytes: u64) -> Self {
        Self { input_traffic: bytes, ..self }
    }

    /// A block needs so much shared memory.
    pub(crate) fn shared(self, bytes: usize) -> Self {
        Self { shared_bytes: bytes, ..self }
    }

    /// Whether a GPU has the shared memory that a block needs.
    fn has_room(&self, target: &Target) -> bool {
        self.shared_bytes == 0
            || self.shared_bytes + SHARED_BESIDES <= target.shared_memory_bytes as usize
    }

    /// Bytes of the arrays, and sectors (32 bytes) that one warp step touches.
    pub(crate) fn matrix(mut self, bytes: u64, sectors: f64) -> Self {
        self.matrix_bytes = bytes;
        // Two loads, index and value, each at least one transaction.
        let transactions = (sectors / SECTORS_PER_TRANSACTION).max(2.0);
        self.transactions += self.total_steps * transactions;
        self
    }

    /// Rows of the input anywhere: each lane group reads a run of its own.
    pub(crate) fn scattered_input(self, mapping: &Mapping, task: Task) -> Self {
        self.scattered_inputs(mapping, task, 1)
    }

    /// The same, so many times in a step.
    pub(crate) fn scattered_inputs(self, mapping: &Mapping, task: Task, times: u32) -> Self {
        self.input(mapping, task, 1.0, times)
    }

    /// `sharing` neighbouring lanes read the same rows of the input.
    pub(crate) fn input_shared_by_lanes(self, mapping: &Mapping, task: Task, sharing: u32) -> Self {
        self.input(mapping, task, f64::from(sharing), 1)
    }

    /// Neighbouring lanes read neighbouring rows of the input, so many times in a step.
    pub(crate) fn contiguous_input(self, mapping: &Mapping, task: Task, times: u32) -> Self {
        self.input(mapping, task, f64::from(32 / mapping.stride), times)
    }

    fn input(mut self, mapping: &Mapping, task: Task, sharing: f64, times: u32) -> Self {
        let run = f64::from(mapping.stride * mapping.vector) * task.precision.dense().size() as f64;
        let runs = (f64::from(32 / mapping.stride) / sharing).max(1.0);
        // Half of the scattered sectors are taken to be shared with a neighbour.
        let sectors = runs * (run / 32.0).max(1.0);
        let each = self.total_steps * (sectors / SECTORS_PER_TRANSACTION / 2.0).max(1.0);
        // One by one, as the constants were fitted: a product is rounded otherwise.
        for _ in 0..times {
            self.transactions += each;
        }
        self
    }

    /// Entries in flight per thread. Unrolling past a short row only adds registers.
    pub(crate) fn unroll(mut self, unroll: u32) -> Self {
        let useful = f64::from(unroll).min(self.longest_steps.max(1.0));
        // The compiler overlaps some iterations unasked.
        self.critical_steps = self.longest_steps / (1.0 + useful);
        self.transactions *= 1.0 + 0.005 * (f64::from(unroll) - useful).max(0.0);
        self
    }

    /// Bytes of the matrix arrays that one product reads.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.matrix_bytes * u64::from(self.panels)
    }

    /// All traffic of one product, as the bytes of a sequential read that takes as long: the matrix
    /// arrays, the workspace both ways, and [`input_traffic`](Self::input_traffic).
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        let arrays = self.read_bytes() + 2 * self.workspace_bytes;
        arrays.saturating_add(self.input_traffic)
    }

    /// Predicted time on a GPU; 10⁹ seconds where it has too little shared memory.
    #[must_use]
    pub fn time(&self, constants: &CostConstants, target: &Target) -> PartTime {
        if !self.has_room(target) {
            return PartTime { busy: WITHOUT_ROOM, delay: 0.0 };
        }
        let multiprocessors = f64::from(target.multiprocessors.max(1));
        let declared_for = f64::from(Target::H200.multiprocessors);
        let transactions = constants.transactions_per_second * (multiprocessors / declared_for);
        // Few warps leave load units idle.
        let saturating = multiprocessors * constants.saturating_warps;
        let idle = (saturating / self.warps.max(1.0)).max(1.0);
        let list = if self.listed { constants.seconds_of_list } else { 0.0 };
        let latency = constants.start_up(self.start_up) + list;
        PartTime {
            busy: constants.transfer(self.moved_bytes(), target)
                + self.transactions * idle / transactions,
            delay: latency + self.critical_steps * constants.seconds_per_step,
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
    /// No part.
    const NOTHING: Self = Self { busy: 0.0, delay: 0.0 };

    /// Seconds of the launch.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.busy + self.delay
    }

    /// Both in one launch.
    #[must_use]
    pub fn beside(self, other: Self, constants: &CostConstants) -> Self {
        let busy = self.busy + other.busy + constants.seconds_of_split;
        Self { busy, delay: self.delay.max(other.delay) }
    }
}

impl CostConstants {
    /// Seconds before the first entry and after the last.
    #[must_use]
    pub fn start_up(&self, kind: StartUp) -> f64 {
        match kind {
            StartUp::Rows => self.start_up_rows,
            StartUp::BlockRows => self.start_up_block_rows,
            StartUp::Slices => self.start_up_slices,
            StartUp::Diagonals => self.start_up_diagonals,
            StartUp::Blocks => self.start_up_blocks,
            StartUp::StagedTiles => self.start_up_staged_tiles,
            StartUp::Tiles => self.start_up_tiles,
            StartUp::Chunks => self.start_up_chunks,
            StartUp::PaddedRows => self.start_up_padded_rows,
        }
    }

    /// Predicted time of parts that run in one launch; nothing for no parts. The traffic of dense
    /// operands, which is the same for all programs of a matrix and task, is in it only as far as
    /// parts have reads of the input that miss the L2 cache.
    #[must_use]
    pub fn time(&self, parts: &[PartCost], target: &Target) -> PartTime {
        let times = parts.iter().map(|part| part.time(self, target));
        times.reduce(|all, part| all.beside(part, self)).unwrap_or(PartTime::NOTHING)
    }
}
