//! Where results go: kernels that end otherwise than with `y = αAx + βy` or `C = αAB + βC`.
//!
//! Such a kernel has the parameters of the plain one, of which `y` is called `z` and `C` is called
//! `D`, and behind them the old operand and, with an epilogue, the caller's values.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::dense::{dense_names, result_name};
use super::epilogue::Epilogue;
use crate::layout::ElementType;
use crate::task::{Operation, Task};

/// What becomes of a product before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `z = αAx + βy`, or `D = αAB + βC`.
    Apart,
    /// `z = epilogue(row, αAx, βy, user)`, or `D = epilogue(row, column, αAB, βC, user)`.
    Fused(Epilogue),
}

impl Ending {
    /// What a source defines for it before its own definitions, behind the type of the dense
    /// operands.
    pub(super) fn definitions(&self, task: Task) -> String {
        match self {
            Self::Apart => String::new(),
            Self::Fused(epilogue) => epilogue.definitions(task),
        }
    }

    /// Declarations of the parameters that follow those of the plain kernel.
    pub(super) fn declarations(&self, task: Task) -> Vec<String> {
        let (_, old) = dense_names(task.operation);
        let dense = ElementType::from(task.precision.dense()).cuda_type();
        let mut declarations = alloc::vec![format!("const {dense}* {old}")];
        if self.has_user() {
            declarations.push("User user".to_owned());
        }
        declarations
    }

    /// The last member of the output as the kernel makes it.
    pub(super) fn user(&self) -> &'static str {
        match self {
            Self::Apart => "",
            Self::Fused(_) if self.has_user() => ", user",
            Self::Fused(_) => ", User{}",
        }
    }

    fn has_user(&self) -> bool {
        matches!(self, Self::Fused(epilogue) if !epilogue.user.is_empty())
    }

    /// What the kernel computes, in words.
    pub(super) fn write_header(&self, text: &mut String, operation: Operation) -> fmt::Result {
        let product = match (self, operation) {
            (Self::Apart, Operation::SpMV) => "z = alpha * A * x + beta * y",
            (Self::Fused(_), Operation::SpMV) => "z = epilogue(row, alpha * A * x, beta * y, user)",
            (Self::Apart, Operation::SpMM { .. }) => "D = alpha * A * B + beta * C",
            (Self::Fused(_), Operation::SpMM { .. }) => {
                "D = epilogue(row, column, alpha * A * B, beta * C, user)"
            }
        };
        let (result, (_, old)) = (result_name(operation), dense_names(operation));
        writeln!(
            text,
            "// Here {product}, where {result} may be {old}. Behind the arguments below, of which\n\
             // {result} is the output, come {old} and the caller's values, where there are any."
        )
    }
}
