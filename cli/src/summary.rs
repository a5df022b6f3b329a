//! What `gen` says when it is done: as text for people, as JSON for machines.

use std::fmt;
use std::path::{Path, PathBuf};

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::{Program, ValueCoding};
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::{Evaluation, Measurement, Outcome, Regime};
use sparserl_core::pipeline::{Artefact, Prediction};
use sparserl_core::plan::{KindPlan, LaunchPlan, MachineCode, PartPlan, Plan, TaskPlan};
use sparserl_core::results::{ByRegime, Comparison, Figures, Packing, Rival, Work};
use sparserl_core::task::{Task, Values};
use sparserl_gpu::emulated::checker::Checked;
use sparserl_gpu::emulated::ground::Extent;

use crate::explanation::Explanation;
use crate::file_names;
use crate::text::{self, time, times};

/// Why kernels that can be compiled were not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmeasured {
    /// There is no GPU.
    NoGpu,
    /// That was asked for, or they are for a GPU of another architecture.
    Otherwise,
}

/// One run of `gen`.
pub(crate) struct Summary {
    pub(crate) output: PathBuf,
    pub(crate) matrix: MatrixIdentity,
    pub(crate) task: Task,
    /// Whether the values are ones because the file has none; absent where nothing is said of it.
    pub(crate) is_pattern: Option<bool>,
    /// What chose the programs, as in a sentence.
    pub(crate) policy: String,
    /// What became of each candidate, and the baselines, where they were measured.
    pub(crate) evaluation: Option<Evaluation>,
    /// Why no kernel was measured, where one could be.
    pub(crate) unmeasured: Option<Unmeasured>,
    /// Best first.
    pub(crate) kernels: Vec<WrittenKernel>,
    /// Where it was asked for.
    pub(crate) explanation: Option<Explanation>,
    pub(crate) seconds: Seconds,
    pub(crate) notes: Vec<String>,
    /// Why a kernel that was written is not known to be right, though that was to be found out.
    pub(crate) warnings: Vec<String>,
}

/// One kernel that was written.
pub(crate) struct WrittenKernel {
    /// Empty where the kernel is in the folder itself.
    pub(crate) subfolder: String,
    pub(crate) program: Program,
    /// Where it was measured.
    pub(crate) measured: Option<MeasuredKernel>,
    /// Where it was checked by emulation.
    pub(crate) checked: Option<Checked>,
    pub(crate) pack_seconds: f64,
    /// Zero where nothing was compiled.
    pub(crate) compile_seconds: f64,
    pub(crate) plan: Plan,
}

/// Where the time went.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Seconds {
    pub(crate) load: f64,
    pub(crate) search: f64,
    /// Opening the GPU included; zero where nothing was measured.
    pub(crate) measure: f64,
    /// By emulation; zero where nothing was.
    pub(crate) check: f64,
    /// Of all kernels.
    pub(crate) pack: f64,
    /// Of all kernels; zero where nothing was compiled.
    pub(crate) compile: f64,
    /// All of it, writing included.
    pub(crate) total: f64,
}

impl Summary {
    /// The document of `--json`, with a line break at its end.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        let document = Document {
            output: &self.output,
            matrix: &self.matrix,
            task: self.task.into(),
            values: self
                .is_pattern
                .map(|is_pattern| ValuesDocument { from_file: !is_pattern, stored: self.values() }),
            seconds: self.seconds,
            notes: &self.notes,
            warnings: &self.warnings,
            evaluation: self.evaluation.as_ref(),
            explanation: self.explanation.as_ref(),
            kernels: self.kernels.iter().map(|kernel| kernel.document(&self.output)).collect(),
        };
        text::json(&document)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    output: &'a Path,
    matrix: &'a MatrixIdentity,
    task: TaskPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<ValuesDocument>,
    seconds: Seconds,
    notes: &'a [String],
    warnings: &'a [String],
    evaluation: Option<&'a Evaluation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a Explanation>,
    kernels: Vec<KernelDocument<'a>>,
}

#[derive(Serialize)]
struct ValuesDocument {
    from_file: bool,
    stored: StoredValues,
}

/// How kernels have the matrix's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum StoredValues {
    /// As one number in the code.
    BakedIn,
    /// As few different numbers that entries refer to.
    Dictionary,
    /// As an array, by a kernel that was made for these.
    Array,
    /// As an array, by a kernel that was made for any.
    Free,
}

impl StoredValues {
    fn in_words(self, is_pattern: bool) -> &'static str {
        match (self, is_pattern) {
            (Self::BakedIn, true) => {
                "all 1, for the file has none, and baked in; --values variable keeps them free"
            }
            (Self::BakedIn, false) => "all the same, baked in; --values variable keeps them free",
            (Self::Dictionary, _) => {
                "few different ones, kept as a dictionary; --values variable keeps them free"
            }
            (Self::Array, true) => "all 1, for the file has none, in the packed arrays",
            (Self::Array, false) => "the matrix's own, in the packed arrays",
            (Self::Free, true) => {
                "none in the file: free, packed as 1; --values fixed lets the kernel hold them"
            }
            (Self::Free, false) => "free: the kernel depends on the pattern only",
        }
    }
}

#[derive(Serialize)]
struct KernelDocument<'a> {
    folder: PathBuf,
    files: &'a [&'static str],
    program: String,
    launch: &'a LaunchPlan,
    parts: &'a [PartPlan],
    predicted: &'a Prediction,
    machine_code: Option<&'a MachineCode>,
    measured: Option<&'a MeasuredKernel>,
    checked: Option<CheckedDocument>,
    packed_matrix_bytes: usize,
    packed_workspace_bytes: usize,
    pack_seconds: f64,
    compile_seconds: f64,
}

/// A kernel that emulation found right.
#[derive(Serialize)]
struct CheckedDocument {
    checks: u32,
    /// The largest |error| / bound.
    worst_ratio: f64,
    /// The rows that it was emulated on.
    on: Extent,
}

impl From<Checked> for CheckedDocument {
    fn from(Checked { verification, extent }: Checked) -> Self {
        Self { checks: verification.checks, worst_ratio: verification.worst_ratio, on: extent }
    }
}

impl WrittenKernel {
    /// In the folder itself, and not checked by emulation. Where it was measured, it was on a GPU
    /// of this name.
    pub(crate) fn new<C, V>(artefact: &Artefact<C, V>, plan: Plan, device: Option<&str>) -> Self {
        let Kernel { packed, pack_time, compile_time, .. } = &artefact.kernel;
        Self {
            subfolder: String::new(),
            program: packed.program.clone(),
            measured: device.and_then(|device| MeasuredKernel::new(artefact, &plan, device)),
            checked: None,
            pack_seconds: pack_time.as_secs_f64(),
            compile_seconds: compile_time.as_secs_f64(),
            plan,
        }
    }

    fn document(&self, output: &Path) -> KernelDocument<'_> {
        KernelDocument {
            folder: if self.subfolder.is_empty() {
                output.into()
            } else {
                output.join(&self.subfolder)
            },
            files: &self.plan.files,
            program: self.program.to_string(),
            launch: &self.plan.launch,
            parts: &self.plan.parts,
            predicted: &self.plan.predicted,
            machine_code: self.plan.machine_code.as_ref(),
            measured: self.measured.as_ref(),
            checked: self.checked.map(CheckedDocument::from),
            packed_matrix_bytes: self.plan.packed_bytes(KindPlan::Matrix),
            packed_workspace_bytes: self.plan.packed_bytes(KindPlan::Workspace),
            pack_seconds: self.pack_seconds,
            compile_seconds: self.compile_seconds,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "matrix     {}: {}", self.matrix.name, size(&self.matrix))?;
        writeln!(f, "task       {}", self.task)?;
        if let Some(is_pattern) = self.is_pattern {
            writeln!(f, "values     {}", self.values().in_words(is_pattern))?;
        }
        match self.kernels.as_slice() {
            [kernel] if kernel.subfolder.is_empty() => write!(f, "{kernel}")?,
            kernels => {
                for kernel in kernels {
                    writeln!(f, "\ncandidate  {}", kernel.subfolder)?;
                    write!(f, "{kernel}")?;
                }
                writeln!(f)?;
            }
        }
        if let Some(Evaluation { outcomes: tried, .. }) = &self.evaluation {
            let right = tried.iter().filter(|outcome| outcome.is_right()).count();
            writeln!(f, "tried      {} candidates, {right} right", tried.len())?;
        }
        if let Some(explanation) = &self.explanation {
            write!(f, "{explanation}")?;
        }
        self.fmt_check(f)?;
        let files = match self.kernels.as_slice() {
            [kernel] if kernel.subfolder.is_empty() => kernel.plan.files.join(", "),
            kernels => format!("{}, 1/ to {}/", file_names::CANDIDATES, kernels.len()),
        };
        writeln!(f, "written    {}: {files}", self.output.join("").display())?;
        writeln!(f, "{}", self.seconds)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { load, search, measure, check, pack, compile, total } = self;
        write!(
            f,
            "time       {} (loading {}, search {}, packing {}",
            time(total),
            time(load),
            time(search),
            time(pack)
        )?;
        if measure > 0.0 {
            write!(f, ", measuring {}", time(measure))?;
        }
        if check > 0.0 {
            write!(f, ", checking {}", time(check))?;
        }
        if compile > 0.0 {
            write!(f, ", compiling {}", time(compile))?;
        }
        write!(f, ")")
    }
}

impl Summary {
    /// How the kernels have the values: of several what binds most.
    fn values(&self) -> StoredValues {
        let has = |coding| {
            let mut parts = self.kernels.iter().flat_map(|kernel| kernel.program.parts());
            parts.any(|part| part.layout.access().values == coding)
        };
        match self.task.values {
            Values::Variable => StoredValues::Free,
            Values::Fixed if has(ValueCoding::Constant) => StoredValues::BakedIn,
            Values::Fixed if has(ValueCoding::Dictionary) => StoredValues::Dictionary,
            Values::Fixed => StoredValues::Array,
        }
    }

    /// What the kernels were emulated on, and where nothing was measured that nothing else was
    /// done.
    fn fmt_check(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut extents: Vec<String> = Vec::new();
        for checked in self.kernels.iter().filter_map(|kernel| kernel.checked) {
            let extent = checked.extent.to_string();
            if !extents.contains(&extent) {
                extents.push(extent);
            }
        }
        let mut extents = extents.join(" and ");
        let unchecked = self.kernels.iter().filter(|kernel| kernel.checked.is_none()).count();
        if unchecked > 0 && !extents.is_empty() {
            extents += &format!("; {unchecked} of {} not checked", self.kernels.len());
        }
        let why = match self.unmeasured {
            None if extents.is_empty() => return Ok(()),
            None => return writeln!(f, "emulated   on {extents}"),
            Some(Unmeasured::NoGpu) => "no GPU",
            Some(Unmeasured::Otherwise) => "unmeasured",
        };
        let policy = &self.policy;
        match extents.as_str() {
            "" => writeln!(f, "{why:10} picked by {policy}; not checked"),
            on => writeln!(f, "{why:10} picked by {policy}; checked by emulation on {on}"),
        }
    }
}

/// `10,974 × 10,974, 428,650 nonzeros, 39.06 a row`
pub(crate) fn size(matrix: &MatrixIdentity) -> String {
    let &MatrixIdentity { rows, cols, nnz, .. } = matrix;
    let count = |n: usize| HumanCount(n as u64);
    let noun = if nnz == 1 { "nonzero" } else { "nonzeros" };
    let mean = nnz as f64 / rows.max(1) as f64;
    format!("{} × {}, {} {noun}, {mean:.2} a row", count(rows), count(cols), count(nnz))
}

impl fmt::Display for WrittenKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Version and task stand above already.
        for (i, line) in self.program.to_string().lines().skip(2).enumerate() {
            writeln!(f, "{:11}{line}", if i == 0 { "program" } else { "" })?;
        }
        if let [first, second, ..] = self.plan.parts.as_slice() {
            let shown = |p: &PartPlan| {
                format!(
                    "{} {} rows, {} nonzeros",
                    p.layout,
                    HumanCount(p.rows as u64),
                    HumanCount(p.nnz as u64)
                )
            };
            let rest = self.plan.parts.iter().skip(2).map(|p| format!("; {}", shown(p)));
            writeln!(
                f,
                "parts      {}; {}{}",
                shown(first),
                shown(second),
                rest.collect::<String>()
            )?;
        }
        let LaunchPlan { grid, block, static_shared, dynamic_shared, .. } = self.plan.launch;
        let noun = if grid == 1 { "block" } else { "blocks" };
        writeln!(
            f,
            "launch     {grid} {noun} of {block} threads, {} shared",
            HumanBytes(static_shared as u64 + u64::from(dynamic_shared))
        )?;
        let Prediction { matrix_bytes, csr_bytes, .. } = self.plan.predicted;
        let share = 100.0 * matrix_bytes as f64 / csr_bytes.max(1) as f64;
        writeln!(
            f,
            "predicted  moves {} for the matrix, {share:.0} % of the {} of CSR",
            HumanBytes(matrix_bytes),
            HumanBytes(csr_bytes)
        )?;
        let packed = HumanBytes(self.plan.packed_bytes(KindPlan::Matrix) as u64);
        write!(f, "packed     {packed}")?;
        match self.plan.packed_bytes(KindPlan::Workspace) {
            0 => {}
            bytes => write!(f, " + {} workspace", HumanBytes(bytes as u64))?,
        }
        writeln!(f, " in {}", time(self.pack_seconds))?;
        if let Some(code) = &self.plan.machine_code {
            let MachineCode {
                architecture,
                nvrtc,
                registers,
                spill_store_bytes,
                spill_load_bytes,
                ..
            } = code;
            let spills = match spill_store_bytes + spill_load_bytes {
                0 => "no spills".to_owned(),
                _ => format!("spills: {spill_store_bytes} bytes stored, {spill_load_bytes} loaded"),
            };
            writeln!(
                f,
                "compiled   {architecture} by NVRTC {nvrtc}: {registers} registers, {spills}"
            )?;
        }
        if let Some(Checked { verification, extent }) = &self.checked {
            let share = 100.0 * verification.worst_ratio;
            let anew = if extent.is_whole() {
                ""
            } else {
                " of the program generated anew for a sample of the rows"
            };
            writeln!(
                f,
                "checked    right in {} checks by emulation{anew}, at most {share:.0} % of the error bound",
                verification.checks
            )?;
        }
        self.measured.as_ref().map_or(Ok(()), |measured| measured.fmt(f))
    }
}

/// A kernel that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct MeasuredKernel {
    /// The GPU's name.
    pub(crate) device: String,
    /// Results compared with the reference.
    pub(crate) checks: u32,
    /// The largest |error| / bound.
    pub(crate) worst_ratio: f64,
    /// By regime; each absent where it was not measured.
    #[serde(flatten)]
    pub(crate) figures: ByRegime<Option<Figures>>,
    /// Of a kernel for the sizes of its matrix alone, how many times as fast it is as the one that
    /// is given them, by regime; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) over_general: Option<ByRegime<Option<f64>>>,
}

impl MeasuredKernel {
    /// What follows from the times of a kernel that was measured on a GPU of this name, and of the
    /// opponents in its batch; absent where there are none.
    fn new<C, V>(artefact: &Artefact<C, V>, plan: &Plan, device: &str) -> Option<Self> {
        let measurement = artefact.outcome.as_ref()?.measurement()?;
        let operation = artefact.kernel.packed.program.task.operation;
        let nnz = plan.parts.iter().map(|part| part.nnz).sum();
        let work = Work::new(nnz, operation).packed(Packing {
            packed_bytes: plan.packed_bytes(KindPlan::Matrix) as u64,
            dense_bytes: plan.predicted.dense_bytes,
            seconds: artefact.kernel.pack_time.as_secs_f64(),
            copy_bandwidth: artefact.copy_bandwidth,
        });
        let figures = |regime| Figures::new(measurement, &artefact.baselines, regime, work);
        let general = artefact.general.as_ref().and_then(Outcome::measurement);
        let over = |general: &Measurement| {
            let seconds = |one: &Measurement, regime| one.timing.median(regime);
            ByRegime::of(|regime| Some(seconds(general, regime)? / seconds(measurement, regime)?))
        };
        Some(Self {
            device: device.to_owned(),
            checks: measurement.checks,
            worst_ratio: measurement.worst_ratio,
            figures: ByRegime::of(figures),
            over_general: general.map(over),
        })
    }
}

impl fmt::Display for MeasuredKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, checks, worst_ratio, figures: by_regime, over_general } = self;
        let share = 100.0 * worst_ratio;
        writeln!(
            f,
            "checked    right in {checks} checks, at most {share:.0} % of the error bound"
        )?;
        writeln!(f, "measured   on {device}")?;
        if let Some(over) = over_general {
            let gain = |regime| {
                let ratio = over.get(regime).as_ref()?;
                Some(format!("{} {}", times(*ratio), Regime::name(regime)))
            };
            let gains: Vec<String> =
                [Regime::Cold, Regime::Warm].into_iter().filter_map(gain).collect();
            let gains = gains.join(" and ");
            writeln!(
                f,
                "sizes      are constants, for this matrix alone: {gains} the speed of a kernel that is given them"
            )?;
        }
        for regime in [Regime::Cold, Regime::Warm] {
            let Some(figures) = by_regime.get(regime) else { continue };
            let Figures { seconds, gflops, bytes_per_second, floor_share, .. } = figures;
            write!(f, "{:11}{}, {gflops:.1} GFLOPS", regime.name(), time(*seconds))?;
            if let Some(speed) = bytes_per_second {
                write!(f, ", {:.0} GB/s", speed * 1e-9)?;
            }
            if let Some(share) = floor_share {
                write!(f, ", {:.0} % of the floor", 100.0 * share)?;
            }
            for rival in Rival::ALL {
                if let Some(Comparison { algorithm, seconds, ratio, .. }) = figures.against(rival) {
                    let (ratio, seconds) = (times(*ratio), time(*seconds));
                    write!(f, "; {ratio} {} ({algorithm} {seconds})", rival.name())?;
                }
            }
            writeln!(f)?;
        }
        let calls = |rival| by_regime.warm.as_ref()?.against(rival)?.break_even_calls;
        if let Some(calls) = calls(Rival::Default) {
            writeln!(f, "packing    pays after {} products against DEFAULT", calls.ceil())?;
        }
        Ok(())
    }
}
