//! What `verify` says of a kernel: as text for people, as JSON for machines.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use sparserl_core::outcome::{Baseline, Evaluation, Outcome};
use sparserl_core::task::Task;
use sparserl_gpu::isolate::worker::Protocol;
use sparserl_gpu::run::device::DeviceFacts;

use super::kernel::Kind;
use crate::figures::{CACHES, Figures, Rival, Work, cache_name};
use crate::plan::{MatrixPlan, TaskPlan};
use crate::summary::size;
use crate::text::{time, times};

/// One run of `verify`; its serde form is the document of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    kernel: PathBuf,
    kind: Kind,
    matrix: MatrixPlan,
    task: TaskPlan,
    #[serde(skip)]
    task_text: String,
    device: DeviceFacts,
    protocol: Protocol,
    right: bool,
    outcome: Outcome,
    /// With a cold cache; null unless the kernel is right.
    cold: Option<Figures>,
    /// With a warm cache; null unless the kernel is right.
    warm: Option<Figures>,
    baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a device-to-device copy; null when not measured.
    copy_bandwidth: Option<f64>,
}

/// What was judged, and how.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) kernel: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) matrix: MatrixPlan,
    pub(crate) task: Task,
    pub(crate) device: DeviceFacts,
    pub(crate) protocol: Protocol,
}

impl Report {
    /// Of the one kernel's `outcome` and what was measured beside it.
    pub(crate) fn new(subject: Subject, outcome: Outcome, evaluation: Evaluation) -> Self {
        let Subject { kernel, kind, matrix, task, device, protocol } = subject;
        let work = Work::new(matrix.nnz, task.operation);
        let of = |cache| Figures::new(outcome.measurement()?, &evaluation.baselines, cache, work);
        let [cold, warm] = CACHES.map(of);
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
            cold,
            warm,
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
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceFacts { name, target, driver: (major, minor), .. } = &self.device;
        let architecture = target.architecture;
        writeln!(f, "kernel     {}", self.kernel.display())?;
        writeln!(f, "matrix     {}: {}", self.matrix.file, size(&self.matrix))?;
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
        for (cache, figures) in CACHES.into_iter().zip([&self.cold, &self.warm]) {
            let Some(figures) = figures else { continue };
            write!(f, "{:<11}{}", cache_name(cache), time(figures.seconds))?;
            write!(f, ", {:.2} GFLOPS", figures.gflops)?;
            if let Some(default) = figures.against(Rival::Default) {
                write!(f, ", {} cuSPARSE {}", times(default.ratio), default.algorithm)?;
            }
            if let Some(best) = figures.against(Rival::Best) {
                write!(f, ", {} its best, {}", times(best.ratio), best.algorithm)?;
            }
            writeln!(f)?;
        }
        for baseline in &self.baselines {
            if let Err(reason) = &baseline.timing {
                writeln!(f, "not run    cuSPARSE {}: {reason}", baseline.algorithm)?;
            }
        }
        if self.right && self.baselines.is_empty() {
            writeln!(f, "cuSPARSE   not measured")?;
        }
        Ok(())
    }
}
