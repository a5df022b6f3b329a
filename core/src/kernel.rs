//! Kernels on their way from a program to machine code, and what is handed to those who judge them.

use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use crate::codegen::CudaSource;
use crate::language::Program;
use crate::layout::Packed;
use crate::task::{Operation, Task};

/// Turns generated CUDA into code for one architecture.
pub trait Compiler {
    /// Machine code, or whatever those who judge it run.
    type Code;
    /// Why nothing can be compiled: what is broken is the compiler, not a source.
    type Error;

    /// Compiles a source. The reason within says why the source is refused.
    ///
    /// # Errors
    /// When the compiler itself fails.
    fn compile(&self, source: &CudaSource) -> Result<Result<Self::Code, String>, Self::Error>;
}

/// A program made into a kernel for one matrix: all that a launch takes but the dense operands.
#[derive(Clone, Debug)]
pub struct Kernel<C> {
    /// The program, and the matrix as it says.
    pub packed: Arc<Packed>,
    /// The source.
    pub source: CudaSource,
    /// What the source was compiled to; absent where nothing compiles.
    pub code: Option<C>,
    /// How long packing took.
    pub pack_time: Duration,
    /// How long compiling took, or reading from a cache.
    pub compile_time: Duration,
}

impl<C> Kernel<C> {
    /// The source as it is written to a file, which ends with how it is launched for its matrix.
    #[must_use]
    pub fn source_file(&self) -> String {
        self.source.text.clone() + &self.source.launch_comment(&self.packed)
    }
}

/// What is judged: a program, before or after a kernel was made of it, or CUDA from anywhere.
///
/// `C` is the code that kernels hold, `F` a kernel from anywhere.
#[derive(Debug)]
pub enum Candidate<'a, C, F> {
    /// A program. Whoever judges it makes a kernel of it, and keeps that to himself.
    Program(&'a Program),
    /// A program's kernel, which is judged as it is: to the byte what its owner may write down.
    Kernel(&'a Kernel<C>),
    /// CUDA from anywhere, for a task.
    Cuda(&'a F, Task),
}

impl<C, F> Clone for Candidate<'_, C, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, F> Copy for Candidate<'_, C, F> {}

impl<'a, C, F> Candidate<'a, C, F> {
    /// The program; absent for CUDA from anywhere.
    #[must_use]
    pub fn program(&self) -> Option<&'a Program> {
        match *self {
            Self::Program(program) => Some(program),
            Self::Kernel(kernel) => Some(&kernel.packed.program),
            Self::Cuda(..) => None,
        }
    }

    /// What it computes.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.task().operation
    }

    /// What it computes, and in which element types.
    #[must_use]
    pub fn task(&self) -> Task {
        match *self {
            Self::Program(program) => program.task,
            Self::Kernel(kernel) => kernel.packed.program.task,
            Self::Cuda(_, task) => task,
        }
    }
}
