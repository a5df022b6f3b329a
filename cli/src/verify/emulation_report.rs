//! What `verify --emulate` says of a kernel: as text for people, as JSON for machines.

use std::fmt;
use std::path::PathBuf;

use indicatif::HumanCount;
use serde::Serialize;
use sparserl_core::layout::EmulatedFeatures;
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::{Outcome, Verification};
use sparserl_core::plan::TaskPlan;
use sparserl_gpu::Architecture;
use sparserl_gpu::emulated::ground::Extent;
use sparserl_gpu::emulated::{
    Counters, EmulatorEvaluator, Finding, FindingKind, Judgement, PlacedAddress, SourceLocation,
};

use super::Given;
use crate::kernel_file::Kind;

use crate::summary::size;
use crate::text;

/// One run of `verify --emulate`; its serde form is the document of `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct EmulationReport {
    kernel: PathBuf,
    kind: Kind,
    matrix: MatrixIdentity,
    task: TaskPlan,
    #[serde(skip)]
    task_text: String,
    emulation: Emulation,
    right: bool,
    outcome: Outcome,
    findings: Vec<FindingDocument>,
    /// What is to be known of a right kernel; null where there is nothing.
    remark: Option<String>,
    /// Of the first launch; null where there was none.
    counters: Option<Counters>,
    /// The counters by product of an entry; null where there was no launch.
    features: Option<EmulatedFeatures>,
    /// Null where it does not compile.
    ptx_instructions: Option<usize>,
}

/// How it was emulated.
#[derive(Debug, Serialize)]
struct Emulation {
    architecture: Architecture,
    nvrtc: String,
    /// Orders in which threads took turns.
    seeds: u32,
    /// Launches in each.
    checks: u32,
    on: Extent,
}

/// A finding for machines, and in words.
#[derive(Debug, Serialize)]
struct FindingDocument {
    kind: FindingKind,
    text: String,
    ptx_line: u32,
    source: Option<SourceDocument>,
    block: [u32; 3],
    thread: [u32; 3],
    address: Option<u64>,
    place: Option<String>,
    detail: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct SourceDocument {
    file: String,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    called_at: Option<u32>,
}

impl EmulationReport {
    pub(super) fn new(
        given: Given,
        emulator: &EmulatorEvaluator,
        on: Extent,
        judgement: Judgement,
    ) -> Self {
        let Judgement { outcome, findings, counters, ptx_instructions, remark } = judgement;
        let options = emulator.options();
        let columns = u64::from(given.task.operation.columns());
        let features = counters.map(|counters| on.cost(columns, &counters).features());
        Self {
            kernel: given.file.path,
            kind: given.file.kind,
            matrix: given.facts,
            task: given.task.into(),
            task_text: given.task.to_string(),
            emulation: Emulation {
                architecture: emulator.architecture(),
                nvrtc: emulator.nvrtc().to_string(),
                seeds: options.seeds,
                checks: options.checks,
                on,
            },
            right: outcome.is_right(),
            outcome,
            findings: findings.into_iter().map(FindingDocument::from).collect(),
            remark,
            counters,
            features,
            ptx_instructions,
        }
    }

    /// What is wrong with the kernel, in one line.
    pub(super) fn fault(&self) -> Option<String> {
        let hint = if self.kind == Kind::Cuda && !self.emulation.on.is_whole() {
            "; it ran on a sample of the rows, --sample 0 takes the whole matrix"
        } else {
            ""
        };
        (!self.right).then(|| format!("{}: {}{hint}", self.kernel.display(), self.outcome))
    }

    /// The document of `--json`, with a line break at its end.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        text::json(self)
    }
}

impl From<Finding> for FindingDocument {
    fn from(finding: Finding) -> Self {
        let text = finding.to_string();
        let Finding { kind, ptx_line, source, block, thread, address, detail, count } = finding;
        let (address, place) = match address {
            Some(PlacedAddress { address, place }) => (Some(address), Some(place)),
            None => (None, None),
        };
        let document =
            |SourceLocation { file, line, called_at }| SourceDocument { file, line, called_at };
        let source = source.map(document);
        Self { kind, text, ptx_line, source, block, thread, address, place, detail, count }
    }
}

impl fmt::Display for EmulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Emulation { architecture, nvrtc, on, .. } = &self.emulation;
        writeln!(f, "kernel     {}", self.kernel.display())?;
        writeln!(f, "matrix     {}: {}", self.matrix.name, size(&self.matrix))?;
        writeln!(f, "task       {}", self.task_text)?;
        if self.counters.is_some() {
            write!(f, "emulated   on {on}")?;
            if self.kind == Kind::Program && !on.is_whole() {
                write!(f, ", which the program was generated anew for")?;
            }
            writeln!(f)?;
        }
        write!(f, "compiled   {architecture} by NVRTC {nvrtc}")?;
        match self.ptx_instructions {
            Some(count) => writeln!(f, ": {} PTX instructions", HumanCount(count as u64))?,
            None => writeln!(f)?,
        }
        match &self.outcome {
            Outcome::Verified(Verification { checks, worst_ratio }) => writeln!(
                f,
                "right      in {checks} checks; the worst error is {worst_ratio:.2} of the bound"
            )?,
            // What is in the findings is not said twice.
            outcome if !self.findings.is_empty() => writeln!(f, "wrong      {}", outcome.word())?,
            outcome => writeln!(f, "wrong      {outcome}")?,
        }
        if let Some(remark) = &self.remark {
            writeln!(f, "remark     {remark}")?;
        }
        for (index, finding) in self.findings.iter().enumerate() {
            writeln!(f, "{:11}{}", if index == 0 { "findings" } else { "" }, finding.text)?;
        }
        self.counters.map_or(Ok(()), |counters| write_counters(f, &counters))
    }
}

/// A line for each kind of cost.
fn write_counters(f: &mut fmt::Formatter<'_>, counters: &Counters) -> fmt::Result {
    let count = |n: u64| HumanCount(n).to_string();
    let accesses = |accesses: u64, sectors: u64| match accesses {
        0 => count(0),
        _ => format!("{}, {:.2} sectors each", count(accesses), sectors as f64 / accesses as f64),
    };
    let &Counters {
        warps,
        instructions,
        warp_instructions,
        longest_warp,
        longest_warp_loads,
        divergent_branches,
        global_loads,
        global_load_sectors,
        global_stores,
        global_store_sectors,
        global_atomics,
        shared_accesses,
        bank_conflicts,
        barrier_waits,
    } = counters;
    let lines = [
        ("instructions", format!("{}, of threads", count(instructions))),
        ("", format!("{}, of {} warps", count(warp_instructions), count(warps))),
        (
            "longest warp",
            format!("{}, {} global loads", count(longest_warp), count(longest_warp_loads)),
        ),
        ("global loads", accesses(global_loads, global_load_sectors)),
        ("global stores", accesses(global_stores, global_store_sectors)),
        ("global atomics", count(global_atomics)),
        ("shared accesses", count(shared_accesses)),
        ("bank conflicts", count(bank_conflicts)),
        ("barrier waits", count(barrier_waits)),
        ("divergent branches", count(divergent_branches)),
    ];
    writeln!(f, "counters   of one launch")?;
    lines.iter().try_for_each(|(name, text)| writeln!(f, "{:11}{name:20}{text}", ""))
}
