//! The Python package as its users see it: its wheel is built of the libraries that these tests
//! use, installed into an environment of its own, and its tests are run there. What needs PyTorch,
//! or a Python that the machine lacks, is reported as ignored.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, LazyLock};

use build::{Build, Compiler, Language, run, run_installed, source};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Made when the first test needs it.
    let environment = Arc::new(LazyLock::new(Environment::new as fn() -> Environment));
    let installed = |name: &str, test: fn(&Environment)| {
        let environment = Arc::clone(&environment);
        let run = move || {
            test(&environment);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!has_python())
    };
    let host = installed("host", products_on_the_host);
    let versions = installed("symbol_versions", the_library_has_symbol_versions);
    let on_driver = installed("on_driver", products_on_a_driver_without_a_gpu);
    let sources = Trial::test("sources", || {
        installed_from_sources();
        Ok(())
    });
    // Git knows which they are.
    let sources = sources.with_ignored_flag(!has_python() || !source("../.git").exists());
    let with_pytorch = |name: &str, test: fn()| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!has_pytorch())
    };
    let pytorch = with_pytorch("pytorch", derivatives_and_tracing);
    let gcn = with_pytorch("examples::gcn.py", graph_network);
    let trials = vec![host, on_driver, versions, sources, pytorch, gcn];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Whether there is a Python that the package is for, and pip.
fn has_python() -> bool {
    let recent = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))";
    python("python3").args(["-c", recent]).status().is_ok_and(|status| status.success())
}

/// Whether the machine's Python has what the tests with PyTorch need.
fn has_pytorch() -> bool {
    let import = python("python3").args(["-c", "import torch, scipy"]).output();
    has_python() && import.is_ok_and(|output| output.status.success())
}

/// A Python that leaves nothing behind in the sources.
fn python(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn products_on_the_host(environment: &Environment) {
    for file in ["python/examples/spmv.py", "python/tests/host.py"] {
        let mut command = python(environment.python());
        run_installed(command.arg(source(file)).env("CUDA_VISIBLE_DEVICES", ""));
    }
}

fn the_library_has_symbol_versions(environment: &Environment) {
    let find =
        "import importlib.util as u; print(u.find_spec('sparserl').submodule_search_locations[0])";
    let found = run_installed(python(environment.python()).args(["-c", find]));
    build::check_symbol_versions(&Path::new(found.stdout.trim()).join("libsparserl.so"));
}

/// Everything about execution but the kernels, on a driver that keeps account.
fn products_on_a_driver_without_a_gpu(environment: &Environment) {
    let folder = TempDir::new().unwrap();
    Build::new(&Compiler::first(Language::C), "tests/c/driver.c").into_driver(folder.path());
    let mut command = python(environment.python());
    command.arg(source("python/tests/on_driver.py"));
    run_installed(command.env("LD_LIBRARY_PATH", folder.path()));
}

fn derivatives_and_tracing() {
    run(&mut with_pytorch("python/tests/pytorch.py"));
}

/// Of so few nodes that the host is fast enough.
fn graph_network() {
    run(with_pytorch("python/examples/gcn.py").arg("500").env("CUDA_VISIBLE_DEVICES", ""));
}

/// A file, with the machine's own PyTorch, which is too large to be installed for a test, and the
/// package of the checkout.
fn with_pytorch(file: &str) -> Command {
    let mut command = python("python3");
    command.arg(source(file)).env("PYTHONPATH", source("python"));
    command.env("SPARSERL_LIBRARY", build::library());
    command
}

/// The archive of the sources has all that the package is built of, by pip as by Cargo, and the
/// package can be used from where they lie.
fn installed_from_sources() {
    let environment = Environment::empty();
    let folder = environment.0.path();
    let build = "import backend, sys; print(backend.build_sdist(sys.argv[1]))";
    let mut archive = python(environment.python());
    archive.args(["-c", build]).arg(folder).env("PYTHONPATH", source("python"));
    let name = run_installed(&mut archive).stdout;
    let name = name.trim();
    let libraries = build::library();
    let libraries = libraries.parent().unwrap();
    let mut wheel = environment.pip("wheel");
    wheel.args(["--no-deps", "--wheel-dir"]).arg(folder.join("wheels")).arg(folder.join(name));
    run(wheel.env("SPARSERL_LIBRARY", libraries));
    run(Command::new("tar").arg("-xzf").arg(folder.join(name)).arg("-C").arg(folder));
    let unpacked = folder.join(name.strip_suffix(".tar.gz").unwrap());
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--depth", "1", "--manifest-path"]);
    run(tree.arg(unpacked.join("ffi/Cargo.toml")));
    let mut install = environment.pip("install");
    install.args(["--no-index", "--find-links"]).arg(source("../.python")).arg("--editable");
    let package = format!("{}[host]", unpacked.join("ffi/python").display());
    run(install.arg(package).env("SPARSERL_LIBRARY", libraries));
    let mut example = python(environment.python());
    example.arg(unpacked.join("ffi/python/examples/spmv.py")).env_remove("SPARSERL_LIBRARY");
    run_installed(example.env("CUDA_VISIBLE_DEVICES", ""));
}

/// A virtual environment; [`Environment::new`] installs the package from its wheel, NumPy and
/// SciPy.
struct Environment(TempDir);

impl Environment {
    fn empty() -> Self {
        assert!(source("../.python").is_dir(), "run tests/install-python.sh first");
        let environment = Self(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        run(python("python3").args(["-m", "venv"]).arg(environment.0.path()));
        environment
    }

    fn new() -> Self {
        let environment = Self::empty();
        let wheels = environment.0.path().join("wheels");
        let mut wheel = environment.pip("wheel");
        wheel.args(["--no-deps", "--wheel-dir"]).arg(&wheels).arg(source("python"));
        run(wheel.env("SPARSERL_LIBRARY", build::library().parent().unwrap()));
        let mut install = environment.pip("install");
        install.args(["--no-index", "--find-links"]).arg(source("../.python"));
        install.arg("--find-links").arg(wheels);
        run(install.arg("sparserl[host]"));
        environment
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
