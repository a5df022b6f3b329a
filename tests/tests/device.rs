//! Generated kernels on a CUDA device: the golden programs, programs for matrices from files, and
//! random programs for matrices made to be awkward. Without a GPU every trial is reported as
//! ignored, never as passed.
//!
//! | variable | what |
//! |---|---|
//! | `SPARSERL_ROOT` | root of the repository, where it is not where this was built |
//! | `SPARSERL_MATRICES` | folder of matrix files; `tests/matrices` unless given |
//! | `SPARSERL_PROGRAMS_PER_MATRIX` | programs for each of them; 3 unless given |
//! | `SPARSERL_RANDOM_PROGRAMS` | random programs for awkward matrices; 300 unless given |
//! | `SPARSERL_SEED` | other programs and operands; 1 unless given |
//! | `SPARSERL_REPORT` | file for a report as JSON |
//!
//! The binary needs no Rust toolchain, only NVRTC and a driver. It starts itself to compile and to
//! run kernels, so that one that faults or does not return fails its own trial and no other.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod trials;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_gpu::evaluator::{GpuEvaluator, compile_pool};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device;
use sparserl_gpu::serve::serve;
use sparserl_gpu::worker::Protocol;
use sparserl_tests::report::{Failure, Report};

use trials::{Kernel, Outcome, Planned};

/// The first argument with which this program starts itself.
const SERVE: &str = "serve";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(SERVE) {
        return match serve(&words.collect::<Vec<_>>()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = Arguments::from_args();
    // One after the other: trials share a device.
    arguments.test_threads = Some(1);

    // A broken driver is no absent one: then the trials run and fail.
    let absent = device::count().is_err_and(|error| error.is_absence());
    let planned = match trials::plan() {
        Ok(planned) => planned,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let suite = Arc::new(Mutex::new(Suite::default()));
    let trials = planned.into_iter().map(|planned| {
        let suite = Arc::clone(&suite);
        Trial::test(planned.name.clone(), move || lock(&suite).run(&planned))
            .with_ignored_flag(absent)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if let Some((_, report)) = &mut lock(&suite).opened {
        match report.write() {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("error: the report cannot be written: {error}"),
        }
    }
    conclusion.exit_code()
}

/// What all trials share.
#[derive(Default)]
struct Suite {
    /// There from the first trial on.
    opened: Option<(GpuEvaluator, Report)>,
}

impl Suite {
    fn run(&mut self, planned: &Planned) -> Result<(), Failed> {
        if self.opened.is_none() {
            let gpu = open().map_err(|error| format!("{error:#}"))?;
            let report = Report::new(gpu.facts().name.clone());
            self.opened = Some((gpu, report));
        }
        let Some((gpu, report)) = &mut self.opened else { return Err("no device".into()) };
        let Outcome { kernels, result } = trials::run(planned, gpu);
        report.cases += kernels.len();
        report.checks += kernels.iter().map(|kernel| u64::from(kernel.checks)).sum::<u64>();
        result.map_err(|error| {
            let message = format!("{error:#}");
            let Kernel { matrix, program, .. } = kernels.into_iter().last().unwrap_or_default();
            let failed = format!("{message}\nmatrix: {matrix}\n{program}");
            let trial = planned.name.clone();
            report.failures.push(Failure { trial, matrix, program, message });
            failed.into()
        })
    }
}

fn open() -> Result<GpuEvaluator> {
    let command = ServerCommand::this_program([SERVE])?;
    let compilers = Arc::new(compile_pool(command.clone())?);
    Ok(GpuEvaluator::open(command, compilers, 0, Protocol::screening())?)
}

/// A trial that panics leaves nothing half done behind this lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number from an environment variable.
fn number(variable: &str, otherwise: usize) -> Result<usize> {
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => {
            text.parse().with_context(|| format!("{variable} is `{text}`, not a number"))
        }
        _ => Ok(otherwise),
    }
}
