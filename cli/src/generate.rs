//! `gen`: from a matrix file to a folder with a kernel.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use sparserl_core::decode::PolicyInput;
use sparserl_core::matrix::{CsrView, MatrixIdentity, Scalar};
use sparserl_core::outcome::Evaluation;
use sparserl_core::pipeline::{self, Artefact, Generated, PipelineError, Request, Step, Tools};
use sparserl_core::plan::{CandidateList, Origin, Plan};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::Task;
use sparserl_core::with_scalar;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::emulated::checker::{Checked, Checker, Unjudged};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_onnx_models::{OpenedChoices, OpenedPolicy};

use crate::args::GenerateArgs;
use crate::console;
use crate::ending::Ending;
use crate::explanation::Explanation;
use crate::gpu::{self, Lack};
use crate::host;
use crate::load::{Matrix, load_whole, lost, round};
use crate::output_folder::{Edited, OutputFolder};
use crate::policy;
use crate::progress::Progress;
use crate::summary::{Seconds, Summary, Unmeasured, WrittenKernel};
use crate::text;
use crate::{file_names, kernel_folder};

/// Candidates that are searched for where those first found are wrong.
const SPARE: usize = 7;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Ending> {
    let output = args.output();
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
    let facts = identity(args.matrix.file_name(), matrix.view());
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
        warnings: Vec::new(),
        unmeasured: None,
        progress: &progress,
        start,
    };
    let summary = with_scalar!(task.precision.matrix(), T => {
        let rounded = round::<T>(&matrix, &args.matrix)?;
        drop(matrix);
        job.generate(rounded.view())?
    });
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
    // Last, and whatever was asked for: a kernel that nobody tried must not be taken for a right
    // one.
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
    matrix: MatrixIdentity,
    /// What to say at the end.
    notes: Vec<String>,
    /// What nobody must miss.
    warnings: Vec<String>,
    /// Why no kernel is measured, where one could be.
    unmeasured: Option<Unmeasured>,
    progress: &'a Progress,
    start: Instant,
}

/// What compiles, measures and checks, as far as it is there.
struct Opened<'m, T> {
    gpu: Option<GpuEvaluator>,
    /// What kernels are made for.
    target: Target,
    /// The GPU's name.
    device: Option<String>,
    compiler: Option<CubinCompiler>,
    checker: Option<Checker<'m, T>>,
    /// How long opening the GPU took.
    time: Duration,
}

impl Job<'_> {
    fn generate<T: Scalar>(mut self, matrix: CsrView<'_, T>) -> anyhow::Result<Summary> {
        let load = self.start.elapsed();
        let mut opened = self.open(matrix)?;
        let target = opened.target;
        let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix)), self.task, target);
        let mut choices = self.policy.choices(&input, self.args.regime.objective());
        let generated = self.make(matrix, &input, &mut choices, &mut opened)?;
        let explanation = match self.args.explain {
            true => Some(self.explain(&input, &mut choices, &generated.artefacts)?),
            false => None,
        };
        let Opened { device, checker, time: open_time, .. } = opened;
        self.say_what_lacks(&generated, checker);
        let Generated { artefacts, evaluation, times } = generated;
        let kernels = self.write_all((matrix, target), &artefacts, device.as_deref())?;

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
            unmeasured: self.unmeasured,
            kernels,
            explanation,
            seconds,
            notes: self.notes,
            warnings: self.warnings,
        })
    }

    /// Opens what there is, of what is asked for, to compile, measure and check.
    fn open<'m, T: Scalar>(&mut self, matrix: CsrView<'m, T>) -> anyhow::Result<Opened<'m, T>> {
        let start = Instant::now();
        let gpu = self.open_gpu()?;
        let time = start.elapsed();
        let own = gpu.as_ref().map(|gpu| gpu.facts().target);
        let target = self.args.arch.or(own).unwrap_or(Target::H200);
        let device = gpu.as_ref().map(|gpu| gpu.facts().name.clone());
        let compiler = match &gpu {
            _ if self.args.no_compile => None,
            Some(gpu) => Some(gpu.compiler()),
            None => gpu::compiler(target.architecture)
                .map_err(|why| self.warnings.push(format!("not compiled and not checked: {why}")))
                .ok(),
        };
        let checker = self.checker(matrix, target.architecture, compiler.as_ref())?;
        Ok(Opened { gpu, target, device, compiler, checker, time })
    }

    /// Has kernels searched for, made and judged.
    fn make<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        input: &PolicyInput<'_>,
        choices: &mut OpenedChoices<'_>,
        Opened { gpu, device, compiler, checker, .. }: &mut Opened<'_, T>,
    ) -> anyhow::Result<Generated<Cubin, Checked>> {
        let (wanted, budget) = (self.args.candidates().get(), self.args.budget());
        let objective = self.args.regime.objective();
        let request =
            Request { matrix, input, wanted, objective, budget, spare: SPARE, specialise: true };
        let skipped = [gpu.is_none(), checker.is_none()].iter().filter(|&&skipped| skipped).count();
        self.progress.pass(skipped);
        let clock = || self.start.elapsed();
        let tools = Tools {
            compiler: compiler.as_ref(),
            made: &[],
            evaluator: gpu.as_mut(),
            check: checker.as_mut(),
            clock: &clock,
            observer: &mut |step| self.progress.step(describe(step, device.as_deref())),
        };
        let generated = pipeline::generate(&request, choices, tools).map_err(|error| match error {
            PipelineError::Refused { .. } => {
                anyhow!("{error} (--no-compile writes it for a look)")
            }
            error => anyhow!(error),
        });
        generated.with_context(|| self.matrix.name.clone())
    }

    /// Says why the kernels are what they are.
    fn explain(
        &self,
        input: &PolicyInput<'_>,
        choices: &mut OpenedChoices<'_>,
        artefacts: &[Artefact<Cubin, Checked>],
    ) -> anyhow::Result<Explanation> {
        let programs = artefacts.iter().map(|artefact| artefact.kernel.packed.program.clone());
        let programs: Vec<_> = programs.collect();
        let objective = self.args.regime.objective();
        Explanation::new(choices, input, objective, &programs)
    }

    /// Notes where there are fewer kernels than were wanted, and what the check did not take.
    fn say_what_lacks<T: Scalar>(
        &mut self,
        Generated { artefacts, evaluation, .. }: &Generated<Cubin, Checked>,
        checker: Option<Checker<'_, T>>,
    ) {
        let wanted = self.args.candidates().get();
        if artefacts.len() < wanted {
            self.notes.push(match evaluation {
                Some(Evaluation { outcomes, .. }) => format!(
                    "{} of {wanted} kernels: {} candidates were measured, {} of them right",
                    artefacts.len(),
                    outcomes.len(),
                    outcomes.iter().filter(|outcome| outcome.is_right()).count()
                ),
                None => format!("{} of {wanted} kernels: there are no more", artefacts.len()),
            });
        }
        if let Some(checker) = checker {
            let is_checked = artefacts.iter().all(|artefact| artefact.verdict.is_some());
            let said = if is_checked { &mut self.notes } else { &mut self.warnings };
            said.extend(checker.into_notes());
        }
    }

    /// Writes all kernels into the folder, each into its own where there may be several.
    fn write_all<T: Scalar>(
        &self,
        place: (CsrView<'_, T>, Target),
        artefacts: &[Artefact<Cubin, Checked>],
        device: Option<&str>,
    ) -> anyhow::Result<Vec<WrittenKernel>> {
        let wanted = self.args.candidates().get();
        let folder = OutputFolder::begin(self.output, self.edited)?;
        let mut kernels = Vec::new();
        for (artefact, rank) in artefacts.iter().zip(1_usize..) {
            let subfolder = if wanted == 1 { String::new() } else { rank.to_string() };
            let at = Path::new(&subfolder);
            let plan = self.write(place, artefact, &folder, at)?;
            let kernel = WrittenKernel::new(artefact, plan, device);
            kernels.push(WrittenKernel { subfolder, checked: artefact.verdict, ..kernel });
        }
        if wanted > 1 {
            let entries = artefacts.iter().zip(&kernels).map(|(artefact, kernel)| {
                let program = &artefact.kernel.packed.program;
                (kernel.subfolder.clone(), program, &kernel.plan)
            });
            let list = CandidateList::new(&self.matrix, self.task, entries);
            folder.write(file_names::CANDIDATES, text::json(&list)?)?;
        }
        folder.finish()?;
        Ok(kernels)
    }

    /// The GPU to measure on, if there is one that runs what is asked for; a note where one is
    /// missed.
    fn open_gpu(&mut self) -> anyhow::Result<Option<GpuEvaluator>> {
        if self.args.no_compile {
            return Ok(None);
        }
        if self.args.no_measure {
            self.unmeasured = Some(Unmeasured::Otherwise);
            return Ok(None);
        }
        let gpu = match gpu::find(self.args.device(), self.args.opponents.opponents()?)? {
            Ok(gpu) => gpu,
            Err(lack) => {
                self.unmeasured = matches!(lack, Lack::Gpu(_)).then_some(Unmeasured::NoGpu);
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
                self.unmeasured = Some(Unmeasured::Otherwise);
                let name = &gpu.facts().name;
                self.notes.push(format!("not measured: {name} is {own}, not {asked}"));
                Ok(None)
            }
            _ => Ok(Some(gpu)),
        }
    }

    /// What checks candidates by emulation: where that was asked for, and where no GPU judges them
    /// as far as it is possible.
    fn checker<'m, T: Scalar>(
        &mut self,
        matrix: CsrView<'m, T>,
        architecture: Architecture,
        compiler: Option<&CubinCompiler>,
    ) -> anyhow::Result<Option<Checker<'m, T>>> {
        let args = self.args;
        if !args.check && (args.no_check || self.unmeasured.is_none()) {
            return Ok(None);
        }
        let compiler = match compiler {
            Some(compiler) => compiler.clone(),
            // That there is no compiler has been said.
            None if !args.check => return Ok(None),
            None => CubinCompiler::new(gpu::pool().context("cannot check")?, architecture, None),
        };
        let unjudged = if args.check { Unjudged::Never } else { Unjudged::Last };
        let operation = self.task.operation;
        match Checker::open(&compiler, matrix, operation, unjudged) {
            Ok(checker) => Ok(Some(checker)),
            Err(why) if args.check => Err(anyhow!("cannot check: {why}")),
            Err(why) => {
                self.warnings.push(format!("not checked: {why}"));
                Ok(None)
            }
        }
    }

    /// Writes the files of a kernel, as it was judged.
    fn write<T: Scalar>(
        &self,
        (entries, target): (CsrView<'_, T>, Target),
        artefact: &Artefact<Cubin, Checked>,
        folder: &OutputFolder,
        at: &Path,
    ) -> anyhow::Result<Plan> {
        let origin = Origin {
            matrix: &self.matrix,
            policy: self.policy.chooser().name(),
            policy_version: self.policy.version(),
        };
        let extra = if self.args.packed() { &host::FILES[..] } else { &[] };
        let written = (self.args.packed(), extra);
        let plan = kernel_folder::write(origin, artefact, written, folder, at)?;
        if self.args.packed() {
            host::write(entries, &artefact.kernel, target, folder, at)?;
        }
        Ok(plan)
    }
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
