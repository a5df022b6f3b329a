//! From kernels to outcomes on a GPU.
//!
//! ```text
//! Kernel ───────► Executable ─► Worker ─► Outcome
//! CUDA, Cubin ──► Executable ───┘
//! ```
//!
//! Kernels of programs are made, and CUDA is compiled, by who has them judged
//! ([`Maker`](sparserl_core::pipeline::Maker)), with [this compiler](GpuEvaluator::compiler).

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use rayon::prelude::*;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Outcome, Regime, Samples, Timing,
};
use sparserl_core::pipeline::TOGETHER;
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;

use crate::candidate::Candidate;
use crate::candidate::executable::{Executable, Prepared};
use crate::candidate::raw::RawKernel;
use crate::compare::Opponents;
use crate::compile::CubinCompiler;
use crate::compile::cache::CubinCache;
use crate::compile::nvrtc::{CompileOptions, Cubin, Version};
use crate::compile::pool::{
    CompilePool, CompileRequest, CompileTarget, PoolCompileError, PoolError,
};
use crate::isolate::ServerCommand;
use crate::judge::{ORACLE_KERNEL, ORACLE_SOURCE};
use crate::run::device::DeviceFacts;
use crate::store::recording::Context;
use crate::worker::{Protocol, Worker, WorkerError};

/// A gain over the best baseline above this is measured again by a new process.
const INCREDIBLE: f64 = 3.0;

/// Judges kernels on one GPU.
#[derive(Debug)]
pub struct GpuEvaluator {
    compilers: Arc<CompilePool>,
    worker: Worker,
    protocol: Protocol,
    nvrtc: Option<Version>,
}

/// The GPU, or what is needed to use it, failed.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// The device or the process that uses it.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The compiler.
    #[error(transparent)]
    Compiler(#[from] PoolCompileError),
    /// The processes that compile.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Programs for different tasks cannot be judged together.
    #[error("programs for `{first}` and for `{other}` cannot be judged together")]
    Tasks {
        /// Of the first program.
        first: Task,
        /// Of one that differs.
        other: Task,
    },
    /// A kernel was not compiled.
    #[error(
        "the kernel `{kernel}` has no machine code: make it with the compiler of its evaluator"
    )]
    NoCode {
        /// The kernel's name.
        kernel: String,
    },
}

impl GpuEvaluator {
    /// Opens a device. Compilers and the device are used by processes started with `command`, which
    /// serve as
    /// [`serve`](crate::serve::serve) says.
    ///
    /// # Errors
    /// Without such a device or a compiler for it.
    pub fn open(
        command: ServerCommand,
        compilers: Arc<CompilePool>,
        ordinal: u32,
        protocol: Protocol,
    ) -> Result<Self, GpuError> {
        let mut nvrtc = None;
        let oracle = |facts: &DeviceFacts| -> Result<Cubin, GpuError> {
            let options = CompileOptions::default();
            let target = CompileTarget {
                architecture: facts.target.architecture,
                driver_major: Some(facts.driver.0),
            };
            let wanted = CompileRequest::new(ORACLE_SOURCE, ORACLE_KERNEL, target, &options);
            let fetched = compilers.compile(wanted)?;
            nvrtc = Some(fetched.cubin.nvrtc_version());
            Ok(fetched.cubin)
        };
        let worker = Worker::start(command, ordinal, oracle)?;
        Ok(Self { compilers, worker, protocol, nvrtc })
    }

    /// What is known of the device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        self.worker.facts()
    }

    /// The process that uses the device.
    #[must_use]
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// The version of the compiler that is used for the device, once it has compiled something.
    #[must_use]
    pub fn nvrtc(&self) -> Option<Version> {
        self.nvrtc
    }

    /// What its evaluations of matrices with such values are made with; `None` before it has
    /// compiled anything.
    #[must_use]
    pub fn context(&self, value_source: ValueSource) -> Option<Context> {
        Some(Context {
            device: self.facts().clone(),
            nvrtc: self.nvrtc()?,
            protocol: self.protocol().name().to_owned(),
            value_source,
        })
    }

    /// How thoroughly it judges.
    #[must_use]
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Measures these opponents from now on.
    pub fn set_opponents(&mut self, opponents: Opponents) {
        self.worker.set_opponents(opponents);
    }

    /// Judges so thoroughly from now on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Judges in a new process from now on, which knows nothing of what was judged before.
    pub fn restart(&mut self) {
        self.worker.restart();
    }

    /// The compiler of code for the device: whoever writes kernels down takes this one, too.
    #[must_use]
    pub fn compiler(&self) -> CubinCompiler {
        let facts = self.worker.facts();
        let (architecture, driver_major) = (facts.target.architecture, Some(facts.driver.0));
        CubinCompiler::new(Arc::clone(&self.compilers), architecture, driver_major)
    }

    /// Judges kernels of one task that are ready, on a matrix of the task's type.
    ///
    /// # Errors
    /// When the device or its process fails for a reason that is not a kernel's.
    pub fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        executables: &[Executable],
    ) -> Result<Evaluation, GpuError> {
        let mut evaluation = self.worker.judge(matrix, task, executables, &self.protocol)?;
        self.confirm(matrix, task, executables, &mut evaluation)?;
        Ok(evaluation)
    }

    /// Measures kernels again whose gain is hard to believe, by a process that has never run them;
    /// the slower measurement counts, and of opponents the faster one.
    fn confirm<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        executables: &[Executable],
        evaluation: &mut Evaluation,
    ) -> Result<(), GpuError> {
        let gain = |evaluation: &Evaluation, index: usize, regime: Regime| {
            let timing = &evaluation.outcomes.get(index)?.measurement()?.timing;
            Some(evaluation.best_baseline(regime)? / timing.median(regime)?)
        };
        let is_incredible = |index: &usize| {
            let regimes = Regime::ALL.into_iter();
            let gains = regimes.filter_map(|regime| gain(evaluation, *index, regime));
            gains.into_iter().any(|gain| gain > INCREDIBLE)
        };
        let doubtful: Vec<usize> = (0..executables.len()).filter(is_incredible).collect();
        if doubtful.is_empty() {
            return Ok(());
        }
        let kernels: Vec<_> =
            doubtful.iter().filter_map(|&index| executables.get(index).cloned()).collect();
        self.worker.restart();
        let again = self.worker.judge(matrix, task, &kernels, &self.protocol)?;
        for (place, &index) in doubtful.iter().enumerate() {
            if let Some(slot) = evaluation.outcomes.get_mut(index)
                && let Some(outcome) = again.outcomes.get(place)
            {
                *slot = slower_of(slot, outcome);
            }
        }
        for known in &mut evaluation.baselines {
            let same = again.baselines.iter().find(|baseline| baseline.is_like(known));
            let Some(Baseline { timing: Ok(other), .. }) = same else { continue };
            known.timing = Ok(match &known.timing {
                Ok(one) => of_each_regime(one, other, |one, other| one <= other),
                Err(_) => other.clone(),
            });
        }
        Ok(())
    }
}

impl Evaluator for GpuEvaluator {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = GpuError;

    fn abilities(&self) -> Abilities {
        let protocol = self.protocol.name().to_owned();
        Abilities { times: true, findings: false, cuda: true, protocol }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate<'_>],
    ) -> Result<Evaluation, GpuError> {
        let Some(first) = candidates.first() else { return Ok(Evaluation::default()) };
        let first = first.task();
        if let Some(other) = candidates.iter().map(Candidate::task).find(|task| *task != first) {
            return Err(GpuError::Tasks { first, other });
        }
        // What is for a matrix of another type is no kernel for this one, and says so; opponents
        // are measured on the matrix as it is.
        let task = if first.precision.matrix() == T::DTYPE {
            first
        } else {
            first.with_precision(T::DTYPE.into())
        };
        let mut whole = Evaluation::default();
        for together in candidates.chunks(TOGETHER) {
            let made = together.par_iter().map(|candidate| executable(matrix, candidate));
            let made = made.collect::<Result<Vec<Made>, _>>()?;
            let outcomes: Vec<_> = made.iter().map(|made| made.as_ref().err().cloned()).collect();
            let executables: Vec<_> = made.into_iter().filter_map(Result::ok).collect();
            whole.append(self.judge(matrix, task, &executables)?.among(outcomes));
        }
        Ok(whole)
    }

    fn is_unverifiable(error: &GpuError) -> bool {
        matches!(error, GpuError::Worker(WorkerError::Unverifiable { .. }))
    }
}

/// What two measurements of a kernel come to: in each regime the slower one, and whatever is no
/// measurement in place of one.
fn slower_of(first: &Outcome, second: &Outcome) -> Outcome {
    let (Some(one), Some(other)) = (first.measurement(), second.measurement()) else {
        return if second.measurement().is_none() { second.clone() } else { first.clone() };
    };
    Outcome::Measured(Measurement {
        checks: one.checks + other.checks,
        worst_ratio: one.worst_ratio.max(other.worst_ratio),
        timing: of_each_regime(&one.timing, &other.timing, |one, other| one >= other),
    })
}

/// In each regime the samples of the first one where it counts by the medians, else the other's.
fn of_each_regime(one: &Timing, other: &Timing, first: impl Fn(f64, f64) -> bool) -> Timing {
    let chosen = |one: &Option<Samples>, other: &Option<Samples>| match (one, other) {
        (Some(a), Some(b)) => Some(if first(a.median(), b.median()) { a } else { b }.clone()),
        (samples, None) | (None, samples) => samples.clone(),
    };
    Timing {
        cold: chosen(&one.cold, &other.cold),
        warm: chosen(&one.warm, &other.warm),
        back_to_back: chosen(&one.back_to_back, &other.back_to_back),
    }
}

/// What the device runs, or what became of the candidate.
type Made = Result<Executable, Outcome>;

/// Makes what the device runs.
fn executable<T: Scalar>(
    matrix: CsrView<'_, T>,
    candidate: &Candidate<'_>,
) -> Result<Made, GpuError> {
    let cubin = |code: Option<&Cubin>, kernel: &str| {
        code.cloned().ok_or_else(|| GpuError::NoCode { kernel: kernel.to_owned() })
    };
    match *candidate {
        Candidate::Kernel(kernel) => {
            let cubin = cubin(kernel.code.as_ref(), &kernel.source.kernel)?;
            Ok(Ok(Prepared::of_kernel(kernel).executable(cubin)))
        }
        Candidate::Cuda { kernel, task, code } => {
            let cubin = cubin(code, kernel.kernel())?;
            Ok(kernel.executable(matrix, task, cubin).map_err(|error| {
                let reason = format!("it does not fit the matrix: {error}");
                Outcome::CompileFailed { reason }
            }))
        }
    }
}

/// Starts as many compiling processes as there are cores, behind the user's cache.
///
/// # Errors
/// When no process starts or there is no compiler.
pub fn compile_pool(command: ServerCommand) -> Result<CompilePool, PoolError> {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // Without a cache folder everything is compiled anew, and all is well otherwise.
    CompilePool::start(command, cores, CubinCache::open().ok())
}
