//! `verify --emulate`.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::Task;
use sparserl_core::with_scalar;
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::emulated::ground::{Emulated, Ground, GroundError, fits};
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};

use super::Given;
use super::emulation_report::EmulationReport;
use crate::args::{EmulationArgs, VerifyArgs};
use crate::console;
use crate::ending::WrongKernel;
use crate::gpu;
use crate::kernel_file::{Kernel, Kind};
use crate::progress::Progress;

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    let report = report(args)?;
    console::print(&if args.json { report.json()? } else { report.to_string() })?;
    match report.fault() {
        Some(fault) => bail!(WrongKernel(fault)),
        None => Ok(()),
    }
}

fn report(args: &VerifyArgs) -> anyhow::Result<EmulationReport> {
    let progress = Progress::new(2, !args.json);
    let (given, matrix) = Given::read(args, &progress)?;
    let emulator = open(&args.emulation, args.judging.deadline)?;
    progress.step("emulating");
    let judged = with_scalar!(given.task.precision.matrix(), T => {
        let rounded = matrix.cast::<T>()?;
        drop(matrix);
        judge(args, &given, rounded.view(), &emulator)
    });
    let judged = judged.map_err(|error| match EmulationArgs::hint(&error) {
        Some(hint) => anyhow!("{error}; {hint}"),
        None => error.into(),
    });
    let Emulated { judgement, extent } =
        judged.with_context(|| args.kernel.display().to_string())?;
    drop(progress);
    given.check_declared(&judgement.outcome)?;
    given.say_note();
    Ok(EmulationReport::new(given, &emulator, extent, judgement))
}

fn judge<T: Scalar>(
    args: &VerifyArgs,
    given: &Given,
    matrix: CsrView<'_, T>,
    emulator: &EmulatorEvaluator,
) -> Result<Emulated, GroundError> {
    Grounds::new(&args.emulation, matrix, given.task).judge(emulator, &given.kernel)
}

/// The emulator that was asked for, which gives up a kernel after that time.
pub(crate) fn open(
    args: &EmulationArgs,
    deadline: Option<Duration>,
) -> anyhow::Result<EmulatorEvaluator> {
    let compilers = gpu::pool_within(deadline).context("emulation needs a compiler")?;
    let options = EmulationOptions { deadline, ..args.options() };
    Ok(EmulatorEvaluator::open(compilers, args.architecture(), options)?)
}

/// Where the kernels for a matrix are emulated.
pub(crate) struct Grounds<'m, T> {
    matrix: CsrView<'m, T>,
    stats: MatrixStats<'m>,
    task: Task,
    whole: Ground<'m, T>,
    programs: Ground<'m, T>,
    cuda: Ground<'m, T>,
}

impl<'m, T: Scalar> Grounds<'m, T> {
    pub(crate) fn new(args: &EmulationArgs, matrix: CsrView<'m, T>, task: Task) -> Self {
        let ground = |kind| match args.sample(kind) {
            None => Ground::whole(matrix),
            Some(most) => Ground::sampled(matrix, most, task.operation),
        };
        let (programs, cuda) = (ground(Kind::Program), ground(Kind::Cuda));
        let (stats, whole) = (MatrixStats::new(matrix), Ground::whole(matrix));
        Self { matrix, stats, task, whole, programs, cuda }
    }

    /// Judges a kernel.
    ///
    /// # Errors
    /// When the emulator cannot say anything about it.
    pub(crate) fn judge(
        &self,
        emulator: &EmulatorEvaluator,
        kernel: &Kernel,
    ) -> Result<Emulated, GroundError> {
        match kernel {
            // It does not fit the matrix, whatever it does on a sample.
            Kernel::Program(program) if !fits(self.matrix, &self.stats, program) => {
                self.whole.judge_program(emulator, program)
            }
            Kernel::Program(program) => self.programs.judge_program(emulator, program),
            Kernel::Cuda(kernel) => {
                self.cuda.judge(emulator, Candidate::uncompiled(kernel, self.task))
            }
        }
    }
}
