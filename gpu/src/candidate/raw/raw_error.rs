//! Sources that are no kernels.

use sparserl_core::kernel::WriteError;
use sparserl_core::language::TextError;
use sparserl_core::task::{Dtype, Precision, Task};

use super::parameter::{Kind, ParameterError};
use super::rule_error::RuleError;

/// A source is no kernel that can be run, or not on this matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    /// There is no kernel.
    #[error("the source has no kernel: no `__global__` function is written out in it")]
    NoKernel,
    /// There are several, and nothing says which.
    #[error("the source has several kernels ({names}): name one in the launch, as in NAME<<<…>>>")]
    Several {
        /// Their names.
        names: String,
    },
    /// The launch names a kernel that there is not.
    #[error("the launch names the kernel `{kernel}`, but the source has {names}")]
    NoSuchKernel {
        /// The name.
        kernel: String,
        /// Names of those that there are.
        names: String,
    },
    /// What the parameters of a template stand for is not said.
    #[error(
        "the kernel `{kernel}` is a template: say in the launch what its parameters stand for, as in \
         {kernel}<float, 128><<<…>>>"
    )]
    Template {
        /// Its name.
        kernel: String,
    },
    /// It is a template of which no kernel can be made.
    #[error(
        "the kernel `{kernel}` is a template {why}, of which no instance can be launched: make a function of it that \
         is no template"
    )]
    NoInstance {
        /// Its name.
        kernel: String,
        /// What stands in the way.
        why: &'static str,
    },
    /// The launch has arguments for a template.
    #[error("the launch has arguments of a template for the kernel `{kernel}`, which is none")]
    NoTemplate {
        /// Its name.
        kernel: String,
    },
    /// The kernel is defined more than once.
    #[error("the kernel `{kernel}` is defined more than once, with different parameters: keep one")]
    Redefined {
        /// Its name.
        kernel: String,
    },
    /// A parameter is none that can be given.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// How to launch it is not said, or not clear.
    #[error(transparent)]
    Launch(#[from] RuleError),
    /// The kernel is for another element type.
    #[error("the parameter {parameter} is of {found}, but the task is {task}")]
    ElementType {
        /// The parameter's name in backquotes, or its number.
        parameter: String,
        /// The kernel's element type.
        found: Dtype,
        /// The task's element types.
        task: Precision,
    },
    /// The task is for matrices of another element type.
    #[error("the matrix is of {found}, but the task is {task}")]
    Matrix {
        /// The task's element types.
        task: Precision,
        /// The matrix's element type.
        found: Dtype,
    },
    /// An argument has no value for this matrix.
    #[error("the launch passes {expression}, which is no number for this matrix")]
    NoNumber {
        /// What it passes.
        expression: String,
    },
    /// The program in its comment is none.
    #[error("the program in the source's comment: {0}")]
    Program(#[from] TextError),
    /// The program's own kernel cannot be written for the matrix.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The program is for another product.
    #[error("the program in the source's comment is for {program}, not for this product")]
    Task {
        /// What it is for.
        program: Task,
    },
    /// Something is passed that the program has not.
    #[error("the launch passes `{name}`, which is not among the program's: {known}")]
    NotOfProgram {
        /// What it passes.
        name: String,
        /// What the program's own kernel is given.
        known: String,
    },
    /// A parameter has another type than the array or number of the program.
    #[error(
        "the parameter {parameter} is of type {kind}, but `{name}` is {wanted} for this matrix"
    )]
    PackedType {
        /// The parameter's name in backquotes, or its number.
        parameter: String,
        /// Its type.
        kind: Kind,
        /// What it is given.
        name: String,
        /// The type of that.
        wanted: Kind,
    },
    /// An edited kernel with workspace.
    #[error(
        "the source is not what its program is made into, and `{name}` could carry something from launch to launch: \
         judge the program, or do without"
    )]
    Workspace {
        /// The workspace.
        name: String,
    },
    /// The matrix is too large for parameters of type `int`.
    #[error("{count} {what} do not fit the `int` that the kernel reads")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
    },
}
