//! What a run of the device suite came to, for people and for programs.

use std::fs;
use std::io;
use std::time::Instant;

use serde::Serialize;

/// Environment variable with the file that the report is written to, as JSON.
pub const REPORT_VARIABLE: &str = "SPARSERL_REPORT";

/// Counts and failures of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The device.
    pub device: String,
    /// Programs that were run, each on one matrix.
    pub cases: usize,
    /// Results that were compared with the reference and found right.
    pub checks: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// What went wrong.
    pub failures: Vec<Failure>,
    #[serde(skip)]
    start: Instant,
}

/// A case that went wrong.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Name of the trial.
    pub trial: String,
    /// The matrix: a description or a file.
    pub matrix: String,
    /// The program's text; empty when none was written.
    pub program: String,
    /// What is wrong.
    pub message: String,
}

impl Report {
    /// A report of nothing yet.
    #[must_use]
    pub fn new(device: String) -> Self {
        let start = Instant::now();
        Self { device, cases: 0, checks: 0, seconds: 0.0, failures: Vec::new(), start }
    }

    /// Writes the report to the file that [`REPORT_VARIABLE`] names, if it does, and returns a line
    /// of counts.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self) -> io::Result<String> {
        self.seconds = self.start.elapsed().as_secs_f64();
        if let Some(path) = std::env::var_os(REPORT_VARIABLE).filter(|path| !path.is_empty()) {
            fs::write(path, serde_json::to_string_pretty(self)?)?;
        }
        Ok(format!(
            "device-suite: device={:?} cases={} checks={} failures={} seconds={:.1}",
            self.device,
            self.cases,
            self.checks,
            self.failures.len(),
            self.seconds
        ))
    }
}
