//! The C API as its users see it: the tests in `tests/c` and the examples are compiled by the
//! machine's compilers, linked, and run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod build;

use std::process::Command;

use build::{Build, Compiler, Cuda, Language, run};
use tempfile::TempDir;

/// The tests in C, each a program.
const TESTS: [&str; 3] = ["plans", "misuse", "epilogue"];

/// Compiles the tests and runs them, with the compiler's flags.
fn test_with(compiler: &Compiler, flags: &[&str]) {
    std::thread::scope(|scope| {
        for test in TESTS {
            scope.spawn(move || {
                let folder = TempDir::new().unwrap();
                let built = Build::new(compiler, &format!("tests/c/{test}.c"))
                    .flags(flags)
                    .into_folder(folder.path());
                run(Command::new(built).arg(folder.path()));
            });
        }
    });
}

#[test]
fn wrong_and_right_use_under_sanitizers() {
    let compiler = Compiler::first(Language::C);
    // What the library keeps until the program ends is reachable, and so no leak.
    test_with(&compiler, &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]);
}

#[test]
fn every_compiler_takes_the_header() {
    for language in [Language::C, Language::Cpp] {
        for compiler in Compiler::all(language) {
            let folder = TempDir::new().unwrap();
            Build::new(&compiler, "tests/c/misuse.c").into_folder(folder.path());
        }
    }
}

#[test]
fn examples_are_short_and_run_as_far_as_they_go() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::first(Language::C);
    let spmv = Build::new(&compiler, "examples/spmv.c")
        .flags(&["-DWITHOUT_CUDA"])
        .into_folder(folder.path());
    let output =
        run(Command::new(&spmv).env("CUDA_VISIBLE_DEVICES", "").env("SPARSERL_VERBOSE", "1"));
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
    assert!(output.stdout.contains("nothing can be executed: "), "{}", output.stdout);
    let line =
        output.stderr.lines().find(|line| line.starts_with("sparserl: 3 x 3, 6 entries, f64"));
    assert!(line.is_some_and(|line| line.contains("| 0 calls |")), "{}", output.stderr);
    let source = build::source("examples/spmv.c");
    assert!(std::fs::read_to_string(source).unwrap().lines().count() <= 75);
}

#[test]
fn programs_for_a_gpu_compile_and_link() {
    let cuda = Cuda::find().unwrap_or_else(|| panic!("run tests/install-cudart.sh first"));
    let programs = [
        ("tests/c/device.c", Language::C),
        ("examples/spmv.c", Language::C),
        ("examples/pdhg.cpp", Language::Cpp),
    ];
    for (source, language) in programs {
        for compiler in Compiler::all(language) {
            let folder = TempDir::new().unwrap();
            let build = Build::new(&compiler, source).with_cuda(&cuda).flags(&["-pthread", "-lm"]);
            build.into_folder(folder.path());
        }
    }
}

#[test]
fn only_the_api_is_exported() {
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(build::library()));
    let symbols: Vec<_> = output.stdout.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert!(symbols.len() >= 18, "{symbols:?}");
    let header = std::fs::read_to_string(build::source("sparserl.h")).unwrap();
    for symbol in symbols {
        let name = symbol.split('@').next().unwrap();
        assert!(header.contains(&format!("{name}(")), "{name} is exported, and not in the header");
    }
}

#[test]
fn it_links_statically() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::first(Language::C);
    let built = Build::new(&compiler, "tests/c/misuse.c").statically().into_folder(folder.path());
    run(&mut Command::new(built));
}
