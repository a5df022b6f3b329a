//! The dense operands in device code.

use crate::layout::ElementType;
use crate::task::{Operation, Task};

/// Bytes of the widest load, and store, of a thread.
pub(crate) const WIDEST_LOAD: usize = 16;

/// Bytes that every row of the dense matrices has to be aligned to, whatever program of the task
/// reads them: vectors never reach from one row into the next, and so divide a row.
#[must_use]
pub fn row_alignment(task: Task) -> usize {
    let row_bytes = task.operation.columns() as usize * task.precision.dense().size();
    (1 << row_bytes.trailing_zeros()).min(WIDEST_LOAD)
}

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
