//! Which compiler makes the code that is measured, checked and written: one and the same.

use std::sync::Arc;
use std::time::Instant;

use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Compiler;

use super::nvrtc::{CompileOptions, Cubin, Version};
use super::pool::{CompilePool, CompileRequest, CompileTarget, PoolCompileError};
use sparserl_core::target::Architecture;

/// Makes machine code for one architecture in the processes of a pool, by the newest compiler that
/// knows the architecture and, where a device is to run the code, whose code the device's driver
/// loads.
///
/// Whoever measures, checks or writes kernels asks this one, so that what is written is what was
/// measured.
#[derive(Clone, Debug)]
pub struct CubinCompiler {
    pool: Arc<CompilePool>,
    target: CompileTarget,
    until: Option<Instant>,
}

impl CubinCompiler {
    /// For an architecture, and the major CUDA version of the driver that has to load the code, if
    /// there is one.
    #[must_use]
    pub fn new(
        pool: Arc<CompilePool>,
        architecture: Architecture,
        driver_major: Option<u32>,
    ) -> Self {
        let target = CompileTarget { architecture, driver_major };
        Self { pool, target, until: None }
    }

    /// A compiler like this one that gives up at this moment at the latest, however many sources it
    /// is given.
    #[must_use]
    pub fn until(&self, until: Option<Instant>) -> Self {
        Self { until, ..self.clone() }
    }

    /// The processes that compile.
    #[must_use]
    pub fn pool(&self) -> &Arc<CompilePool> {
        &self.pool
    }

    /// The version of the compiler.
    ///
    /// # Errors
    /// When none suits.
    pub fn version(&self) -> Result<Version, PoolCompileError> {
        self.pool.version(self.target)
    }

    /// The exact build of the compiler: the same makes the same of a source.
    ///
    /// # Errors
    /// When none suits.
    pub fn build(&self) -> Result<String, PoolCompileError> {
        self.pool.build_id(self.target)
    }

    /// What it compiles for.
    #[must_use]
    pub fn target(&self) -> CompileTarget {
        self.target
    }

    /// The architecture that it compiles for.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        self.target.architecture
    }

    /// Compiles to PTX: by the same compiler, so that what is emulated is what runs.
    ///
    /// # Errors
    /// [`PoolCompileError`] says whether the source is at fault.
    pub fn compile_ptx(
        &self,
        source: &str,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<String, PoolCompileError> {
        self.pool.compile_ptx(self.request(source, kernel, options))
    }

    /// Compiles CUDA from anywhere; the reason within says why it is refused.
    ///
    /// # Errors
    /// As [`compile_with`](Self::compile_with), and when the compiler runs out of time or memory:
    /// another may have more, so the source is not called wrong.
    pub fn compile_foreign(
        &self,
        source: &str,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<Result<Cubin, String>, PoolCompileError> {
        self.compiled(source, kernel, options, PoolCompileError::is_refusal)
    }

    /// Compiles any source; the reason within says why it is refused.
    ///
    /// # Errors
    /// When the compiler fails for a reason that is not the source's.
    pub fn compile_with(
        &self,
        source: &str,
        kernel: &str,
        options: &CompileOptions,
    ) -> Result<Result<Cubin, String>, PoolCompileError> {
        self.compiled(source, kernel, options, PoolCompileError::is_sources_fault)
    }

    fn request<'r>(
        &self,
        source: &'r str,
        kernel: &'r str,
        options: &'r CompileOptions,
    ) -> CompileRequest<'r> {
        let (target, until) = (self.target, self.until);
        CompileRequest { source, kernel, target, options, until }
    }

    fn compiled(
        &self,
        source: &str,
        kernel: &str,
        options: &CompileOptions,
        is_sources: impl Fn(&PoolCompileError) -> bool,
    ) -> Result<Result<Cubin, String>, PoolCompileError> {
        match self.pool.compile(self.request(source, kernel, options)) {
            Ok(fetched) => Ok(Ok(fetched.cubin)),
            Err(error) if is_sources(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

impl Compiler for CubinCompiler {
    type Code = Cubin;
    type Error = PoolCompileError;

    fn compile(&self, source: &CudaSource) -> Result<Result<Cubin, String>, PoolCompileError> {
        self.compile_with(&source.text, &source.kernel, &CompileOptions::generated())
    }
}
