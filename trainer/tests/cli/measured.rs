//! What is measured, compiled, fitted to and archived.

use std::fs;
use std::path::Path;
use std::process::Command;

use sparserl_core::language::Program;
use sparserl_trainer::compiled::{COMPILED, CompiledPrograms};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::fit_cost::{Report, TaskScores};

use crate::support::{run, shipped_with, small_recordings};

fn collect(configuration: &Path, output: &Path) -> (Option<i32>, String) {
    let (code, results, said) = run("collect", &[configuration, "--output".as_ref(), output]);
    assert!(results.is_empty());
    (code, said)
}

#[test]
fn what_cannot_be_collected_is_said_in_one_line_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("collected");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("collect.toml");
    let wrong = place.path().join("wrong.toml");
    fs::write(&wrong, "matrices = \"many\"\n").unwrap();
    let absent = place.path().join("absent.toml");
    let meaningless = place.path().join("meaningless.toml");
    let share = [("share_of_real = 0.0", "share_of_real = nan")];
    fs::write(&meaningless, shipped_with("collect.toml", &share)).unwrap();
    for configuration in [&shipped, &wrong, &absent, &meaningless] {
        let (code, said) = collect(configuration, &output);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(!output.exists());
    }
    assert!(collect(&absent, &output).1.contains("absent.toml"));
    assert!(collect(&wrong, &output).1.contains("wrong.toml:1: "));
    assert!(collect(&meaningless, &output).1.contains("`corpus.share_of_real`"));
}

#[test]
fn what_the_compiler_says_of_programs_is_kept_beside_their_recordings() {
    let place = tempfile::tempdir().unwrap();
    let (folder, dataset) = (place.path().join("recorded"), place.path().join("dataset"));
    fs::create_dir(&folder).unwrap();
    let (code, results, said) = run("compile", &[&folder]);
    assert_eq!((code, results.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
    assert!(said.contains("no recordings in"), "{said}");
    small_recordings(4_000, &folder);
    let compile = |most: &str| run("compile", &[&folder, "--most".as_ref(), most.as_ref()]);
    let done = |most: u32| {
        let said = format!("{most} of {most} programs are compiled, 0 are refused\n");
        (Some(0), String::new(), said)
    };
    assert_eq!(compile("3"), done(3));
    let path = folder.join(COMPILED);
    let three = CompiledPrograms::read(&folder).unwrap();
    assert_eq!(three.len(), 3);
    // More of them, and nothing twice.
    assert_eq!(compile("5"), done(5));
    let five = CompiledPrograms::read(&folder).unwrap();
    assert!(three.iter().all(|one| five.iter().any(|other| one == other)));
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(compile("5"), done(5));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    for one in five.iter() {
        let program = Program::parse(&one.program).unwrap();
        assert!((16..=255).contains(&one.machine_code.registers), "{one:?}");
        let occupancy = one.resources(program.block.threads())[1];
        assert!(one.cubin_bytes > 1000 && (-3.0..=0.0).contains(&occupancy), "{one:?}");
    }
    // Who learns from the recordings learns that, too.
    let prepare = || run("prepare", &[&folder, "-o".as_ref(), &dataset]);
    assert_eq!(prepare().0, Some(0));
    let told = |path: &Path| {
        let dataset = Dataset::read(path).unwrap();
        let programs = dataset.cases.iter().flat_map(|case| &case.programs);
        programs.filter(|program| program.resources.is_some()).count()
    };
    assert!(told(&dataset) >= 5, "{}", told(&dataset));
    // It goes with recordings that are kept elsewhere, and is never written by two names.
    let kept = place.path().join("kept");
    assert_eq!(run("archive", &[&folder, "-o".as_ref(), &kept]).0, Some(0));
    assert_eq!(CompiledPrograms::read(&kept).unwrap(), five);
    let same = place.path().join("recorded/.");
    let (code, _, said) = run("compile", &[&folder, &same]);
    assert!(
        code == Some(1) && said.contains("is named twice") && said.lines().count() == 1,
        "{said}"
    );
    // Where there is no compiler, that is said.
    let mut without = Command::new(env!("CARGO_BIN_EXE_sparserl-trainer"));
    let without = without.arg("compile").arg(&folder).env("SPARSERL_NVRTC", place.path());
    let said = String::from_utf8(without.output().unwrap().stderr).unwrap();
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    fs::write(&path, "no programs").unwrap();
    let (code, _, said) = prepare();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains(COMPILED) && said.contains("remove it"), "{said}");
    assert_eq!(compile("5").2, said);
}

#[test]
fn a_folder_without_recordings_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, output) = (folder.path().join("collected"), folder.path().join("output"));
    fs::create_dir_all(empty.join("recordings")).unwrap();
    for command in ["prepare", "archive"] {
        let (code, results, said) = run(command, &[&empty, "-o".as_ref(), &output]);
        assert_eq!((code, results.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
        assert!(said.contains("no recordings in") && said.contains("collected"), "{said}");
        assert!(!output.exists());
    }
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

#[test]
fn the_table_of_archived_results_is_that_of_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let timed = |seconds: f64| format!(r#"{{"program": "", "cold": {seconds}, "warm": null}}"#);
    let picks = |chooser: &str, seconds: f64| {
        let programs = timed(seconds);
        format!(r#"{{"chooser": "{chooser}", "regime": "cold", "programs": [{programs}]}}"#)
    };
    fs::create_dir(path("results")).unwrap();
    for (place, family) in ["a", "b", "c"].into_iter().enumerate() {
        let seconds = 1.0 + place as f64;
        let case = format!(
            r#"{{"recipe": "", "family": "{family}", "task": "spmv f32", "choosers": [{}, {}],
                "oracle": {{"cold": {oracle}, "warm": {oracle}}}, "searched": 9}}"#,
            picks("it", 1.25 * seconds),
            picks("cost model", 2.5 * seconds),
            oracle = timed(seconds),
        );
        fs::write(path(&format!("results/{place:06}-spmv-f32.json")), case).unwrap();
    }
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("evaluations/h200-2026-11-27");
    let (results, kept) = (path("results"), path("kept"));
    let archive =
        || run("archive", &[&recordings, "--results".as_ref(), &results, "-o".as_ref(), &kept]);
    let (code, _, said) = archive();
    assert!(code == Some(0) && said.contains("results of 3 cases"), "{said}");
    let (code, of_results, said) = run("table", &[&results]);
    assert_eq!(code, Some(0), "{said}");
    // 1 / 1.25; and twice as fast as the cost model on each matrix.
    assert!(of_results.contains("0.800") && of_results.contains("2.000 to 2.000"), "{of_results}");
    let (code, of_archive, said) = run("table", &[&kept.join("cases.json.gz")]);
    assert_eq!((code, of_archive), (Some(0), of_results), "{said}");
    // Results are kept once.
    let (code, _, said) = archive();
    assert!(code == Some(1) && said.contains("already") && said.lines().count() == 1, "{said}");
    let (code, _, said) = run("table", &[&path("nothing")]);
    assert!(code == Some(1) && said.contains("no results in"), "{said}");
}
