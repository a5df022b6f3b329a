//! `verify --emulate`.

use anyhow::{Context, bail};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::emulated::EmulatorEvaluator;
use sparserl_gpu::emulated::ground::{Emulated, Ground, fits};

use super::emulation_report::EmulationReport;
use super::kernel::Kernel;
use super::{Given, Rounded};
use crate::args::VerifyArgs;
use crate::console;
use crate::ending::WrongKernel;
use crate::gpu;
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
    let given = Given::read(args, &progress)?;
    let compilers = gpu::pool().context("emulation needs a compiler")?;
    let (architecture, options) = (args.emulation.architecture(), args.emulation.options());
    let emulator = EmulatorEvaluator::open(compilers, architecture, options)?;
    progress.step("emulating");
    let judged = match &given.matrix {
        Rounded::F32(matrix) => judge(args, &given, matrix.view(), &emulator),
        Rounded::F64(matrix) => judge(args, &given, matrix.view(), &emulator),
        Rounded::F16(matrix) => judge(args, &given, matrix.view(), &emulator),
        Rounded::BF16(matrix) => judge(args, &given, matrix.view(), &emulator),
    };
    let Emulated { judgement, extent } =
        judged.with_context(|| args.kernel.display().to_string())?;
    drop(progress);
    given.say_note();
    Ok(EmulationReport::new(given, &emulator, extent, judgement))
}

fn judge<T: Scalar>(
    args: &VerifyArgs,
    given: &Given,
    matrix: CsrView<'_, T>,
    emulator: &EmulatorEvaluator,
) -> anyhow::Result<Emulated> {
    let candidate = match &given.kernel {
        Kernel::Program(program) => Candidate::Program(program),
        Kernel::Cuda(kernel) => Candidate::Cuda(kernel, given.task),
    };
    let ground = match (args.emulation.sample(given.file.kind), candidate) {
        (None, _) => Ground::whole(matrix),
        // It does not fit the matrix, whatever it does on a sample.
        (_, Candidate::Program(program)) if !fits(matrix, program) => Ground::whole(matrix),
        (Some(most), _) => Ground::sampled(matrix, most, given.task.operation),
    };
    Ok(ground.judge(emulator, candidate)?)
}
