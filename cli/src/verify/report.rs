//! What `verify` says of a kernel: as text for people, as JSON for machines.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::{Baseline, Evaluation, Outcome, Regime};
use sparserl_core::plan::TaskPlan;
use sparserl_core::results::{ByRegime, Comparison, Figures, Rival, Work};
use sparserl_core::task::Task;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::worker::Protocol;

use crate::args::OpponentArgs;
use crate::kernel_file::Kind;
use crate::summary::size;
use crate::text::{self, time, times};

/// One run of `verify`; its serde form is the document of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    kernel: PathBuf,
    kind: Kind,
    matrix: MatrixIdentity,
    task: TaskPlan,
    #[serde(skip)]
    task_text: String,
    device: DeviceFacts,
    protocol: Protocol,
    right: bool,
    outcome: Outcome,
    /// By regime; null unless the kernel is right.
    #[serde(flatten)]
    figures: ByRegime<Option<Figures>>,
    baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a device-to-device copy; null when not measured.
    copy_bandwidth: Option<f64>,
}

/// What was judged, and how.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) kernel: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) matrix: MatrixIdentity,
    pub(crate) task: Task,
    pub(crate) device: DeviceFacts,
    pub(crate) protocol: Protocol,
}

impl Report {
    /// Of the one kernel's `outcome` and what was measured beside it.
    pub(crate) fn new(subject: Subject, outcome: Outcome, evaluation: Evaluation) -> Self {
        let Subject { kernel, kind, matrix, task, device, protocol } = subject;
        let work = Work::new(matrix.nnz, task.operation);
        let figures = ByRegime::of(|regime| {
            Figures::new(outcome.measurement()?, &evaluation.baselines, regime, work)
        });
        Self {
            kernel,
            kind,
            matrix,
            task: task.into(),
            task_text: task.to_string(),
            device,
            protocol,
            right: outcome.is_right(),
            outcome,
            figures,
            baselines: evaluation.baselines,
            copy_bandwidth: evaluation.copy_bandwidth,
        }
    }

    /// What is wrong with the kernel, in one line.
    pub(crate) fn fault(&self) -> Option<String> {
        (!self.right).then(|| format!("{}: {}", self.kernel.display(), self.outcome))
    }

    /// The document of `--json`, with a line break at its end.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        text::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceFacts { name, target, driver: (major, minor), .. } = &self.device;
        let architecture = target.architecture;
        writeln!(f, "kernel     {}", self.kernel.display())?;
        writeln!(f, "matrix     {}: {}", self.matrix.name, size(&self.matrix))?;
        writeln!(f, "task       {}", self.task_text)?;
        writeln!(f, "device     {name}, {architecture}, driver for CUDA {major}.{minor}")?;
        match self.outcome.measurement() {
            Some(measurement) => writeln!(
                f,
                "right      in {} checks; the worst error is {:.2} of the bound",
                measurement.checks, measurement.worst_ratio
            )?,
            None => writeln!(f, "wrong      {}", self.outcome)?,
        }
        for regime in [Regime::Cold, Regime::Warm] {
            let Some(figures) = self.figures.get(regime) else { continue };
            write!(f, "{:<11}{}", regime.name(), time(figures.seconds))?;
            write!(f, ", {:.2} GFLOPS", figures.gflops)?;
            if let Some(default) = figures.against(Rival::Default) {
                let Comparison { library, algorithm, ratio, .. } = default;
                write!(f, ", {} {library} {algorithm}", times(*ratio))?;
            }
            if let Some(best) = figures.against(Rival::Best) {
                let Comparison { library, algorithm, ratio, .. } = best;
                write!(f, ", {} the best, {library} {algorithm}", times(*ratio))?;
            }
            writeln!(f)?;
        }
        for baseline in &self.baselines {
            if let Err(reason) = &baseline.timing {
                let Baseline { library, algorithm, .. } = baseline;
                write!(f, "not run    {library} {algorithm}: {reason}")?;
                let hint = OpponentArgs::hint(reason).map(|hint| format!("; {hint}"));
                writeln!(f, "{}", hint.unwrap_or_default())?;
            }
        }
        if self.right && self.baselines.is_empty() {
            writeln!(f, "opponents  not measured")?;
        }
        Ok(())
    }
}
