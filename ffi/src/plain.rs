//! The programs of plain CSR, one of which a plan begins with.

use sparserl_core::language::{LANGUAGE_VERSION, Program};
use sparserl_core::layout::CostModel;
use sparserl_core::task::{Operation, Task};

/// How many times as fast plain CSR by merge path has to be predicted to be taken: it has a
/// workspace, and the cost model is not that exact.
const MERGE_GAIN: f64 = 1.5;
/// Indices and values as they are.
const PLAIN: &str = "index=u32 values=plain cache=cached";

/// Plain CSR, the kernel that is there at once: with as many threads for a row, and of matrices as
/// many columns for a thread, as the cost model finds best; or, where rows are so long or so uneven
/// that it is by far better, by merge path (Merrill and Garland, SC 2016), for which little is to
/// be computed. Predicted seconds come with the programs: the best, and what may take less memory.
pub(crate) fn plain_csr(costs: &CostModel<'_>, task: Task) -> impl Iterator<Item = (Program, f64)> {
    let by_rows = by_rows(costs, task);
    let least = by_rows.as_ref().map_or(f64::INFINITY, |(_, seconds)| *seconds);
    let by_path = by_merge_path(costs, task);
    by_path.filter(|(_, seconds)| MERGE_GAIN * seconds <= least).into_iter().chain(by_rows)
}

fn by_rows(costs: &CostModel<'_>, task: Task) -> Option<(Program, f64)> {
    let mut layouts = Vec::new();
    for vector in [1, 2, 4, 8] {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for unroll in [1, 4] {
                layouts.push(format!("csr {PLAIN} vector={vector} lanes={lanes} unroll={unroll}"));
            }
        }
    }
    fastest(costs, task, layouts)
}

fn by_merge_path(costs: &CostModel<'_>, task: Task) -> Option<(Program, f64)> {
    let (items, vectors, reductions): (&[u32], &[u32], &[&str]) = match task.operation {
        Operation::SpMV => (&[4, 8], &[1], &["scan", "4", "32"]),
        Operation::SpMM { .. } => (&[32, 128], &[1, 2, 4], &["scan"]),
    };
    let mut layouts = Vec::new();
    for items in items {
        for vector in vectors {
            for reduction in reductions {
                layouts.push(format!(
                    "merge items={items} {PLAIN} vector={vector} reduction={reduction}"
                ));
            }
        }
    }
    fastest(costs, task, layouts)
}

/// The fastest of some layouts, as programs write them, by the cost model.
fn fastest(costs: &CostModel<'_>, task: Task, layouts: Vec<String>) -> Option<(Program, f64)> {
    // Not every task has every one of them.
    let programs = layouts.into_iter().filter_map(|layout| {
        let text = format!("sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\nkeep {layout}\n");
        Program::parse(&text).ok()
    });
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
