//! What is judged: a kernel with all that its launch takes, made of a program or of CUDA from
//! anywhere.

pub mod executable;
pub mod raw;

use sparserl_core::kernel::CudaCompiler;

use crate::compile::CubinCompiler;
use crate::compile::nvrtc::{CompileOptions, Cubin};
use crate::compile::pool::PoolCompileError;

/// What GPU and emulator judge.
pub type Candidate<'a> = sparserl_core::kernel::Candidate<'a, Cubin, raw::RawKernel>;

impl CudaCompiler<raw::RawKernel> for CubinCompiler {
    fn compile_cuda(
        &self,
        kernel: &raw::RawKernel,
    ) -> Result<Result<Cubin, String>, PoolCompileError> {
        self.compile_foreign(kernel.source(), kernel.kernel(), &CompileOptions::foreign())
    }
}
