//! `tune`, and the programs that `gen` writes, on a real device. Without a driver or a GPU every
//! test is reported as ignored, never as passed, and so is that of the Python program without CuPy.
//!
//! | variable | what |
//! |---|---|
//! | `SPARSERL_ROOT` | root of the repository, where it is not where this was built |
//! | `SPARSERL_CLI` | the program, where it is not where this was built |

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sparserl_gpu::run::device;
use tempfile::TempDir;

type Check = fn(&Place);

/// Three rows, whose sums are 3, 0.5 and −4.
const SMALL: &str = "%%MatrixMarket matrix coordinate real general
3 4 5
1 1 1
1 4 2
2 2 0.5
3 1 -1.5
3 3 -2.5
";

const PYTHON: &str = "gen::python";
const CHECKS: [(&str, Check); 5] = [
    ("gen::cpp", programs_in_cpp_run_their_kernels),
    (PYTHON, programs_in_python_run_their_kernels),
    ("tune::again", a_search_is_gone_on_with),
    ("tune::interrupted", an_interrupted_search_writes_its_best),
    ("tune::tasks", every_kind_of_task_is_searched),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other: trials share a device.
    arguments.test_threads = Some(1);
    // A broken driver is no absent one: then the tests run and fail.
    let absent = device::count().is_err_and(|error| error.is_absence());
    let trial = |(name, check): (&str, Check)| {
        let run = move || -> Result<(), Failed> {
            check(&Place::new()?);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(absent || name == PYTHON && !has_cupy())
    };
    libtest_mimic::run(&arguments, CHECKS.into_iter().map(trial).collect()).exit_code()
}

fn has_cupy() -> bool {
    let mut python = Command::new("python3");
    let output = python.args(["-c", "import cupy, numpy, safetensors"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// A folder to run in.
struct Place {
    folder: TempDir,
    root: PathBuf,
    program: PathBuf,
}

impl Place {
    fn new() -> std::io::Result<Self> {
        let given = |name, otherwise: PathBuf| std::env::var_os(name).map_or(otherwise, Into::into);
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        Ok(Self {
            folder: tempfile::tempdir()?,
            root: std::path::absolute(given("SPARSERL_ROOT", built))?,
            program: std::path::absolute(given(
                "SPARSERL_CLI",
                env!("CARGO_BIN_EXE_sparserl-cli").into(),
            ))?,
        })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        // Cargo sets it relative to the workspace.
        if let Some(folder) = std::env::var_os("SPARSERL_NVRTC") {
            command.env("SPARSERL_NVRTC", self.root.join(folder));
        }
        command
    }

    fn succeed(&self, arguments: &str) -> Output {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        output
    }

    fn matrix(&self, name: &str) -> String {
        self.root.join("tests/matrices").join(name).to_str().unwrap().to_owned()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.folder.path().join(name)).unwrap()).unwrap()
    }

    /// A kernel is there, was measured beside cuSPARSE, and is right when it is judged again.
    fn check_kernel(&self, folder: &str, matrix: &str) -> Value {
        let record = self.json(&format!("{folder}/tune.json"));
        let result = &record["result"];
        let samples = |one: &Value| one["outcome"]["Measured"]["timing"]["cold"].clone();
        assert_eq!(samples(&result["winner"]).as_array().unwrap().len(), 20);
        assert!(samples(&result["first_pick"]).is_array());
        assert!(!result["baselines"].as_array().unwrap().is_empty());
        let kernel = self.folder.path().join(folder).join("kernel");
        for file in ["kernel.cu", "kernel.cubin", "plan.json", "program.skl"] {
            assert!(kernel.join(file).exists(), "{file}");
        }
        let program = fs::read_to_string(kernel.join("program.skl")).unwrap();
        assert_eq!(result["winner"]["program"], program);
        self.succeed(&format!("verify {folder}/kernel/program.skl --matrix {matrix}"));
        record
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn programs_in_cpp_run_their_kernels(place: &Place) {
    for (matrix, arguments) in [
        ("beam.mtx", ""),
        ("beam.mtx", "--dtype f16"),
        ("rmat10.mtx.gz", "--op spmm --cols 8 --dtype f64"),
        ("rmat10.mtx.gz", "--op spmm --cols 16 --dtype bf16"),
        ("poisson2d.mtx", "--dtype f32/f64/f64 --values variable"),
    ] {
        place.succeed(&format!("gen {} -o out --force {arguments}", place.matrix(matrix)));
        let mut make = Command::new("make");
        make.args(["-s", "run"]).current_dir(place.folder.path().join("out"));
        let output = make.env_remove("MAKEFLAGS").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{matrix} {arguments}: {said}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("right ") && said.contains("time "), "{said}");
    }
}

/// They print αAx for x = 1 and α = 1, the sums of the rows.
fn programs_in_python_run_their_kernels(place: &Place) {
    for arguments in ["", "--op spmm --cols 3 --dtype f64"] {
        fs::write(place.folder.path().join("a.mtx"), SMALL).unwrap();
        place.succeed(&format!("gen a.mtx -o out --force {arguments}"));
        let mut python = Command::new("python3");
        let output = python.arg("run.py").current_dir(place.folder.path().join("out")).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let is_separator = |c: char| c == '[' || c == ']' || c.is_whitespace();
        let sums = printed.split(is_separator).filter(|word| !word.is_empty());
        let sums: Vec<f64> = sums.map(|word| word.parse().unwrap()).collect();
        let columns = if arguments.is_empty() { 1 } else { 3 };
        let expected: Vec<f64> =
            [3.0, 0.5, -4.0].iter().flat_map(|&sum| vec![sum; columns]).collect();
        assert_eq!(sums, expected, "{printed}");
    }
}

fn a_search_is_gone_on_with(place: &Place) {
    let beam = place.matrix("beam.mtx");
    let tune = format!("tune {beam} --budget 10s -o out --store winners.redb");
    let said = place.succeed(&tune);
    let said = String::from_utf8(said.stdout).unwrap();
    println!("{said}");
    assert!(said.contains("searched   ") && said.contains("gain       "), "{said}");
    let first = place.check_kernel("out", &beam);
    assert_eq!(first["runs"], 1);
    assert!(number(&first["programs"]) >= 64.0, "{}", first["programs"]);

    let again = place.succeed(&format!("{tune} --json"));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, place.check_kernel("out", &beam));
    assert_eq!(again["runs"], 2);
    assert!(number(&again["programs"]) > number(&first["programs"]));
    assert!(number(&again["seconds"]) > number(&first["seconds"]) + 5.0);
    let curve = again["curve"].as_array().unwrap();
    let kept = first["curve"].as_array().unwrap();
    assert_eq!(&curve[..kept.len()], kept.as_slice());

    let other = place.command(&format!("{tune} --dtype f64")).output().unwrap();
    let said = String::from_utf8(other.stderr).unwrap();
    assert_eq!((other.status.code(), said.lines().count()), (Some(3), 1), "{said}");
    assert!(said.contains("is of `spmv f32`, not `spmv f64`"), "{said}");
    assert_eq!(again, place.json("out/tune.json"));
}

fn an_interrupted_search_writes_its_best(place: &Place) {
    let beam = place.matrix("beam.mtx");
    let mut child =
        place.command(&format!("tune {beam} --budget 1h -o out --no-store -q")).spawn().unwrap();
    let start = Instant::now();
    while !place.folder.path().join("out/tune.json").exists() {
        assert!(child.try_wait().unwrap().is_none() && start.elapsed().as_secs() < 120);
        thread::sleep(Duration::from_millis(50));
    }
    thread::sleep(Duration::from_secs(5));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(start.elapsed().as_secs() < 240);
    let first = place.check_kernel("out", &beam);
    place.succeed(&format!("tune {beam} --budget 2s -o out --no-store -q"));
    let second = place.check_kernel("out", &beam);
    assert_eq!((&first["runs"], &second["runs"]), (&Value::from(1), &Value::from(2)));
    assert!(number(&second["programs"]) > number(&first["programs"]));
}

fn every_kind_of_task_is_searched(place: &Place) {
    let matrix = place.matrix("poisson2d.mtx");
    for (arguments, folder) in [
        ("--op spmm --cols 32 --dtype f64", "poisson2d.spmm32.f64.tune"),
        ("--dtype f32/f64/f64 --regime warm", "poisson2d.spmv.f32-f64-f64.tune"),
        ("--op spmm --cols 3 --values variable", "poisson2d.spmm3.f32.tune"),
    ] {
        place.succeed(&format!("tune {matrix} --budget 3s --no-store -q {arguments}"));
        place.check_kernel(folder, &matrix);
    }
}
