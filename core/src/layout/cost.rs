//! What programs are predicted to cost, and how long they are predicted to take.

mod constants;
mod part;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use constants::CostConstants;
pub(crate) use part::WarpSteps;
pub use part::{PartCost, PartTime, StartUp};

use super::{LayoutModule, Node, Part, Program, each_layout};
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
    constants: CostConstants,
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
/// What a load moves at least.
const SECTOR_BYTES: u64 = 32;
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

    /// Share of the reads of the input, so many of its columns at a time, that the L2 cache does
    /// not answer.
    pub(crate) fn input_misses(&self, columns: u32) -> f64 {
        let row = f64::from(columns) * self.task.precision.dense().size() as f64;
        let held = INPUT_HELD * self.target.l2_bytes as f64;
        let rows = self.stats.cols() as f64;
        // Features take a scan of the matrix, which most are too small to need.
        if rows * row <= held {
            return 0.0;
        }
        let band = libm::exp2(8.0 * f64::from(self.stats.features().band_mean)) - 1.0;
        let bytes = (ROWS_IN_USE * band).min(rows) * row;
        if bytes > held { INPUT_MISSED * (1.0 - held / bytes) } else { 0.0 }
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

    /// Predicted time of a part at its site, with reads of the input that the L2 cache does not
    /// answer, which depend on the panels. [`CostModel::cost`] leaves them out.
    #[must_use]
    pub fn part_time(&self, site: Site, part: &Part) -> PartTime {
        let cost = self.part_cost(site, part);
        let columns = self.task.operation.columns() / cost.panels;
        let row = u64::from(columns) * self.task.precision.dense().size() as u64;
        let reads = self.stats.rows(site.rows).nnz as u64 * u64::from(cost.panels);
        let bytes = (reads * row.max(SECTOR_BYTES)) as f64 * self.input_misses(columns);
        let time = cost.time(&self.constants, &self.target);
        PartTime { busy: time.busy + self.constants.transfer(bytes as u64, &self.target), ..time }
    }

    /// Predicted cost of a program; parts without rows cost nothing.
    #[must_use]
    pub fn cost(&self, program: &Program) -> Cost {
        let columns = u64::from(self.task.operation.columns());
        let parts = self.parts(program);
        Cost {
            matrix_bytes: parts.iter().map(|part| part.matrix_bytes).sum(),
            dense_bytes: self.dense_bytes(),
            flops: 2 * self.stats.nnz() as u64 * columns,
            seconds: self.constants.time(&parts, &self.target).seconds(),
        }
    }

    /// Bytes of the dense operands, each element once.
    #[must_use]
    pub fn dense_bytes(&self) -> u64 {
        let vectors = (self.stats.rows_count() + self.stats.cols()) as u64;
        let columns = u64::from(self.task.operation.columns());
        vectors * columns * self.task.precision.dense().size() as u64
    }

    /// Predicted costs of a program's parts, in order; those without rows are left out.
    ///
    /// [`CostConstants::time`] prices them, as often as need be without looking at the matrix.
    #[must_use]
    pub fn parts(&self, program: &Program) -> Vec<PartCost> {
        let mut parts = Vec::new();
        self.walk(&program.body, RowSetId::ALL, program.block.threads(), &mut parts);
        parts
    }

    fn walk(&self, node: &Node, rows: RowSetId, block: u32, parts: &mut Vec<PartCost>) {
        match node {
            Node::Split { rule, low, high } => match self.stats.split(rows, *rule) {
                Some((low_rows, high_rows)) => {
                    self.walk(low, low_rows, block, parts);
                    self.walk(high, high_rows, block, parts);
                }
                // All rows are on one side, and the other has no blocks.
                None => {
                    let side = if self.all_are_high(rows, *rule) { high } else { low };
                    self.walk(side, rows, block, parts);
                }
            },
            Node::Part(part) => {
                parts.push(self.part_cost(Site { block, rows, order: part.order }, part));
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

/// What a program is predicted to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes of the matrix arrays that one product reads.
    pub matrix_bytes: u64,
    /// Bytes of the dense operands, each element moved once (β ≠ 0 reads the output as well).
    pub dense_bytes: u64,
    /// Floating-point operations: two for each entry and column.
    pub flops: u64,
    /// Predicted seconds on the model's GPU, without the traffic of the dense operands; for ranking
    /// only.
    pub seconds: f64,
}
