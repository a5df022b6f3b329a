//! Kernels on their way from a program to machine code, and what is handed to those who judge them.

use alloc::string::String;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::marker::PhantomData;
use core::time::Duration;

use crate::codegen::{CudaSource, EmitError, Ending, Launch, emit, emit_ending, emit_for};
use crate::language::Program;
use crate::layout::{PackError, Packed, pack};
use crate::matrix::{CsrView, Scalar};
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

/// A compiler that threads share, whose code is kept beside that of other kernels.
pub trait SharedCompiler: Compiler<Code: Clone + Send + Sync, Error: Send> + Sync {}

impl<K: Compiler<Code: Clone + Send + Sync, Error: Send> + Sync> SharedCompiler for K {}

/// A compiler that makes CUDA from anywhere ready to be judged as well; `F` is a kernel of it.
pub trait CudaCompiler<F>: Compiler {
    /// Compiles it. The reason within says why it is refused. A stranger's source may crash its
    /// compiler or never let it end, so that this never happens in the caller's process.
    ///
    /// # Errors
    /// When the compiler itself fails, or gives up for want of time or memory.
    fn compile_cuda(&self, cuda: &F) -> Result<Result<Self::Code, String>, Self::Error>;
}

/// The compiler of who has none.
#[derive(Debug)]
pub struct NoCompiler<C>(Infallible, PhantomData<fn() -> C>);

impl<C> Compiler for NoCompiler<C> {
    type Code = C;
    type Error = Infallible;

    fn compile(&self, _: &CudaSource) -> Result<Result<C, String>, Infallible> {
        match self.0 {}
    }
}

impl<C, F> CudaCompiler<F> for NoCompiler<C> {
    fn compile_cuda(&self, _: &F) -> Result<Result<C, String>, Infallible> {
        match self.0 {}
    }
}

/// A program made into a kernel for one matrix: all that a launch takes but the dense operands.
#[derive(Clone, Debug)]
pub struct Kernel<C> {
    /// The program, and the matrix as it says.
    pub packed: Arc<Packed>,
    /// The source.
    pub source: CudaSource,
    /// How it is launched for the matrix: who launches it, and who writes that down, reads it here.
    pub launch: Launch,
    /// What the source was compiled to; absent where nothing compiles.
    pub code: Option<C>,
    /// How long packing took.
    pub pack_time: Duration,
    /// How long compiling took, or reading from a cache.
    pub compile_time: Duration,
}

/// There is no source of a program for a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The program does not fit the matrix.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The source could not be written down.
    #[error(transparent)]
    Emit(#[from] EmitError),
}

/// A kernel with code, or why its source is refused.
pub type Compiled<C> = Result<Kernel<C>, Refusal>;

/// A compiler refuses a source.
#[derive(Debug, thiserror::Error)]
#[error("the generated {kernel} is refused: {reason}")]
pub struct Refusal {
    /// The kernel's name.
    pub kernel: String,
    /// The compiler's reason.
    pub reason: String,
}

impl<C> Kernel<C> {
    /// Packs a matrix as a program says, and writes the kernel down. It is not compiled, and nobody
    /// looked at the clock.
    ///
    /// # Errors
    /// When the program does not fit the matrix.
    pub fn for_matrix<T: Scalar>(
        matrix: CsrView<'_, T>,
        program: &Program,
    ) -> Result<Self, WriteError> {
        let packed = Arc::new(pack(matrix, program)?);
        Ok(Self::written(packed, None, Duration::ZERO)?)
    }

    /// Writes down the kernel of a matrix that is packed; one that ends otherwise than with
    /// `y = αAx + βy` or `C = αAB + βC` where there is an ending. It is not compiled.
    ///
    /// # Errors
    /// When the arrays are not those of their program.
    pub fn written(
        packed: Arc<Packed>,
        ending: Option<&Ending>,
        pack_time: Duration,
    ) -> Result<Self, EmitError> {
        let (program, signature) = (&packed.program, packed.signature());
        let source = match ending {
            None => emit(program, &signature)?,
            Some(ending) => emit_ending(program, &signature, ending)?,
        };
        Self::launched(packed, source, pack_time)
    }

    /// Writes down the kernel of a matrix that is packed for its sizes alone, which are constants
    /// of the source ([`emit_for`]). It is not compiled.
    ///
    /// # Errors
    /// When the arrays are not those of their program.
    pub fn specialised(packed: Arc<Packed>, pack_time: Duration) -> Result<Self, EmitError> {
        let source = emit_for(&packed)?;
        Self::launched(packed, source, pack_time)
    }

    fn launched(
        packed: Arc<Packed>,
        source: CudaSource,
        pack_time: Duration,
    ) -> Result<Self, EmitError> {
        let launch = source.launch(&packed)?;
        Ok(Self { packed, source, launch, code: None, pack_time, compile_time: Duration::ZERO })
    }

    /// Adds the code that a compiler makes of the source; `clock` tells the time since some moment.
    ///
    /// # Errors
    /// When the compiler itself fails.
    pub fn compiled<K: Compiler<Code = C> + ?Sized>(
        self,
        compiler: &K,
        clock: &(dyn Fn() -> Duration + Sync),
    ) -> Result<Compiled<C>, K::Error> {
        let start = clock();
        let code = compiler.compile(&self.source)?;
        let compile_time = clock().saturating_sub(start);
        Ok(match code {
            Ok(code) => Ok(Self { code: Some(code), compile_time, ..self }),
            Err(reason) => Err(Refusal { kernel: self.source.kernel, reason }),
        })
    }

    /// The source as it is written to a file, which ends with how it is launched for its matrix.
    #[must_use]
    pub fn source_file(&self) -> String {
        self.source.text.clone() + &self.launch.comment()
    }
}

/// What is judged: the kernel of a program, or CUDA from anywhere.
///
/// `C` is the code that kernels hold, `F` a kernel from anywhere.
#[derive(Debug)]
pub enum Candidate<'a, C, F> {
    /// A program's kernel, which is judged as it is: to the byte what its owner may write down.
    Kernel(&'a Kernel<C>),
    /// CUDA from anywhere.
    Cuda {
        /// The kernel.
        kernel: &'a F,
        /// What it is judged for.
        task: Task,
        /// What it was compiled to; absent where nothing compiles.
        code: Option<&'a C>,
    },
}

impl<C, F> Clone for Candidate<'_, C, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, F> Copy for Candidate<'_, C, F> {}

impl<'a, C, F> Candidate<'a, C, F> {
    /// CUDA from anywhere as it was written, for those who compile it themselves.
    #[must_use]
    pub fn uncompiled(kernel: &'a F, task: Task) -> Self {
        Self::Cuda { kernel, task, code: None }
    }

    /// The program; absent for CUDA from anywhere.
    #[must_use]
    pub fn program(&self) -> Option<&'a Program> {
        match *self {
            Self::Kernel(kernel) => Some(&kernel.packed.program),
            Self::Cuda { .. } => None,
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
            Self::Kernel(kernel) => kernel.packed.program.task,
            Self::Cuda { task, .. } => task,
        }
    }
}
