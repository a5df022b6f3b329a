//! What kernels are measured on: a GPU, or what makes its times up in tests.

use std::error::Error;
use std::time::Instant;

use anyhow::Context as _;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator};
use sparserl_core::pipeline::{Asked, Maker};
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::run::device::{Clocks, DeviceFacts};
use sparserl_gpu::store::recording::Context;
use sparserl_gpu::worker::Protocol;

use crate::kernel_file::Kernel;

/// Judges kernels, and says what with.
pub(crate) trait Instrument:
    Evaluator<Code = Cubin, Cuda = RawKernel, Error: Error + Send + Sync + 'static>
{
    /// What it judges on.
    fn device(&self) -> DeviceFacts;

    /// Compiles for it; nothing where kernels are judged without code.
    fn compiler(&self) -> Option<CubinCompiler>;

    /// Clocks of the GPU after the last evaluation.
    fn clocks(&self) -> Option<Clocks>;

    /// What evaluations of matrices with such values are made with.
    fn context(&self, values: ValueSource) -> anyhow::Result<Context>;

    /// Judges so thoroughly from now on.
    fn set_protocol(&mut self, protocol: Protocol);

    /// Judges by a new process from now on, which knows nothing of what was judged before.
    fn restart(&mut self);

    /// Judges the kernels of files for one task and matrix, whatever they are written in, in turn
    /// with each other; `each` is told what was found out about as many as are judged together, in
    /// their order.
    fn judge_files<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        kernels: &[&Kernel],
        each: impl FnMut(Evaluation),
    ) -> anyhow::Result<()>
    where
        Self: Sized,
    {
        let asked = kernels.iter().map(|kernel| match kernel {
            Kernel::Program(program) => Asked::Program(program),
            Kernel::Cuda(kernel) => Asked::Cuda(&**kernel, task),
        });
        let (start, compiler) = (Instant::now(), self.compiler());
        let clock = || start.elapsed();
        let maker = Maker::new(matrix, compiler.as_ref(), &clock);
        Ok(maker.judge_each(&asked.collect::<Vec<_>>(), self, each)?)
    }
}

impl Instrument for GpuEvaluator {
    fn device(&self) -> DeviceFacts {
        self.facts().clone()
    }

    fn compiler(&self) -> Option<CubinCompiler> {
        Some(Self::compiler(self))
    }

    fn clocks(&self) -> Option<Clocks> {
        self.worker().clocks()
    }

    fn context(&self, values: ValueSource) -> anyhow::Result<Context> {
        Self::context(self, values).context("nothing was compiled")
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        self.set_protocol(protocol);
    }

    fn restart(&mut self) {
        Self::restart(self);
    }
}

/// Why what stands for a GPU fails.
#[cfg(test)]
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(pub(crate) &'static str);
