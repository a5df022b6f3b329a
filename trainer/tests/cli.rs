//! The program, run as a user runs it on a machine without a GPU.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use sparserl_core::language::Program;
use sparserl_gpu::store::fingerprint::MatrixIdentity;
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_trainer::corpus::{RealMatrices, Recipe};
use sparserl_trainer::fit_cost::{Report, TaskScores};

/// Exit code, results and what it says, with no GPU to be seen.
fn run(command: &str, arguments: &[&Path]) -> (Option<i32>, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_sparserl-trainer"))
        .arg(command)
        .args(arguments)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let [results, said] = [run.stdout, run.stderr].map(|text| String::from_utf8(text).unwrap());
    (run.status.code(), results, said)
}

fn collect(configuration: &Path, output: &Path) -> (Option<i32>, String) {
    let (code, results, said) = run("collect", &[configuration, "--output".as_ref(), output]);
    assert!(results.is_empty());
    (code, said)
}

/// The recordings of training's start, of the matrices up to a size.
fn small_recordings(largest_nnz: u64, folder: &Path) -> usize {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22");
    let mut recorder = Recorder::append_to(folder).unwrap();
    let mut matrices = BTreeSet::new();
    for recording in &Recordings::read(shipped).unwrap() {
        if recording.matrix.nnz > largest_nnz {
            continue;
        }
        let recipe: Recipe = recording.matrix.name.parse().unwrap();
        let as_read = recipe.build(&RealMatrices::none()).unwrap();
        let matrix = as_read.cast::<f32>().unwrap();
        let programs: Vec<Program> =
            recording.programs.iter().map(|text| Program::parse(text).unwrap()).collect();
        let identity = MatrixIdentity::of(as_read.view(), recipe.to_string());
        let (evaluation, context) = (&recording.evaluation, &recording.context);
        recorder.record(matrix.view(), &identity, &programs, evaluation, context).unwrap();
        matrices.insert(recording.matrix.name.clone());
    }
    recorder.flush().unwrap();
    matrices.len()
}

#[test]
fn what_cannot_be_collected_is_said_in_one_line_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("collected");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("collect.toml");
    let wrong = place.path().join("wrong.toml");
    fs::write(&wrong, "matrices = \"many\"\n").unwrap();
    let absent = place.path().join("absent.toml");
    for configuration in [&shipped, &wrong, &absent] {
        let (code, said) = collect(configuration, &output);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(!output.exists());
    }
    assert!(collect(&absent, &output).1.contains("absent.toml"));
    assert!(collect(&wrong, &output).1.contains("wrong.toml:1: "));
}

#[test]
fn constants_are_fitted_and_scored_on_families_that_were_left_out() {
    let place = tempfile::tempdir().unwrap();
    let (folder, output) = (place.path().join("recorded"), place.path().join("fit.json"));
    let matrices = small_recordings(8_000, &folder);
    assert!(matrices >= 5, "{matrices}");
    let (code, results, said) = run("fit-cost", &[&folder, "--output".as_ref(), &output]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for shown in ["seconds_per_step", "cold, spmv f32", "warm, all", "Spearman"] {
        assert!(results.contains(shown), "{shown}: {results}");
    }
    let report: Report = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    assert_eq!((report.recordings.as_str(), report.matrices), ("recorded", matrices));
    assert!(report.fitted.to_array().iter().all(|constant| *constant > 0.0));
    // Three tasks and all of them, in two regimes.
    assert_eq!(report.scores.len(), 8);
    for scores in &report.scores {
        let all = scores.task.is_none();
        assert_eq!(scores.present.cases, if all { 3 * matrices } else { matrices });
        for scores in [&scores.present, &scores.held_out, &scores.fitted] {
            assert!(0.0 < scores.least_first_pick && scores.first_pick <= 1.0, "{scores:?}");
        }
    }
    let cold = |scores: &TaskScores| scores.regime == "cold";
    assert_eq!(report.scores.iter().filter(|scores| cold(scores)).count(), 4);

    let arguments: [&Path; 5] =
        [&folder, "--regime".as_ref(), "cold".as_ref(), "--output".as_ref(), &output];
    assert_eq!(run("fit-cost", &arguments).0, Some(0));
    let of_cold: Report = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    assert!(of_cold.scores.len() == 4 && of_cold.scores.iter().all(cold));
    assert_ne!(of_cold.fitted, report.fitted);
    let fits_cold = |report: &Report| report.scores[3].fitted.objective;
    assert!(fits_cold(&of_cold) < fits_cold(&report));
}

#[test]
fn what_cannot_be_fitted_to_is_said_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("empty")).unwrap();
    fs::create_dir(path("other")).unwrap();
    fs::write(path("other/part.parquet"), "no table").unwrap();
    for (folder, expected) in
        [("empty", "collect more"), ("absent", "absent"), ("other", "part.parquet")]
    {
        let output = path("fit.json");
        let (code, results, said) = run("fit-cost", &[&path(folder), "--output".as_ref(), &output]);
        assert_eq!((code, results.as_str()), (Some(1), ""), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(expected) && !output.exists(), "{said}");
    }
}
