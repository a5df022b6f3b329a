//! The C API on a real device: programs in C and C++ are compiled, linked and run as their users
//! do. Without a driver or a GPU every test is reported as ignored, never as passed.
//!
//! The Python package is tested with the machine's own PyTorch, if it has one.
//!
//! It needs a C and a C++ compiler and CUDA's runtime (`SPARSERL_CUDA`, `/usr/local/cuda` or
//! `.cudart`), and no Rust; `tests/build/mod.rs` says how it is told where things are.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "test code")]

mod build;

use std::process::{Command, ExitCode};

use build::{Build, Compiler, Cuda, Language, run};
use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_gpu::run::device;
use tempfile::TempDir;

/// Parts of `tests/c/device.c`.
const PARTS: [&str; 12] = [
    "swapped",
    "from_device",
    "values",
    "captured",
    "misuse",
    "clamped",
    "of_sides",
    "single",
    "loaded",
    "threads",
    "workspace",
    "overhead",
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other: trials share a device.
    arguments.test_threads = Some(1);
    // A broken driver is no absent one: then the tests run and fail.
    let absent = device::count().is_err_and(|error| error.is_absence());
    let parts = PARTS.iter().map(|&part| {
        let run_part = move || -> Result<(), Failed> {
            program("tests/c/device.c", Language::C, &["-pthread", "-lm"], part);
            Ok(())
        };
        Trial::test(part, run_part).with_ignored_flag(absent)
    });
    let matrices = || -> Result<(), Failed> {
        program("tests/c/device_matrices.c", Language::C, &[], "all");
        Ok(())
    };
    let matrices = Trial::test("matrices", matrices).with_ignored_flag(absent);
    // Each compiles kernels for gaps between rows and without, for A and Aᵀ, of sixteen plans.
    let dense = ["f32", "f64", "f16", "bf16"].map(|dtype| {
        let run_dense = move || -> Result<(), Failed> {
            program("tests/c/device_dense.c", Language::C, &[], dtype);
            Ok(())
        };
        Trial::test(format!("dense::{dtype}"), run_dense).with_ignored_flag(absent)
    });
    let examples = [
        ("spmv.c", Language::C, None),
        ("spmv.F90", Language::Fortran, None),
        ("pdhg.cpp", Language::Cpp, None),
        ("cg.cpp", Language::Cpp, Some("cublas")),
    ];
    let examples = examples.into_iter().map(|(file, language, library)| {
        let link = library.map(|library| format!("-l{library}"));
        let lacks =
            library.is_some_and(|library| Cuda::find().is_none_or(|cuda| !cuda.has(library)));
        let lacks = lacks || Compiler::all(language).is_empty();
        let run_example = move || -> Result<(), Failed> {
            let flags: Vec<&str> = link.as_deref().into_iter().collect();
            program(&format!("examples/{file}"), language, &flags, "");
            Ok(())
        };
        Trial::test(format!("examples::{file}"), run_example).with_ignored_flag(absent || lacks)
    });
    let beside_cusparse = ["cg", "pdhg"].map(|solver| {
        let lacks = Cuda::find().is_none_or(|cuda| lacks_for_cusparse(&cuda, solver));
        let run_solver = move || -> Result<(), Failed> {
            beside_cusparse(solver);
            Ok(())
        };
        let name = format!("examples::beside_cusparse::{solver}.cpp");
        Trial::test(name, run_solver).with_ignored_flag(absent || lacks)
    });
    let petsc = Compiler::with_petsc();
    let lacks_petsc = absent || petsc.is_none();
    let petsc = move || -> Result<(), Failed> {
        let (compiler, flags) = petsc.unwrap();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        program_of(&compiler, "examples/petsc.c", &flags, "");
        Ok(())
    };
    let petsc = Trial::test("examples::petsc.c", petsc).with_ignored_flag(lacks_petsc);
    let python = || -> Result<(), Failed> {
        for file in ["tests/device.py", "tests/pytorch.py", "examples/gcn.py"] {
            let mut command = Command::new("python3");
            command.arg(build::source("python").join(file));
            command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", build::source("python"));
            let output = run(command.env("SPARSERL_LIBRARY", build::library()));
            print!("{}{}", output.stdout, output.stderr);
        }
        Ok(())
    };
    let lacks = absent || !has_pytorch();
    let python = Trial::test("python", python).with_ignored_flag(lacks);
    let examples = examples.chain(beside_cusparse);
    let trials = parts.chain(examples).chain(dense).chain([matrices, petsc, python]).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether the machine's Python has what the package's tests need.
fn has_pytorch() -> bool {
    let import = Command::new("python3").args(["-c", "import torch, scipy"]).output();
    import.is_ok_and(|output| output.status.success())
}

/// Whether something is missing that a solver beside cuSPARSE needs.
fn lacks_for_cusparse(cuda: &Cuda, solver: &str) -> bool {
    let lacks_own = match solver {
        "cg" => !cuda.has("cublas"),
        _ => cuda.nvcc().is_none(),
    };
    let compiler = Compiler::all(Language::Cpp).into_iter().next();
    lacks_own || compiler.is_none_or(|compiler| cuda.cusparse(&compiler).is_none())
}

/// Runs a solver with plans and with cuSPARSE. It fails where their solutions are not the same.
fn beside_cusparse(solver: &str) {
    let (cuda, compiler) = (Cuda::find().unwrap(), Compiler::first(Language::Cpp));
    let folder = TempDir::new().unwrap();
    let mut flags = cuda.cusparse(&compiler).unwrap();
    if solver == "cg" {
        flags.push("-lcublas".to_owned());
    } else {
        let object = folder.path().join("pdhg_projection.o");
        run(Command::new(cuda.nvcc().unwrap())
            .args(["-std=c++20", "-O2", "-c"])
            .arg(build::source("examples/pdhg_projection.cu"))
            .arg("-o")
            .arg(&object));
        flags.push(object.display().to_string());
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    program_of(&compiler, &format!("examples/{solver}.cpp"), &flags, "");
}

/// Builds a program and runs it.
fn program(source: &str, language: Language, flags: &[&str], part: &str) {
    program_of(&Compiler::first(language), source, flags, part);
}

fn program_of(compiler: &Compiler, source: &str, flags: &[&str], part: &str) {
    let folder = TempDir::new().unwrap();
    let cuda = Cuda::find().unwrap();
    let built = Build::new(compiler, source).flags(flags).with_cuda(&cuda);
    let mut command = Command::new(built.into_folder(folder.path()));
    if !part.is_empty() {
        command.arg(part).arg(folder.path());
    }
    let output = run(&mut command);
    print!("{}", output.stdout);
}
