//! `eval`: how good are many candidates for some matrices?
//!
//! ```text
//! candidates ─┐
//! matrices ───┴─► judge, matrix by matrix ─► results ─► summary (statistics) ─► table
//! ```
//!
//! Everything that was given is read before the GPU is opened. A candidate that is no kernel is a
//! result.

mod candidates;
mod results;
mod summary;
mod table;

use anyhow::ensure;
use half::{bf16, f16};
use sparserl_core::matrix::{Csr, CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Outcome};
use sparserl_core::plan::MatrixPlan;
use sparserl_core::task::{Dtype, Task};
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::store::fingerprint::MatrixIdentity;
use sparserl_gpu::store::fingerprint::matrix_plan;
use sparserl_gpu::store::recording::Recorder;

use crate::args::{EvalArgs, MatrixArgs};
use crate::load::{load, round};

use crate::progress::Progress;
use crate::verify::judge::{self, Judge};
use crate::verify::kernel::Kernel;
use crate::{console, recordings};
use candidates::{Candidate, Problem};
use results::{CandidateResult, MatrixResult, Results, Round, Settings};
use summary::Summary;

/// CUDA kernels that are judged together, and so timed in turn.
const TOGETHER: usize = 32;

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let (results, notes) = evaluate(args, || judge::open(&args.judging))?;
    for note in notes {
        console::say(&format!("note: {note}"));
    }
    console::print(&table::text(&Summary::new(&results, &args.sizes())))
}

/// Judges the candidates of all matrices that have no results yet. Also gives notes on what was
/// given.
fn evaluate<J: Judge>(
    args: &EvalArgs,
    open: impl FnOnce() -> anyhow::Result<J>,
) -> anyhow::Result<(Results, Vec<String>)> {
    let task = args.task.task();
    let settings = Settings::new(task, args.judging.protocol());
    if let Some(path) = &args.output {
        results::check_folder(path)?;
    }
    let earlier = match &args.output {
        Some(path) if args.resume => Results::read(path, &settings)?,
        Some(path) => {
            results::check_free(path)?;
            None
        }
        None => None,
    };
    let (problems, note) = candidates::read(&args.candidates, args.matrices(), task)?;
    let mut notes: Vec<String> = note.into_iter().collect();

    let progress = Progress::new(steps(&problems), true);
    let mut pending = Vec::new();
    for problem in problems {
        progress.step(format!("reading {}", problem.matrix.file_name()));
        let (matrix, note) = load(&problem.matrix)?;
        match task.precision.matrix() {
            Dtype::F32 => drop(round::<f32>(&matrix, &problem.matrix)?),
            Dtype::F16 => drop(round::<f16>(&matrix, &problem.matrix)?),
            Dtype::BF16 => drop(round::<bf16>(&matrix, &problem.matrix)?),
            Dtype::F64 => {}
        }
        let name = problem.matrix.file_name();
        notes.extend(note.map(|note| format!("{name}: {note}")));
        let facts = matrix_plan(name, matrix.view());
        if !earlier.as_ref().is_some_and(|results| results.has(&facts, &problem.candidates)) {
            pending.push((problem, facts));
        }
    }
    let results = match earlier {
        Some(earlier) if pending.is_empty() => earlier,
        earlier => {
            progress.step("opening the GPU");
            let judge = open()?;
            let results = match earlier {
                Some(earlier) => earlier,
                None => Results::new(settings, judge.device().clone()),
            };
            let recorder = recordings::open(args.record.as_deref())?;
            let run = Run { judge, recorder, task, progress: &progress };
            run.judge_all(results, pending, args)?
        }
    };
    if let Some(path) = &args.output {
        results.write(path, &args.sizes())?;
    }
    Ok((results, notes))
}

/// Steps of the progress, if nothing was measured before.
fn steps(problems: &[Problem]) -> usize {
    let of_one = |problem: &Problem| 3 + problem.candidates.len().div_ceil(TOGETHER);
    1 + problems.iter().map(of_one).sum::<usize>()
}

/// One run, once everything is read.
struct Run<'a, J> {
    judge: J,
    /// Where outcomes of programs go, if they are recorded.
    recorder: Option<Recorder>,
    task: Task,
    progress: &'a Progress,
}

impl<J: Judge> Run<'_, J> {
    fn judge_all(
        mut self,
        mut results: Results,
        pending: Vec<(Problem, MatrixPlan)>,
        args: &EvalArgs,
    ) -> anyhow::Result<Results> {
        if let Some(path) = &args.output {
            results.check_device(path, self.judge.device())?;
        }
        for (Problem { matrix, candidates }, facts) in pending {
            self.progress.step(format!("loading {}", matrix.file_name()));
            results.add(self.judge_matrix(&matrix, facts, &candidates)?);
            if let Some(path) = &args.output {
                results.write(path, &args.sizes())?;
            }
        }
        Ok(results)
    }

    fn judge_matrix(
        &mut self,
        args: &MatrixArgs,
        facts: MatrixPlan,
        candidates: &[Candidate],
    ) -> anyhow::Result<MatrixResult> {
        let (matrix, _) = load(args)?;
        let identity = MatrixIdentity::of_plan(&facts)?;
        let (candidates, rounds) = match self.task.precision.matrix() {
            Dtype::F32 => {
                let matrix: Csr<f32> = round(&matrix, args)?;
                self.judge_candidates(matrix.view(), &identity, candidates)?
            }
            Dtype::F64 => self.judge_candidates(matrix.view(), &identity, candidates)?,
            Dtype::F16 => {
                let matrix: Csr<f16> = round(&matrix, args)?;
                self.judge_candidates(matrix.view(), &identity, candidates)?
            }
            Dtype::BF16 => {
                let matrix: Csr<bf16> = round(&matrix, args)?;
                self.judge_candidates(matrix.view(), &identity, candidates)?
            }
        };
        Ok(MatrixResult { matrix: facts, candidates, rounds })
    }

    /// Judges all programs and then the CUDA kernels; the results are in the order of the
    /// candidates.
    fn judge_candidates<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        identity: &MatrixIdentity,
        candidates: &[Candidate],
    ) -> anyhow::Result<(Vec<CandidateResult>, Vec<Round>)> {
        let name = &identity.name;
        let (mut programs, mut program_places) = (Vec::new(), Vec::new());
        let mut cuda: Vec<(usize, &RawKernel)> = Vec::new();
        let mut results: Vec<Option<CandidateResult>> = Vec::new();
        for (place, candidate) in candidates.iter().enumerate() {
            let unreadable = |reason: &String| Outcome::CompileFailed { reason: reason.clone() };
            let failed = candidate.kernel.as_ref().err().map(unreadable);
            results.push(failed.map(|outcome| CandidateResult::new(candidate, None, outcome)));
            match &candidate.kernel {
                Ok(Kernel::Program(program)) => {
                    programs.push(program.clone());
                    program_places.push(place);
                }
                Ok(Kernel::Cuda(kernel)) => cuda.push((place, kernel)),
                Err(_) => {}
            }
        }

        let mut rounds = Vec::new();
        let mut keep = |places: Vec<usize>, evaluation: Evaluation| {
            let Evaluation { outcomes, baselines, copy_bandwidth } = evaluation;
            ensure!(outcomes.len() == places.len(), "not every candidate was judged");
            for (place, outcome) in places.into_iter().zip(outcomes) {
                if let Some((slot, candidate)) = results.get_mut(place).zip(candidates.get(place)) {
                    *slot = Some(CandidateResult::new(candidate, Some(rounds.len()), outcome));
                }
            }
            rounds.push(Round { baselines, copy_bandwidth });
            Ok(())
        };
        if !programs.is_empty() {
            self.progress.step(format!("{name}: judging {} programs", programs.len()));
            let evaluation = self.judge.programs(matrix, &programs)?;
            if let Some(recorder) = &mut self.recorder {
                let context = self.judge.context()?;
                recordings::record(recorder, matrix, identity, &programs, &evaluation, &context)?;
            }
            keep(program_places, evaluation)?;
        }
        let mut first = 1;
        for batch in cuda.chunks(TOGETHER) {
            let last = first + batch.len() - 1;
            let of = cuda.len();
            self.progress.step(format!("{name}: judging CUDA kernels {first} to {last} of {of}"));
            first = last + 1;
            let (places, kernels): (Vec<usize>, Vec<&RawKernel>) = batch.iter().copied().unzip();
            keep(places, self.judge.cuda(matrix, self.task, &kernels)?)?;
        }
        Ok((results.into_iter().flatten().collect(), rounds))
    }
}

#[cfg(test)]
mod tests;
