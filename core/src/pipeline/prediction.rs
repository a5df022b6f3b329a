//! What is expected of a program before anybody measures it.

use alloc::sync::Arc;

use serde::Serialize;

use crate::decode::PolicyInput;
use crate::language::Program;
use crate::layout::CostModel;

/// What the cost model expects of one product.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Bytes of the matrix arrays that a product reads; traffic of the workspace is not among them.
    pub matrix_bytes: u64,
    /// Bytes of the dense operands, each element moved once.
    pub dense_bytes: u64,
    /// Bytes of the matrix in plain CSR, for comparison.
    pub csr_bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Seconds of a product on the target, to rank programs; no claim. 10⁹ and more where it lacks
    /// the shared memory.
    pub seconds: f64,
}

impl Prediction {
    /// The prediction for a program, on the matrix, task and GPU of an input.
    #[must_use]
    pub fn new(input: &PolicyInput<'_>, program: &Program) -> Self {
        let costs = CostModel::new(Arc::clone(&input.stats), input.task, input.target);
        let cost = costs.cost(program);
        Self {
            matrix_bytes: cost.matrix_bytes,
            dense_bytes: cost.dense_bytes,
            csr_bytes: costs.csr_bytes(),
            flops: cost.flops,
            seconds: cost.seconds,
        }
    }
}
