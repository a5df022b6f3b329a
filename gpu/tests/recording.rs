//! Stores of recorded outcomes. Needs no GPU.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sparserl_core::arbitrary::{csr, free_program, task};
use sparserl_core::language::{LANGUAGE_VERSION, Program, grammar_hash};
use sparserl_core::matrix::{Csr, CsrView, MatrixIdentity, Offsets, Scalar};
use sparserl_core::outcome::{
    Baseline, Evaluation, Measurement, Outcome, Samples, Timing, Verification, Violation,
};
use sparserl_core::results::ValueSource;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Precision, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Version;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::store::fingerprint;
use sparserl_gpu::store::recording::{Context, Recorder, RecordingError, Recordings};

const SPMV: Task = Task::new(Operation::SpMV, Dtype::F32);

/// Any number, with every bit pattern that equals itself.
fn number() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("compares", |x| !x.is_nan())
}

fn samples() -> impl Strategy<Value = Samples> {
    let second = prop_oneof![Just(f64::from_bits(1)), Just(f64::MAX), 1e-7..1e-2];
    vec(second, 1..30).prop_map(|seconds| seconds.try_into().unwrap())
}

fn timing() -> impl Strategy<Value = Timing> {
    (option::of(samples()), option::of(samples()), option::of(samples()))
        .prop_map(|(cold, warm, back_to_back)| Timing { cold, warm, back_to_back })
        .prop_filter("was measured", |timing| *timing != Timing::default())
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let violation = select(vec![
        Violation::Inexact,
        Violation::InputChanged,
        Violation::WroteOutside,
        Violation::KeepsState,
        Violation::TooFast,
    ]);
    prop_oneof![
        (any::<u32>(), number(), timing()).prop_map(|(checks, worst_ratio, timing)| {
            Outcome::Measured(Measurement { checks, worst_ratio, timing })
        }),
        (any::<u32>(), number()).prop_map(|(checks, worst_ratio)| {
            Outcome::Verified(Verification { checks, worst_ratio })
        }),
        any::<String>().prop_map(|reason| Outcome::CompileFailed { reason }),
        any::<String>().prop_map(|reason| Outcome::LaunchFailed { reason }),
        any::<String>().prop_map(|reason| Outcome::Faulted { reason }),
        (violation, any::<String>())
            .prop_map(|(violation, reason)| Outcome::WrongResult { violation, reason }),
        number().prop_map(|seconds| Outcome::TimedOut { seconds }),
    ]
}

fn baseline() -> impl Strategy<Value = Baseline> {
    let timing = prop_oneof![timing().prop_map(Ok), any::<String>().prop_map(Err)];
    (any::<(String, String)>(), any::<bool>(), number(), any::<u64>(), timing).prop_map(
        |((library, algorithm), is_default, analysis_seconds, buffer_bytes, timing)| Baseline {
            library,
            algorithm,
            is_default,
            analysis_seconds,
            buffer_bytes,
            timing,
        },
    )
}

prop_compose! {
    /// Distinct programs for one task, and an evaluation of them.
    fn judged(precision: Precision)(
        task in task(precision),
        seed in any::<u64>(),
        outcomes in vec(outcome(), 1..6),
        baselines in vec(baseline(), 0..3),
        copy_bandwidth in option::of(number()),
    ) -> (Vec<Program>, Evaluation) {
        let mut programs = Vec::new();
        for seed in (0..).map(|i| seed.wrapping_add(i)) {
            let program = free_program(task, seed);
            if programs.len() == outcomes.len() {
                break;
            }
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        (programs, Evaluation { outcomes, baselines, copy_bandwidth })
    }
}

prop_compose! {
    fn context()(
        (name, protocol) in any::<(String, String)>(),
        architecture in select(&Architecture::ALL[..]),
        (driver, nvrtc, multiprocessors) in any::<((u32, u32), (u32, u32), u32)>(),
        (memory_bytes, l2_bytes, bandwidth) in any::<(u64, u64, u64)>(),
        (shared_memory_bytes, registers) in any::<(u32, u32)>(),
        value_source in select(vec![ValueSource::Random, ValueSource::File]),
    ) -> Context {
        let nvrtc = Version { major: nvrtc.0, minor: nvrtc.1 };
        let target = Target {
            architecture, multiprocessors, l2_bytes, shared_memory_bytes, registers, bandwidth,
        };
        let device = DeviceFacts { name, driver, memory_bytes, target };
        Context { device, nvrtc, protocol, value_source }
    }
}

fn a_context(protocol: &str) -> Context {
    let device = DeviceFacts {
        name: "NVIDIA H200".into(),
        driver: (13, 0),
        memory_bytes: 150_754_820_096,
        target: Target::H200,
    };
    let (nvrtc, value_source) = (Version { major: 12, minor: 9 }, ValueSource::File);
    Context { device, nvrtc, protocol: protocol.into(), value_source }
}

fn a_matrix() -> Csr<f32> {
    Csr::new(2, 3, Offsets::U32(vec![0, 1, 2]), vec![0, 2], vec![1.0, -0.5]).unwrap()
}

fn measured(seconds: f64) -> Outcome {
    let warm = vec![seconds, 2.0 * seconds].try_into().unwrap();
    let timing = Timing { warm: Some(warm), ..Timing::default() };
    Outcome::Measured(Measurement { checks: 3, worst_ratio: 0.1 + 0.2, timing })
}

/// An evaluation with a baseline of that name, if any.
fn evaluation(outcomes: &[Outcome], baseline: Option<&str>) -> Evaluation {
    let baseline = baseline.map(|algorithm| Baseline {
        library: "cuSPARSE 12.9.4".into(),
        algorithm: algorithm.into(),
        is_default: true,
        analysis_seconds: 1e-3,
        buffer_bytes: 8,
        timing: Err("refused".into()),
    });
    let baselines: Vec<_> = baseline.into_iter().collect();
    let copy_bandwidth = baselines.first().map(|_| 4.1e12);
    Evaluation { outcomes: outcomes.to_vec(), baselines, copy_bandwidth }
}

fn as_f64<T: Scalar>(matrix: CsrView<'_, T>) -> Csr<f64> {
    let values = matrix.values().iter().map(|value| value.to_f64()).collect();
    let offsets = (0..=matrix.rows()).map(|i| matrix.offsets().at(i) as u64).collect();
    let (columns, offsets) = (matrix.columns().to_vec(), Offsets::U64(offsets));
    Csr::new(matrix.rows(), matrix.cols(), offsets, columns, values).unwrap()
}

/// Of [`a_matrix`] as it was read.
fn identity(name: &str) -> MatrixIdentity {
    fingerprint::identity(name, as_f64(a_matrix().view()).view())
}

fn record(folder: &Path, programs: &[Program], evaluation: &Evaluation) {
    let mut recorder = Recorder::append_to(folder).unwrap();
    let context = a_context("full");
    recorder.record::<f32>(&identity("a"), programs, evaluation, &context).unwrap();
    recorder.flush().unwrap();
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Bits, which `==` on floating-point numbers does not compare; `{:?}` of f64 is exact and signed.
fn exact(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

fn round_trip<T: Scalar>(
    matrix: CsrView<'_, T>,
    name: &str,
    (programs, evaluation): &(Vec<Program>, Evaluation),
    context: &Context,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::append_to(folder.path()).unwrap();
    let identity = fingerprint::identity(name, as_f64(matrix).view());
    recorder.record::<T>(&identity, programs, evaluation, context).unwrap();
    recorder.record::<T>(&identity, &programs[..0], &evaluation_of_none(), context).unwrap();
    drop(recorder);

    let recordings = Recordings::read(folder.path()).unwrap();
    let [recording] = recordings.as_slice() else { panic!("{recordings:?}") };
    prop_assert_eq!(exact(&recording.evaluation), exact(evaluation));
    prop_assert_eq!(&recording.evaluation, evaluation);
    prop_assert_eq!(&recording.context, context);
    prop_assert_eq!(recording.task, programs[0].task);
    prop_assert_eq!(recording.language.version, LANGUAGE_VERSION);
    prop_assert_eq!(recording.language.grammar_hash, grammar_hash());
    prop_assert_eq!(&recording.matrix, &identity);
    let parsed: Vec<_> = recording.programs.iter().map(|p| Program::parse(p).unwrap()).collect();
    prop_assert_eq!(&parsed, programs);
    Ok(())
}

fn evaluation_of_none() -> Evaluation {
    evaluation(&[], None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_recorded_reads_back(
        narrow in csr::<f32>(8, 8, 20),
        wide in csr::<f64>(8, 8, 20),
        name in any::<String>(),
        of_narrow in judged(Dtype::F32.into()),
        of_wide in judged(Dtype::F64.into()),
        of_mixed in judged(Precision::F32_IN_F64),
        half in csr::<f16>(8, 8, 20),
        of_half in judged(Dtype::F16.into()),
        upper in csr::<bf16>(8, 8, 20),
        of_upper in judged(Dtype::BF16.into()),
        context in context(),
    ) {
        round_trip(narrow.view(), &name, &of_narrow, &context)?;
        round_trip(wide.view(), &name, &of_wide, &context)?;
        round_trip(narrow.view(), &name, &of_mixed, &context)?;
        round_trip(half.view(), &name, &of_half, &context)?;
        round_trip(upper.view(), &name, &of_upper, &context)?;
    }
}

#[test]
fn many_recorders_append_to_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("made/for/it");
    let program = free_program(SPMV, 0);
    std::thread::scope(|scope| {
        for recorder in 0..4_u32 {
            let (store, program) = (&store, &program);
            scope.spawn(move || {
                for second in 1..=5_u32 {
                    let outcome = measured(f64::from(recorder * 100 + second));
                    record(store, std::slice::from_ref(program), &evaluation(&[outcome], None));
                }
            });
        }
    });
    assert_eq!(parts(&store).len(), 20, "no part replaced another, none is left half-written");
    let recordings = Recordings::read(&store).unwrap();
    let seconds = |outcome: &Outcome| {
        outcome.measurement().unwrap().timing.warm.as_ref().unwrap().seconds()[0]
    };
    let mut all: Vec<_> =
        (&recordings).into_iter().map(|r| seconds(&r.evaluation.outcomes[0])).collect();
    all.sort_by(f64::total_cmp);
    let expected: Vec<_> =
        (0..4).flat_map(|r| (1..=5).map(move |s| f64::from(r * 100 + s))).collect();
    assert_eq!(all, expected);
    assert!(recordings.as_slice().is_sorted_by_key(|r| r.time));
}

#[test]
fn a_long_recording_is_written_along_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::append_to(folder.path()).unwrap();
    let programs = vec![free_program(SPMV, 0); 1000];
    let evaluation = evaluation(&vec![measured(1.0); 1000], None);
    let mut written = Vec::new();
    for _ in 0..9 {
        let context = a_context("screening");
        recorder.record::<f32>(&identity("a"), &programs, &evaluation, &context).unwrap();
        written.push(parts(folder.path()).len());
    }
    assert_eq!(written, [0, 0, 0, 0, 1, 1, 1, 1, 1]);
    recorder.flush().unwrap();
    recorder.flush().unwrap();
    assert_eq!(parts(folder.path()).len(), 2);
    let recordings = Recordings::read(folder.path()).unwrap();
    let times: Vec<_> = (&recordings).into_iter().map(|r| r.time).collect();
    assert_eq!(times.len(), 9);
    assert!(times.is_sorted_by(|a, b| a < b), "each has a time of its own: {times:?}");
}

#[test]
fn only_some_evaluations_are_kept_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let program = [free_program(SPMV, 1)];
    let mut recorder = Recorder::append_to(folder.path()).unwrap();
    for (protocol, seconds) in [("full", 1.0), ("screening", 2.0)] {
        let evaluation = evaluation(&[measured(seconds)], None);
        let context = a_context(protocol);
        recorder.record::<f32>(&identity("a"), &program, &evaluation, &context).unwrap();
    }
    recorder.flush().unwrap();
    let mut recordings = Recordings::read(folder.path()).unwrap();
    recordings.retain(|recording| recording.context.protocol == "full");
    let [kept] = recordings.as_slice() else { panic!("{recordings:?}") };
    assert_eq!(kept.evaluation.outcomes, [measured(1.0)]);
}

#[test]
fn a_damaged_part_is_one_line_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &[free_program(SPMV, 1)], &evaluation(&[measured(1.0)], Some("A")));
    let [part] = <[PathBuf; 1]>::try_from(parts(folder.path())).unwrap();
    let whole = fs::read(&part).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damages = (0..whole.len()).step_by(97).flat_map(|at| [whole[..at].to_vec(), flipped(at)]);
    for bytes in damages {
        fs::write(&part, bytes).unwrap();
        let error = Recordings::read(folder.path()).unwrap_err();
        assert!(matches!(error, RecordingError::Damaged { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(part.to_str().unwrap()) && text.lines().count() == 1, "{text}");
    }
    fs::write(&part, &whole).unwrap();
    assert_eq!(Recordings::read(folder.path()).unwrap().as_slice().len(), 1);
}

#[test]
fn a_foreign_file_is_one_line_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    // Under the name that a part of this content would have, so that only the content is wrong.
    let text = b"PAR1, or so it says\n\nPAR1";
    let path = folder.path().join(format!("part-{}.parquet", blake3::hash(text).to_hex()));
    fs::write(&path, text).unwrap();
    let error = Recordings::read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains(path.to_str().unwrap()) && message.lines().count() == 1, "{message}");

    fs::rename(&path, folder.path().join("table.parquet")).unwrap();
    let error = Recordings::read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordingError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("table.parquet"), "{error}");
}

/// A byte of the metadata changed, and the part named after the new content: offsets and sizes turn
/// negative, counts grow, types change.
#[test]
fn metadata_that_makes_no_sense_is_one_line_or_no_matter() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &[free_program(SPMV, 1)], &evaluation(&[measured(1.0)], Some("A")));
    let [part] = <[PathBuf; 1]>::try_from(parts(folder.path())).unwrap();
    let whole = fs::read(&part).unwrap();
    fs::remove_file(&part).unwrap();
    let length = u32::from_le_bytes(*whole[..whole.len() - 4].last_chunk().unwrap()) as usize;
    let mut refused = 0;
    for at in whole.len() - 8 - length..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let name = format!("part-{}.parquet", blake3::hash(&bytes).to_hex());
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        if let Err(error) = Recordings::read(folder.path()) {
            refused += 1;
            assert!(matches!(error, RecordingError::Foreign { .. }), "{error}");
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
    assert!(refused > length / 10, "{refused} of {length}");
}

#[test]
fn other_files_and_empty_folders_hold_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Recordings::read(folder.path()).unwrap(), Recordings::default());
    fs::write(folder.path().join("README.md"), "notes").unwrap();
    // As a recorder that is writing has it.
    fs::write(folder.path().join(".part-x"), "half").unwrap();
    drop(Recorder::append_to(folder.path()).unwrap());
    assert_eq!(Recordings::read(folder.path()).unwrap(), Recordings::default());

    let missing = folder.path().join("missing");
    let error = Recordings::read(&missing).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::append_to(folder.path()).unwrap();
    let two = evaluation(&[measured(1.0), measured(1.0)], None);
    let context = a_context("full");
    let mut refused = |programs: &[Program]| {
        recorder.record::<f32>(&identity("a"), programs, &two, &context).unwrap_err()
    };
    let spmv = free_program(SPMV, 1);
    let wide = free_program(Task { precision: Precision::uniform(Dtype::F64), ..SPMV }, 1);
    let count = refused(std::slice::from_ref(&spmv));
    assert!(matches!(count, RecordingError::Count { programs: 1, outcomes: 2 }), "{count}");
    for programs in [[spmv, wide.clone()], [wide.clone(), wide]] {
        let error = refused(&programs);
        assert!(matches!(error, RecordingError::Task { .. }), "{error}");
    }
    drop(recorder);
    assert_eq!(parts(folder.path()).len(), 0);
}

#[test]
fn one_matrix_has_one_fingerprint_in_every_precision() {
    let offsets = Offsets::U32(vec![0, 1, 2]);
    let as_read = Csr::new(2, 3, offsets, vec![0, 2], vec![0.1, 1.0 / 3.0]).unwrap();
    let rounded: Csr<f32> = as_read.cast().unwrap();
    let identity = fingerprint::identity("thirds", as_read.view());
    assert_ne!(fingerprint::fingerprint(as_f64(rounded.view()).view()), identity.fingerprint);

    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::append_to(folder.path()).unwrap();
    let context = a_context("full");
    let double = Task { precision: Precision::uniform(Dtype::F64), ..SPMV };
    let (single, double) = ([free_program(SPMV, 1)], [free_program(double, 1)]);
    let answer = evaluation(&[measured(1.0)], Some("A"));
    recorder.record::<f32>(&identity, &single, &answer, &context).unwrap();
    recorder.record::<f64>(&identity, &double, &answer, &context).unwrap();
    drop(recorder);
    let recordings = Recordings::read(folder.path()).unwrap();
    let recorded = recordings.as_slice().iter().map(|recording| recording.matrix.fingerprint);
    assert_eq!(recorded.collect::<Vec<_>>(), [identity.fingerprint; 2]);
}
