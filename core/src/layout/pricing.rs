//! What programs are predicted to cost, and how long they are predicted to take.

use alloc::vec::Vec;

use super::cost::{CostModel, PartCost, PartTime};
use super::layout_module::LayoutModule;
use super::registry::{Node, Part, Program, each_layout};
use crate::structure::{RowSetId, Rows, SplitRule};
use crate::syntax::grammar::Site;
use crate::task::Operation;

/// A sector: the least that the memory system moves.
const SECTOR_BYTES: u64 = 32;
/// An element of x that the L2 cache misses takes as long as a sequential read of so many bytes:
/// some 20 ps on an H200 (2026-11-27; x of 120 to 400 MB, columns anywhere, without the time of the
/// matrix and y).
const SEQUENTIAL_BYTES_PER_MISS: f64 = 100.0;

impl CostModel<'_> {
    /// Predicted cost of a part at its site.
    fn part_cost(&self, site: Site, part: &Part) -> PartCost {
        let cost = each_layout!(&part.layout, layout => self.layout_cost(site, layout));
        match &*self.stats.ordered(site.rows, site.order) {
            Rows::List(rows) => cost.listed(rows.len() as u64),
            Rows::Range { .. } => cost,
        }
    }

    /// Predicted time of a part at its site.
    pub(crate) fn part_time(&self, site: Site, part: &Part) -> PartTime {
        self.part_cost(site, part).time(&self.constants, &self.target)
    }

    fn layout_cost<M: LayoutModule>(&self, site: Site, layout: &M) -> PartCost {
        let cost = layout.cost(site, self);
        match M::STREAMS_INPUT {
            true => cost,
            false => cost.with_input_traffic(self.input_traffic(site, cost.panels)),
        }
    }

    /// Reads of the input that miss the L2 cache where entries read its rows one by one, in so many
    /// column panels: bytes of a sequential read that takes as long.
    fn input_traffic(&self, site: Site, panels: u32) -> u64 {
        let reads = self.stats.rows(site.rows).nnz as f64 * f64::from(panels);
        let bytes = match self.task.operation {
            Operation::SpMV => reads * self.element_miss_rate() * SEQUENTIAL_BYTES_PER_MISS,
            Operation::SpMM { columns } => {
                let columns = columns.get() / panels;
                let row = u64::from(columns) * self.task.precision.dense().size() as u64;
                reads * row.max(SECTOR_BYTES) as f64 * self.row_miss_rate(columns)
            }
        };
        bytes as u64
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

    /// Predicted costs of a program's parts, in order; those without rows are left out.
    ///
    /// [`CostConstants::time`](super::CostConstants::time) prices them, as often as need be without
    /// looking at the matrix.
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
    /// Predicted seconds on the model's GPU, for ranking only. Of the traffic of the dense operands
    /// they have reads of the input that miss the L2 cache. 10⁹ and more where the GPU lacks the
    /// shared memory.
    pub seconds: f64,
}
