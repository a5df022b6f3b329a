//! `tune`: searches for the fastest kernel of one matrix by measuring, for as long as it may take.
//!
//! ```text
//! policy, winners ─► Search ⇄ rounds: measure, record ─► finals ─► OutputFolder, tune.json
//!        ▲                 ▲                    │              │
//!        │                 └── recall ◄── recordings           │
//!        └──────────────────────── winners ◄───────────────────┘
//! ```
//!
//! The folder is the memory: a run that is started on it again tells its search all that was
//! measured, and goes on from there.

mod finals;
mod folder;
mod record;
mod rounds;
mod shown;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use sparserl_core::decode::PolicyInput;
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::pipeline::Maker;
use sparserl_core::plan::Origin;
use sparserl_core::search::{Search, SearchSettings};
use sparserl_core::structure::MatrixStats;
use sparserl_core::with_scalar;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_gpu::store::recording::Recorder;
use sparserl_gpu::worker::Protocol;
use sparserl_onnx_models::OpenedPolicy;

use crate::args::TuneArgs;
use crate::instrument::Instrument;
use crate::kernel_folder;
use crate::load::{Matrix, load_whole, lost, round};
use crate::output_folder::{Edited, Elsewhere, OutputFolder};
use crate::policy;
use crate::summary::{Seconds, Summary, WrittenKernel};
use crate::winners::{Winner, WinnerScope, WinnerStore, WinningProgram};
use crate::{console, gpu, interrupt, text};
use finals::Finals;
use folder::TuneFolder;
use record::Case;
use rounds::{Laboratory, Standing};
use shown::{SearchLine, TuneSummary};

/// The search, as plans name it; the number changes with the programs that it finds.
const POLICY: &str = "tune";
const POLICY_VERSION: &str = "2";

/// Programs that the policy proposes.
const PREDICTED: usize = 32;
/// Programs of similar matrices that are tried.
const BORROWED: usize = 8;
/// Programs of this matrix that later searches are offered.
const LENT: usize = 3;

pub(crate) fn run(args: &TuneArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let output = args.output();
    // Before the work, although it is looked at again after it.
    let edited = if args.force { Edited::Replace } else { Edited::Keep };
    TuneFolder::look(&output, edited)?;
    let policy = policy::open(&args.policy)?;
    let Matrix { matrix, note, is_pattern } = load_whole(&args.matrix)?;
    let task = args.task.task_for(is_pattern);
    let facts = identity(args.matrix.file_name(), matrix.view());
    let compilers = gpu::compilers()?;
    let opponents = args.opponents.opponents()?;
    let mut gpu = gpu::open(&compilers, args.device, Protocol::full(), opponents)?;
    let case = Case {
        matrix: facts,
        task,
        device: gpu.facts().name.clone(),
        target: gpu.facts().target,
        regime: args.regime(),
    };
    let lost = lost(&matrix, task.precision.matrix());
    let mut notes: Vec<String> = note.into_iter().chain(lost).collect();
    let store = WinnerStore::choose(args.store()).unwrap_or_else(|error| {
        notes.push(format!("no winners of other searches: {error}"));
        None
    });
    let line = SearchLine::new(args.budget, !args.json && !args.quiet);
    let (seed, packed) = (args.seed, args.packed);
    let job = Job { case, policy, seed, output, edited, store, packed, notes, start };
    interrupt::wait_for_end();
    let end = Limits {
        // The search begins later: it has the whole of its time.
        is_over: &mut |spent| spent >= args.budget || interrupt::was_asked_for(),
        observe: &mut |stage| line.show(&stage),
    };
    let tuned = with_scalar!(task.precision.matrix(), T => {
        let rounded = round::<T>(&matrix, &args.matrix)?;
        drop(matrix);
        job.tune(rounded.view(), &mut gpu, end)?
    });
    drop(line);
    if !args.quiet {
        for note in &tuned.summary.notes {
            console::say(&format!("note: {note}"));
        }
    }
    match (args.json, args.quiet) {
        (true, _) => console::print(&text::json(&tuned.record)?),
        (false, false) => console::print(&tuned.to_string()),
        (false, true) => Ok(()),
    }
}

/// One run, once the matrix is read and the GPU is open.
struct Job {
    case: Case,
    policy: OpenedPolicy,
    seed: u64,
    output: PathBuf,
    edited: Edited,
    store: Option<WinnerStore>,
    /// Whether the packed arrays are written, too.
    packed: bool,
    /// What to say at the end.
    notes: Vec<String>,
    start: Instant,
}

/// When a search ends, by the time that it has taken, and who is told how far it is.
struct Limits<'a> {
    is_over: &'a mut dyn FnMut(Duration) -> bool,
    observe: &'a mut dyn FnMut(Stage<'_>),
}

/// What a run is at.
enum Stage<'a> {
    /// It has searched for so long.
    Search(&'a Standing, Duration),
    /// It measures the best once more.
    Finals,
}

impl Job {
    fn tune<T: Scalar, E: Instrument>(
        mut self,
        matrix: CsrView<'_, T>,
        evaluator: &mut E,
        Limits { is_over, observe }: Limits<'_>,
    ) -> anyhow::Result<TuneSummary> {
        let load = self.start.elapsed();
        let (folder, record) = TuneFolder::open(&self.output, self.edited, &self.case, self.seed)?;
        let recorder = Recorder::append_to(folder.recordings())?;
        let folder = &folder;
        let (start, compiler) = (self.start, evaluator.compiler());
        let clock = move || start.elapsed();
        let maker = Maker::new(matrix, compiler.as_ref(), &clock);
        let mut laboratory = Laboratory { maker, evaluator, recorder, folder, record };

        let Case { task, target, regime, .. } = self.case;
        let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix)), task, target);
        let features = input.embedding.features.to_array();
        let scope = WinnerScope { task, target, regime };
        let predicted = self.policy.chooser().choose(&input, regime.into(), PREDICTED)?;
        let first_pick = predicted
            .first()
            .map(|found| found.program.clone())
            .ok_or_else(|| anyhow!("the search found no program (a defect of SparseRL)"))?;
        let mut first = vec![first_pick.clone()];
        first.extend(self.borrow(scope, &features));
        first.extend(predicted.into_iter().map(|found| found.program));
        let settings = SearchSettings::default();
        let mut search = Search::new(input.stats.clone(), task, first, settings, self.seed);
        laboratory.recall(&mut search)?;

        let searching = Instant::now();
        let searched = laboratory.search(
            &mut search,
            || is_over(searching.elapsed()),
            |standing| observe(Stage::Search(standing, searching.elapsed())),
        );
        // What was measured stays, whatever ends the search.
        laboratory.save()?;
        searched?;
        let search_time = searching.elapsed();
        let measuring = Instant::now();
        observe(Stage::Finals);
        let finals = laboratory.finals(&mut search, &input, &first_pick);
        laboratory.save()?;
        let Finals { artefact, mut result } = finals?;
        let measure_time = measuring.elapsed();

        let matrix = &self.case.matrix;
        let origin = Origin { matrix, policy: POLICY, policy_version: POLICY_VERSION };
        let mut output = folder.kernel();
        let written = OutputFolder::begin_unchecked(&output, self.edited)?;
        let files = (self.packed, &[][..]);
        let plan = kernel_folder::write(origin, &artefact, files, &written, Path::new(""))?;
        // Somebody may have edited the kernel of before while the search ran: both are kept.
        if let Some(Elsewhere { path, refusal }) = written.finish_beside()? {
            let name = path.strip_prefix(&self.output).unwrap_or(&path);
            result.kernel = name.to_string_lossy().into_owned();
            output = path;
            self.notes.push(format!("the kernel is in {}, since {refusal}", output.display()));
        }
        self.lend(scope, &features, &result);
        laboratory.record.result = Some(result);
        laboratory.save()?;

        let kernel = WrittenKernel::new(&artefact, plan, Some(&self.case.device));
        let seconds = Seconds {
            load: load.as_secs_f64(),
            search: search_time.as_secs_f64(),
            measure: measure_time.as_secs_f64(),
            check: 0.0,
            pack: kernel.pack_seconds,
            compile: kernel.compile_seconds,
            total: self.start.elapsed().as_secs_f64(),
        };
        let summary = Summary {
            output,
            matrix: self.case.matrix,
            task,
            is_pattern: None,
            policy: self.policy.in_words(),
            evaluation: None,
            unmeasured: None,
            kernels: vec![kernel],
            explanation: None,
            seconds,
            notes: self.notes,
            warnings: Vec::new(),
        };
        Ok(TuneSummary { summary, record: laboratory.record })
    }

    /// What won on similar matrices.
    fn borrow(&mut self, scope: WinnerScope, features: &[f32]) -> Vec<Program> {
        let Some(store) = &self.store else { return Vec::new() };
        match store.nearest(scope, features, BORROWED) {
            Ok(found) => found,
            Err(error) => {
                let path = store.path().display();
                self.notes.push(format!("no winners of other searches: {path}: {error}"));
                // What cannot be read is not written to, either.
                self.store = None;
                Vec::new()
            }
        }
    }

    /// Offers what won here to later searches.
    fn lend(&mut self, scope: WinnerScope, features: &[f32], result: &record::TuneResult) {
        let Some(store) = &self.store else { return };
        let timed = |one: &record::TimedProgram| {
            let seconds = one.seconds(scope.regime)?;
            Some(WinningProgram { program: one.program.clone(), seconds })
        };
        let mut others: Vec<WinningProgram> = result.finalists.iter().filter_map(timed).collect();
        others.retain(|other| other.program != result.winner.program);
        others.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let programs = timed(&result.winner).into_iter().chain(others).take(LENT).collect();
        let opponents =
            result.opponents.baselines.iter().filter_map(|one| one.median(scope.regime));
        let winner = Winner {
            matrix: self.case.matrix.name.clone(),
            features: features.to_vec(),
            programs,
            reference_seconds: opponents.min_by(f64::total_cmp),
        };
        if let Err(error) = store.keep(scope, &self.case.matrix.fingerprint.to_string(), &winner) {
            let path = store.path().display();
            self.notes.push(format!("not kept for other searches: {path}: {error}"));
        }
    }
}
