//! The Python package as its users see it: its wheel is built of the libraries that these tests use,
//! installed into an environment of its own, and its tests are run there. What needs PyTorch, or a
//! Python that the machine lacks, is reported as ignored.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use build::{Build, Compiler, Language, run, run_installed, source};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let tests: [(&str, fn(), bool); 3] = [
        ("host", products_on_the_host, has_python()),
        ("on_driver", products_on_a_driver_without_a_gpu, has_python()),
        ("pytorch", derivatives_and_tracing, can_import("torch") && can_import("scipy")),
    ];
    let trial = |(name, test, is_possible): (&str, fn(), bool)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_possible)
    };
    let trials = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether there is a Python that the package is for, and pip.
fn has_python() -> bool {
    let recent = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))";
    python("python3").args(["-c", recent]).status().is_ok_and(|status| status.success())
}

fn can_import(module: &str) -> bool {
    let found = format!("import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)");
    has_python()
        && python("python3").args(["-c", &found]).status().is_ok_and(|status| status.success())
}

/// A Python that leaves nothing behind in the sources.
fn python(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn products_on_the_host() {
    let environment = Environment::with_package();
    run_installed(python(environment.python()).arg(source("python/examples/spmv.py")));
    run_installed(python(environment.python()).arg(source("python/tests/host.py")));
}

/// Everything about execution but the kernels, on a driver that keeps account.
fn products_on_a_driver_without_a_gpu() {
    let folder = TempDir::new().unwrap();
    let compiler = Compiler::first(Language::C);
    Build::new(&compiler, "tests/c/driver.c").into_driver(folder.path());
    let environment = Environment::new();
    let mut command = python(environment.python());
    command.arg(source("python/tests/on_driver.py")).env("LD_LIBRARY_PATH", folder.path());
    run(from_checkout(&mut command));
}

/// With the machine's own PyTorch, which is too large to be installed for a test.
fn derivatives_and_tracing() {
    let mut command = python("python3");
    run(from_checkout(command.arg(source("python/tests/pytorch.py"))));
}

/// Without an installation: the package of the checkout with the library that was built.
fn from_checkout(command: &mut Command) -> &mut Command {
    command.env("PYTHONPATH", source("python")).env("SPARSERL_LIBRARY", build::library())
}

/// A virtual environment with NumPy and SciPy.
struct Environment(TempDir);

impl Environment {
    fn new() -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        run(python("python3").args(["-m", "venv"]).arg(folder.path()));
        let environment = Self(folder);
        environment.install(&["numpy", "scipy"]);
        environment
    }

    /// With the package, installed from its wheel.
    fn with_package() -> Self {
        let environment = Self::new();
        let wheels = environment.0.path().join("wheels");
        let mut pip = environment.pip("wheel");
        pip.args(["--no-deps", "--wheel-dir"]).arg(&wheels).arg(source("python"));
        run(pip.env("SPARSERL_LIBRARY", build::library().parent().unwrap()));
        environment.install(&["sparserl", "--find-links", wheels.to_str().unwrap()]);
        environment
    }

    /// Installs what was fetched before, and nothing else.
    fn install(&self, arguments: &[&str]) {
        let fetched = source("../.python");
        assert!(fetched.is_dir(), "run tests/install-python.sh first");
        run(self.pip("install").args(["--no-index", "--find-links"]).arg(fetched).args(arguments));
    }

    fn pip(&self, what: &str) -> Command {
        let mut command = python(self.python());
        command.args(["-m", "pip", what, "--quiet", "--disable-pip-version-check"]);
        command
    }

    fn python(&self) -> PathBuf {
        self.0.path().join("bin/python3")
    }
}
