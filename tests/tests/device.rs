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
//! The binary needs no Rust toolchain, only NVRTC and a driver. A kernel that faults takes the
//! device away from this process, so that the trials after it are not run and fail; a kernel that
//! does not return ends the process after a while, with the report written.

// The process has to end when the device hangs; there is nobody else to tell.
#![allow(clippy::exit, clippy::print_stdout, clippy::print_stderr)]

mod trials;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_gpu::device::Device;
use sparserl_tests::device::{Failure, Gpu, Report, lost_the_device};

use trials::{Kernel, Outcome, Planned};

/// Longer than any trial takes that ends.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other: trials share a device and a compiler that holds a lock.
    arguments.test_threads = Some(1);

    // A broken driver is no absent one: then the trials run and fail.
    let absent = Device::open(0).is_err_and(|error| error.is_absence());
    let planned = match trials::plan() {
        Ok(planned) => planned,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let suite = Arc::new(Suite::default());
    let trials = planned.into_iter().map(|planned| {
        let suite = Arc::clone(&suite);
        Trial::test(planned.name.clone(), move || suite.run(&planned)).with_ignored_flag(absent)
    });
    let trials = trials.collect();
    if !absent {
        let suite = Arc::clone(&suite);
        std::thread::spawn(move || suite.watch());
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(report) = &mut lock(&suite.state).report {
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
    gpu: Mutex<Option<Gpu>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// There from the first trial on.
    report: Option<Report>,
    /// The trial that runs, and since when.
    running: Option<(Arc<str>, Instant)>,
    /// The trial whose kernel took the device away.
    lost_in: Option<String>,
}

impl Suite {
    fn run(&self, planned: &Planned) -> Result<(), Failed> {
        if let Some(culprit) = &lock(&self.state).lost_in {
            return Err(format!("not run: the device was lost in {culprit}").into());
        }
        let mut gpu = lock(&self.gpu);
        if gpu.is_none() {
            *gpu = Some(Gpu::open().map_err(|error| format!("{error:#}"))?);
        }
        let Some(gpu) = gpu.as_ref() else { return Err("no device".into()) };
        let device = gpu.description().map_err(|error| format!("{error:#}"))?;
        {
            let mut state = lock(&self.state);
            state.report.get_or_insert_with(|| Report::new(device));
            state.running = Some((planned.name.as_str().into(), Instant::now()));
        }

        let Outcome { kernels, result } = trials::run(planned, gpu);

        let mut state = lock(&self.state);
        state.running = None;
        if result.as_ref().is_err_and(lost_the_device) {
            state.lost_in = Some(planned.name.clone());
        }
        let report = state.report.as_mut().ok_or("no report")?;
        report.cases += kernels.len();
        report.checks += kernels.iter().map(|kernel| kernel.checks).sum::<usize>();
        result.map_err(|error| {
            let message = format!("{error:#}");
            let Kernel { matrix, program, .. } = kernels.into_iter().last().unwrap_or_default();
            let failed = format!("{message}\nmatrix: {matrix}\n{program}");
            let trial = planned.name.clone();
            report.failures.push(Failure { trial, matrix, program, message });
            failed.into()
        })
    }

    /// Ends the process when a kernel does not return: it cannot be stopped in any other way.
    fn watch(&self) -> ! {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let mut state = lock(&self.state);
            let overdue = state.running.take_if(|(_, since)| since.elapsed() > PATIENCE);
            let Some((name, _)) = overdue else { continue };
            let message = format!("did not end within {} s", PATIENCE.as_secs());
            eprintln!("error: {name} {message}");
            if let Some(report) = &mut state.report {
                let (matrix, program) = (String::new(), String::new());
                report.failures.push(Failure { trial: name.to_string(), matrix, program, message });
                println!("{}", report.write().unwrap_or_default());
            }
            std::process::exit(3);
        }
    }
}

/// A trial that panics leaves nothing half done behind these locks.
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
