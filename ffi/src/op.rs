//! The two products of a plan.

use crate::status::{Failure, Status};
use crate::types;

/// A or Aᵀ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    None,
    Transpose,
}

impl Op {
    pub(crate) fn read(number: i32) -> Result<Self, Failure> {
        match number {
            types::SPARSERL_OP_NONE => Ok(Self::None),
            types::SPARSERL_OP_TRANSPOSE => Ok(Self::Transpose),
            _ => Err(Failure::argument(format_args!(
                "op is {number}: expected SPARSERL_OP_NONE or SPARSERL_OP_TRANSPOSE"
            ))),
        }
    }

    /// Says of an epilogue that is refused that it is that of the transpose.
    pub(crate) fn naming_side(self, failure: Failure) -> Failure {
        match (self, failure.status) {
            (Self::Transpose, Status::Epilogue) => Failure::new(
                failure.status,
                format_args!("of products with the transpose, {}", failure.text),
            ),
            _ => failure,
        }
    }
}
