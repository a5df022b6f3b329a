//! The program, run as a user runs it on a machine without a GPU.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit code and what it says, with no GPU to be seen.
fn collect(configuration: &Path, output: &Path) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_sparserl-trainer"))
        .arg("collect")
        .arg(configuration)
        .arg("--output")
        .arg(output)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    assert!(run.stdout.is_empty());
    (run.status.code(), String::from_utf8(run.stderr).unwrap())
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
