//! `verify`: is one kernel right on one matrix, and how fast is it?
//!
//! ```text
//! kernel file ─► kernel ─┐
//! matrix file ─► load ───┴─► judge ─► report
//!                        └─► emulate ─► emulation_report, where there is no GPU
//! ```

pub(crate) mod emulate;
mod emulation_report;
#[cfg(test)]
pub(crate) mod fake;
mod report;

use anyhow::{Context, anyhow, bail};
use sparserl_core::matrix::{Csr, MatrixIdentity};
use sparserl_core::message;
use sparserl_core::outcome::{Evaluation, Outcome};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::compile::nvrtc::CompileError;
use sparserl_gpu::run::device;
use sparserl_gpu::store::fingerprint::identity;

use crate::args::VerifyArgs;
use crate::ending::WrongKernel;
use crate::instrument::Instrument;
use crate::load::{load, lost, round};
use crate::{console, gpu};

use crate::kernel_file::{Kernel, KernelFile};
use crate::progress::Progress;
use report::{Report, Subject};

/// What CUDA is taken to compute where nothing is said.
const CUDA_TASK: Task = Task::new(Operation::SpMV, Dtype::F32);

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<()> {
    if args.emulation.emulate {
        return emulate::run(args);
    }
    let open = || {
        gpu::open_asked(&args.judging).map_err(|error| match device::count() {
            Err(no_gpu) if no_gpu.is_absence() => {
                anyhow!("{}; --emulate checks it without one", message::with_causes(error.as_ref()))
            }
            _ => error,
        })
    };
    let report = verify(args, open)?;
    if args.json {
        console::print(&report.json()?)?;
    }
    if let Some(fault) = report.fault() {
        bail!(WrongKernel(fault));
    }
    if args.json { Ok(()) } else { console::print(&report.to_string()) }
}

/// Judges the kernel. The instrument is opened once everything that was given has been read.
fn verify<I: Instrument>(
    args: &VerifyArgs,
    open: impl FnOnce() -> anyhow::Result<I>,
) -> anyhow::Result<Report> {
    let progress = Progress::new(3, !args.json);
    let (given, matrix) = Given::read(args, &progress)?;
    progress.step("opening the GPU");
    let mut instrument = open()?;
    progress.step("judging");
    let (kernel, task) = (&given.kernel, given.task);
    let mut evaluation = Evaluation::default();
    with_scalar!(task.precision.matrix(), T => {
        let rounded = matrix.cast::<T>()?;
        drop(matrix);
        let whole = |judged| evaluation.append(judged);
        instrument.judge_files(rounded.view(), task, &[kernel], whole)?;
    });
    drop(progress);
    given.say_note();
    let outcome =
        evaluation.outcomes.pop().ok_or_else(|| anyhow!("the judge did not say anything"))?;
    given.check_declared(&outcome)?;
    let subject = Subject {
        kernel: given.file.path,
        kind: given.file.kind,
        matrix: given.facts,
        task: given.task,
        device: instrument.device(),
        protocol: args.judging.protocol(),
    };
    Ok(Report::new(subject, outcome, evaluation))
}

/// What was given, read and understood.
struct Given {
    file: KernelFile,
    kernel: Kernel,
    task: Task,
    facts: MatrixIdentity,
    note: Option<String>,
}

impl Given {
    /// Gives the matrix as it was read, too, which can be rounded to the task's precision.
    fn read(args: &VerifyArgs, progress: &Progress) -> anyhow::Result<(Self, Csr<f64>)> {
        let at = || args.kernel.display().to_string();
        let file = KernelFile::read(args.kernel.clone()).with_context(at)?;
        let kernel = file.parse().with_context(at)?;
        if matches!(&kernel, Kernel::Cuda(kernel) if kernel.includes_files()) {
            // Not wrong: nobody here can say.
            return Err(CompileError::Include).with_context(at);
        }
        let own = kernel.task().unwrap_or(CUDA_TASK);
        let task = args.asked.task_or(own);
        if kernel.task().is_some() && task != own {
            bail!(
                "{}: the program is for {own}, not for {task}; leave out --op, --cols and --dtype",
                args.kernel.display()
            );
        }

        let matrix_args = args.matrix();
        progress.step(format!("loading {}", matrix_args.file_name()));
        let (matrix, note) = load(&matrix_args)?;
        let facts = identity(matrix_args.file_name(), matrix.view());
        let lost = lost(&matrix, task.precision.matrix());
        let notes: Vec<String> = note.into_iter().chain(lost).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        // Before a GPU is opened: where it cannot be rounded, none is needed.
        with_scalar!(task.precision.matrix(), T => drop(round::<T>(&matrix, &matrix_args)?));
        Ok((Self { file, kernel, task, facts, note }, matrix))
    }

    /// Sees that nothing but the source itself is why it does not compile.
    fn check_declared(&self, outcome: &Outcome) -> anyhow::Result<()> {
        match (&self.kernel, outcome) {
            (Kernel::Cuda(kernel), Outcome::CompileFailed { reason })
                if kernel.lacks_declarations(reason) =>
            {
                bail!(
                    "{}: {reason}; of CUDA's headers not all is declared here: it may compile with them",
                    self.file.path.display()
                )
            }
            _ => Ok(()),
        }
    }

    /// Says what is to be known of the matrix.
    fn say_note(&self) {
        if let Some(note) = &self.note {
            console::say(&format!("note: {note}"));
        }
    }
}

#[cfg(test)]
mod tests;
