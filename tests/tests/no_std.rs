//! `sparserl-core` without its `std` feature needs neither std nor anything of CUDA.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn cargo(arguments: &[&str]) -> io::Result<Output> {
    // Flags meant for this build, such as those of coverage, need a runtime with std.
    Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root())
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
}

#[test]
fn core_runs_without_std() {
    // Inside the target directory of this build, which need not be called `target`.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std");
    let built = cargo(&[
        "build",
        "--locked",
        "--manifest-path",
        "tests/no_std/Cargo.toml",
        "--target-dir",
        target.to_str().expect("a UTF-8 path"),
    ])
    .expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let status = Command::new(target.join("debug/sparserl-no-std")).status().expect("it starts");
    assert_eq!(status.code(), Some(0), "the number of the failed check; 101 for a panic");
}

#[test]
fn core_depends_on_nothing_of_cuda_or_std() {
    let tree = cargo(&[
        "tree",
        "--locked",
        "--package",
        "sparserl-core",
        "--no-default-features",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p} [{f}]",
    ])
    .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("cargo prints UTF-8");
    assert!(tree.starts_with("sparserl-core "), "{tree}");
    for package in tree.lines() {
        let (name, rest) = package.split_once(' ').expect("a name and a version");
        let std_only = ["cudarc", "rayon", "rayon-core", "sprs", "proptest", "ort", "libc"];
        assert!(!std_only.contains(&name), "{package}");
        let features = rest.split_once('[').map_or("", |(_, features)| features);
        // Procedural macros run on the host, with std.
        if !rest.contains("(proc-macro)") && !is_macro_support(name) {
            let has_std = features.trim_end_matches(" (*)").trim_end_matches(']').split(',');
            assert!(!has_std.into_iter().any(|f| f == "std"), "{package}");
        }
    }
}

/// Packages that only procedural macros use.
fn is_macro_support(name: &str) -> bool {
    ["proc-macro2", "quote", "syn", "unicode-ident"].contains(&name)
}
