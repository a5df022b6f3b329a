//! `bench` without a GPU, and `report` from recorded results.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::support::{Place, matrix, run};

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/bench-results.json");

#[test]
fn without_a_gpu_one_line_says_so_and_nothing_is_written() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    for arguments in [
        "bench stencil5:9x9 rmat:5,2".to_owned(),
        "bench stencil5:9x9 --resume -o out".to_owned(),
        format!("bench {beam} --op spmv,spmm --cols 8,32 --dtype f32,f64 --budget 4"),
    ] {
        // Where there are GPUs, none is seen.
        let run = run(place.command(&arguments).env("CUDA_VISIBLE_DEVICES", ""));
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
        let start = "error: no GPU to measure on: no CUDA d";
        assert!(run.stderr.starts_with(start), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1);
    }
    assert!(place.names("").is_empty());
}

#[test]
fn what_is_no_matrix_is_said_before_anything_is_done() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    for (argument, says) in [
        (
            "nowhere.mtx",
            "nowhere.mtx: no such file or folder, and no family; families are stencil5:",
        ),
        ("cube:3x3", "cube:3x3: no such file or folder, and no family; families are stencil5:"),
        ("stencil5:9", "stencil5:9: expected stencil5:NXxNY, whole numbers"),
        ("rmat:40,2", "rmat:40,2: scale 40 is too large"),
        ("uniform:1000000,1000000,100000", "entries are too many"),
        ("empty", "empty: no matrix file in the folder"),
    ] {
        let error = place.fail(&format!("bench stencil5:9x9 {argument}"));
        assert!(error.starts_with("error: ") && error.contains(says), "{error}");
    }
    assert_eq!(place.names(""), ["empty"]);
}

#[test]
fn a_wrong_command_line_is_2() {
    let place = Place::new();
    for arguments in [
        "bench",
        "bench rmat:5,2 --op spmm",
        "bench rmat:5,2 --cols 8",
        "bench rmat:5,2 --op spmm --cols 8,0",
        "bench rmat:5,2 --op gemm",
        "bench rmat:5,2 --dtype f32,f8",
        "bench rmat:5,2 --budget 0",
        "bench rmat:5,2 --devices x",
        "bench rmat:5,2 --devices 0,1,0",
        "report",
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {}", run.stderr);
    }
}

#[test]
fn earlier_results_are_not_replaced_unasked() {
    let place = Place::new();
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/results.json"), "{}").unwrap();
    let error = place.fail("bench rmat:5,2 -o out");
    assert!(error.contains("out: holds the results.json of an earlier run"), "{error}");
    assert!(error.contains("--resume"), "{error}");
    assert_eq!(place.text("out/results.json"), "{}");
}

#[test]
fn a_report_is_made_from_results() {
    let place = Place::new();
    assert_eq!(place.succeed(&format!("report {RESULTS} -o a.html")), "");
    assert_eq!(place.names(""), ["a.html"]);
    let page = place.text("a.html");
    let results: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(Path::new(RESULTS)).unwrap()).unwrap();
    let case = &results["cases"][0];
    let cold = &case["chosen"]["cold"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    for expected in [
        "stencil5:20x20".to_owned(),
        "Made-up GPU".to_owned(),
        results["started"].as_str().unwrap().to_owned(),
        format!("{:.2} µs", 1e6 * number(&cold["seconds"])),
        format!("{:.2}×", number(&cold["default"]["ratio"])),
        format!("{:.1}", number(&cold["gflops"])),
        // The loss stands out, and the case without a right candidate is named.
        format!("▼ {:.2}×", number(&results["cases"][1]["chosen"]["cold"]["best"]["ratio"])),
        "stencil27:2x2x2, spmv f32: ".to_owned(),
    ] {
        assert!(page.contains(&expected), "{expected}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    // The same results give the same page.
    place.succeed(&format!("report {RESULTS}"));
    assert!(place.text("report.html") == page);
}

#[test]
fn totals_are_there_for_programs_too() {
    let place = Place::new();
    let totals: Value =
        serde_json::from_str(&place.succeed(&format!("report {RESULTS} --json"))).unwrap();
    let results: Value = serde_json::from_str(&fs::read_to_string(RESULTS).unwrap()).unwrap();
    let cases = results["cases"].as_array().unwrap();
    let totals = totals["totals"].as_array().unwrap();
    let (all, kinds): (Vec<&Value>, Vec<&Value>) =
        totals.iter().partition(|t| t["matrices"] == "all");
    let count =
        |totals: &[&Value]| totals.iter().map(|t| t["cases"].as_u64().unwrap()).sum::<u64>();
    assert_eq!((count(&all), count(&kinds)), (cases.len() as u64, cases.len() as u64));
    for totals in all {
        let of_task =
            cases.iter().filter(|c| c["task"] == totals["task"] && c["values"] == totals["values"]);
        let of_task: Vec<&Value> = of_task.collect();
        let failures = of_task.iter().filter(|case| case["chosen"].is_null()).count();
        assert_eq!(totals["failures"].as_array().unwrap().len(), failures);
        for regime in ["cold", "warm", "back_to_back"] {
            let ratio = |case: &&Value| case["chosen"][regime]["best"]["ratio"].as_f64();
            let ratios: Vec<f64> = of_task.iter().filter_map(ratio).collect();
            let spread = &totals["speedups"][regime]["best"];
            if ratios.is_empty() {
                assert!(spread.is_null());
                continue;
            }
            let mean = ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64;
            assert!((spread["geomean"].as_f64().unwrap() - mean.exp()).abs() < 1e-9);
            let lost = ratios.iter().filter(|&&ratio| ratio < 1.0).count();
            assert_eq!(spread["losses"].as_array().unwrap().len(), lost);
        }
    }
    assert!(place.names("").is_empty());
}

#[test]
fn what_is_no_results_file_is_refused() {
    let place = Place::new();
    let recorded = fs::read_to_string(RESULTS).unwrap();
    for (text, says) in [
        ("not JSON", "expected the results.json of a bench run"),
        (r#"{"format": "sparserl plan 1"}"#, "is `sparserl plan 1`, expected `sparserl bench 2`"),
        (r#"{"format": "sparserl bench 2"}"#, "damaged: missing field"),
        (&recorded[..recorded.len() / 2], "expected the results.json of a bench run"),
    ] {
        fs::write(place.path("a.json"), text).unwrap();
        let error = place.fail("report a.json");
        assert!(error.starts_with("error: a.json: ") && error.contains(says), "{error}");
    }
    // Sums and ratios of such numbers overflow.
    let (before, behind) = recorded.split_once("\"predicted_seconds\":").unwrap();
    let (_, behind) = behind.split_once(',').unwrap();
    fs::write(place.path("a.json"), format!("{before}\"predicted_seconds\": 1e308,{behind}"))
        .unwrap();
    let error = place.fail("report a.json");
    let says = "error: a.json: damaged: 1e308 is no number that can have been measured at line ";
    assert!(error.starts_with(says), "{error}");
    // Not over what it is made of, however that is called.
    fs::copy(RESULTS, place.path("own.json")).unwrap();
    let before = place.text("own.json");
    let error = place.fail("report own.json -o ./own.json");
    assert!(error.contains("./own.json: is what the report is made of"), "{error}");
    assert_eq!(place.text("own.json"), before);
    fs::remove_file(place.path("own.json")).unwrap();
    assert!(place.fail("report no.json").contains("no.json: cannot read the file: "));
    assert_eq!(place.names(""), ["a.json"]);
}

/// The rows of tables that `report --markdown` makes of a run, over all of its matrices.
fn rows_of(run: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = root.join(format!("tests/results/{run}.json.gz"));
    let printed = Place::new().succeed(&format!("report {} --markdown", file.display()));
    // Those of real and of generated matrices follow.
    let all = printed.split("Real matrices").next().unwrap();
    let all = all.split("Generated matrices").next().unwrap();
    all.lines().filter(|line| line.starts_with("| spm")).map(str::to_owned).collect()
}

/// The newest results are in the README as `report --markdown` makes them, and those before in that
/// of the results.
#[test]
fn the_readme_states_the_newest_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let newest = [
        ("h200-2026-11-29-language-7-real", 4),
        ("h200-2026-11-29-language-7-real-f64", 1),
        ("h200-2026-11-29-language-7-real-spmm-f64", 3),
        ("h200-2026-11-29-language-7-real-f16", 3),
        ("h200-2026-11-29-language-7-drawn", 4),
        ("h200-2026-11-29-language-7-drawn-f64", 1),
        ("h200-2026-11-29-language-7-drawn-spmm-f64", 3),
        ("h200-2026-11-29-language-7-drawn-f16", 3),
    ];
    let before = [
        ("h200-2026-11-28-reinforced-real", 4),
        ("h200-2026-11-28-reinforced-real-f64", 1),
        ("h200-2026-11-28-reinforced-real-f16", 3),
        ("h200-2026-11-28-reinforced-drawn", 4),
        ("h200-2026-11-28-reinforced-drawn-f64", 1),
        ("h200-2026-11-28-reinforced-drawn-f16", 3),
        ("h200-2026-11-28-real", 4),
        ("h200-2026-11-28-real-f64", 1),
        ("h200-2026-11-28-real-f16", 3),
        ("h200-2026-11-28-drawn", 4),
        ("h200-2026-11-28-drawn-f64", 1),
        ("h200-2026-11-28-drawn-f16", 3),
        ("h200-2026-11-27-real", 4),
        ("h200-2026-11-27-real-f64", 1),
        ("h200-2026-11-27-real-f16", 2),
        ("h200-2026-11-27-real-spmv-f16", 1),
        ("h100-2026-11-26-half", 5),
        ("h100-2026-11-26-half-f16", 4),
        ("h200-2026-11-27-large", 2),
        ("h200-2026-11-27", 4),
        ("h200-2026-11-27-f64", 1),
        ("h200-2026-11-27-f16", 2),
        ("h200-2026-11-26", 5),
        ("h200-2026-11-26-f16", 3),
        ("h100-2026-11-26-drawn", 5),
        ("h200-2026-11-25", 5),
        ("h200-2026-11-23-spmv-half", 2),
        ("h200-2026-11-23-spmm-f16", 2),
        ("h200-2026-11-23-spmm-bf16", 2),
    ];
    for (readme, runs) in [("README.md", &newest[..]), ("tests/results/README.md", &before[..])] {
        let text = fs::read_to_string(root.join(readme)).unwrap();
        for (run, tasks) in runs {
            let rows = rows_of(run);
            assert_eq!(rows.len(), *tasks, "{run}");
            for row in rows {
                assert!(text.contains(&row), "{readme}, {run}: {row}");
            }
        }
    }
}

/// The results that their README states are those that are kept, and those that `report --markdown`
/// makes of them.
#[test]
fn the_readme_states_what_was_measured() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let packed = fs::File::open(root.join("tests/results/h200-2026-11-22.json.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["format"], "sparserl bench 2");
    let place = Place::new();
    fs::write(place.path("results.json"), &text).unwrap();
    let printed = place.succeed("report results.json --markdown");
    let readme = fs::read_to_string(root.join("tests/results/README.md")).unwrap();
    let cases = results["cases"].as_array().unwrap();
    for task in results["settings"]["tasks"].as_array().unwrap() {
        let of_task: Vec<&Value> = cases.iter().filter(|case| case["task"] == *task).collect();
        assert_eq!(of_task.len(), 57);
        let operation = match &task["operation"]["spmm"]["columns"] {
            Value::Null => "spmv".to_owned(),
            columns => format!("spmm {columns}"),
        };
        let dtype = task["precision"]["matrix"].as_str().unwrap();
        let mut row = format!("| {operation} {dtype} | {} |", of_task.len());
        for regime in ["cold", "warm", "back_to_back"] {
            for rival in ["default", "best"] {
                let ratio = |case: &&Value| case["chosen"][regime][rival]["ratio"].as_f64();
                let ratios: Vec<f64> = of_task.iter().filter_map(ratio).collect();
                if ratios.is_empty() {
                    row += " – |";
                    continue;
                }
                assert_eq!(ratios.len(), of_task.len(), "{regime}");
                let mean = ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64;
                let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
                row += &format!(" {:.2} ({least:.2}) |", mean.exp());
            }
        }
        assert!(printed.contains(&row), "{row}\n{printed}");
        assert!(readme.contains(&row) && !row.contains('–'), "{row}");
    }
    // All tasks, over all, real and generated matrices.
    let rows: Vec<&str> = printed.lines().filter(|line| line.starts_with("| spm")).collect();
    assert_eq!(rows.len(), 3 * 8);
    for row in rows {
        assert!(readme.contains(row), "{row}");
    }
}
