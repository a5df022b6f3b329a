//! `eval`: how good are many candidates for some matrices?
//!
//! ```text
//! candidates ─┐
//! matrices ───┴─► measuring or emulating, matrix by matrix ─► results ─► summary (statistics) ─┬─► table
//!                                                                                              └─► document
//! ```
//!
//! Everything that was given is read before the GPU or the emulator is opened. A candidate that is
//! no kernel is a result; one that the emulator can say nothing of is none.

mod candidates;
mod document;
mod emulating;
mod measuring;
mod results;
mod summary;
mod table;

use sparserl_core::matrix::{CsrView, MatrixIdentity, Scalar};
use sparserl_core::pipeline::TOGETHER;
use sparserl_core::results::{CandidateResult, Opponents};
use sparserl_core::task::Task;
use sparserl_core::with_scalar;
use sparserl_gpu::store::fingerprint::identity;

use crate::args::{EvalArgs, MatrixArgs};
use crate::ending::Ending;
use crate::instrument::Instrument;
use crate::load::{load, round};
use crate::progress::Progress;
use crate::{console, gpu, recordings};
use candidates::{Candidate, Problem};
use document::Document;
use emulating::Emulating;
use measuring::Measuring;
use results::{EvalResults, JudgedFile, JudgedOn, MatrixResult, Method, Settings};

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<Ending> {
    let evaluated = match args.emulation.emulate {
        true => evaluate(args, |task| Emulating::open(args, task))?,
        false => evaluate(args, |task| measuring(args, task, gpu::open_asked(&args.judging)?))?,
    };
    let Evaluated { results, notes, unjudged } = evaluated;
    for note in notes {
        console::say(&format!("note: {note}"));
    }
    console::print(&match args.json {
        true => Document::new(&results, &args.sizes()).json()?,
        false => table::text(&results, &args.sizes()),
    })?;
    for warning in &unjudged {
        console::say(&format!("warning: {warning}"));
    }
    Ok(if unjudged.is_empty() { Ending::Complete } else { Ending::Unjudged })
}

fn measuring<I: Instrument>(
    args: &EvalArgs,
    task: Task,
    instrument: I,
) -> anyhow::Result<Measuring<I>> {
    let recorder = recordings::open(args.record.as_deref())?;
    Ok(Measuring { instrument, recorder, task })
}

/// What came out.
struct Evaluated {
    results: EvalResults,
    /// On what was given.
    notes: Vec<String>,
    /// Why candidates are not among the results, a line for each.
    unjudged: Vec<String>,
}

/// Judges the candidates of all matrices that have no results yet.
fn evaluate<J: Jury>(
    args: &EvalArgs,
    open: impl FnOnce(Task) -> anyhow::Result<J>,
) -> anyhow::Result<Evaluated> {
    let (mut problems, note) = candidates::read(&args.candidates, args.matrices())?;
    let task = candidates::task(&problems, &args.asked)?;
    candidates::refuse_others(&mut problems, task);
    let settings = Settings::new(task, Method::of(args));
    if let Some(path) = &args.output {
        results::check_folder(path)?;
    }
    let earlier = match &args.output {
        Some(path) if args.resume => EvalResults::read(path, &settings)?,
        Some(path) => {
            results::check_free(path)?;
            None
        }
        None => None,
    };
    let mut notes: Vec<String> = note.into_iter().collect();

    let progress = Progress::new(steps(&problems), !args.json);
    let mut pending = Vec::new();
    for problem in problems {
        progress.step(format!("reading {}", problem.matrix.file_name()));
        let (matrix, note) = load(&problem.matrix)?;
        with_scalar!(task.precision.matrix(), T => drop(round::<T>(&matrix, &problem.matrix)?));
        let name = problem.matrix.file_name();
        notes.extend(note.map(|note| format!("{name}: {note}")));
        let facts = identity(name, matrix.view());
        if !earlier.as_ref().is_some_and(|results| results.has(&facts, &problem.candidates)) {
            pending.push((problem, facts));
        }
    }
    let mut unjudged = Vec::new();
    let results = match earlier {
        Some(earlier) if pending.is_empty() => earlier,
        earlier => {
            progress.step(if args.emulation.emulate {
                "opening the emulator"
            } else {
                "opening the GPU"
            });
            let mut run =
                Run { jury: open(task)?, task, progress: &progress, unjudged: Vec::new() };
            let results =
                earlier.unwrap_or_else(|| EvalResults::new(settings, run.jury.judges_on()));
            let results = run.judge_all(results, pending, args)?;
            unjudged = run.unjudged;
            results
        }
    };
    if let Some(path) = &args.output {
        Document::new(&results, &args.sizes()).write(path)?;
    }
    Ok(Evaluated { results, notes, unjudged })
}

/// Steps of the progress, if nothing was measured before.
fn steps(problems: &[Problem]) -> usize {
    let of_one = |problem: &Problem| 3 + problem.candidates.len().div_ceil(TOGETHER);
    1 + problems.iter().map(of_one).sum::<usize>()
}

/// Says what becomes of candidates.
trait Jury {
    /// What it judges on.
    fn judges_on(&self) -> JudgedOn;

    /// Judges all candidates for a matrix.
    fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        identity: &MatrixIdentity,
        candidates: &[Candidate],
        progress: &Progress,
    ) -> anyhow::Result<Verdicts>;
}

/// What became of the candidates for a matrix.
#[derive(Default)]
struct Verdicts {
    /// In the order of the candidates; those that nothing is known of are missing.
    candidates: Vec<CandidateResult<JudgedFile>>,
    /// What was measured in turn with them.
    rounds: Vec<Opponents>,
    /// Why nothing is known of candidates, a line for each.
    unjudged: Vec<String>,
}

/// One run, once everything is read.
struct Run<'a, J> {
    jury: J,
    task: Task,
    progress: &'a Progress,
    unjudged: Vec<String>,
}

impl<J: Jury> Run<'_, J> {
    fn judge_all(
        &mut self,
        mut results: EvalResults,
        pending: Vec<(Problem, MatrixIdentity)>,
        args: &EvalArgs,
    ) -> anyhow::Result<EvalResults> {
        if let Some(path) = &args.output {
            results.check_instrument(path, &self.jury.judges_on())?;
        }
        for (Problem { matrix, candidates }, facts) in pending {
            self.progress.step(format!("loading {}", matrix.file_name()));
            results.add(self.judge_matrix(&matrix, facts, &candidates)?);
            if let Some(path) = &args.output {
                Document::new(&results, &args.sizes()).write(path)?;
            }
        }
        Ok(results)
    }

    fn judge_matrix(
        &mut self,
        args: &MatrixArgs,
        facts: MatrixIdentity,
        candidates: &[Candidate],
    ) -> anyhow::Result<MatrixResult> {
        let (matrix, _) = load(args)?;
        let (jury, progress) = (&mut self.jury, self.progress);
        let verdicts = with_scalar!(self.task.precision.matrix(), T => {
            let matrix = round::<T>(&matrix, args)?;
            jury.judge(matrix.view(), &facts, candidates, progress)?
        });
        let Verdicts { candidates, rounds, unjudged } = verdicts;
        self.unjudged.extend(unjudged);
        Ok(MatrixResult { matrix: facts, candidates, rounds })
    }
}

#[cfg(test)]
mod tests;
