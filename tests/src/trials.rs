//! Suites whose tests are found when they run.

use std::process::ExitCode;

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};

/// Runs the trials that were planned, as the arguments of the program say.
#[allow(clippy::print_stderr)]
pub fn run(planned: Result<Vec<Trial>>) -> ExitCode {
    match planned {
        Ok(trials) => libtest_mimic::run(&Arguments::from_args(), trials).exit_code(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What a trial says where it fails: all causes in one line.
///
/// # Errors
/// When it fails.
pub fn outcome(result: Result<()>) -> Result<(), Failed> {
    result.map_err(|error| Failed::from(format!("{error:#}")))
}
