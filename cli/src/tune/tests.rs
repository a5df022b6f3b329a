//! Whole runs with an evaluator that makes its times up.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;
use std::rc::Rc;

use sparserl_core::decode::{CostChooser, is_offered};
use sparserl_core::kernel::Candidate;
use sparserl_core::language::Mask;
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Outcome, Regime, Samples, Timing,
    Violation,
};
use sparserl_core::results::ValueSource;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::{Cubin, Version};
use sparserl_gpu::run::device::{Clocks, DeviceFacts};
use sparserl_gpu::store::recording::{Context, Recordings};
use sparserl_onnx_models::OpenedPolicy;

use super::record::{FORMAT, TuneRecord, TuneResult};
use super::*;
use crate::args::StoreChoice;
use crate::ending;
use crate::instrument::Broken;

mod processes;

/// Times programs by their texts. What it was asked is kept, with the process that was asked.
#[derive(Clone)]
struct Fake {
    protocol: Protocol,
    process: u32,
    asked: Rc<RefCell<Vec<Asked>>>,
    /// The judgement that fails, from 1; 0 for none.
    fails_in: usize,
    /// Whether it judges wrong what is faster than this when it looks closely.
    wrong_below: f64,
    /// The process from which on it judges everything wrong.
    wrong_from: u32,
    /// The process from which on nothing launches.
    refused_from: u32,
}

struct Asked {
    process: u32,
    protocol: &'static str,
    programs: Vec<String>,
}

impl Fake {
    fn new() -> Self {
        let (process, asked) = (0, Rc::default());
        let (fails_in, wrong_below) = (0, 0.0);
        let (wrong_from, refused_from) = (u32::MAX, u32::MAX);
        let protocol = Protocol::full();
        Self { protocol, process, asked, fails_in, wrong_below, wrong_from, refused_from }
    }

    fn outcome(&self, program: &Program) -> Outcome {
        let seconds = seconds(program);
        let is_close = self.protocol == Protocol::full();
        if self.process >= self.refused_from {
            return Outcome::LaunchFailed { reason: "no memory".to_owned() };
        }
        if self.process >= self.wrong_from || is_close && seconds < self.wrong_below {
            let reason = "off".to_owned();
            return Outcome::WrongResult { violation: Violation::Inexact, reason };
        }
        let samples = |count: u32, factor: f64| {
            let samples = (0..count).map(|i| factor * seconds * (1.0 + 1e-6 * f64::from(i)));
            Samples::try_from(samples.collect::<Vec<_>>()).ok()
        };
        let timing = Timing {
            cold: samples(self.protocol.cold_samples, 2.0),
            warm: samples(self.protocol.warm_samples, 1.0),
            back_to_back: samples(self.protocol.back_to_back_samples, 1.0),
        };
        Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
    }
}

/// Between 1 and 2 µs, whatever the program.
fn seconds(program: &Program) -> f64 {
    let hash = blake3::hash(program.to_string().as_bytes());
    1e-6 * (1.0 + f64::from(hash.as_bytes()[0]) / 256.0)
        + 1e-9 * f64::from(hash.as_bytes()[1]) / 256.0
}

impl Evaluator for Fake {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = Broken;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: false, protocol: "fake".into() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, Cubin, RawKernel>],
    ) -> Result<Evaluation, Broken> {
        let programs: Vec<&Program> = candidates.iter().filter_map(Candidate::program).collect();
        let mut asked = self.asked.borrow_mut();
        asked.push(Asked {
            process: self.process,
            protocol: self.protocol.name(),
            programs: programs.iter().map(ToString::to_string).collect(),
        });
        if asked.len() == self.fails_in {
            return Err(Broken("lost"));
        }
        let time = |seconds: f64| Samples::try_from(vec![seconds]).ok();
        let baseline = Baseline {
            library: "cuSPARSE 0".to_owned(),
            algorithm: "DEFAULT".to_owned(),
            is_default: true,
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: Ok(Timing { cold: time(6e-6), warm: time(3e-6), back_to_back: None }),
        };
        Ok(Evaluation {
            outcomes: programs.into_iter().map(|program| self.outcome(program)).collect(),
            baselines: self.protocol.baselines.then_some(baseline).into_iter().collect(),
            copy_bandwidth: Some(1e12),
        })
    }
}

impl Instrument for Fake {
    fn device(&self) -> DeviceFacts {
        DeviceFacts {
            name: "Fake".to_owned(),
            driver: (13, 0),
            memory_bytes: 1 << 30,
            target: Target::H200,
        }
    }

    fn compiler(&self) -> Option<CubinCompiler> {
        None
    }

    fn clocks(&self) -> Option<Clocks> {
        None
    }

    fn context(&self, value_source: ValueSource) -> anyhow::Result<Context> {
        Ok(Context {
            device: self.device(),
            nvrtc: Version { major: 13, minor: 0 },
            protocol: self.protocol.name().to_owned(),
            value_source,
        })
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    fn restart(&mut self) {
        self.process += 1;
    }
}

fn matrix() -> Csr<f64> {
    generate::rmat(9, 8, 1)
}

/// What a run is asked for.
#[derive(Clone)]
struct Asking {
    output: PathBuf,
    matrix: Csr<f64>,
    task: Task,
    regime: Regime,
    edited: Edited,
    store: Option<PathBuf>,
    fake: Fake,
    /// What happens when the search has ended.
    meanwhile: Rc<dyn Fn()>,
}

impl Asking {
    fn at(output: PathBuf) -> Self {
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let (matrix, regime, fake) = (matrix(), Regime::Cold, Fake::new());
        let (edited, meanwhile) = (Edited::Keep, Rc::new(|| ()));
        Self { output, matrix, task, regime, edited, store: None, fake, meanwhile }
    }

    fn case(&self) -> Case {
        Case {
            matrix: identity("a.mtx".to_owned(), self.matrix.view()),
            task: self.task,
            device: "Fake".to_owned(),
            target: Target::H200,
            regime: self.regime,
        }
    }

    /// Runs so many rounds of a search, and then to the end.
    fn run(&self, rounds: u32) -> anyhow::Result<TuneSummary> {
        let choice = self.store.clone().map_or(StoreChoice::Nowhere, StoreChoice::At);
        let job = Job {
            case: self.case(),
            policy: OpenedPolicy::Cost(CostChooser),
            seed: 1,
            output: self.output.clone(),
            edited: self.edited,
            store: WinnerStore::choose(choice)?,
            packed: false,
            notes: Vec::new(),
            start: Instant::now(),
        };
        let done = Cell::new(0);
        let limits = Limits {
            is_over: &mut |_| done.get() >= rounds,
            observe: &mut |stage| match stage {
                Stage::Search(..) => done.set(done.get() + 1),
                Stage::Finals => (self.meanwhile)(),
            },
        };
        let mut fake = self.fake.clone();
        job.tune(self.matrix.view(), &mut fake, limits)
    }

    /// The programs of each round of all searches that were recorded.
    fn searched(&self) -> Vec<Vec<String>> {
        let recordings = Recordings::read(self.output.join("recordings")).unwrap();
        let rounds = recordings.into_iter().filter(|one| one.context.protocol != "full");
        rounds.map(|recording| recording.programs.clone()).collect()
    }

    fn json(&self) -> TuneRecord {
        serde_json::from_slice(&fs::read(self.output.join("tune.json")).unwrap()).unwrap()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_leaves_a_kernel_that_two_new_processes_have_measured() {
    let place = tempfile::tempdir().unwrap();
    let asking = Asking::at(place.path().join("deep/out"));
    let summary = asking.run(6).unwrap();
    assert_eq!(names(&asking.output), [".lock", "kernel", "recordings", "tune.json"]);
    let kernel = asking.output.join("kernel");
    assert_eq!(names(&kernel), ["kernel.cu", "plan.json", "program.skl"]);

    let record = asking.json();
    assert_eq!(record, summary.record);
    assert_eq!((record.format.as_str(), record.runs), (FORMAT, 1));
    let TuneResult { winner, first_pick, opponents, finalists, .. } = record.result.unwrap();
    assert_eq!(fs::read_to_string(kernel.join("program.skl")).unwrap(), winner.program);
    assert_eq!(
        winner.outcome.measurement().unwrap().timing.cold.as_ref().unwrap().seconds().len(),
        20
    );
    assert_eq!(opponents.baselines.len(), 1);
    assert_eq!(finalists.len(), 8);
    assert!(finalists.contains(&first_pick) || first_pick == winner);
    let best = |one: &record::TimedProgram| one.seconds(Regime::Cold).unwrap();
    assert!(finalists.iter().all(|finalist| best(finalist) >= best(&winner)));

    let asked = asking.fake.asked.borrow();
    let processes: Vec<_> = asked.iter().map(|one| (one.process, one.protocol)).collect();
    let (search, finals) = processes.split_at(6);
    assert!(search.iter().all(|one| *one == (0, "custom")), "{search:?}");
    assert_eq!(finals, [(1, "full"), (2, "full")]);
    assert!(asked[0].programs.contains(&first_pick.program), "the first pick is tried first");

    let programs: BTreeSet<_> = asked[..6].iter().flat_map(|one| &one.programs).collect();
    assert_eq!((record.programs, record.right), (programs.len(), programs.len()));
    assert!(record.curve.is_sorted_by(|a, b| a.programs <= b.programs && a.seconds <= b.seconds));
    assert_eq!(record.curve.last().unwrap().programs, record.programs);
    let text = summary.to_string();
    assert!(text.contains("searched   ") && text.contains("first pick"), "{text}");
}

#[test]
fn a_run_that_was_ended_is_gone_on_with_as_if_it_had_not_been() {
    let place = tempfile::tempdir().unwrap();
    let whole = Asking::at(place.path().join("whole"));
    whole.run(9).unwrap();
    let parts = Asking::at(place.path().join("parts"));
    for rounds in [2, 0, 4, 3] {
        parts.run(rounds).unwrap();
    }
    assert_eq!(whole.searched().len(), 9);
    assert_eq!(whole.searched(), parts.searched());
    let (one, other) = (whole.json(), parts.json());
    assert_eq!((one.runs, other.runs), (1, 4));
    assert_eq!((one.programs, one.measurements), (other.programs, other.measurements));
    assert_eq!(one.result.unwrap().winner, other.result.unwrap().winner);
    assert!(other.curve.is_sorted_by(|a, b| a.programs <= b.programs && a.seconds <= b.seconds));
}

#[test]
fn what_was_measured_outlives_a_gpu_that_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let mut asking = Asking::at(place.path().join("out"));
    asking.fake.fails_in = 4;
    let error = asking.run(9).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the evaluation failed: lost");
    assert_eq!(asking.searched().len(), 3);
    let record = asking.json();
    assert!(record.programs >= 32 && record.seconds > 0.0 && record.result.is_none());
    assert!(!asking.output.join("kernel").exists());
    asking.fake = Fake::new();
    asking.run(6).unwrap();
    let whole = Asking::at(place.path().join("whole"));
    whole.run(9).unwrap();
    assert_eq!(asking.searched(), whole.searched());
}

#[test]
fn what_is_wrong_in_the_end_is_not_written_and_not_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let mut asking = Asking::at(place.path().join("out"));
    let before = asking.run(5).unwrap().record.result.unwrap();
    let fastest = before.winner.seconds(Regime::Warm).unwrap();
    let mut others: Vec<f64> =
        before.finalists.iter().filter_map(|one| one.seconds(Regime::Warm)).collect();
    others.sort_by(f64::total_cmp);
    asking.fake = Fake::new();
    asking.fake.wrong_below = f64::midpoint(fastest, others[1]);
    let after = asking.run(0).unwrap().record.result.unwrap();
    assert_ne!(after.winner.program, before.winner.program);
    assert!(after.winner.outcome.is_right());
    let wrong = after.finalists.iter().find(|one| one.program == before.winner.program).unwrap();
    assert!(!wrong.outcome.is_right());
    asking.fake = Fake::new();
    let again = asking.run(2).unwrap().record.result.unwrap();
    assert!(again.finalists.iter().all(|one| one.program != before.winner.program));
}

#[test]
fn what_is_wrong_when_it_is_measured_once_more_is_recorded_though_no_finalist_is_left() {
    let place = tempfile::tempdir().unwrap();
    let before = Asking::at(place.path().join("before"));
    let finalists = before.run(5).unwrap().record.result.unwrap().finalists;
    let mut asking = Asking::at(place.path().join("out"));
    // The process of the winner, which is measured last.
    asking.fake.wrong_from = before.fake.asked.borrow().last().unwrap().process;
    let error = asking.run(5).map(|_| ()).unwrap_err();
    let count = finalists.len();
    let expected = format!(
        "none of {count} candidates was found right; the first: it is wrong (inexact): off"
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(ending::code(&error), ExitCode::from(1));
    assert!(!asking.output.join("kernel").exists());
    asking.fake = Fake::new();
    let after = asking.run(0).unwrap().record.result.unwrap();
    let was_tried = |program: &String| finalists.iter().any(|one| one.program == *program);
    assert!(!was_tried(&after.winner.program));
}

#[test]
fn finalists_that_do_not_launch_are_not_called_wrong() {
    let place = tempfile::tempdir().unwrap();
    let mut asking = Asking::at(place.path().join("out"));
    // The process of the finals.
    asking.fake.refused_from = 1;
    let error = asking.run(2).map(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("it does not launch: no memory"), "{error}");
    assert_eq!(ending::code(&error), ExitCode::from(3));
}

#[test]
fn an_edited_kernel_is_refused_before_the_search_and_replaced_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let mut asking = Asking::at(place.path().join("out"));
    asking.run(1).unwrap();
    let kernel = asking.output.join("kernel/kernel.cu");
    let written = fs::read_to_string(&kernel).unwrap();
    fs::write(&kernel, "years").unwrap();
    asking.fake = Fake::new();
    let error = asking.run(1).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("was edited since it was written") && error.contains("--force"));
    assert!(asking.fake.asked.borrow().is_empty(), "nothing is measured");
    assert_eq!(fs::read_to_string(&kernel).unwrap(), "years");
    asking.edited = Edited::Replace;
    let summary = asking.run(0).unwrap().summary;
    assert_eq!(summary.notes, [""; 0]);
    assert_eq!(fs::read_to_string(&kernel).unwrap(), written);
}

#[test]
fn a_kernel_that_is_edited_while_the_search_runs_is_kept_and_the_new_one_lies_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let mut asking = Asking::at(place.path().join("out"));
    asking.run(1).unwrap();
    let edited = asking.output.join("kernel/kernel.cu");
    let path = edited.clone();
    asking.meanwhile = Rc::new(move || fs::write(&path, "years").unwrap());
    let TuneSummary { summary, record } = asking.run(2).unwrap();
    assert_eq!(fs::read_to_string(&edited).unwrap(), "years");
    let beside = asking.output.join("kernel-2");
    assert_eq!(summary.output, beside);
    let [note] = summary.notes.as_slice() else { panic!("{:?}", summary.notes) };
    let expected =
        format!("the kernel is in {}, since {}: was edited", beside.display(), edited.display());
    assert!(note.starts_with(&expected), "{note}");
    assert_eq!(names(&asking.output), [".lock", "kernel", "kernel-2", "recordings", "tune.json"]);
    let result = record.result.unwrap();
    assert_eq!(result.kernel, "kernel-2");
    assert_eq!(fs::read_to_string(beside.join("program.skl")).unwrap(), result.winner.program);
    assert_eq!(asking.json().result, Some(result));
}

#[test]
fn another_case_is_refused_in_a_line_and_nothing_changes() {
    let place = tempfile::tempdir().unwrap();
    let asking = Asking::at(place.path().join("out"));
    asking.run(1).unwrap();
    let before = fs::read(asking.output.join("tune.json")).unwrap();
    let refused = |other: &Asking, expected: &str| {
        let error = other.run(1).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("--output"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(other.fake.asked.borrow().is_empty(), "nothing is measured");
        assert_eq!(fs::read(asking.output.join("tune.json")).unwrap(), before);
    };
    let same = Asking { fake: Fake::new(), ..asking.clone() };
    refused(&Asking { matrix: generate::rmat(9, 8, 2), ..same.clone() }, "another matrix, a.mtx");
    let columns = 8.try_into().unwrap();
    let task = Task::new(Operation::SpMM { columns }, Dtype::F64);
    refused(&Asking { task, ..same.clone() }, "`spmv f64`, not `spmm 8 f64`");
    refused(&Asking { regime: Regime::Warm, ..same.clone() }, "cold times, not warm");

    let case = asking.case();
    let (held, _) = TuneFolder::open(&asking.output, Edited::Keep, &case, 1).unwrap();
    let error = same.run(1).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("another run is at work"), "{error}");
    drop(held);
    same.run(1).unwrap();
}

#[test]
fn what_is_no_folder_of_a_search_is_refused_and_kept() {
    let place = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("thesis.tex", "years", "no tune.json of ours"),
        ("tune.json", "{}", "is no `sparserl tune 1`"),
        ("tune.json", "years", "is no `sparserl tune 1`"),
    ] {
        let folder = tempfile::tempdir_in(place.path()).unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        let error = TuneFolder::look(folder.path(), Edited::Keep).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(names(folder.path()), [name]);
    }
    let asking = Asking::at(place.path().join("out"));
    asking.run(1).unwrap();
    fs::write(asking.output.join("kernel/notes.txt"), "years").unwrap();
    let error = TuneFolder::look(&asking.output, Edited::Keep).unwrap_err().to_string();
    assert!(error.contains("kernel: holds notes.txt, "), "{error}");
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = TuneFolder::look(&file, Edited::Keep).unwrap_err().to_string();
    assert!(error.contains("is not a folder"), "{error}");
    assert_eq!(TuneFolder::look(&place.path().join("none"), Edited::Keep).unwrap(), None);
}

#[test]
fn winners_of_a_matrix_are_tried_first_on_a_similar_one() {
    let place = tempfile::tempdir().unwrap();
    let store = Some(place.path().join("winners.redb"));
    let first = Asking { store: store.clone(), ..Asking::at(place.path().join("first")) };
    let winner = first.run(6).unwrap().record.result.unwrap().winner.program;
    let mut second = Asking { store, ..Asking::at(place.path().join("second")) };
    second.matrix = generate::rmat(9, 9, 7);
    let stats = MatrixStats::new(second.matrix.view());
    let mask = Mask::legal(&stats, second.task);
    assert!(is_offered(mask, &Program::parse(&winner).unwrap()), "the test needs another matrix");
    second.run(1).unwrap();
    assert!(second.searched()[0][..4].contains(&winner));

    fs::write(place.path().join("winners.redb"), "something else").unwrap();
    let third = Asking { output: place.path().join("third"), ..second.clone() };
    let notes = third.run(1).unwrap().summary.notes;
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.starts_with("no winners of other searches: ") && note.contains("--store"));
    let kept = fs::read_to_string(place.path().join("winners.redb")).unwrap();
    assert_eq!(kept, "something else");
}
