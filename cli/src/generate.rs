//! `gen`: from a matrix file to a folder with a kernel.

use std::collections::HashMap;
use std::fs::{self, File};
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use safetensors::tensor::{TensorView, serialize_to_file};
use serde::Serialize;
use sparserl_core::codegen::{ArgumentKind, emit};
use sparserl_core::decode::{Candidate, CostRanker, beam_search, diverse_search};
use sparserl_core::language::{Facts, Mask};
use sparserl_core::layout::{Packed, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{CacheState, Evaluation};
use sparserl_core::structure::{EmbeddingConfig, StructureEmbedding};
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_gpu::evaluator::GpuEvaluator;

use crate::args::GenerateArgs;
use crate::check::{Checked, Checker, Taken, Unjudged, first_right};
use crate::compile::Compiler;
use crate::console;
use crate::figures::{Figures, Packing, Work, ranking};
use crate::gpu::{self, Lack};
use crate::load::{load, round};
use crate::measure::measure;
use crate::output_folder::OutputFolder;
use crate::plan::{self, CandidateList, MachineCode, MatrixPlan, Plan, PolicyPlan};
use crate::progress::Progress;
use crate::summary::{Kernel, MeasuredKernel, Seconds, Summary};

pub(crate) const POLICY: &str = "cost-ranker";
/// Raised when the ranker's choice for some matrix changes.
pub(crate) const POLICY_VERSION: u32 = 2;

/// Candidates that are searched for where those first found are wrong.
const SPARE: usize = 7;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    let task = args.task.task();
    let output = args.output(task);
    // Before the work, although it is checked again after it.
    OutputFolder::check(&output)?;

    // Loading, searching, measuring, checking, then packing and compiling each kernel.
    let progress = Progress::new(4 + 2 * args.candidates().get(), !args.json && !args.quiet);
    progress.step(format!("loading {}", args.matrix.file_name()));
    let start = Instant::now();
    let (matrix, note) = load(&args.matrix)?;
    let facts = MatrixPlan::new(args.matrix.file_name(), matrix.view());
    let notes = note.into_iter().collect();
    let job = Job {
        args,
        task,
        output: &output,
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
    };
    drop(progress);

    if !args.quiet {
        for note in &summary.notes {
            console::say(&format!("note: {note}"));
        }
    }
    match (args.json, args.quiet) {
        (true, _) => console::print(&summary.json()?),
        (false, false) => console::print(&summary.to_string()),
        (false, true) => Ok(()),
    }
}

/// One run, once the matrix is read.
struct Job<'a> {
    args: &'a GenerateArgs,
    task: Task,
    output: &'a Path,
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
        let load = self.start.elapsed().as_secs_f64();
        let wanted = self.args.candidates().get();
        self.progress.step("searching");
        let open_start = Instant::now();
        let gpu = self.open_gpu()?;
        let open_seconds = open_start.elapsed().as_secs_f64();
        let search_start = Instant::now();
        let facts = Facts::new(matrix, self.task);
        let considered = match &gpu {
            Some(_) => self.args.budget().candidates().max(wanted),
            None => wanted,
        };
        let candidates = search(matrix, &facts, considered);
        let search_seconds = search_start.elapsed().as_secs_f64();
        if candidates.is_empty() {
            bail!("{}: the search found no program (a defect of SparseRL)", self.matrix.file);
        }

        let mut notes = std::mem::take(&mut self.notes);
        let measure_start = Instant::now();
        let own = gpu.as_ref().map(|gpu| gpu.facts().target);
        let target = self.args.arch.or(own).unwrap_or(Target::H200);
        let architecture = target.architecture;
        let device = gpu.as_ref().map(|gpu| gpu.facts().name.clone());
        let measured = gpu.map(|gpu| self.measure(gpu, matrix, &candidates)).transpose()?;
        let measure_seconds = open_seconds + measure_start.elapsed().as_secs_f64();
        // Fastest first, or else likeliest first, with their places in the measurement.
        let order: Vec<usize> = match &measured {
            Some(measured) => ranking(&measured.outcomes),
            None => likeliest(&candidates),
        };
        let ranked: Vec<(usize, Candidate)> = order
            .into_iter()
            .filter_map(|index| Some((index, candidates.get(index)?.clone())))
            .collect();
        let compiler = if self.args.no_compile {
            None
        } else {
            Compiler::find(architecture)
                .map_err(|why| notes.push(format!("not compiled: {why}")))
                .ok()
        };
        let check_start = Instant::now();
        let checker = self.checker(matrix, architecture, compiler.as_ref(), &mut notes)?;
        let more = || match measured {
            Some(_) => Vec::new(),
            None => search(matrix, &facts, wanted + SPARE),
        };
        let candidates = self.take(checker.as_ref(), ranked, more, wanted, &mut notes)?;
        let check_seconds = check_start.elapsed().as_secs_f64();
        if candidates.len() < wanted {
            notes.push(match &measured {
                Some(Evaluation { outcomes, .. }) => format!(
                    "{} of {wanted} kernels: {} candidates were measured, {} of them right",
                    candidates.len(),
                    outcomes.len(),
                    outcomes.iter().filter(|outcome| outcome.is_right()).count()
                ),
                None => format!("{} of {wanted} kernels: there are no more", candidates.len()),
            });
        }
        let folder = OutputFolder::begin(self.output)?;
        let mut kernels = Vec::new();
        for ((index, candidate, checked), rank) in candidates.iter().zip(1_usize..) {
            let subfolder = if wanted == 1 { String::new() } else { rank.to_string() };
            let mut kernel =
                self.kernel(matrix, &facts, candidate, compiler.as_ref(), &folder, subfolder)?;
            kernel.checked = *checked;
            kernel.measured = measured.as_ref().and_then(|evaluation| {
                let measurement = evaluation.outcomes.get(*index)?.measurement()?;
                let work = Work::new(matrix.nnz(), self.task.operation).packed(Packing {
                    packed_bytes: kernel.plan.packed_bytes(ArgumentKind::Matrix) as u64,
                    dense_bytes: kernel.plan.predicted.dense_bytes,
                    seconds: kernel.pack_seconds,
                    copy_bandwidth: evaluation.copy_bandwidth,
                });
                let figures = |cache| Figures::new(measurement, &evaluation.baselines, cache, work);
                Some(MeasuredKernel {
                    device: device.clone()?,
                    checks: measurement.checks,
                    worst_ratio: measurement.worst_ratio,
                    warm: figures(CacheState::Warm)?,
                    cold: figures(CacheState::Cold),
                })
            });
            kernels.push(kernel);
        }
        if wanted > 1 {
            let entries = candidates
                .iter()
                .zip(&kernels)
                .map(|((_, c, _), k)| (k.subfolder.clone(), c, &k.plan));
            let list = CandidateList::new(&self.matrix, self.task, entries);
            folder.write(plan::CANDIDATES, pretty(&list)?)?;
        }
        folder.finish()?;

        let seconds = Seconds {
            load,
            search: search_seconds,
            measure: if measured.is_some() { measure_seconds } else { 0.0 },
            check: if checker.is_some() { check_seconds } else { 0.0 },
            pack: kernels.iter().map(|kernel| kernel.pack_seconds).sum(),
            compile: kernels.iter().map(|kernel| kernel.compile_seconds).sum(),
            total: self.start.elapsed().as_secs_f64(),
        };
        Ok(Summary {
            output: self.output.to_owned(),
            matrix: self.matrix,
            task: self.task,
            evaluation: measured,
            without_gpu: self.without_gpu,
            kernels,
            seconds,
            notes,
        })
    }

    /// The GPU to measure on, if there is one that runs what is asked for; a note where one is missed.
    fn open_gpu(&mut self) -> anyhow::Result<Option<GpuEvaluator>> {
        if self.args.no_measure || self.args.no_compile {
            return Ok(None);
        }
        let gpu = match gpu::find(self.args.device())? {
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

    fn measure<T: Scalar>(
        &self,
        mut gpu: GpuEvaluator,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate],
    ) -> anyhow::Result<Evaluation> {
        self.progress.step(format!("measuring on {}", gpu.facts().name));
        let programs: Vec<_> = candidates.iter().map(|c| c.program.clone()).collect();
        measure(&mut gpu, matrix, &programs, self.args.budget())
            .with_context(|| self.matrix.file.clone())
    }

    /// What checks candidates by emulation: where that was asked for, and where there is no GPU as far as
    /// it is possible.
    fn checker<'m, T: Scalar>(
        &self,
        matrix: CsrView<'m, T>,
        architecture: Architecture,
        compiler: Option<&Compiler>,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Option<Checker<'m, T>>> {
        let args = self.args;
        if !args.check && (args.no_check || !self.without_gpu) {
            self.progress.pass(1);
            return Ok(None);
        }
        let compilers = match compiler {
            Some(compiler) => Arc::clone(compiler.all()),
            // That there is no compiler has been said.
            None if !args.check => return Ok(None),
            None => Arc::new(Compilers::discover().context("cannot check")?),
        };
        self.progress.step("emulating");
        match Checker::open(compilers, architecture, matrix, self.task.operation) {
            Ok(checker) => Ok(Some(checker)),
            Err(why) if args.check => Err(anyhow!("cannot check: {why}")),
            Err(why) => {
                notes.push(format!("not checked: {why}"));
                Ok(None)
            }
        }
    }

    /// The first `wanted` candidates, or where there is a checker the first that are right. If too few of
    /// them are, there may be `more`, and then those that the checker fails on, unless a check was asked for.
    fn take<T: Scalar>(
        &self,
        checker: Option<&Checker<'_, T>>,
        ranked: Vec<(usize, Candidate)>,
        more: impl FnOnce() -> Vec<Candidate>,
        wanted: usize,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Vec<(usize, Candidate, Option<Checked>)>> {
        let Some(checker) = checker else {
            let first = ranked.into_iter().take(wanted);
            return Ok(first.map(|(index, candidate)| (index, candidate, None)).collect());
        };
        let is_new = |candidate: &Candidate| {
            ranked.iter().all(|(_, known)| known.program != candidate.program)
        };
        let others = iter::once_with(more).flatten().filter(is_new);
        let others = others.enumerate().map(|(i, candidate)| (ranked.len() + i, candidate));
        let all = ranked.iter().cloned().chain(others);
        let unjudged = if self.args.check { Unjudged::Never } else { Unjudged::Last };
        let taken = first_right(all, wanted, unjudged, |(_, candidate)| checker.judge(candidate));
        let Taken { candidates, notes: why } = taken.with_context(|| self.matrix.file.clone())?;
        notes.extend(why);
        Ok(candidates.into_iter().map(|((index, c), checked)| (index, c, checked)).collect())
    }

    /// Makes a kernel of a program, and its files.
    fn kernel<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        facts: &Facts<'_>,
        candidate: &Candidate,
        compiler: Option<&Compiler>,
        folder: &OutputFolder,
        subfolder: String,
    ) -> anyhow::Result<Kernel> {
        let program = candidate.program.to_string();
        self.progress.step(format!("packing {subfolder}"));
        let pack_start = Instant::now();
        let packed = pack(matrix, &candidate.program)
            .with_context(|| format!("{}: packing (a defect of SparseRL)", self.matrix.file))?;
        let pack_seconds = pack_start.elapsed().as_secs_f64();
        let source = emit(&packed)?;
        let doing = if compiler.is_some() { "compiling" } else { "writing" };
        self.progress.step(format!("{doing} {subfolder}"));
        let compile_start = Instant::now();
        let cubin = compiler.map(|compiler| compiler.compile(&source)).transpose()?;
        let compile_seconds =
            if cubin.is_some() { compile_start.elapsed().as_secs_f64() } else { 0.0 };

        let policy = PolicyPlan {
            name: POLICY,
            version: POLICY_VERSION,
            log_probability: candidate.log_probability,
        };
        let machine_code = cubin.as_ref().map(MachineCode::from);
        let mut plan =
            Plan::new(self.matrix.clone(), facts, policy, &packed, &source, machine_code);
        let at = Path::new(&subfolder);
        folder.write(at.join(plan::SOURCE), &source.text)?;
        folder.write(at.join(plan::PROGRAM), &program)?;
        if let Some(cubin) = &cubin {
            folder.write(at.join(plan::CUBIN), cubin.bytes())?;
            plan.files.push(plan::CUBIN);
        }
        if self.args.packed {
            write_arrays(&packed, folder, &at.join(plan::PACKED))?;
            plan.files.push(plan::PACKED);
        }
        folder.write(at.join(plan::PLAN), pretty(&plan)?)?;
        let (measured, checked) = (None, None);
        Ok(Kernel { subfolder, program, measured, checked, pack_seconds, compile_seconds, plan })
    }
}

/// Likely programs that differ, at most `wanted`, best first; where there are too few, the likeliest
/// others fill up.
pub(crate) fn search<T: Scalar>(
    matrix: CsrView<'_, T>,
    facts: &Facts<'_>,
    wanted: usize,
) -> Vec<Candidate> {
    let embedding = StructureEmbedding::new(matrix, &EmbeddingConfig::default());
    let ranker = CostRanker::new(facts);
    let mask = Mask::legal(facts);
    let Ok(mut candidates) = diverse_search(&ranker, &embedding, mask, wanted);
    if candidates.len() < wanted {
        let Ok(others) = beam_search(&ranker, &embedding, mask, 2 * wanted);
        let is_new = |c: &Candidate| candidates.iter().all(|known| known.program != c.program);
        let others: Vec<_> = others.into_iter().filter(is_new).collect();
        candidates.extend(others);
        candidates.truncate(wanted);
        candidates.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
    }
    candidates
}

/// Indices of candidates, likeliest first: a diverse search gives them in another order.
fn likeliest(candidates: &[Candidate]) -> Vec<usize> {
    let mut order: Vec<_> = candidates.iter().map(|c| c.log_probability).enumerate().collect();
    order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    order.into_iter().map(|(index, _)| index).collect()
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
    let workspace: Vec<_> = arrays
        .iter()
        .filter(|(_, a)| a.role.is_workspace())
        .map(|(name, _)| name)
        .collect();
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
        _ => bail!("packed.safetensors: no element type for {name} (a defect of SparseRL)"),
    })
}

fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
