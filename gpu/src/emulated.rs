//! Judging kernels on the CPU: no GPU and no driver, only a compiler.
//!
//! ```text
//! kernel of a program ─┐
//! CUDA from anywhere ──┴─► Prepared, PTX ─► checks: emulate, compare ─► verdict ─► Judgement
//! ```
//!
//! A GPU shows what a kernel computed; the emulator also shows what it did on the way: accesses
//! outside of the arrays, use of memory that nobody wrote, races, barriers that not all threads
//! reach. Any of these makes a kernel faulty, whether its result is right or not. What it cannot
//! show is how fast the kernel is. A kernel from anywhere is tried on other matrices, too, which
//! are cut out of the one that it is judged on.

mod awkward;
pub mod checker;
mod checks;
mod diagnosis;
mod emulable;
mod endings;
mod epilogue_trial;
pub mod found_right;
mod gaps;
pub mod ground;
mod limits;
mod mutants;
mod named_columns;
mod places;
mod sample;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use sparserl_core::codegen::EmitError;
use sparserl_core::kernel::{Kernel, WriteError};
use sparserl_core::language::Program;
use sparserl_core::layout::PackError;
use sparserl_core::matrix::{AnyCsrView, CsrError, CsrView, Scalar, bf16, f16};
use sparserl_core::outcome::{Abilities, Evaluation, Evaluator, Outcome};
use sparserl_core::reference::OperandError;
use sparserl_core::task::{Dtype, Precision, Task};
use sparserl_emulator::code::Kernel as MachineKernel;
pub use sparserl_emulator::code::SourceLocation;
pub use sparserl_emulator::counters::Counters;
pub use sparserl_emulator::finding::{Finding, FindingKind, PlacedAddress};
use sparserl_emulator::ptx::{Module, PtxError};

use crate::candidate::Candidate;
use crate::candidate::executable::Prepared;
use crate::candidate::raw::RawKernel;
use crate::compile::CubinCompiler;
use crate::compile::nvrtc::{CompileError, Compilers, Cubin, UnsupportedByAll, Version};
use crate::compile::pool::{CompilePool, PoolCompileError};
use checks::{MOST_ELEMENTS, MOST_WARPS, Trial, is_short, named_columns, warps};
use emulable::{Emulable, not_compiled};
use mutants::Foreign;
use sample::Sampling;
use sparserl_core::target::Architecture;

/// How thoroughly kernels are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulationOptions {
    /// Orders in which blocks, warps and diverged lanes take turns; the first is the plain one. At
    /// least 1 is tried, and twice as many of small launches of kernels from anywhere that wait for
    /// other threads.
    pub seeds: u32,
    /// Launches in each order, each for another check. At least 1; 3 show all that there is to
    /// show, with 5 it runs every check that a device runs, and one more: that nothing becomes of
    /// rows of the input that a row of the matrix does not name.
    pub checks: u32,
    /// Instructions that a warp may execute in a launch. Without a number as many as the matrix
    /// implies if one warp does all of the work, up to 200 M. A kernel that needs more hangs, or
    /// where that is fewer than the matrix implies, nobody can say.
    pub budget: Option<u64>,
    /// How long compiling a kernel and emulating it may take together; as long as it takes without
    /// one. A pool of compilers has a [deadline](CompilePool::with_deadline) of its own.
    pub deadline: Option<Duration>,
}

impl Default for EmulationOptions {
    fn default() -> Self {
        Self { seeds: 2, checks: 3, budget: None, deadline: None }
    }
}

/// Judges kernels by running their PTX on the CPU.
#[derive(Clone, Debug)]
pub struct EmulatorEvaluator {
    compiler: PtxCompiler,
    nvrtc: Version,
    architecture: Architecture,
    options: EmulationOptions,
}

/// Where sources become PTX.
#[derive(Clone, Debug)]
enum PtxCompiler {
    /// In other processes, which a source may take down.
    Pool(CubinCompiler),
    /// In this process, which a source may take down.
    Here(Arc<Compilers>),
}

/// What was found out about a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What became of it.
    pub outcome: Outcome,
    /// What it does wrong in the first launch that shows anything, in the order of the PTX text. Of
    /// a wrong result, where it comes from.
    pub findings: Vec<Finding>,
    /// Counts of the first launch; absent when there was none.
    pub counters: Option<Counters>,
    /// Instructions of its PTX; absent when it does not compile.
    pub ptx_instructions: Option<usize>,
    /// What is to be known of a right kernel from anywhere, in a line.
    pub remark: Option<String>,
}

/// The emulator, or what it needs, failed: nothing is known of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// No compiler for the architecture.
    #[error(transparent)]
    Compiler(#[from] UnsupportedByAll),
    /// The processes that compile failed, and not because of the source.
    #[error(transparent)]
    Pool(#[from] PoolCompileError),
    /// CUDA from anywhere, for an evaluator that compiles in the caller's process.
    #[error(
        "CUDA from anywhere is compiled in processes only: open the emulator with a pool of them"
    )]
    Foreign,
    /// A generated kernel could not be written down.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The kernel uses what the emulator does not have. A GPU may run it.
    #[error("the emulator cannot run the kernel `{kernel}`: {error}")]
    Ptx {
        /// The kernel's name.
        kernel: String,
        /// What it uses.
        error: PtxError,
    },
    /// The kernel is for matrices of another type.
    #[error("the kernel is for {task}, and the matrix holds {found}")]
    Type {
        /// What it computes.
        task: Task,
        /// Type of the matrix's values.
        found: Dtype,
    },
    /// The operands do not fit the matrix.
    #[error(transparent)]
    Shape(#[from] OperandError),
    /// A launch would take too long, or write too much. What is wrong with some of its blocks would
    /// be in a judgement.
    #[error(
        "a launch of {blocks} blocks with an output of {elements} elements is too large to emulate: {ran} of its blocks \
         have ended, and nothing was found{}", but(remark.as_deref())
    )]
    Launch {
        /// Its blocks.
        blocks: u64,
        /// Elements of its output.
        elements: u64,
        /// Blocks that have run to their end.
        ran: u64,
        /// What is wrong only if the result is.
        remark: Option<Box<Finding>>,
    },
    /// A warp was given up that had executed fewer instructions than the matrix may take.
    #[error(
        "a warp was given up after {budget} instructions, and nothing was found until then: the matrix implies up to \
         {implied} if one warp does all of the work"
    )]
    Budget {
        /// Instructions that it has executed.
        budget: u64,
        /// Instructions that the matrix implies.
        implied: u64,
    },
    /// A launch was given up for want of memory.
    #[error("a launch was given up, and nothing was found until then: {why}")]
    GivenUp {
        /// What it lacks.
        why: String,
    },
    /// It took too long.
    #[error("the kernel was given up after {} s, and nothing was found until then", deadline.as_secs_f64())]
    OutOfTime {
        /// The time that it had.
        deadline: Duration,
    },
    /// A matrix to try it on is none.
    #[error(transparent)]
    Matrix(#[from] CsrError),
    /// A dense operand is larger than what a check may take.
    #[error("a dense operand of {rows} × {columns} elements is too large to emulate on")]
    TooLarge {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// Nothing could be told from results that may overflow.
    #[error(
        "{elements} results may be too large for {dtype}, so that nothing can be verified: scale the matrix down"
    )]
    Range {
        /// How many.
        elements: usize,
        /// Type of the results.
        dtype: Dtype,
    },
}

impl EmulatorEvaluator {
    /// Emulates PTX for `architecture`, made in the processes of a pool.
    ///
    /// # Errors
    /// When none of the compilers knows the architecture, or when there is none.
    pub fn open(
        compilers: Arc<CompilePool>,
        architecture: Architecture,
        options: EmulationOptions,
    ) -> Result<Self, EmulatorError> {
        Self::with_compiler(CubinCompiler::new(compilers, architecture, None), options)
    }

    /// Emulates PTX by the same compiler that makes machine code.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with_compiler(
        compiler: CubinCompiler,
        options: EmulationOptions,
    ) -> Result<Self, EmulatorError> {
        let (nvrtc, architecture) = (compiler.version()?, compiler.architecture());
        let compiler = PtxCompiler::Pool(compiler);
        Ok(Self { compiler, nvrtc, architecture, options })
    }

    /// Emulates PTX for `architecture`, made in this process. That takes generated sources only,
    /// which no stranger wrote: a hostile source can crash its compiler or never let it end.
    ///
    /// # Errors
    /// When none of the compilers knows the architecture.
    pub fn in_process(
        compilers: Arc<Compilers>,
        architecture: Architecture,
        options: EmulationOptions,
    ) -> Result<Self, EmulatorError> {
        let nvrtc = compilers.for_arch(architecture)?.version();
        let compiler = PtxCompiler::Here(compilers);
        Ok(Self { compiler, nvrtc, architecture, options })
    }

    /// The architecture that PTX is made for.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// The version of the compiler.
    #[must_use]
    pub fn nvrtc(&self) -> Version {
        self.nvrtc
    }

    /// How thoroughly it judges.
    #[must_use]
    pub fn options(&self) -> &EmulationOptions {
        &self.options
    }

    /// The same with another [deadline](EmulationOptions::deadline).
    #[must_use]
    pub(crate) fn within(&self, deadline: Duration) -> Self {
        let options = EmulationOptions { deadline: Some(deadline), ..self.options };
        Self { options, ..self.clone() }
    }

    /// Judges a candidate on a matrix. The inputs are the same in every run.
    ///
    /// # Errors
    /// When nothing can be said about the kernel, which includes that it uses what the emulator
    /// does not have. Whatever the kernel does is in the judgement.
    pub fn judge<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        candidate: Candidate<'_>,
    ) -> Result<Judgement, EmulatorError> {
        self.judge_any(matrix.into(), candidate)
    }

    fn judge_any(
        &self,
        matrix: AnyCsrView<'_>,
        candidate: Candidate<'_>,
    ) -> Result<Judgement, EmulatorError> {
        match matrix {
            AnyCsrView::F32(matrix) => self.judge_of(matrix, candidate),
            AnyCsrView::F64(matrix) => self.judge_of(matrix, candidate),
            AnyCsrView::F16(matrix) => self.judge_of(matrix, candidate),
            AnyCsrView::BF16(matrix) => self.judge_of(matrix, candidate),
        }
    }

    fn judge_of<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        candidate: Candidate<'_>,
    ) -> Result<Judgement, EmulatorError> {
        let until = self.until();
        let made = match candidate {
            Candidate::Kernel(kernel) => self.generated(kernel, until)?,
            Candidate::Cuda { kernel, task, .. } => self.cuda(matrix, kernel, task, until)?,
        };
        self.judge_made(matrix, made, until)
    }

    /// When judging ends that begins now, if it has to.
    fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.options.deadline?)
    }

    /// Judges the kernel of a program on a matrix. One that does not fit the matrix does not
    /// compile.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn judge_program<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        program: &Program,
    ) -> Result<Judgement, EmulatorError> {
        match Kernel::for_matrix(matrix, program) {
            Ok(kernel) => self.judge(matrix, Candidate::Kernel(&kernel)),
            Err(WriteError::Pack(error)) => Ok(Judgement::misfit(&error)),
            Err(WriteError::Emit(error)) => Err(error.into()),
        }
    }

    fn judge_made<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        made: Result<Emulable<'_>, Outcome>,
        until: Option<Instant>,
    ) -> Result<Judgement, EmulatorError> {
        let Emulable { ptx, name, prepared, task, foreign, registers } = match made {
            Ok(made) => made,
            Err(outcome) => return Ok(Judgement::unlaunched(outcome)),
        };
        if task.precision.matrix() != T::DTYPE {
            return Err(EmulatorError::Type { task, found: T::DTYPE });
        }
        let unlike = |error| EmulatorError::Ptx { kernel: name.clone(), error };
        let module = Module::parse(&ptx).map_err(unlike)?;
        if !module.kernels().contains(&name.as_str()) {
            let missing = CompileError::KernelMissing { kernel: name, log: String::new() };
            let reason = missing.to_string();
            return Ok(Judgement::unlaunched(Outcome::CompileFailed { reason }));
        }
        let mut kernel = module.kernel(&name).map_err(unlike)?;
        kernel.machine_registers = registers;
        let geometry = &prepared.launch.geometry;
        if let Some(reason) = limits::refusal(self.architecture, &kernel, geometry) {
            return Ok(Judgement::unlaunched(Outcome::LaunchFailed { reason }));
        }
        for SourceLocation { file, .. } in &mut kernel.locations {
            // The compiler puts the current folder before the name that it was given, but no file
            // is there.
            if let Some((_, name)) = file.rsplit_once('/') {
                *file = name.to_owned();
            }
        }
        let how = (&self.options, until);
        let compile = |source: &str| self.recompile(source, &name, until);
        let of = foreign.map(|raw| Foreign { raw, ptx: &ptx, compile: &compile });
        let trial = run_trial(&kernel, &prepared, matrix.into(), (task, of), how);
        let trial = trial.map(|judgement| judgement.naming_launch(foreign));
        let is_open = match &trial {
            Ok(judgement) => judgement.outcome.is_right(),
            Err(error) => {
                use EmulatorError::{Budget, GivenUp, Launch};
                matches!(error, Launch { .. } | Budget { .. } | GivenUp { .. })
            }
        };
        let Some(of) = of.filter(|_| is_open) else { return trial };
        let on_other = match self.judge_on_others(&kernel, of, (matrix, task), until) {
            Ok(on_other) => on_other,
            Err(error) => return Err(trial.err().unwrap_or(error)),
        };
        let Some(on_other) = on_other else { return trial };
        if on_other.outcome.is_right() {
            let remarked = |judgement: Judgement| Judgement {
                remark: judgement.remark.or(on_other.remark),
                ..judgement
            };
            return trial.map(remarked);
        }
        // What it costs is told of the matrix that was asked for.
        let counters = trial.map_or(on_other.counters, |judgement| judgement.counters);
        Ok(Judgement { counters, ..on_other.naming_launch(foreign) })
    }

    /// What is wrong with a kernel, or remarkable, on matrices that are cut out of the one that it
    /// is judged on.
    fn judge_on_others<T: Scalar>(
        &self,
        kernel: &MachineKernel,
        of @ Foreign { raw, .. }: Foreign<'_>,
        (matrix, task): (CsrView<'_, T>, Task),
        until: Option<Instant>,
    ) -> Result<Option<Judgement>, EmulatorError> {
        let options = EmulationOptions { seeds: 1, checks: 1, ..self.options };
        let mut remarked = None;
        // Some launches take what such a matrix has none of, as a grid of a block for each entry.
        let judged = |small: CsrView<'_, T>| {
            let prepared = raw.prepare(small, task).ok().filter(is_short);
            let how = (&options, until);
            let on_it =
                |prepared| run_trial(kernel, &prepared, small.into(), (task, Some(of)), how);
            prepared.map(on_it).transpose()
        };
        for (what, small) in awkward::matrices(matrix, raw.is_told(matrix))? {
            let Some(on_it) = judged(small.view())? else { continue };
            if matches!(on_it.outcome, Outcome::Faulted { .. } | Outcome::WrongResult { .. }) {
                if let Some(finding) = verdict::misaligned(&on_it.findings) {
                    let padded = awkward::with_multiples(small.view(), matrix)?;
                    let on_padded = judged(padded.view())?;
                    if let Some(right) = on_padded.filter(|on| on.outcome.is_right()) {
                        let remark = Some(verdict::takes_multiples(what, finding));
                        remarked.get_or_insert(Judgement { remark, ..right });
                        continue;
                    }
                }
                let outcome = verdict::on_matrix(what, on_it.outcome);
                return Ok(Some(Judgement { outcome, ..on_it }));
            }
            if on_it.remark.is_some() {
                remarked.get_or_insert(on_it);
            }
        }
        Ok(remarked)
    }
}

/// Launches a kernel as often as the options say, and compares.
fn run_trial(
    kernel: &MachineKernel,
    prepared: &Prepared,
    matrix: AnyCsrView<'_>,
    what: (Task, Option<Foreign<'_>>),
    how: (&EmulationOptions, Option<Instant>),
) -> Result<Judgement, EmulatorError> {
    // Dense operands are of the matrix's type in all precisions but one.
    let is_in_f64 = what.0.precision == Precision::F32_IN_F64;
    match matrix {
        AnyCsrView::F32(matrix) if is_in_f64 => {
            run_of::<_, f64>(kernel, prepared, matrix, what, how)
        }
        AnyCsrView::F32(matrix) => run_of::<_, f32>(kernel, prepared, matrix, what, how),
        AnyCsrView::F64(matrix) => run_of::<_, f64>(kernel, prepared, matrix, what, how),
        AnyCsrView::F16(matrix) => run_of::<_, f16>(kernel, prepared, matrix, what, how),
        AnyCsrView::BF16(matrix) => run_of::<_, bf16>(kernel, prepared, matrix, what, how),
    }
}

/// The same, with dense operands of type `D`.
fn run_of<T: Scalar, D: Scalar>(
    kernel: &MachineKernel,
    prepared: &Prepared,
    matrix: CsrView<'_, T>,
    (task, foreign): (Task, Option<Foreign<'_>>),
    how: (&EmulationOptions, Option<Instant>),
) -> Result<Judgement, EmulatorError> {
    let width = task.operation.columns() as usize;
    let is_large = matrix.rows().saturating_mul(width) > MOST_ELEMENTS
        || warps(&prepared.launch.geometry) > MOST_WARPS;
    if foreign.is_some() && is_large {
        return Sampling::<T, D>::new(kernel, prepared, matrix, width)?.judge(how.1);
    }
    let named = named_columns(matrix, width)?;
    Trial::<T, D>::new(kernel, prepared, matrix, named.as_ref(), task, foreign)?.judge(how)
}

fn but(remark: Option<&Finding>) -> String {
    remark.map(|remark| format!(" but {remark}")).unwrap_or_default()
}

impl Judgement {
    /// With the line that says how large dynamic shared memory is, of what is outside of it.
    fn naming_launch(mut self, kernel: Option<&RawKernel>) -> Self {
        let Some(line) = kernel.and_then(RawKernel::launch_line) else { return self };
        for Finding { detail, address, .. } in
            self.findings.iter_mut().filter(|finding| finding.kind == FindingKind::OutOfBounds)
        {
            if address.as_ref().is_some_and(|at| at.place.starts_with("dynamic shared memory")) {
                *detail += &format!("; its size is said at line {line}");
            }
        }
        self
    }

    /// Of a kernel that never ran.
    fn unlaunched(outcome: Outcome) -> Self {
        Self { outcome, findings: Vec::new(), counters: None, ptx_instructions: None, remark: None }
    }

    /// Of a program that does not fit the matrix.
    fn misfit(error: &PackError) -> Self {
        Self::unlaunched(not_compiled(format!("it does not fit the matrix: {error}")))
    }
}

impl Evaluator for EmulatorEvaluator {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = EmulatorError;

    fn abilities(&self) -> Abilities {
        let cuda = matches!(self.compiler, PtxCompiler::Pool(_));
        let EmulationOptions { seeds, checks, .. } = self.options;
        let protocol = format!("emulated-{seeds}x{checks}");
        Abilities { times: false, findings: true, cuda, protocol }
    }

    /// A right candidate is [`Outcome::Verified`]; there are no baselines.
    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate<'_>],
    ) -> Result<Evaluation, EmulatorError> {
        let outcome = |&candidate: &Candidate<'_>| Ok(self.judge(matrix, candidate)?.outcome);
        let outcomes = candidates.par_iter().map(outcome).collect::<Result<_, EmulatorError>>()?;
        Ok(Evaluation { outcomes, baselines: Vec::new(), copy_bandwidth: None })
    }

    fn is_unverifiable(error: &EmulatorError) -> bool {
        matches!(error, EmulatorError::Range { .. } | EmulatorError::TooLarge { .. })
    }
}
