//! From programs to outcomes on a GPU.
//!
//! ```text
//! program ─► pack ─► emit ─► CompilePool ─► Executable ─► Worker ─► Outcome
//! ```
//!
//! Packing and compiling run on all cores, some programs ahead of the device: those that take long,
//! as what was never compiled before does, hold up no others. What programs store alike is stored
//! once.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sparserl_core::codegen::{CudaSource, emit};
use sparserl_core::kernel::Compiler;
use sparserl_core::layout::{Packed, Packer, Packing};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Outcome, Regime, Samples, Timing,
};
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;

use crate::candidate::Candidate;
use crate::candidate::executable::{Executable, Prepared};
use crate::candidate::raw::RawKernel;
use crate::compare::Opponents;
use crate::compile::CubinCompiler;
use crate::compile::cache::CubinCache;
use crate::compile::nvrtc::{CompileOptions, Cubin, Version};
use crate::compile::pool::{CompilePool, PoolCompileError, PoolError};
use crate::isolate::ServerCommand;
use crate::judge::{ORACLE_KERNEL, ORACLE_SOURCE};
use crate::run::device::DeviceFacts;
use crate::store::recording::Context;
use crate::worker::{Protocol, Worker, WorkerError};

/// Kernels that are judged together, and so timed in turn.
const TOGETHER: usize = 32;
/// Candidates that are made ahead of those being judged, at most.
const MOST_AHEAD: usize = 4 * TOGETHER;
/// What their arrays may take, in bytes.
const AHEAD_BYTES: usize = 4 << 30;
/// A gain over the best baseline above this is measured again by a new process.
const INCREDIBLE: f64 = 3.0;

/// Judges programs on one GPU.
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
    /// A generated kernel could not be written down.
    #[error(transparent)]
    Emit(#[from] sparserl_core::codegen::EmitError),
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
            let fetched = compilers.compile(
                ORACLE_SOURCE,
                ORACLE_KERNEL,
                facts.target.architecture,
                Some(facts.driver.0),
                &options,
            )?;
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
    /// the slower measurement counts.
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
        let none = Evaluation { outcomes: vec![], baselines: vec![], copy_bandwidth: None };
        let Some(first) = candidates.first() else { return Ok(none) };
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
        let compiler = self.compiler();
        thread::scope(|scope| {
            let (coming, made) = sync_channel(ahead(matrix));
            scope.spawn(move || make_in_order(&compiler, matrix, candidates, &coming));
            let mut whole: Option<Evaluation> = None;
            let mut made = made.into_iter().peekable();
            while made.peek().is_some() {
                let mut outcomes = Vec::new();
                let mut executables = Vec::new();
                for candidate in made.by_ref().take(TOGETHER) {
                    // A maker that panicked takes its scope, and so this function, down with it.
                    let Ok(candidate) = candidate.recv() else { break };
                    let candidate = candidate?;
                    outcomes.push(candidate.as_ref().err().cloned());
                    executables.extend(candidate.ok());
                }
                let judged = self.judge(matrix, task, &executables)?;
                let mut judged_outcomes = judged.outcomes.into_iter();
                let outcomes =
                    outcomes.into_iter().filter_map(|made| made.or_else(|| judged_outcomes.next()));
                match &mut whole {
                    Some(whole) => {
                        whole.outcomes.extend(outcomes);
                        pool_samples(&mut whole.baselines, judged.baselines);
                    }
                    None => {
                        let outcomes = outcomes.collect();
                        whole = Some(Evaluation { outcomes, ..judged });
                    }
                }
            }
            Ok(whole.unwrap_or(none))
        })
    }
}

/// What two measurements of a kernel come to: in each regime the slower one, and whatever is no
/// measurement in place of one.
fn slower_of(first: &Outcome, second: &Outcome) -> Outcome {
    let (Some(one), Some(other)) = (first.measurement(), second.measurement()) else {
        return if second.measurement().is_none() { second.clone() } else { first.clone() };
    };
    let slower = |one: &Option<Samples>, other: &Option<Samples>| match (one, other) {
        (Some(a), Some(b)) => Some(if a.median() < b.median() { b.clone() } else { a.clone() }),
        (samples, None) | (None, samples) => samples.clone(),
    };
    let timing = Timing {
        cold: slower(&one.timing.cold, &other.timing.cold),
        warm: slower(&one.timing.warm, &other.timing.warm),
        back_to_back: slower(&one.timing.back_to_back, &other.timing.back_to_back),
    };
    Outcome::Measured(Measurement {
        checks: one.checks + other.checks,
        worst_ratio: one.worst_ratio.max(other.worst_ratio),
        timing,
    })
}

/// What becomes of making a candidate; an `Err` within is what became of the candidate.
type Made = Result<Result<Executable, Outcome>, GpuError>;

/// Makes candidates on all cores. Where each will arrive goes to `coming` in the candidates' order,
/// which holds makers up when nobody takes them, and ends them when nobody will.
///
/// Makers are threads of their own: a thread of rayon's that waits for pieces of its packing would
/// begin another candidate meanwhile, and finish its own only after that one was compiled.
fn make_in_order<T: Scalar>(
    compiler: &CubinCompiler,
    matrix: CsrView<'_, T>,
    candidates: &[Candidate<'_>],
    coming: &SyncSender<Receiver<Made>>,
) {
    let waiting = Mutex::new(candidates.iter());
    let next = || {
        // Held until there is room, so that the order is that of the candidates.
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let candidate = waiting.next()?;
        let (made, receiver) = sync_channel(1);
        coming.send(receiver).ok()?;
        Some((candidate, made))
    };
    let packer = Packer::new(matrix, &|| Duration::ZERO);
    let make = || {
        while let Some((candidate, made)) = next() {
            // Nobody waits for it when judging failed.
            drop(made.send(executable(compiler, &packer, candidate)));
        }
    };
    thread::scope(|scope| {
        for _ in 1..rayon::current_num_threads().min(candidates.len()) {
            // With fewer threads than were asked for it takes longer.
            let _ = thread::Builder::new().spawn_scoped(scope, make);
        }
        make();
    });
}

/// Candidates that are made ahead of those being judged: as many as memory has room for, if the
/// arrays of each are about as large as the matrix.
fn ahead<T: Scalar>(matrix: CsrView<'_, T>) -> usize {
    let bytes = (matrix.nnz() * (size_of::<u32>() + size_of::<T>())).max(1);
    (AHEAD_BYTES / bytes).clamp(2, MOST_AHEAD)
}

/// Makes what the device runs; an `Err` within is what became of the candidate.
fn executable<T: Scalar>(
    compiler: &CubinCompiler,
    packer: &Packer<'_, T>,
    candidate: &Candidate<'_>,
) -> Made {
    let failed = |reason| Ok(Err(Outcome::CompileFailed { reason }));
    let of_source = |packed: &Arc<Packed>, source: &CudaSource| {
        let made = compiler.compile(source)?;
        let made = made.map(|cubin| Prepared::of_program(packed, source).executable(cubin));
        Ok(made.map_err(|reason| Outcome::CompileFailed { reason }))
    };
    match *candidate {
        Candidate::Program(program) => match packer.pack(program) {
            Ok(Packing { packed, .. }) => {
                let source = emit(&packed.program, &packed.signature())?;
                of_source(&Arc::new(packed), &source)
            }
            Err(error) => failed(format!("it does not fit the matrix: {error}")),
        },
        Candidate::Kernel(kernel) => match &kernel.code {
            Some(cubin) => {
                let prepared = Prepared::of_program(&kernel.packed, &kernel.source);
                Ok(Ok(prepared.executable(cubin.clone())))
            }
            None => of_source(&kernel.packed, &kernel.source),
        },
        Candidate::Cuda(kernel, task) => {
            let options = CompileOptions::default();
            match compiler.compile_foreign(kernel.source(), kernel.kernel(), &options)? {
                Ok(cubin) => Ok(kernel.executable(packer.matrix(), task, cubin).map_err(|error| {
                    let reason = format!("it does not fit the matrix: {error}");
                    Outcome::CompileFailed { reason }
                })),
                Err(reason) => failed(reason),
            }
        }
    }
}

/// Adds the samples of baselines that were measured with a later batch.
fn pool_samples(baselines: &mut [Baseline], later: Vec<Baseline>) {
    let join = |one: Option<Samples>, other: Option<Samples>| {
        let (one, other) = one.zip(other)?;
        Samples::try_from([one.seconds(), other.seconds()].concat()).ok()
    };
    for baseline in later {
        let same = baselines
            .iter_mut()
            .find(|b| b.library == baseline.library && b.algorithm == baseline.algorithm);
        if let Some(Baseline { timing: Ok(timing), .. }) = same
            && let Ok(Timing { cold, warm, back_to_back }) = baseline.timing
        {
            *timing = Timing {
                cold: join(timing.cold.take(), cold),
                warm: join(timing.warm.take(), warm),
                back_to_back: join(timing.back_to_back.take(), back_to_back),
            };
        }
    }
}

/// As many compiling processes as there are cores, behind the user's cache.
///
/// # Errors
/// When no process starts or there is no compiler.
pub fn compile_pool(command: ServerCommand) -> Result<CompilePool, PoolError> {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    // Without a cache folder everything is compiled anew, and all is well otherwise.
    CompilePool::start(command, cores, CubinCache::open().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_algorithm_are_pooled() {
        let baseline = |name: &str, seconds: f64| Baseline {
            library: "cuSPARSE 12.9.4".into(),
            algorithm: name.into(),
            is_default: false,
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: Ok(Timing {
                warm: Some(vec![seconds].try_into().unwrap()),
                ..Timing::default()
            }),
        };
        let mut pooled = vec![baseline("A", 1.0), baseline("B", 2.0)];
        pool_samples(&mut pooled, vec![baseline("B", 4.0), baseline("C", 5.0)]);
        let medians: Vec<_> = pooled.iter().filter_map(|b| b.median(Regime::Warm)).collect();
        assert_eq!(medians, [1.0, 3.0]);
    }
}
