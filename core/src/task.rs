//! What a kernel has to compute: the operation and the arithmetic.

use core::fmt;
use core::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The operation and element type that a kernel is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Task {
    /// SpMV or SpMM.
    pub operation: Operation,
    /// Element type of A, the dense operands and the accumulators.
    pub dtype: Dtype,
}

/// The product computed, after the Sparse BLAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// `y = αAx + βy`.
    SpMV,
    /// `C = αAB + βC` with row-major, densely stored B and C of `columns` columns.
    SpMM {
        /// Columns of B and C.
        columns: NonZeroU32,
    },
}

impl Operation {
    /// Columns of the dense operand: 1 for SpMV.
    #[must_use]
    pub fn columns(self) -> u32 {
        match self {
            Self::SpMV => 1,
            Self::SpMM { columns } => columns.get(),
        }
    }
}

/// Element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Dtype {
    /// Rust's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Size of one element in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Task {
    /// The form used in program files: `spmv f32`, `spmm 32 f64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Operation::SpMV => write!(f, "spmv {}", self.dtype),
            Operation::SpMM { columns } => write!(f, "spmm {columns} {}", self.dtype),
        }
    }
}
