//! From a candidate to PTX and its launch.

use std::time::Instant;

use sparserl_core::kernel::{CudaCompiler as _, Kernel};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::Outcome;
use sparserl_core::task::Task;

use super::checks::is_past;
use super::{EmulatorError, EmulatorEvaluator, PtxCompiler};
use crate::candidate::executable::Prepared;
use crate::candidate::raw::{RawError, RawKernel};
use crate::compile::nvrtc::{CompileOptions, Cubin};
use crate::compile::pool::PoolCompileError;

/// A kernel's PTX, and how it is launched on a matrix.
pub(super) struct Emulable<'k> {
    pub(super) ptx: String,
    pub(super) name: String,
    pub(super) prepared: Prepared,
    pub(super) task: Task,
    /// What it was made from, if it was not written here.
    pub(super) foreign: Option<&'k RawKernel>,
    /// Registers of a thread, where it was assembled. Kernels that were written here have launch
    /// bounds, which the assembler keeps to.
    pub(super) registers: Option<u32>,
}

impl EmulatorEvaluator {
    /// The kernel of a program; an `Err` within says what became of it.
    pub(super) fn generated(
        &self,
        kernel: &Kernel<Cubin>,
        until: Option<Instant>,
    ) -> Result<Result<Emulable<'static>, Outcome>, EmulatorError> {
        let source = &kernel.source;
        let options = CompileOptions { line_information: true, ..CompileOptions::generated() };
        let ptx = self.compile((&source.text, &source.kernel), &options, until)?;
        Ok(ptx.map_err(not_compiled).map(|ptx| Emulable {
            ptx,
            prepared: Prepared::of_kernel(kernel),
            name: source.kernel.clone(),
            task: kernel.packed.program.task,
            foreign: None,
            registers: None,
        }))
    }

    /// A kernel from anywhere; an `Err` within says what became of it.
    pub(super) fn cuda<'k, T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        kernel: &'k RawKernel,
        task: Task,
        until: Option<Instant>,
    ) -> Result<Result<Emulable<'k>, Outcome>, EmulatorError> {
        let PtxCompiler::Pool(compiler) = &self.compiler else {
            return Err(EmulatorError::Foreign);
        };
        let compiler = compiler.until(until);
        let failed = |error| self.given_up(error, until);
        let options = CompileOptions { line_information: true, ..CompileOptions::foreign() };
        let (source, name) = (kernel.source(), kernel.kernel());
        let ptx = match compiler.compile_ptx(source, name, &options) {
            Ok(ptx) => ptx,
            // Another compiler may have more time or memory: then the source is not called wrong.
            Err(error) if error.is_refusal() => return Ok(Err(not_compiled(error.to_string()))),
            Err(error) => return Err(failed(error)),
        };
        // What the assembler refuses is in the PTX, but no GPU would run it.
        let registers = match compiler.compile_cuda(kernel).map_err(failed)? {
            Ok(cubin) => Some(cubin.resources().registers),
            Err(reason) => return Ok(Err(not_compiled(reason))),
        };
        let name = name.to_owned();
        Ok(match kernel.prepare(matrix, task) {
            Ok(prepared) => {
                let foreign = Some(kernel);
                Ok(Emulable { ptx, name, prepared, task, foreign, registers })
            }
            Err(RawError::Launch(error)) => {
                Err(Outcome::LaunchFailed { reason: error.to_string() })
            }
            Err(error) => Err(not_compiled(format!("it does not fit the matrix: {error}"))),
        })
    }

    /// PTX with source lines; an `Err` within is the source's fault.
    pub(super) fn compile(
        &self,
        (source, kernel): (&str, &str),
        options: &CompileOptions,
        until: Option<Instant>,
    ) -> Result<Result<String, String>, EmulatorError> {
        let made = match &self.compiler {
            PtxCompiler::Pool(compiler) => {
                compiler.until(until).compile_ptx(source, kernel, options)
            }
            PtxCompiler::Here(compilers) => compilers
                .for_arch(self.architecture)?
                .compile_ptx(source, kernel, self.architecture, options)
                .map_err(PoolCompileError::from),
        };
        match made {
            Ok(ptx) => Ok(Ok(ptx)),
            Err(error @ PoolCompileError::TimedOut { .. }) if self.options.deadline.is_some() => {
                Err(self.given_up(error, until))
            }
            Err(error) if error.is_sources_fault() => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Why a compiler made nothing, with the time that the kernel had for all of its compiling.
    fn given_up(&self, error: PoolCompileError, until: Option<Instant>) -> EmulatorError {
        match (error, self.options.deadline) {
            (PoolCompileError::TimedOut { .. }, Some(deadline)) if is_past(until) => {
                PoolCompileError::TimedOut { deadline }.into()
            }
            (error, _) => error.into(),
        }
    }
}

pub(super) fn not_compiled(reason: String) -> Outcome {
    Outcome::CompileFailed { reason }
}
