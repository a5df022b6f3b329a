//! The programs of plain CSR, one of which a plan begins with.

use sparserl_core::language::{Access, BlockSize, Lanes, Layout, Node, Order, Part, Program};
use sparserl_core::layout::{CostModel, CsrLayout, MergeLayout, Reduction};
use sparserl_core::task::{Operation, Task};

/// How many times as fast plain CSR by merge path has to be predicted to be taken: it has a
/// workspace, and the cost model is not that exact.
const MERGE_GAIN: f64 = 1.5;
/// Threads of a block.
const BLOCK: u32 = 256;

/// Plain CSR, the kernel that is there at once: with as many threads for a row, and of matrices as
/// many columns for a thread, as the cost model finds best; or, where rows are so long or so uneven
/// that it is by far better, by merge path (Merrill and Garland, SC 2016), for which little is to
/// be computed. Predicted seconds come with the programs: the best, and what may take less memory.
pub(crate) fn plain_csr(costs: &CostModel<'_>, task: Task) -> impl Iterator<Item = (Program, f64)> {
    let by_rows = fastest(costs, by_rows(task));
    let least = by_rows.as_ref().map_or(f64::INFINITY, |(_, seconds)| *seconds);
    let by_path = fastest(costs, by_merge_path(task));
    by_path.filter(|(_, seconds)| MERGE_GAIN * seconds <= least).into_iter().chain(by_rows)
}

/// All programs that [`plain_csr`] chooses among, whatever the matrix.
pub(crate) fn all_plain_csr(task: Task) -> impl Iterator<Item = Program> {
    by_rows(task).chain(by_merge_path(task))
}

fn by_rows(task: Task) -> impl Iterator<Item = Program> {
    let mut layouts = Vec::new();
    for vector in [1, 2, 4, 8] {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for unroll in [1, 4] {
                let csr = CsrLayout::new(Access::plain(vector), Lanes::Threads(lanes), unroll);
                layouts.push(Layout::Csr(csr));
            }
        }
    }
    programs(task, layouts)
}

fn by_merge_path(task: Task) -> impl Iterator<Item = Program> {
    let by_rows = [Reduction::Scan, Reduction::Rows(4), Reduction::Rows(32)];
    let (items, vectors, reductions): (&[u32], &[u32], &[Reduction]) = match task.operation {
        Operation::SpMV => (&[4, 8], &[1], &by_rows),
        Operation::SpMM { .. } => (&[32, 128], &[1, 2, 4], &[Reduction::Scan]),
    };
    let mut layouts = Vec::new();
    for &items in items {
        for &vector in vectors {
            for &reduction in reductions {
                let merge = MergeLayout::new(items, Access::plain(vector), reduction);
                layouts.push(Layout::Merge(merge));
            }
        }
    }
    programs(task, layouts)
}

/// Layouts, each in a program by itself.
fn programs(task: Task, layouts: Vec<Layout>) -> impl Iterator<Item = Program> {
    layouts.into_iter().filter_map(move |layout| {
        let (block, order) = (BlockSize::of(BLOCK)?, Order::Keep);
        let body = Node::Part(Part { order, layout });
        // Not every task has every one of them.
        Program::from_tokens(task, &Program { task, block, body }.tokens()).ok()
    })
}

/// The fastest of some programs by the cost model.
fn fastest(
    costs: &CostModel<'_>,
    programs: impl Iterator<Item = Program>,
) -> Option<(Program, f64)> {
    let timed = programs.map(|program| {
        let seconds = costs.cost(&program).seconds;
        (program, seconds)
    });
    timed.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::sync::Arc;

    use sparserl_core::matrix::{Csr, generate};
    use sparserl_core::structure::MatrixStats;
    use sparserl_core::target::Target;
    use sparserl_core::task::Dtype;

    use super::*;

    #[test]
    fn rows_of_very_different_lengths_are_cut_by_merge_path() {
        let layout = |matrix: &Csr<f64>, operation| {
            let task = Task::new(operation, Dtype::F64);
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            let costs = CostModel::new(stats, task, Target::H200);
            let (program, _) = plain_csr(&costs, task).next().unwrap();
            program
                .to_string()
                .lines()
                .last()
                .unwrap()
                .split_whitespace()
                .nth(1)
                .unwrap()
                .to_owned()
        };
        let (uneven, even) =
            (generate::one_dense_row(20_000, 20_000, 1), generate::stencil5(300, 300));
        let columns = NonZero::new(8).unwrap();
        for operation in [Operation::SpMV, Operation::SpMM { columns }] {
            assert_eq!(layout(&uneven, operation), "merge", "{operation:?}");
            assert_eq!(layout(&even, operation), "csr", "{operation:?}");
        }
    }
}
