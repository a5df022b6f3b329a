//! The dense operands in device code.

use crate::layout::ElementType;
use crate::task::{Operation, Task};

/// Names of the dense operands, input first.
pub(super) fn dense_names(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::SpMV => ("x", "y"),
        Operation::SpMM { .. } => ("B", "C"),
    }
}

/// Name of what is written where it may be another than the old output.
pub(super) fn result_name(operation: Operation) -> &'static str {
    match operation {
        Operation::SpMV => "z",
        Operation::SpMM { .. } => "D",
    }
}

/// The dense operands' type in device code.
pub(super) fn dense_type(task: Task) -> &'static str {
    match task.precision.rounds_results() {
        true => ElementType::from(task.precision.dense()).cuda_type(),
        false => "Scalar",
    }
}
