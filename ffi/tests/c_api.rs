//! The C API as its users see it: the tests in `tests/c` and the examples are compiled by the
//! machine's compilers, linked, and run. What the machine has no tool for is reported as ignored.
//!
//! `SPARSERL_SANITIZER` names another sanitizer than ASan and UBSan for what is written in C; for
//! the library, too, `sanitize.sh` builds it with one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use build::{Build, Compiler, Cuda, Language, run};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

/// The tests in C that need neither a GPU nor a driver, each a program.
const TESTS: [&str; 3] = ["plans", "misuse", "epilogue"];
/// Those that need a driver.
const DRIVER_TESTS: [&str; 7] =
    ["on_driver", "fused", "matrices", "dense", "workspace", "waiting", "shared"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let has_fortran = !Compiler::all(Language::Fortran).is_empty();
    let tests: [(&str, fn(), bool); 16] = [
        ("compilers", every_compiler_takes_the_header, true),
        ("abi", programs_of_before_are_understood, true),
        ("unloaded", it_stays_when_it_is_closed, true),
        ("examples", examples_run_as_far_as_they_go, true),
        ("solvers", solvers_run_as_far_as_they_go, true),
        ("solvers_beside_cusparse", solvers_beside_cusparse_link, !beside_cusparse().is_empty()),
        ("gpu_programs", programs_for_a_gpu_compile_and_link, true),
        ("fortran", the_example_in_fortran_runs, has_fortran),
        ("petsc", the_example_of_petsc_solves, Compiler::with_petsc().is_some()),
        ("symbols", only_the_api_is_exported, true),
        ("sanitized::fuzz", calls_are_fuzzed, Compiler::with_fuzzer().is_some()),
        ("valgrind", under_valgrind, has("valgrind")),
        ("symbol_versions", installed_symbols_have_versions, true),
        ("static", it_links_statically, true),
        ("pkg_config", it_installs_for_pkg_config, has("pkg-config")),
        ("cmake", it_installs_for_cmake, has("cmake")),
    ];
    let trial = |(name, test, is_possible): (&str, fn(), bool)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_possible)
    };
    let sanitized = |test: &'static str, run: fn(&Compiler, &str)| {
        let of = move |compiler: Compiler| {
            let is_possible =
                compiler.links(&sanitizing(&sanitizer()), "int main(void) { return 0; }");
            let name = format!("sanitized::{test}::{}", compiler.name());
            let run = move || {
                run(&compiler, test);
                Ok(())
            };
            Trial::test(name, run).with_ignored_flag(!is_possible)
        };
        Compiler::all(Language::C).into_iter().map(of)
    };
    let alone = TESTS.into_iter().flat_map(|test| sanitized(test, under_sanitizers));
    let on_driver =
        DRIVER_TESTS.into_iter().flat_map(|test| sanitized(test, on_a_driver_without_a_gpu));
    let trials = tests.into_iter().map(trial).chain(alone).chain(on_driver).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Sanitizers of what is written in C.
fn sanitizer() -> String {
    env::var("SPARSERL_SANITIZER").unwrap_or_else(|_| "address,undefined".to_owned())
}

/// Flags of a compiler for these sanitizers, after whose first finding a program fails.
fn sanitizing(sanitizers: &str) -> [String; 3] {
    let sanitize = format!("-fsanitize={sanitizers}");
    [sanitize, "-fno-sanitize-recover=all".to_owned(), "-g".to_owned()]
}

/// Runs a test in C. What the library keeps until the program ends is reachable, and so no leak.
fn under_sanitizers(compiler: &Compiler, test: &str) {
    let folder = TempDir::new().unwrap();
    let built = Build::new(compiler, &format!("tests/c/{test}.c"))
        .flags(&sanitizing(&sanitizer()))
        .into_folder(folder.path());
    run(Command::new(built).arg(folder.path()));
}

/// Memory of the library too, which the sanitizers of C do not see, as the machine has it. That
/// values are read which nobody wrote is not asked: what LLVM makes of Rust branches on such values
/// where the branch makes no difference.
fn under_valgrind() {
    let folder = TempDir::new().unwrap();
    let valgrind = |program: PathBuf| {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--undef-value-errors=no"]);
        command.args(["--leak-check=full", "--show-leak-kinds=definite"]);
        command.arg("--errors-for-leak-kinds=definite").arg(program).arg(folder.path());
        command
    };
    let compiler = Compiler::first(Language::C);
    let misuse = Build::new(&compiler, "tests/c/misuse.c").flags(&["-g"]);
    run(&mut valgrind(misuse.into_folder(folder.path())));
    for test in ["workspace", "on_driver"] {
        let built = with_driver(&compiler, test, &["-g".to_owned()], folder.path());
        run(valgrind(built).env("LD_LIBRARY_PATH", folder.path()));
    }
}

/// Everything about execution but the kernels, on a driver that keeps account.
fn on_a_driver_without_a_gpu(compiler: &Compiler, test: &str) {
    let folder = TempDir::new().unwrap();
    let built = with_driver(compiler, test, &sanitizing(&sanitizer()), folder.path());
    // The library loads the driver by its name.
    run(Command::new(built).arg(folder.path()).env("LD_LIBRARY_PATH", folder.path()));
}

/// Builds a test and the driver that it needs.
fn with_driver(compiler: &Compiler, test: &str, flags: &[String], folder: &Path) -> PathBuf {
    let driver = Build::new(compiler, "tests/c/driver.c").flags(flags).into_driver(folder);
    Build::new(compiler, &format!("tests/c/{test}.c"))
        .flags(flags)
        .flags(&["-pthread", driver.to_str().unwrap()])
        .into_folder(folder)
}

/// Calls as bytes say. `SPARSERL_FUZZ_SECONDS` fuzzes for so long; else few inputs are tried,
/// always the same.
fn calls_are_fuzzed() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::with_fuzzer().unwrap();
    let flags = sanitizing(&sanitizer());
    let driver = Build::new(&compiler, "tests/c/driver.c").flags(&flags).into_driver(folder.path());
    let built = Build::new(&compiler, "tests/c/fuzz.c")
        .flags(&sanitizing(&format!("fuzzer,{}", sanitizer())))
        .flags(&["-pthread", driver.to_str().unwrap()])
        .into_folder(folder.path());
    let corpus = folder.path().join("corpus");
    fs::create_dir(&corpus).unwrap();
    let mut state = 1_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for number in 0..16 {
        let bytes: Vec<u8> = (0..1_500).map(|_| byte()).collect();
        fs::write(corpus.join(number.to_string()), bytes).unwrap();
    }
    let length = match env::var("SPARSERL_FUZZ_SECONDS") {
        Ok(seconds) => format!("-max_total_time={seconds}"),
        Err(_) => "-runs=40".to_owned(),
    };
    let mut command = Command::new(built);
    command.args(["-seed=1", "-max_len=2000", "-len_control=0", &length]).arg(corpus);
    command.current_dir(folder.path()).env("LD_LIBRARY_PATH", folder.path());
    run(command.env("SPARSERL_FUZZ_FOLDER", folder.path()));
}

fn every_compiler_takes_the_header() {
    for language in [Language::C, Language::Cpp] {
        for compiler in Compiler::all(language) {
            let folder = TempDir::new().unwrap();
            Build::new(&compiler, "tests/c/misuse.c").into_folder(folder.path());
        }
    }
}

/// Numbers, structures and functions are those that programs were compiled with.
fn programs_of_before_are_understood() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::first(Language::C);
    run(&mut Command::new(Build::new(&compiler, "tests/c/abi.c").into_folder(folder.path())));
    let header = fs::read_to_string(build::source("sparserl.h")).unwrap();
    let known = fs::read_to_string(build::source("tests/c/abi.c")).unwrap();
    let constants =
        header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    let (mut count, functions) =
        (0, fs::read_to_string(build::source("tests/symbols.txt")).unwrap());
    for (name, number) in constants.filter(|(name, _)| name.starts_with("SPARSERL_")) {
        assert!(known.contains(&format!("IS({name}, {number});")), "abi.c does not know {name}");
        count += 1;
    }
    assert!(count >= 65, "{count} constants");
    for name in functions.lines().filter_map(|line| line.split("@@").next()) {
        assert!(known.contains(&format!("= {name};")), "abi.c does not know {name}");
    }
}

/// Threads of the library go on after `dlclose`, in the one that cargo links as in the one that is
/// installed.
fn it_stays_when_it_is_closed() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("unloaded");
    run(Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(build::source(""))
        .arg(build::source("tests/c/unloaded.c"))
        .args(["-ldl", "-o"])
        .arg(&program));
    let installed = install();
    for library in [build::library(), installed.path().join("lib/libsparserl.so")] {
        run(Command::new(&program).arg(library));
    }
}

fn examples_run_as_far_as_they_go() {
    let folder = TempDir::new().unwrap();
    let spmv = Build::new(&Compiler::first(Language::C), "examples/spmv.c")
        .flags(&["-DWITHOUT_CUDA"])
        .into_folder(folder.path());
    let output =
        run(Command::new(&spmv).env("CUDA_VISIBLE_DEVICES", "").env("SPARSERL_VERBOSE", "1"));
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
    assert!(output.stdout.contains("nothing can be executed: "), "{}", output.stdout);
    let line =
        output.stderr.lines().find(|line| line.starts_with("sparserl: 3 x 3, 6 entries, spmv f64"));
    assert!(line.is_some_and(|line| line.contains("| 0 calls |")), "{}", output.stderr);
}

/// The solvers, with declarations of what they take of cuBLAS.
fn solvers_run_as_far_as_they_go() {
    solvers(&Compiler::first(Language::Cpp), &[]);
}

/// The same, compiled for a comparison with cuSPARSE by its own header, and linked with it. What is
/// compiled by nvcc is stood in for.
fn solvers_beside_cusparse_link() {
    let projection = build::source("tests/c/pdhg_projection.cpp").display().to_string();
    for (compiler, mut flags) in beside_cusparse() {
        flags.push(projection.clone());
        solvers(&compiler, &flags);
    }
}

/// Compilers that can take cuSPARSE's header and library, with the flags for it.
fn beside_cusparse() -> Vec<(Compiler, Vec<String>)> {
    let Some(cuda) = Cuda::find() else { return Vec::new() };
    let with_flags = |compiler: Compiler| Some((cuda.cusparse(&compiler)?, compiler));
    let found = Compiler::all(Language::Cpp).into_iter().filter_map(with_flags);
    found.map(|(flags, compiler)| (compiler, flags)).collect()
}

fn solvers(compiler: &Compiler, flags: &[String]) {
    let cuda = Cuda::find().unwrap_or_else(|| panic!("run tests/install-cudart.sh first"));
    let folder = TempDir::new().unwrap();
    let cublas = format!("-isystem{}", build::source("tests/c/cublas").display());
    for example in ["cg", "pdhg"] {
        let built = Build::new(compiler, &format!("examples/{example}.cpp"))
            .flags(&[&cublas])
            .flags(flags)
            .with_cuda(&cuda)
            .into_folder(folder.path());
        let output = run(Command::new(built).env("CUDA_VISIBLE_DEVICES", ""));
        assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
        assert!(output.stdout.contains("nothing is solved: there is no GPU"), "{}", output.stdout);
    }
}

fn the_example_in_fortran_runs() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::first(Language::Fortran);
    let build = || Build::new(&compiler, "examples/spmv.F90");
    let cuda = Cuda::find().unwrap_or_else(|| panic!("run tests/install-cudart.sh first"));
    build().with_cuda(&cuda).into_folder(folder.path());
    let spmv = build().flags(&["-DWITHOUT_CUDA"]).into_folder(folder.path());
    let output = run(Command::new(&spmv).env("CUDA_VISIBLE_DEVICES", ""));
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
    assert!(output.stdout.contains("nothing can be executed: "), "{}", output.stdout);
}

fn the_example_of_petsc_solves() {
    let folder = TempDir::new().unwrap();
    let (compiler, flags) = Compiler::with_petsc().unwrap();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let build = || Build::new(&compiler, "examples/petsc.c").flags(&flags);
    let cuda = Cuda::find().unwrap_or_else(|| panic!("run tests/install-cudart.sh first"));
    build().with_cuda(&cuda).into_folder(folder.path());
    let petsc = build().flags(&["-DWITHOUT_CUDA"]).into_folder(folder.path());
    let mut command = Command::new(&petsc);
    // Open MPI refuses root, as which tests may run, unless it is told otherwise.
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    command.env("CUDA_VISIBLE_DEVICES", "").envs(allowed.map(|name| (name, "1")));
    let output = run(command.args(["-side", "40"]));
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
    assert!(output.stdout.contains(" iterations, off by "), "{}", output.stdout);
}

fn programs_for_a_gpu_compile_and_link() {
    let cuda = Cuda::find().unwrap_or_else(|| panic!("run tests/install-cudart.sh first"));
    let programs = [
        ("tests/c/device.c", Language::C),
        ("tests/c/device_matrices.c", Language::C),
        ("tests/c/device_dense.c", Language::C),
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

fn only_the_api_is_exported() {
    let output = run(Command::new("nm").args(["-D", "--defined-only"]).arg(build::library()));
    let symbols: Vec<_> = output.stdout.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    assert!(symbols.len() >= 24, "{symbols:?}");
    let header = fs::read_to_string(build::source("sparserl.h")).unwrap();
    for symbol in symbols {
        let name = symbol.split('@').next().unwrap();
        assert!(header.contains(&format!("{name}(")), "{name} is exported, and not in the header");
    }
}

fn it_links_statically() {
    let folder = TempDir::new().unwrap();
    let built = Build::new(&Compiler::first(Language::C), "tests/c/misuse.c")
        .statically()
        .into_folder(folder.path());
    run(&mut Command::new(built));
}

/// Installs what was built, and gives where.
fn install() -> TempDir {
    let prefix = TempDir::new().unwrap();
    let folder = build::library().parent().unwrap().canonicalize().unwrap();
    run(Command::new(build::source("install/install.sh")).arg(prefix.path()).arg(folder));
    prefix
}

fn installed_symbols_have_versions() {
    build::check_symbol_versions(&install().path().join("lib/libsparserl.so"));
}

fn it_installs_for_pkg_config() {
    let prefix = install();
    let asked = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "sparserl"])
        .env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig")));
    let program = prefix.path().join("spmv");
    run(Command::new("cc")
        .arg(prefix.path().join("share/sparserl/examples/spmv.c"))
        .args(["-DWITHOUT_CUDA", "-o"])
        .arg(&program)
        .args(asked.stdout.split_whitespace()));
    // The server is found beside the library that was installed.
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix.path().join("lib"));
    let output = build::run_installed(&mut command);
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
}

fn it_installs_for_cmake() {
    let prefix = install();
    let (from, to) = (prefix.path().join("share/sparserl/examples"), prefix.path().join("build"));
    let found = format!("-DCMAKE_PREFIX_PATH={}", prefix.path().display());
    let without_cuda = "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON";
    run(Command::new("cmake").arg("-S").arg(from).arg("-B").arg(&to).args([&found, without_cuda]));
    run(Command::new("cmake").arg("--build").arg(&to));
    let output = build::run_installed(&mut Command::new(to.join("spmv")));
    assert!(output.stdout.contains("kernel: "), "{}", output.stdout);
}
