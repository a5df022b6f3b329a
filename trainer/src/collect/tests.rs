//! Of collecting, with an evaluator that finds every program right.

use std::convert::Infallible;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Candidate;
use sparserl_core::matrix::CsrView;
use sparserl_core::outcome::{Abilities, Evaluation, Measurement, Samples, Timing};
use sparserl_core::results::ValueSource;
use sparserl_gpu::compile::nvrtc::Version;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::store::recording::Recordings;

use super::*;
use crate::configuration::Collection;
use crate::corpus::RealMatrices;
use crate::proposals::Stratified;

/// Finds every program right; the longer its text, the slower. Where it is mortal, it fails in
/// its fifth judgement. Results of one type may be too large for it.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) mortal: bool,
    pub(crate) judgements: u32,
    pub(crate) too_large: Option<Dtype>,
}

/// Why it says nothing.
const TOO_LARGE: &str = "too large";

/// Compiles everything to nothing.
pub(crate) struct FakeCompiler;

impl Compiler for FakeCompiler {
    type Code = ();
    type Error = Infallible;

    fn compile(&self, _: &CudaSource) -> Result<Result<(), String>, Infallible> {
        Ok(Ok(()))
    }
}

impl Evaluator for Fake {
    type Code = ();
    type Cuda = Infallible;
    type Error = String;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: false, protocol: "fake".into() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, (), Infallible>],
    ) -> Result<Evaluation, String> {
        if self.too_large == Some(T::DTYPE) {
            return Err(TOO_LARGE.to_owned());
        }
        self.judgements += 1;
        if self.mortal && self.judgements == 5 {
            return Err("lost".to_owned());
        }
        let outcome = |candidate: &Candidate<'_, (), Infallible>| {
            let length = candidate.program().map_or(0, |program| program.to_string().len());
            let samples = Samples::try_from(vec![1e-6 * length as f64]).unwrap();
            let timing = Timing { warm: Some(samples), ..Timing::default() };
            Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
        };
        let outcomes = candidates.iter().map(outcome).collect();
        Ok(Evaluation { outcomes, baselines: vec![], copy_bandwidth: None })
    }

    fn is_unverifiable(error: &String) -> bool {
        error == TOO_LARGE
    }
}

fn collection() -> Collection {
    toml::from_str(
        "matrices = 6\ntasks = [\"spmv f32\", \"spmm 8 f64\", \"spmv bf16\"]\n\
         programs = 20\npool = 30\n\
         mutations = 4\nrounds_of_mutations = 1\n\
         [corpus]\nseed = 3\nshare_of_real = 0.0\nlargest_nnz = 3000\n",
    )
    .unwrap()
}

pub(crate) fn context() -> Context {
    Context {
        device: DeviceFacts {
            name: "Fake".to_owned(),
            driver: (13, 0),
            memory_bytes: 1 << 30,
            target: Target::H200,
        },
        nvrtc: Version { major: 13, minor: 0 },
        protocol: "fake".to_owned(),
        value_source: ValueSource::Random,
    }
}

/// Longer than any of these tests takes.
const LEASE: Duration = Duration::from_secs(600);

fn run(folder: &Path, mortal: bool) -> Result<Collected, String> {
    observed(folder, Fake { mortal, ..Fake::default() }, |_| {})
}

fn observed(
    folder: &Path,
    fake: Fake,
    observe: impl FnMut(&Progress<'_>),
) -> Result<Collected, String> {
    let (collection, real) = (collection(), RealMatrices::none());
    let mut shards = Shards::open(&folder.join("shards"), collection.matrices, LEASE).unwrap();
    let recorder = Recorder::append_to(folder.join("recordings")).unwrap();
    let outputs = (recorder, context());
    let recipes = Recipes::of_corpus(collection.corpus, collection.matrices, &real);
    let experiment = Stratified::new(&collection, Vec::new());
    let what = (&recipes, collection.tasks.as_slice());
    let measuring = (fake, FakeCompiler);
    let mut collector = Collector::new(experiment, what, measuring, Target::H200, outputs);
    let two = NonZeroUsize::new(2).unwrap();
    collector.run(&mut shards, two, || true, observe).map_err(|error| error.to_string())
}

/// The names of what was recorded in a folder, in their order, each as often as it was.
fn recorded(folder: &Path) -> Vec<(String, Task)> {
    let recordings = Recordings::read(folder.join("recordings")).unwrap();
    let mut names: Vec<_> = recordings
        .into_iter()
        .map(|recording| (recording.matrix.name.clone(), recording.task))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_lost_run_is_taken_up_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(folder.path(), true).unwrap_err();
    // What was measured, and where.
    let (task, recipe) = error.split_once(" on ").unwrap();
    let recipe = recipe.strip_suffix(": lost").unwrap();
    assert!(task.parse::<Task>().is_ok() && recipe.parse::<Recipe>().is_ok(), "{error}");
    let again = run(folder.path(), false).unwrap();
    assert!(again.matrices > 0 && again.programs == again.right);
    assert_eq!(run(folder.path(), false), Ok(Collected::default()));
    let recordings = Recordings::read(folder.path().join("recordings")).unwrap();
    let mut names: Vec<&str> =
        recordings.into_iter().map(|recording| recording.matrix.name.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 6);
    for name in names {
        let recipe: Recipe = name.parse().unwrap();
        assert!(recipe.build(&RealMatrices::none()).unwrap().nnz() > 0);
    }
}

#[test]
fn two_processes_share_a_corpus_and_the_reference_is_measured_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let both: Vec<Collected> = std::thread::scope(|scope| {
        let run = || run(folder.path(), false).unwrap();
        let threads = [scope.spawn(run), scope.spawn(run)];
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(both.iter().map(|collected| collected.matrices).sum::<u64>(), 6);
    let recordings = Recordings::read(folder.path().join("recordings")).unwrap();
    // Three tasks, and for each what was drawn and what came of changing that.
    assert_eq!(recordings.as_slice().len(), 6 * 3 * 2);
    for recording in &recordings {
        let reference = reference(recording.task).unwrap().to_string();
        let places = recording.programs.iter().step_by(BETWEEN_REFERENCES + 1);
        assert!(places.into_iter().all(|program| *program == reference));
        assert!(recording.programs.len() > 1);
    }
}

/// The folder that a process collects into, and whether it is lost on the way.
const FOLDER: &str = "SPARSERL_TEST_COLLECT_INTO";
const IS_LOST: &str = "SPARSERL_TEST_COLLECT_IS_LOST";

#[test]
#[ignore = "a process of the test below"]
fn a_process_that_collects() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let is_lost = std::env::var_os(IS_LOST).is_some();
    let observe = |_: &Progress<'_>| {
        // As by a signal: nothing is given back or written.
        if is_lost {
            std::process::abort();
        }
    };
    observed(folder.as_ref(), Fake::default(), observe).unwrap();
}

#[test]
fn what_a_lost_process_had_claimed_another_collects() {
    let folder = tempfile::tempdir().unwrap();
    let process = |is_lost: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "collect::tests::a_process_that_collects", "--ignored"]);
        command.env(FOLDER, folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        if is_lost {
            command.env(IS_LOST, "");
        }
        command.spawn().unwrap()
    };
    // Lost before the other one may have taken all.
    let ended = [true, false].map(|is_lost| process(is_lost).wait().unwrap());
    assert_eq!(ended.map(|status| status.success()), [false, true]);
    // Claims of the lost one are not taken over before their time.
    let some = recorded(folder.path()).len();
    assert!((1..6 * 3 * 2).contains(&some), "{some}");
    for entry in std::fs::read_dir(folder.path().join("shards")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "claim") {
            let claim = std::fs::File::options().write(true).open(path).unwrap();
            claim.set_modified(SystemTime::now() - 2 * LEASE).unwrap();
        }
    }
    let rest = run(folder.path(), false).unwrap();
    assert!(rest.matrices > 0, "{rest:?}");
    let all = recorded(folder.path());
    assert_eq!(all.len(), 6 * 3 * 2);
    // What was drawn, and what came of changing that, of every matrix and task.
    assert!(all.chunk_by(|a, b| a == b).all(|same| same.len() == 2), "{all:?}");
}

#[test]
fn a_task_of_which_nothing_can_be_verified_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake { too_large: Some(Dtype::BF16), ..Fake::default() };
    let collected = observed(folder.path(), fake, |_| {}).unwrap();
    assert_eq!(collected.matrices, 6);
    let tasks: Vec<Task> = recorded(folder.path()).into_iter().map(|(_, task)| task).collect();
    // Two tasks that hold, and for each what was drawn and what came of changing that.
    assert_eq!(tasks.len(), 6 * 2 * 2);
    assert!(tasks.iter().all(|task| task.precision.matrix() != Dtype::BF16));
    assert_eq!(run(folder.path(), false), Ok(Collected::default()));
}
