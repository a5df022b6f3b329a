use std::fs;

use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

use super::fake::{FakeJudge, cuda};
use super::*;
use crate::args::{Cli, Command};

const PROGRAM: &str = "sparserl 3\nspmv f64\nblock 64\nkeep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4\n";

/// Two kernels and a matrix of two nonzeros.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.skl", PROGRAM);
    write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
    for said in ["40", "wrong"] {
        write(&format!("{said}.cu"), &cuda(said));
    }
    folder
}

fn verify_with(
    folder: &TempDir,
    arguments: &str,
    open: impl FnOnce() -> anyhow::Result<FakeJudge>,
) -> anyhow::Result<Report> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (kernel, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let mut words = vec!["x".into(), "verify".into(), at(kernel), "--matrix".into(), at("a.mtx")];
    words.extend(rest.split_whitespace().map(str::to_owned));
    match Cli::try_parse_from(words).unwrap().command {
        Command::Verify(args) => verify(&args, open),
        _ => unreachable!("asked for verify"),
    }
}

#[test]
fn a_right_program_is_measured_beside_the_library() {
    let report = verify_with(&folder(), "a.skl", || Ok(FakeJudge::new())).unwrap();
    assert_eq!(report.fault(), None);
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!((&json["right"], &json["kind"]), (&Value::Bool(true), &"program".into()));
    assert_eq!(json["task"]["dtype"], "f64");
    let close = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-12, "{value} is not {expected}");
    };
    close(&json["warm"]["seconds"], 64e-6);
    close(&json["back_to_back"]["seconds"], 57.6e-6);
    close(&json["cold"]["seconds"], 128e-6);
    // 2 · 2 operations in 64 µs.
    close(&json["warm"]["gflops"], 6.25e-5);
    close(&json["cold"]["default"]["ratio"], 100.0 / 64.0);
    close(&json["cold"]["best"]["ratio"], 80.0 / 64.0);
    assert_eq!(json["outcome"]["Measured"]["checks"], 4);

    let text = report.to_string();
    for line in [
        "task       spmv f64\n",
        "right      in 4 checks; the worst error is 0.25 of the bound\n",
        "cold       128.00 µs, 0.00 GFLOPS, 1.56× cuSPARSE 12.9.4 DEFAULT, 1.25× the best, cuSPARSE 12.9.4 CSR_ALG2\n",
        "not run    cuSPARSE 12.9.4 CSR_ALG1: not supported\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn where_there_is_no_library_the_option_that_names_one_is_said() {
    let not_run = "no cuSPARSE: it is not there; say where one is";
    let judge = || Ok(FakeJudge { not_run, ..FakeJudge::new() });
    let text = verify_with(&folder(), "a.skl", judge).unwrap().to_string();
    assert!(text.contains("say where one is; --cusparse PATH names one\n"), "{text}");
}

#[test]
fn cuda_is_judged_for_what_was_asked() {
    let folder = folder();
    let report = verify_with(&folder, "40.cu --op spmm --cols 8", || Ok(FakeJudge::new()));
    let text = report.unwrap().to_string();
    assert!(text.contains("task       spmm 8 f32\n") && text.contains("2.50×"), "{text}");
}

#[test]
fn a_wrong_kernel_is_a_fault_in_one_line() {
    let report = verify_with(&folder(), "wrong.cu", || Ok(FakeJudge::new())).unwrap();
    let fault = report.fault().unwrap();
    assert!(fault.ends_with("wrong.cu: wrong (inexact): as told"), "{fault}");
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!((&json["right"], &json["warm"]), (&Value::Bool(false), &Value::Null));
}

#[test]
fn without_baselines_no_ratio_is_claimed() {
    let judge = || Ok(FakeJudge { baselines: false, ..FakeJudge::new() });
    let text = verify_with(&folder(), "40.cu --no-baselines", judge).unwrap().to_string();
    let ends = "cold       80.00 µs, 0.00 GFLOPS\nwarm       40.00 µs, 0.00 GFLOPS\nopponents  not measured\n";
    assert!(text.ends_with(ends), "{text}");
}

#[test]
fn nothing_is_opened_for_what_cannot_be_judged() {
    let folder = folder();
    fs::write(folder.path().join("bad.cu"), "int main() {}").unwrap();
    for arguments in
        ["bad.cu", "missing.cu", "a.mtx", "a.skl --dtype f32", "a.skl --op spmm --cols 4"]
    {
        let open = || -> anyhow::Result<FakeJudge> { panic!("opened for {arguments}") };
        verify_with(&folder, arguments, open).unwrap_err();
    }
}
