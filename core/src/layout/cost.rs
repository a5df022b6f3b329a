//! The model of what programs cost: the matrix, the task, the GPU and the constants.

mod constants;
mod part;

use alloc::sync::Arc;

pub use constants::CostConstants;
pub(crate) use part::WarpSteps;
pub use part::{PartCost, PartTime, StartUp};

use crate::structure::MatrixStats;
use crate::syntax::grammar::Site;
use crate::target::Target;
use crate::task::Task;

/// Prices programs for one matrix, task and GPU.
#[derive(Clone, Debug)]
pub struct CostModel<'m> {
    pub(super) stats: Arc<MatrixStats<'m>>,
    pub(super) task: Task,
    pub(super) target: Target,
    pub(super) constants: CostConstants,
}

/// Matrices of more than this share of the L2 stream through it; of smaller ones, enough is found
/// there again.
const CACHED_SHARE: (u64, u64) = (8, 15);

/// Share of the L2 cache that holds the input. Of reads that are spread evenly over more bytes,
/// `INPUT_MISSED` × (1 − what is held ÷ these bytes) come from memory.
const INPUT_HELD: f64 = 0.8;
/// SpMM with 128 columns took as long on an H100 (2026-11-25) as if memory had answered 16 to 23 %
/// of the reads over 51 MB, 36 % over 102 MB and 47 % over 205 MB; by this they are 11, 35 and 48
/// %.
const INPUT_MISSED: f64 = 0.6;
/// The same share for single elements of x, each of a line of its own: half of the cache, as SpMV
/// on an H200 has it (2026-11-27; 80, 120 and 400 MB of x).
const ELEMENTS_HELD: f64 = 0.5;
/// Rows of the input that are in use together, in mean distances from the scaled diagonal. Columns
/// that are spread evenly are a third of all away from it.
const ROWS_IN_USE: f64 = 4.0;

impl<'m> CostModel<'m> {
    /// A model for the matrix of `stats`.
    #[must_use]
    pub fn new(stats: Arc<MatrixStats<'m>>, task: Task, target: Target) -> Self {
        Self { stats, task, target, constants: CostConstants::FITTED }
    }

    /// The model with other constants.
    #[must_use]
    pub fn with_constants(self, constants: CostConstants) -> Self {
        Self { constants, ..self }
    }

    /// What the terms cost.
    #[must_use]
    pub fn constants(&self) -> &CostConstants {
        &self.constants
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

    /// L2 miss rate of reads of so many columns of a row of the input, from 0 to 1.
    pub(crate) fn row_miss_rate(&self, columns: u32) -> f64 {
        let row = f64::from(columns) * self.task.precision.dense().size() as f64;
        INPUT_MISSED * self.miss_rate(row, INPUT_HELD)
    }

    /// L2 miss rate of reads of single elements of x, from 0 to 1.
    pub(crate) fn element_miss_rate(&self) -> f64 {
        self.miss_rate(self.task.precision.dense().size() as f64, ELEMENTS_HELD)
    }

    /// 1 − held ÷ working set: the rows of the input that are in use together, so many bytes of
    /// each, and the share of the L2 cache that holds them.
    fn miss_rate(&self, row_bytes: f64, cache_share: f64) -> f64 {
        let held = cache_share * self.target.l2_bytes as f64;
        let rows = self.stats.cols() as f64;
        // Features take a scan of the matrix, which most are too small to need.
        if rows * row_bytes <= held {
            return 0.0;
        }
        let band = libm::exp2(8.0 * f64::from(self.stats.features().band_mean)) - 1.0;
        let working_set = (ROWS_IN_USE * band).min(rows) * row_bytes;
        if working_set > held { 1.0 - held / working_set } else { 0.0 }
    }

    /// Steps of warps in which `lanes × stride` threads share each row.
    pub(crate) fn row_steps(&self, site: Site, lanes: u32, stride: u32) -> WarpSteps {
        let at_once = 32 / (lanes * stride);
        let rows = self.stats.row_groups(site.rows, site.order, at_once.max(1), lanes);
        // Offsets, the reduction and the store cost about two steps more.
        let total = rows.steps + 2 * rows.groups;
        WarpSteps { warps: rows.groups, total, longest: rows.longest }
    }

    /// Bytes of the dense operands, each element once.
    #[must_use]
    pub fn dense_bytes(&self) -> u64 {
        let vectors = (self.stats.rows_count() + self.stats.cols()) as u64;
        let columns = u64::from(self.task.operation.columns());
        vectors * columns * self.task.precision.dense().size() as u64
    }
}
