//! `gen`: from a matrix file to a folder with a kernel.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use half::{bf16, f16};
use safetensors::tensor::{TensorView, serialize_to_file};
use serde::Serialize;
use sparserl_core::codegen::ArgumentKind;
use sparserl_core::decode::PolicyInput;
use sparserl_core::kernel;
use sparserl_core::layout::{CostModel, Packed};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::Evaluation;
use sparserl_core::pipeline::{
    self, Artefact, Check, Generated, Order, PipelineError, Ranked, Step, Tools,
};
use sparserl_core::plan::{CandidateList, MachineCode, MatrixPlan, Plan, PolicyPlan};
use sparserl_core::results::{ByRegime, Figures, Packing, Work};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::emulated::checker::{Checker, NoneRight, Unjudged, first_right};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::store::fingerprint::matrix_plan;
use sparserl_onnx_models::OpenedPolicy;

use crate::args::GenerateArgs;
use crate::console;
use crate::ending::Ending;
use crate::explanation::Explanation;
use crate::gpu::{self, Lack};
use crate::host;
use crate::load::{Matrix, load_whole, lost, round};
use crate::output_folder::{Edited, OutputFolder};
use crate::plan;
use crate::policy;
use crate::progress::Progress;
use crate::summary::{Kernel, MeasuredKernel, Seconds, Summary};

/// Candidates that are searched for where those first found are wrong.
const SPARE: usize = 7;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Ending> {
    let task = args.task.task();
    let output = args.output(task);
    // Before the work, although it is checked again after it.
    let edited = if args.force { Edited::Replace } else { Edited::Keep };
    OutputFolder::check(&output, edited)?;

    // Loading, searching, measuring, checking, then each kernel.
    let policy = policy::open(&args.policy)?;
    let progress = Progress::new(4 + args.candidates().get(), !args.json && !args.quiet);
    progress.step(format!("loading {}", args.matrix.file_name()));
    let start = Instant::now();
    let Matrix { matrix, note, is_pattern } = load_whole(&args.matrix)?;
    let task = args.task.task_for(is_pattern);
    let facts = matrix_plan(args.matrix.file_name(), matrix.view());
    let notes = note.into_iter().chain(lost(&matrix, task.precision.matrix())).collect();
    let job = Job {
        args,
        task,
        policy: &policy,
        output: &output,
        edited,
        is_pattern,
        matrix: facts,
        notes,
        without_gpu: false,
        progress: &progress,
        start,
    };
    let summary = match task.precision.matrix() {
        Dtype::F32 => {
            let rounded = round::<f32>(&matrix, &args.matrix)?;
            drop(matrix);
            job.generate(rounded.view())?
        }
        Dtype::F64 => job.generate(matrix.view())?,
        Dtype::F16 => {
            let rounded = round::<f16>(&matrix, &args.matrix)?;
            drop(matrix);
            job.generate(rounded.view())?
        }
        Dtype::BF16 => {
            let rounded = round::<bf16>(&matrix, &args.matrix)?;
            drop(matrix);
            job.generate(rounded.view())?
        }
    };
    drop(progress);

    if !args.quiet {
        for note in &summary.notes {
            console::say(&format!("note: {note}"));
        }
    }
    match (args.json, args.quiet) {
        (true, _) => console::print(&summary.json()?)?,
        (false, false) => console::print(&summary.to_string())?,
        (false, true) => {}
    }
    // Last, and whatever was asked for: a kernel that nobody tried must not be taken for a right one.
    for warning in &summary.warnings {
        console::say(&format!("warning: {warning}"));
    }
    Ok(if summary.warnings.is_empty() { Ending::Complete } else { Ending::Unjudged })
}

/// One run, once the matrix is read.
struct Job<'a> {
    args: &'a GenerateArgs,
    task: Task,
    policy: &'a OpenedPolicy,
    output: &'a Path,
    edited: Edited,
    /// Whether the values are ones because the file has none.
    is_pattern: bool,
    matrix: MatrixPlan,
    /// What to say at the end.
    notes: Vec<String>,
    /// Whether a GPU was looked for, and there is none.
    without_gpu: bool,
    progress: &'a Progress,
    start: Instant,
}

impl Job<'_> {
    fn generate<T: Scalar>(mut self, matrix: CsrView<'_, T>) -> anyhow::Result<Summary> {
        let load = self.start.elapsed();
        let wanted = self.args.candidates().get();
        let open_start = Instant::now();
        let mut gpu = self.open_gpu()?;
        let open_time = open_start.elapsed();
        let own = gpu.as_ref().map(|gpu| gpu.facts().target);
        let target = self.args.arch.or(own).unwrap_or(Target::H200);
        let device = gpu.as_ref().map(|gpu| gpu.facts().name.clone());
        let mut notes = std::mem::take(&mut self.notes);
        let mut warnings = Vec::new();
        let compiler = match &gpu {
            _ if self.args.no_compile => None,
            Some(gpu) => Some(gpu.compiler()),
            None => gpu::compiler(target.architecture)
                .map_err(|why| warnings.push(format!("not compiled and not checked: {why}")))
                .ok(),
        };
        let checker =
            self.checker(matrix, target.architecture, compiler.as_ref(), &mut warnings)?;
        let unjudged = if self.args.check { Unjudged::Never } else { Unjudged::Last };
        // What the checker says of those that are taken, in their order.
        let (mut checked, mut check_notes) = (None, Vec::new());
        let check = checker.as_ref().map(|checker| -> Check<'_, NoneRight> {
            let (checked, notes) = (&mut checked, &mut check_notes);
            Box::new(move |candidates, wanted| {
                let judge = |ranked: &Ranked| checker.judge(&ranked.candidate);
                let taken = first_right(candidates, wanted, unjudged, judge)?;
                notes.extend(taken.notes);
                let (candidates, verdicts): (Vec<_>, Vec<_>) = taken.candidates.into_iter().unzip();
                *checked = Some(verdicts);
                Ok(candidates)
            })
        });

        let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix)), self.task, target);
        let costs = CostModel::new(Arc::clone(&input.stats), self.task, target);
        let (objective, budget) = (self.args.regime.objective(), self.args.budget());
        let order = Order { matrix, input: &input, wanted, objective, budget, spare: SPARE };
        let skipped = [gpu.is_none(), check.is_none()].iter().filter(|&&skipped| skipped).count();
        self.progress.pass(skipped);
        let clock = || self.start.elapsed();
        let tools = Tools {
            chooser: self.policy.chooser(),
            compiler: compiler.as_ref(),
            evaluator: gpu.as_mut(),
            check,
            clock: &clock,
            observer: &mut |step| self.progress.step(describe(step, device.as_deref())),
        };
        let generated = pipeline::generate(&order, tools).map_err(|error| match error {
            PipelineError::Refused { .. } => {
                anyhow!("{error} (--no-compile writes it for a look)")
            }
            error => anyhow!(error),
        });
        let Generated { artefacts, evaluation, times } =
            generated.with_context(|| self.matrix.file.clone())?;
        if artefacts.len() < wanted {
            notes.push(match &evaluation {
                Some(Evaluation { outcomes, .. }) => format!(
                    "{} of {wanted} kernels: {} candidates were measured, {} of them right",
                    artefacts.len(),
                    outcomes.len(),
                    outcomes.iter().filter(|outcome| outcome.is_right()).count()
                ),
                None => format!("{} of {wanted} kernels: there are no more", artefacts.len()),
            });
        }

        let explanation = match self.args.explain {
            true => {
                let programs = artefacts.iter().map(|a| a.kernel.packed.program.clone());
                let programs: Vec<_> = programs.collect();
                Some(Explanation::new(self.policy, (&input, objective), &programs)?)
            }
            false => None,
        };
        let is_checked = checked.iter().flatten().all(Option::is_some);
        if is_checked { &mut notes } else { &mut warnings }.extend(check_notes);
        let folder = OutputFolder::begin(self.output, self.edited)?;
        let mut verdicts = checked.into_iter().flatten();
        let mut kernels = Vec::new();
        for (artefact, rank) in artefacts.iter().zip(1_usize..) {
            let subfolder = if wanted == 1 { String::new() } else { rank.to_string() };
            let at = Path::new(&subfolder);
            let plan = self.write((matrix, target), &costs, artefact, &folder, at)?;
            kernels.push(Kernel {
                subfolder,
                program: artefact.kernel.packed.program.to_string(),
                measured: device.as_deref().and_then(|device| measured(artefact, &plan, device)),
                checked: verdicts.next().flatten(),
                pack_seconds: artefact.kernel.pack_time.as_secs_f64(),
                compile_seconds: artefact.kernel.compile_time.as_secs_f64(),
                plan,
            });
        }
        if wanted > 1 {
            let entries = artefacts.iter().zip(&kernels).map(|(artefact, kernel)| {
                let program = &artefact.kernel.packed.program;
                (kernel.subfolder.clone(), program, artefact.score, &kernel.plan)
            });
            let list = CandidateList::new(&self.matrix, self.task, entries);
            folder.write(plan::CANDIDATES, pretty(&list)?)?;
        }
        folder.finish()?;

        let measure = if evaluation.is_some() { open_time + times.measure } else { Duration::ZERO };
        let seconds = Seconds {
            load: load.as_secs_f64(),
            search: times.search.as_secs_f64(),
            measure: measure.as_secs_f64(),
            check: times.check.as_secs_f64(),
            pack: kernels.iter().map(|kernel| kernel.pack_seconds).sum(),
            compile: kernels.iter().map(|kernel| kernel.compile_seconds).sum(),
            total: self.start.elapsed().as_secs_f64(),
        };
        Ok(Summary {
            output: self.output.to_owned(),
            matrix: self.matrix,
            task: self.task,
            is_pattern: Some(self.is_pattern),
            policy: self.policy.in_words(),
            evaluation,
            without_gpu: self.without_gpu,
            kernels,
            explanation,
            seconds,
            notes,
            warnings,
        })
    }

    /// The GPU to measure on, if there is one that runs what is asked for; a note where one is
    /// missed.
    fn open_gpu(&mut self) -> anyhow::Result<Option<GpuEvaluator>> {
        if self.args.no_measure || self.args.no_compile {
            return Ok(None);
        }
        let gpu = match gpu::find(self.args.device(), self.args.opponents.opponents()?)? {
            Ok(gpu) => gpu,
            Err(lack) => {
                self.without_gpu = matches!(lack, Lack::Gpu(_));
                let (Lack::Gpu(why) | Lack::Compiler(why)) = lack;
                if self.args.expects_measuring() {
                    self.notes.push(format!("not measured: {why}"));
                }
                return Ok(None);
            }
        };
        let own = gpu.facts().target.architecture;
        match self.args.arch.map(|target| target.architecture) {
            Some(asked) if asked != own => {
                let name = &gpu.facts().name;
                self.notes.push(format!("not measured: {name} is {own}, not {asked}"));
                Ok(None)
            }
            _ => Ok(Some(gpu)),
        }
    }

    /// What checks candidates by emulation: where that was asked for, and where there is no GPU as
    /// far as it is possible.
    fn checker<'m, T: Scalar>(
        &self,
        matrix: CsrView<'m, T>,
        architecture: Architecture,
        compiler: Option<&CubinCompiler>,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Option<Checker<'m, T>>> {
        let args = self.args;
        if !args.check && (args.no_check || !self.without_gpu) {
            return Ok(None);
        }
        let compilers = match compiler {
            Some(compiler) => Arc::clone(compiler.pool()),
            // That there is no compiler has been said.
            None if !args.check => return Ok(None),
            None => gpu::pool().context("cannot check")?,
        };
        match Checker::open(compilers, architecture, matrix, self.task.operation) {
            Ok(checker) => Ok(Some(checker)),
            Err(why) if args.check => Err(anyhow!("cannot check: {why}")),
            Err(why) => {
                warnings.push(format!("not checked: {why}"));
                Ok(None)
            }
        }
    }

    /// Writes the files of a kernel, as it was judged.
    fn write<T: Scalar>(
        &self,
        (entries, target): (CsrView<'_, T>, Target),
        costs: &CostModel<'_>,
        artefact: &Artefact<Cubin>,
        folder: &OutputFolder,
        at: &Path,
    ) -> anyhow::Result<Plan> {
        let policy = PolicyPlan {
            name: self.policy.chooser().name().to_owned(),
            version: self.policy.version().to_owned(),
            score: artefact.score,
        };
        let matrix = self.matrix.clone();
        let extra = if self.args.packed() { &host::FILES[..] } else { &[] };
        let written = (self.args.packed(), extra);
        let plan = write_files((matrix, policy), costs, artefact, written, folder, at)?;
        if self.args.packed() {
            let kernel::Kernel { packed, source, .. } = &artefact.kernel;
            host::write(entries, packed, source, target, folder, at)?;
        }
        Ok(plan)
    }
}

/// Writes the files of a kernel for a matrix, as it was judged; the packed arrays where they are
/// wanted. The policy is the one that wrote the program.
pub(crate) fn write_kernel(
    (matrix, policy): (MatrixPlan, PolicyPlan),
    costs: &CostModel<'_>,
    artefact: &Artefact<Cubin>,
    with_arrays: bool,
    folder: &OutputFolder,
    at: &Path,
) -> anyhow::Result<Plan> {
    write_files((matrix, policy), costs, artefact, (with_arrays, &[]), folder, at)
}

/// [`write_kernel`], with a plan that names other files, too.
fn write_files(
    (matrix, policy): (MatrixPlan, PolicyPlan),
    costs: &CostModel<'_>,
    artefact: &Artefact<Cubin>,
    (with_arrays, others): (bool, &[&'static str]),
    folder: &OutputFolder,
    at: &Path,
) -> anyhow::Result<Plan> {
    let kernel::Kernel { packed, source, code, .. } = &artefact.kernel;
    let machine_code = code.as_ref().map(MachineCode::from);
    let files = vec![plan::SOURCE, plan::PROGRAM, plan::PLAN];
    let mut plan = Plan::new(matrix, costs, policy, packed, source, machine_code, files);
    let source_file = source.text.clone() + &source.launch_comment(packed);
    plan.kernel.blake3 = Some(blake3::hash(source_file.as_bytes()).to_hex().to_string());
    folder.write(at.join(plan::SOURCE), source_file)?;
    folder.write(at.join(plan::PROGRAM), packed.program.to_string())?;
    if let Some(cubin) = code {
        folder.write(at.join(plan::CUBIN), cubin.bytes())?;
        plan.files.push(plan::CUBIN);
    }
    if with_arrays {
        write_arrays(packed, folder, &at.join(plan::PACKED))?;
        plan.files.push(plan::PACKED);
    }
    plan.files.extend_from_slice(others);
    folder.write(at.join(plan::PLAN), pretty(&plan)?)?;
    Ok(plan)
}

/// What follows from the times of a kernel that was measured on a GPU of this name, and of the
/// opponents in its batch.
pub(crate) fn measured(
    artefact: &Artefact<Cubin>,
    plan: &Plan,
    device: &str,
) -> Option<MeasuredKernel> {
    let measurement = artefact.outcome.as_ref()?.measurement()?;
    let operation = artefact.kernel.packed.program.task.operation;
    let nnz = plan.parts.iter().map(|part| part.nnz).sum();
    let work = Work::new(nnz, operation).packed(Packing {
        packed_bytes: plan.packed_bytes(ArgumentKind::Matrix) as u64,
        dense_bytes: plan.predicted.dense_bytes,
        seconds: artefact.kernel.pack_time.as_secs_f64(),
        copy_bandwidth: artefact.copy_bandwidth,
    });
    let figures = |regime| Figures::new(measurement, &artefact.baselines, regime, work);
    Some(MeasuredKernel {
        device: device.to_owned(),
        checks: measurement.checks,
        worst_ratio: measurement.worst_ratio,
        figures: ByRegime::of(figures),
    })
}

/// What is going on, for people who wait.
fn describe(step: Step, device: Option<&str>) -> String {
    match step {
        Step::Search => "searching".to_owned(),
        Step::Measure => format!("measuring on {}", device.unwrap_or("the GPU")),
        Step::Check => "emulating".to_owned(),
        Step::Make(number) => format!("making kernel {number}"),
    }
}

/// Writes the packed arrays under their argument names. The metadata lists those that are
/// workspace, which only needs to be as large and zero.
fn write_arrays(packed: &Packed, folder: &OutputFolder, name: &Path) -> anyhow::Result<()> {
    let arrays: Vec<_> = packed.arguments().collect();
    let views = arrays.iter().map(|(name, array)| {
        let dtype = dtype(array.data.dtype())?;
        Ok((name, TensorView::new(dtype, vec![array.data.len()], array.data.bytes())?))
    });
    let views = views.collect::<anyhow::Result<Vec<_>>>()?;
    let workspace: Vec<_> =
        arrays.iter().filter(|(_, a)| a.role.is_workspace()).map(|(name, _)| name).collect();
    // One key: the order of several would differ from run to run.
    let metadata = HashMap::from([("workspace".to_owned(), serde_json::to_string(&workspace)?)]);
    folder.write_with(name, |path| {
        // The library makes a private file; this one is as readable as any other that is created.
        let permissions = File::create(path)?.metadata()?.permissions();
        serialize_to_file(views, Some(metadata), path)?;
        Ok(fs::set_permissions(path, permissions)?)
    })
}

/// The element type of the file format, by its Rust name.
fn dtype(name: &str) -> anyhow::Result<safetensors::Dtype> {
    use safetensors::Dtype;
    Ok(match name {
        "u8" => Dtype::U8,
        "u16" => Dtype::U16,
        "u32" => Dtype::U32,
        "u64" => Dtype::U64,
        "i32" => Dtype::I32,
        "f32" => Dtype::F32,
        "f64" => Dtype::F64,
        "f16" => Dtype::F16,
        "bf16" => Dtype::BF16,
        _ => bail!("packed.safetensors: no element type for {name} (a defect of SparseRL)"),
    })
}

pub(crate) fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
