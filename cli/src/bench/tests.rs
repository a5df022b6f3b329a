//! A benchmark from end to end, judged by an evaluator that makes its times up.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sparserl_core::decode::CostChooser;
use sparserl_core::kernel::Candidate;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Objective, Outcome, Regime, Timing,
    Violation,
};
use sparserl_core::results::{Rival, ValueSource};
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::{Cubin, Version};
use sparserl_gpu::run::device::{Clocks, DeviceFacts};
use sparserl_gpu::store::recording::{Context, Recordings};
use sparserl_onnx_models::OpenedPolicy;

use super::*;
use crate::instrument::Broken;

/// Nonzeros by which the evaluator knows the matrices that are to go wrong.
const LOST: usize = 44; // banded:10,2
const NOTHING_RIGHT: usize = 64; // stencil27:2x2x2
const NO_BASELINE: usize = 58; // dense-row:9,50
const BROKEN: usize = 70; // uniform:7,30,10

/// Makes up times that depend on matrix, task and candidate alone.
#[derive(Default)]
struct Fake {
    evaluations: usize,
    /// It fails each time.
    is_gone: bool,
    /// How long each evaluation takes.
    takes: Duration,
}

fn timing(seconds: f64, cold: bool) -> Timing {
    let samples = |seconds: f64| {
        let spread = [1.02, 0.99, 1.0, 1.01, 0.98];
        spread.map(|factor| factor * seconds).to_vec().try_into().unwrap()
    };
    Timing {
        cold: cold.then(|| samples(1.6 * seconds)),
        warm: Some(samples(seconds)),
        back_to_back: Some(samples(0.9 * seconds)),
    }
}

impl Instrument for &mut Fake {
    fn device(&self) -> DeviceFacts {
        device()
    }

    fn compiler(&self) -> Option<CubinCompiler> {
        None
    }

    fn clocks(&self) -> Option<Clocks> {
        None
    }

    fn context(&self, values: ValueSource) -> anyhow::Result<Context> {
        assert_eq!(values, ValueSource::File);
        Ok(context())
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        assert_eq!(protocol, Protocol::full());
    }

    fn restart(&mut self) {}
}

impl Evaluator for &mut Fake {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = Broken;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: false, protocol: "full".to_owned() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        programs: &[Candidate<'_, Cubin, RawKernel>],
    ) -> Result<Evaluation, Self::Error> {
        self.evaluations += 1;
        thread::sleep(self.takes);
        let nnz = matrix.nnz();
        if self.is_gone || nnz == BROKEN {
            return Err(Broken("the device is gone"));
        }
        let columns = programs.first().map_or(1, |p| p.operation().columns());
        let bytes = (nnz * (4 + size_of::<T>())
            + (matrix.rows() + matrix.cols()) * columns as usize * size_of::<T>())
            as f64;
        let floor = 2e-6 + bytes / 3e12;
        // Between 0.9 and 4 times the floor, as a hash of the size has it.
        let wobble = |salt: usize| ((nnz * 31 + salt * 17) % 101) as f64 / 101.0;
        let gain = if nnz == LOST { 0.8 } else { 1.02 + 2.5 * wobble(columns as usize) };
        let outcome = |index: usize| match index {
            // The quickest is wrong.
            0 => Outcome::WrongResult {
                violation: Violation::Inexact,
                reason: "row 3: off by 2.5 bounds".to_owned(),
            },
            _ if nnz == NOTHING_RIGHT => {
                Outcome::CompileFailed { reason: "expected a <brace>".to_owned() }
            }
            3 => Outcome::Faulted { reason: "illegal address".to_owned() },
            4 => Outcome::TimedOut { seconds: 2.0 },
            _ => Outcome::Measured(Measurement {
                checks: 6,
                worst_ratio: 0.25,
                timing: timing(floor * (1.1 + 0.1 * wobble(index)), index < 6),
            }),
        };
        let baseline = |algorithm: &str, factor: f64, analysis: f64| Baseline {
            library: "cuSPARSE 1.2.3".to_owned(),
            algorithm: algorithm.to_owned(),
            is_default: algorithm == "DEFAULT",
            analysis_seconds: analysis,
            buffer_bytes: 128,
            timing: match nnz {
                NO_BASELINE => Err("not supported".to_owned()),
                _ => Ok(timing(floor * gain * factor, true)),
            },
        };
        let mut baselines =
            vec![baseline("DEFAULT", 1.3, 0.0), baseline("CSR_ALG2", 1.1 + 0.3 * wobble(7), 3e-5)];
        baselines.push(Baseline {
            timing: Err("SELL needs fewer than 2^31 slots".to_owned()),
            ..baseline("SELL", 1.0, 0.0)
        });
        Ok(Evaluation {
            outcomes: (0..programs.len()).map(outcome).collect(),
            baselines,
            copy_bandwidth: Some(4e12),
        })
    }
}

fn device() -> DeviceFacts {
    DeviceFacts {
        name: "Made-up GPU".to_owned(),
        driver: (13, 0),
        memory_bytes: 1 << 37,
        target: Target::H200,
    }
}

fn context() -> Context {
    let nvrtc = Version { major: 13, minor: 0 };
    let value_source = ValueSource::File;
    Context { device: device(), nvrtc, protocol: "full".to_owned(), value_source }
}

fn settings(matrices: &[&str], tasks: &[Task]) -> Settings {
    let matrices = matrices.iter().map(ToString::to_string).collect();
    Settings { matrices, tasks: tasks.to_vec(), budget: 8, values: ValueSource::File }
}

fn spmv(dtype: Dtype) -> Task {
    Task::new(Operation::SpMV, dtype)
}

fn generator() -> Generator {
    Generator::with(&OpenedPolicy::Cost(CostChooser))
}

/// A run into a folder: what it gives and what it prints.
fn run_in(
    folder: &Path,
    settings: Settings,
    fake: &mut Fake,
    resume: bool,
) -> (BenchResults, Vec<String>) {
    let (results, lines) = run_recorded(folder, settings, fake, resume, None);
    (results.unwrap(), lines)
}

fn run_recorded(
    folder: &Path,
    settings: Settings,
    fake: &mut Fake,
    resume: bool,
    recorder: Option<Recorder>,
) -> (anyhow::Result<BenchResults>, Vec<String>) {
    run_on(vec![fake], folder, settings, resume, recorder)
}

fn run_on(
    fakes: Vec<&mut Fake>,
    folder: &Path,
    settings: Settings,
    resume: bool,
    recorder: Option<Recorder>,
) -> (anyhow::Result<BenchResults>, Vec<String>) {
    let sources: Vec<MatrixSource> =
        settings.matrices.iter().flat_map(|m| MatrixSource::parse(m).unwrap()).collect();
    let devices = vec![device(); fakes.len()];
    let store =
        Store::open(folder, BenchResults::new(generator(), devices, settings), resume).unwrap();
    let lines = Mutex::new(Vec::new());
    let print = |line: &str| {
        lines.lock().unwrap().push(line.to_owned());
        Ok(())
    };
    let results =
        measure(&sources, &OpenedPolicy::Cost(CostChooser), fakes, store, recorder, false, &print);
    (results, lines.into_inner().unwrap())
}

const MATRICES: [&str; 5] =
    ["stencil5:20x20", "banded:10,2", "stencil27:2x2x2", "dense-row:9,50", "rmat:7,8"];

#[test]
fn a_run_keeps_everything_and_chooses_the_fastest_right_candidate() {
    let place = tempfile::tempdir().unwrap();
    let tasks = [spmv(Dtype::F32), spmv(Dtype::F64)];
    let (results, lines) =
        run_in(place.path(), settings(&MATRICES, &tasks), &mut Fake::default(), false);
    assert_eq!(results.cases.len(), 10);
    assert_eq!(BenchResults::read(&place.path().join(RESULTS)).unwrap(), results);
    for case in &results.cases {
        assert!(case.candidates.len() > 5, "{}", case.matrix.identity.name);
        if case.matrix.identity.nnz == NOTHING_RIGHT {
            assert_eq!(case.chosen, None);
            continue;
        }
        let chosen = case.chosen.as_ref().unwrap();
        assert_eq!(chosen.by, Objective::Both);
        let median = |index: usize| {
            Objective::Both.seconds(&case.candidates[index].outcome.measurement()?.timing)
        };
        let best = (0..case.candidates.len()).filter_map(median).min_by(f64::total_cmp);
        assert_eq!(median(chosen.index), best);
        let moved = (chosen.packed_bytes + chosen.dense_bytes) as f64;
        let warm = chosen.figures.warm.as_ref().unwrap();
        assert_eq!(warm.bytes_per_second, Some(moved / warm.seconds));
        let cold = chosen.figures.cold.as_ref().unwrap();
        assert_eq!(cold.gflops, 2.0 * case.matrix.identity.nnz as f64 / cold.seconds / 1e9);
        assert_eq!(cold.default.is_none(), case.matrix.identity.nnz == NO_BASELINE);
    }
    let line = |start: &str| lines.iter().find(|line| line.starts_with(start)).unwrap();
    assert!(line("banded:10,2 spmv f32: ").ends_with(" LOSS"), "{lines:?}");
    assert!(line("stencil27:2x2x2 spmv f32: ").contains("no right candidate"), "{lines:?}");
    assert!(line("dense-row:9,50 spmv f64: ").ends_with("no DEFAULT, no best"), "{lines:?}");
}

#[test]
fn a_file_of_results_has_the_keys_that_it_always_had() {
    let place = tempfile::tempdir().unwrap();
    let asked = settings(&MATRICES[..1], &[spmv(Dtype::F32)]);
    run_in(place.path(), asked, &mut Fake::default(), false);
    let text = fs::read(place.path().join(RESULTS)).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let case = &file["cases"][0];
    for (object, expected) in [
        (
            case,
            "baselines budget candidates chosen clocks copy_bandwidth matrix search_seconds task values",
        ),
        (
            &case["matrix"],
            "blake3 cols longest_row name nnz pattern_only row_mean row_variation rows",
        ),
        (&case["candidates"][0], "outcome predicted_bytes predicted_seconds program"),
    ] {
        let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys.join(" "), expected);
    }
}

#[test]
fn the_summary_names_what_a_mean_would_hide() {
    let place = tempfile::tempdir().unwrap();
    let (results, _) =
        run_in(place.path(), settings(&MATRICES, &[spmv(Dtype::F32)]), &mut Fake::default(), false);
    let text = terminal::summary(&results);
    assert!(text.contains("\nloss: banded:10,2 spmv f32: "), "{text}");
    assert!(text.contains("\nno right candidate: stencil27:2x2x2 spmv f32: "), "{text}");
    assert!(text.contains("\nno baseline ran: dense-row:9,50 spmv f32\n"), "{text}");
    assert!(text.contains("5 wrong-result"), "{text}");
    let totals = totals::by_task(&results);
    let spread = totals[0].spread(Regime::Cold, Rival::Default).unwrap();
    assert_eq!((spread.matrices, spread.losses.len()), (3, 1));
    assert_eq!(spread.losses[0].matrix, "banded:10,2");
    assert!(text.contains(&crate::text::times(spread.geomean)), "{text}");
}

#[test]
fn a_run_goes_on_where_another_ended() {
    let place = tempfile::tempdir().unwrap();
    let tasks = [spmv(Dtype::F32)];
    let mut fake = Fake::default();
    let (first, _) = run_in(place.path(), settings(&MATRICES[..2], &tasks), &mut fake, false);
    assert_eq!(fake.evaluations, 2);
    let (second, lines) = run_in(place.path(), settings(&MATRICES, &tasks), &mut fake, true);
    assert_eq!(fake.evaluations, MATRICES.len());
    assert_eq!(second.cases[..2], first.cases[..]);
    assert_eq!(second.started, first.started);
    assert!(lines.iter().filter(|line| line.ends_with("(measured before)")).count() == 2);

    // Another budget is another measurement, in the place of the old one.
    let more = Settings { budget: 9, ..settings(&MATRICES[..1], &tasks) };
    let (third, _) = run_in(place.path(), more, &mut fake, true);
    assert_eq!(fake.evaluations, MATRICES.len() + 1);
    assert_eq!(third.cases.len(), MATRICES.len());

    // Without --resume, and on another GPU, nothing is touched.
    let before = fs::read(place.path().join(RESULTS)).unwrap();
    let open = |device, resume| {
        let fresh = BenchResults::new(generator(), vec![device], settings(&MATRICES, &tasks));
        Store::open(place.path(), fresh, resume).unwrap_err().to_string()
    };
    assert!(open(device(), false).contains("--resume"));
    let other = DeviceFacts { name: "Another".to_owned(), ..device() };
    let error = open(other, true);
    assert!(error.contains("another GPU (Made-up GPU, driver 13.0; now Another"), "{error}");
    assert_eq!(fs::read(place.path().join(RESULTS)).unwrap(), before);
}

#[test]
fn a_run_with_other_tasks_adds_to_what_was_asked_before() {
    let place = tempfile::tempdir().unwrap();
    let mut fake = Fake::default();
    let single = settings(&MATRICES[..2], &[spmv(Dtype::F32)]);
    run_in(place.path(), single.clone(), &mut fake, false);
    let double = Settings { budget: 9, ..settings(&MATRICES[1..3], &[spmv(Dtype::F64)]) };
    let (results, _) = run_in(place.path(), double, &mut fake, true);
    let expected =
        Settings { budget: 9, ..settings(&MATRICES[..3], &[spmv(Dtype::F32), spmv(Dtype::F64)]) };
    assert_eq!(results.settings, expected);
    // Each run measures only what it is asked for itself.
    assert_eq!((fake.evaluations, results.cases.len()), (4, 4));
    let page = report::html(&results).unwrap();
    assert!(page.contains("<dd>spmv f32, spmv f64</dd>"), "{page}");
    assert!(page.contains("at most 8 or 9 for each matrix and task"), "{page}");

    let (again, _) = run_in(place.path(), single, &mut fake, true);
    assert_eq!(again.settings.tasks, expected.tasks);
    assert_eq!((fake.evaluations, again.cases), (4, results.cases));
}

#[test]
fn every_outcome_is_recorded_once() {
    let place = tempfile::tempdir().unwrap();
    let (out, kept) = (place.path().join("out"), place.path().join("kept"));
    let asked = settings(&MATRICES, &[spmv(Dtype::F32), spmv(Dtype::F64)]);
    for resume in [false, true] {
        let recorder = Some(Recorder::append_to(&kept).unwrap());
        let fake = &mut Fake::default();
        let (results, _) = run_recorded(&out, asked.clone(), fake, resume, recorder);
        let (results, recordings) = (results.unwrap(), Recordings::read(&kept).unwrap());
        assert_eq!((results.cases.len(), recordings.as_slice().len()), (10, 10));
        for (case, recording) in results.cases.iter().zip(&recordings) {
            assert_eq!(
                (&case.matrix.identity.name, case.task),
                (&recording.matrix.name, recording.task)
            );
            let candidates = case.candidates.iter().map(|c| (&c.candidate.program, &c.outcome));
            let recorded = recording.programs.iter().zip(&recording.evaluation.outcomes);
            assert!(candidates.eq(recorded));
            assert_eq!(recording.evaluation.baselines, case.opponents.baselines);
            assert_eq!(recording.context, context());
        }
    }
}

#[test]
#[cfg(unix)]
fn what_cannot_be_recorded_ends_the_run() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("kept");
    let recorder = Some(Recorder::append_to(&kept).unwrap());
    fs::remove_dir(&kept).unwrap();
    let asked = settings(&MATRICES, &[spmv(Dtype::F32)]);
    let fake = &mut Fake::default();
    let (results, _) = run_recorded(&place.path().join("out"), asked, fake, false, recorder);
    let error = results.unwrap_err().to_string();
    assert!(error.starts_with("cannot add recordings to "), "{error}");
    assert_eq!(fake.evaluations, 1);
}

#[test]
fn what_cannot_be_measured_is_noted_and_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let (matrices, out) = (place.path().join("matrices"), place.path().join("out"));
    fs::create_dir(&matrices).unwrap();
    fs::write(matrices.join("broken.mtx"), "%%MatrixMarket matrix\n").unwrap();
    let header = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 ";
    fs::write(matrices.join("large.mtx"), format!("{header}1e300\n")).unwrap();
    fs::write(matrices.join("one.mtx"), format!("{header}1\n")).unwrap();
    let names = [matrices.to_str().unwrap(), "uniform:7,30,10"];
    let asked = settings(&names, &[spmv(Dtype::F32), spmv(Dtype::F64)]);
    for resume in [false, true] {
        let (results, _) = run_in(&out, asked.clone(), &mut Fake::default(), resume);
        let skipped: Vec<_> = results
            .skipped
            .iter()
            .map(|s| (s.matrix.as_str(), s.task.map(|task| task.precision.matrix())))
            .collect();
        let expected = [
            ("broken.mtx", None),
            ("large.mtx", Some(Dtype::F32)),
            ("uniform:7,30,10", Some(Dtype::F32)),
            ("uniform:7,30,10", Some(Dtype::F64)),
        ];
        assert_eq!(skipped, expected);
        let reason = |i: usize| results.skipped[i].reason.as_str();
        assert!(reason(0).starts_with("broken.mtx:1: "), "{}", reason(0));
        assert!(reason(2).ends_with("the device is gone"), "{}", reason(2));
        assert_eq!(results.cases.len(), 3);
        let error = complete(&results, &out).unwrap_err().to_string();
        assert!(error.starts_with("4 matrices or cases were skipped; "), "{error}");
    }
}

#[test]
fn a_gpu_that_is_gone_leaves_the_matrices_to_one_that_is_well() {
    let names: Vec<String> = (5..25).map(|side| format!("stencil5:{side}x{side}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut gone = Fake { is_gone: true, ..Fake::default() };
    let mut well = Fake { takes: Duration::from_millis(20), ..Fake::default() };
    let place = tempfile::tempdir().unwrap();
    let asked = settings(&names, &[spmv(Dtype::F32)]);
    let (results, lines) = run_on(vec![&mut gone, &mut well], place.path(), asked, false, None);
    let results = results.unwrap();
    assert_eq!((gone.evaluations, results.skipped.len()), (2, 2));
    assert_eq!(results.cases.len(), names.len() - 2);
    let told = |line: &&String| line.ends_with("failed again and again: it is asked no more");
    assert_eq!(lines.iter().filter(told).count(), 1, "{lines:?}");
    // Where there is no other, all are tried.
    let place = tempfile::tempdir().unwrap();
    let mut gone = Fake { is_gone: true, ..Fake::default() };
    let asked = settings(&names[..4], &[spmv(Dtype::F32)]);
    let (results, _) = run_in(place.path(), asked, &mut gone, false);
    assert_eq!((gone.evaluations, results.skipped.len()), (4, 4));
}

#[test]
fn the_report_has_every_number_and_no_foreign_text_runs_in_it() {
    let place = tempfile::tempdir().unwrap();
    let asked = settings(&MATRICES, &[spmv(Dtype::F32)]);
    let (mut results, _) = run_in(place.path(), asked, &mut Fake::default(), false);
    results.cases[0].matrix.identity.name = "<script>alert(1)</script>.mtx".to_owned();
    let page = report::html(&results).unwrap();
    assert!(!page.contains("<script"), "names are escaped, in charts too");
    for case in &results.cases {
        if let Some(chosen) = &case.chosen {
            let cold = chosen.figures.cold.as_ref().unwrap();
            assert!(
                page.contains(&crate::text::time(cold.seconds)),
                "{}",
                case.matrix.identity.name
            );
            assert!(page.contains(&format!("{:.1}", cold.gflops)));
        }
    }
    assert_eq!(page.matches("<figure>").count(), 4);
    assert!(page.contains("expected a &lt;brace&gt;"));
    let fetches = ["src=", "href=\"h", "url(", "@import"];
    assert!(!fetches.iter().any(|word| page.contains(word)), "nothing is fetched");
    for link in page.split("href=\"#").skip(1) {
        let (id, _) = link.split_once('"').unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "no place {id}");
    }
    // Each point says what it is.
    for case in results.cases.iter().filter(|case| case.chosen.is_some()).skip(1) {
        let name = case.matrix.identity.name.split('.').next().unwrap();
        assert!(page.contains(&format!("aria-label=\"{name}")), "{name}");
    }
}

#[test]
fn names_are_short_where_they_tell_matrices_apart() {
    let place = tempfile::tempdir().unwrap();
    let asked = settings(&MATRICES, &[spmv(Dtype::F32)]);
    let (mut results, _) = run_in(place.path(), asked, &mut Fake::default(), false);
    let names = ["a.mtx", "a.smtx.gz", "b.MTX.gz", "c.v2.smtx", "rmat:7,8"];
    for (case, name) in results.cases.iter_mut().zip(names) {
        case.matrix.identity.name = name.to_owned();
    }
    let short = names::shortened(&results);
    let short: Vec<&str> =
        short.cases.iter().map(|case| case.matrix.identity.name.as_str()).collect();
    assert_eq!(short, ["a.mtx", "a.smtx.gz", "b", "c.v2", "rmat:7,8"]);
    let page = report::html(&results).unwrap();
    assert!(page.contains(">b</td>") && !page.contains("b.MTX.gz"));
    assert!(page.contains("cuSPARSE 1.2.3"), "the library is named");
}

#[test]
fn a_report_of_no_cases_is_a_page() {
    let page =
        report::html(&BenchResults::new(generator(), vec![device()], settings(&[], &[]))).unwrap();
    assert!(page.contains("No ratio is below 1."));
}
