//! Where results go: kernels that end otherwise than with `y = αAx + βy` or `C = αAB + βC`.
//!
//! Such a kernel has the parameters of the plain one, of which `y` is called `z` and `C` is called
//! `D`, and behind them the old operand, leading dimensions of matrices that have them, and, with
//! an epilogue, the caller's values.

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
    /// The one or the other for matrices with leading dimensions, which are arguments: elements
    /// from the beginning of a row to that of the next. Vectors have none.
    Strided {
        /// The caller's function, if there is one.
        epilogue: Option<Epilogue>,
        /// What rows are aligned to.
        alignment: Alignment,
    },
}

/// What the rows of dense matrices are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// To vectors: to [`row_alignment`](super::row_alignment).
    Vectors,
    /// To an element, so that each is a load by itself.
    Elements,
}

/// Names of the leading dimensions of B, C and D.
const LEADING: [&str; 3] = ["ldb", "ldc", "ldd"];

impl Ending {
    /// What a source defines for it before its own definitions, behind the type of the dense
    /// operands.
    pub(super) fn definitions(&self, task: Task) -> String {
        self.epilogue().map_or_else(String::new, |epilogue| epilogue.definitions(task))
    }

    /// The caller's function, if the result goes through one.
    #[must_use]
    pub fn epilogue(&self) -> Option<&Epilogue> {
        match self {
            Self::Apart => None,
            Self::Fused(epilogue) => Some(epilogue),
            Self::Strided { epilogue, .. } => epilogue.as_ref(),
        }
    }

    /// Where the dense operands have leading dimensions, what rows are aligned to.
    #[must_use]
    pub fn strided(&self, operation: Operation) -> Option<Alignment> {
        match (self, operation) {
            (Self::Strided { alignment, .. }, Operation::SpMM { .. }) => Some(*alignment),
            _ => None,
        }
    }

    /// Declarations of the parameters that follow those of the plain kernel.
    pub(super) fn declarations(&self, task: Task) -> Vec<String> {
        let (_, old) = dense_names(task.operation);
        let dense = ElementType::from(task.precision.dense()).cuda_type();
        let mut declarations = alloc::vec![format!("const {dense}* {old}")];
        if self.strided(task.operation).is_some() {
            declarations.extend(LEADING.map(|name| format!("u32 {name}")));
        }
        if self.has_user() {
            declarations.push("User user".to_owned());
        }
        declarations
    }

    /// The last member of the output as the kernel makes it, where results go through a function.
    pub(super) fn user(&self) -> Option<&'static str> {
        self.epilogue()?;
        Some(if self.has_user() { "user" } else { "User{}" })
    }

    fn has_user(&self) -> bool {
        self.epilogue().is_some_and(|epilogue| !epilogue.user.is_empty())
    }

    /// What the kernel computes, in words.
    pub(super) fn write_header(&self, text: &mut String, operation: Operation) -> fmt::Result {
        let product = match (self.epilogue(), operation) {
            (None, Operation::SpMV) => "z = alpha * A * x + beta * y",
            (Some(_), Operation::SpMV) => "z = epilogue(row, alpha * A * x, beta * y, user)",
            (None, Operation::SpMM { .. }) => "D = alpha * A * B + beta * C",
            (Some(_), Operation::SpMM { .. }) => {
                "D = epilogue(row, column, alpha * A * B, beta * C, user)"
            }
        };
        let (result, (_, old)) = (result_name(operation), dense_names(operation));
        writeln!(
            text,
            "// Here {product}, where {result} may be {old}. Behind the arguments below, of which\n\
             // {result} is the output, come {old} and the caller's values, where there are any."
        )?;
        if let Some(alignment) = self.strided(operation) {
            let [b, c, d] = LEADING;
            let begin = match alignment {
                Alignment::Vectors => "at multiples of what vector loads are aligned to",
                Alignment::Elements => "anywhere",
            };
            writeln!(
                text,
                "// Between them come {b}, {c} and {d}, the elements from the beginning of a row to that of\n\
                 // the next, of B, C and D: rows begin {begin}."
            )?;
        }
        Ok(())
    }
}
