//! Searches, judges and compares: one case after the other.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use indicatif::HumanCount;
use sparserl_core::decode::PolicyInput;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::layout::{ArrayRole, CostModel};
use sparserl_core::matrix::{Csr, CsrView, Scalar, generate};
use sparserl_core::message;
use sparserl_core::outcome::{Evaluation, Objective};
use sparserl_core::pipeline::{Maker, TOGETHER};
use sparserl_core::results::{
    CandidateResult, Chosen, Opponents, Packing, ValueSource, Work, fastest,
};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::store::recording::Recorder;
use sparserl_onnx_models::OpenedPolicy;

use super::results::{Case, MatrixFacts, PredictedProgram, Settings, Skipped, Store};
use super::terminal::case_line;
use crate::instrument::Instrument;
use crate::matrix_source::MatrixSource;
use crate::progress::Progress;
use crate::recordings::record;
use crate::text::time;

/// Of random values: the same in every run, so that runs can be compared.
const VALUE_SEED: u64 = 1;

/// A run over matrices that nobody else has begun with.
pub(crate) struct Bench<'a, E> {
    pub(crate) policy: &'a OpenedPolicy,
    pub(crate) evaluator: E,
    pub(crate) store: &'a Mutex<Store>,
    pub(crate) recorder: Option<&'a Mutex<Recorder>>,
    pub(crate) settings: &'a Settings,
    pub(crate) progress: &'a Progress,
    /// Takes what is to be printed, line by line.
    pub(crate) print: &'a (dyn Fn(&str) -> anyhow::Result<()> + Sync),
    /// Runs that share the matrices and have not ended.
    pub(crate) running: &'a AtomicUsize,
    /// Cases in a row in which the evaluator itself failed.
    pub(crate) failures: u32,
}

/// Cases in a row in which an evaluator may fail by itself, while others share its matrices.
const MOST_FAILURES: u32 = 2;

/// The candidates of a case, and what became of them.
struct Judged<'m> {
    costs: CostModel<'m>,
    search_seconds: f64,
    programs: Vec<Program>,
    /// One outcome for each program.
    evaluation: Evaluation,
    /// How each program was packed; nothing of those that do not fit the matrix.
    packed: Vec<Option<PackedFigures>>,
}

/// What packing a matrix took.
#[derive(Clone, Copy)]
struct PackedFigures {
    /// Of the arrays, workspace excluded.
    bytes: u64,
    time: Duration,
}

impl PackedFigures {
    fn of(kernel: &Kernel<Cubin>) -> Self {
        Self { bytes: kernel.packed.bytes(ArrayRole::Matrix), time: kernel.pack_time }
    }
}

impl Judged<'_> {
    /// The fastest right candidate: what a user would be given; `None` where none is right.
    fn chosen(&self, work: Work) -> Option<Chosen> {
        let Evaluation { outcomes, baselines, copy_bandwidth } = &self.evaluation;
        let objective = Objective::default();
        let index = fastest(outcomes, objective)?;
        let measurement = outcomes.get(index)?.measurement()?;
        let PackedFigures { bytes, time } = (*self.packed.get(index)?)?;
        let packing = Packing {
            packed_bytes: bytes,
            dense_bytes: self.costs.cost(self.programs.get(index)?).dense_bytes,
            seconds: time.as_secs_f64(),
            copy_bandwidth: *copy_bandwidth,
        };
        Some(Chosen::new((index, objective), measurement, baselines, work, packing))
    }
}

/// Steps of the progress line that a matrix takes.
pub(crate) fn steps_per_matrix(tasks: usize) -> usize {
    1 + 2 * tasks
}

impl<E: Instrument> Bench<'_, E> {
    /// Measures every matrix from `next` on; what cannot be measured is noted, and the run goes on.
    /// Where the evaluator fails again and again, it ends and leaves the others what is left: a GPU
    /// that is gone fails each case in moments, while one that is well is at work on a single one.
    ///
    /// # Errors
    /// When results cannot be written.
    pub(crate) fn run(
        mut self,
        sources: &[MatrixSource],
        next: &AtomicUsize,
    ) -> anyhow::Result<()> {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.matrix(source)?;
            if self.failures >= MOST_FAILURES && self.leave() {
                let name = self.evaluator.device().name;
                (self.print)(&format!("{name} failed again and again: it is asked no more"))?;
                break;
            }
        }
        Ok(())
    }

    /// Is counted no more among those that run, unless nobody would be left.
    fn leave(&self) -> bool {
        let others = |running: usize| (running > 1).then(|| running - 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, others).is_ok()
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn matrix(&mut self, source: &MatrixSource) -> anyhow::Result<()> {
        let name = source.name();
        self.progress.step(format!("{name}: loading"));
        let start = Instant::now();
        let matrix = match source.load() {
            Ok(matrix) => matrix,
            Err(error) => {
                self.progress.pass(steps_per_matrix(self.settings.tasks.len()) - 1);
                return self.skip(&name, None, &error);
            }
        };
        let facts = MatrixFacts::new(name, matrix.view());
        let matrix = match self.settings.values {
            ValueSource::Random => generate::with_random_values(&matrix, VALUE_SEED)?,
            ValueSource::File => matrix,
        };
        (self.print)(&format!(
            "{}: {} × {}, {} nonzeros, in {}",
            facts.identity.name,
            HumanCount(facts.identity.rows as u64),
            HumanCount(facts.identity.cols as u64),
            HumanCount(facts.identity.nnz as u64),
            time(start.elapsed().as_secs_f64())
        ))?;
        for dtype in Dtype::ALL {
            let tasks =
                self.settings.tasks.iter().copied().filter(|task| task.precision.matrix() == dtype);
            let tasks: Vec<Task> = tasks.collect();
            if !tasks.is_empty() {
                with_scalar!(dtype, T => self.rounded::<T>(&matrix, &facts, &tasks)?);
            }
        }
        Ok(())
    }

    /// The tasks whose matrix is in this type.
    fn rounded<T: Scalar>(
        &mut self,
        matrix: &Csr<f64>,
        facts: &MatrixFacts,
        tasks: &[Task],
    ) -> anyhow::Result<()> {
        match matrix.cast::<T>() {
            Ok(rounded) => self.cases(rounded.view(), facts, tasks),
            Err(error) => {
                self.progress.pass(2 * tasks.len());
                let reason = format!("too large for {}", T::DTYPE);
                let error = anyhow::Error::new(error).context(reason);
                tasks
                    .iter()
                    .try_for_each(|&task| self.skip(&facts.identity.name, Some(task), &error))
            }
        }
    }

    fn cases<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        facts: &MatrixFacts,
        tasks: &[Task],
    ) -> anyhow::Result<()> {
        // One for all tasks: what one has asked of the matrix, the next need not.
        let mut stats = None;
        for &task in tasks {
            let before = self.store().results().find(facts, task, self.settings).map(case_line);
            if let Some(line) = before {
                self.progress.pass(2);
                (self.print)(&format!("{line} (measured before)"))?;
                continue;
            }
            let stats = stats.get_or_insert_with(|| Arc::new(MatrixStats::new(matrix)));
            let judged = match self.judge(matrix, stats, &facts.identity.name, task) {
                Ok(judged) => judged,
                Err(error) => {
                    self.skip(&facts.identity.name, Some(task), &error)?;
                    continue;
                }
            };
            if let Some(recorder) = self.recorder {
                let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
                let Judged { programs, evaluation, .. } = &judged;
                let context = self.evaluator.context(self.settings.values)?;
                record::<T>(&mut recorder, &facts.identity, programs, evaluation, &context)?;
            }
            let case = self.case(matrix.nnz(), facts, task, judged);
            let line = case_line(&case);
            self.store().add(case)?;
            (self.print)(&line)?;
        }
        Ok(())
    }

    /// Searches for candidates and judges them.
    fn judge<'m, T: Scalar>(
        &mut self,
        matrix: CsrView<'m, T>,
        stats: &Arc<MatrixStats<'m>>,
        name: &str,
        task: Task,
    ) -> anyhow::Result<Judged<'m>> {
        self.progress.step(format!("{name} {task}: searching"));
        let start = Instant::now();
        let target = self.evaluator.device().target;
        let input = PolicyInput::new(Arc::clone(stats), task, target);
        let candidates =
            self.policy.chooser().choose(&input, Objective::default(), self.settings.budget)?;
        let search_seconds = start.elapsed().as_secs_f64();
        let programs: Vec<Program> = candidates.into_iter().map(|c| c.program).collect();
        if programs.is_empty() {
            bail!("the search found no program (a defect of SparseRL)");
        }

        self.progress.step(format!("{name} {task}: measuring {} candidates", programs.len()));
        let compiler = self.evaluator.compiler();
        let clock = || start.elapsed();
        let maker = Maker::new(matrix, compiler.as_ref(), &clock);
        let (mut evaluation, mut packed) = (Evaluation::default(), Vec::new());
        let failed = |error: &dyn Display| anyhow!("the evaluation failed: {error}");
        for together in programs.chunks(TOGETHER) {
            // All are made before one is measured, so that packing has all cores while it is timed.
            let made = maker.make_all(together).map_err(|error| failed(&error))?;
            let judged = made.judge(matrix, &mut self.evaluator);
            self.failures = match &judged {
                Ok(_) => 0,
                Err(error) => self.failures + u32::from(!E::is_unverifiable(error)),
            };
            let judged = judged.map_err(|error| failed(&error))?;
            evaluation.append(judged);
            packed.extend(made.kernels().map(|kernel| kernel.map(PackedFigures::of)));
        }
        if evaluation.outcomes.len() != programs.len() {
            bail!("{} outcomes for {} programs", evaluation.outcomes.len(), programs.len());
        }
        let costs = CostModel::new(input.stats, task, target);
        Ok(Judged { costs, search_seconds, programs, evaluation, packed })
    }

    /// Says what follows from the candidates' outcomes.
    fn case(&self, nnz: usize, matrix_facts: &MatrixFacts, task: Task, judged: Judged<'_>) -> Case {
        let chosen = judged.chosen(Work::new(nnz, task.operation));
        let Judged { costs, search_seconds, programs, evaluation, .. } = judged;
        let Evaluation { outcomes, baselines, copy_bandwidth } = evaluation;
        let opponents = Opponents { baselines, copy_bandwidth };
        let candidates = programs.iter().zip(outcomes).map(|(program, outcome)| {
            let cost = costs.cost(program);
            let candidate = PredictedProgram {
                program: program.to_string(),
                predicted_seconds: cost.seconds,
                predicted_bytes: cost.matrix_bytes,
            };
            CandidateResult { candidate, outcome }
        });
        Case {
            matrix: matrix_facts.clone(),
            task,
            values: self.settings.values,
            budget: self.settings.budget,
            search_seconds,
            candidates: candidates.collect(),
            opponents,
            clocks: self.evaluator.clocks(),
            chosen,
        }
    }

    fn skip(
        &mut self,
        matrix: &str,
        task: Option<Task>,
        error: &anyhow::Error,
    ) -> anyhow::Result<()> {
        let reason = message::with_causes(error.as_ref()).replace(['\n', '\r'], " ");
        let what = task.map_or_else(String::new, |task| format!(" {task}"));
        (self.print)(&format!("{matrix}{what}: skipped: {reason}"))?;
        self.store().skip(Skipped { matrix: matrix.to_owned(), task, reason })
    }
}
