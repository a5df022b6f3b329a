//! The one place that writes to the terminal: results to standard output, all else to standard
//! error.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Where standard error is no terminal, progress is a line so often.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Writes a line. That standard error is closed or full cannot be told to anyone.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes a result. A reader that has seen enough, such as `head`, is no error.
pub(crate) fn print(result: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{result}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("writing to standard output"))
        }
        _ => Ok(()),
    }
}

/// How far a command has come: a bar on a terminal, which goes when this is dropped, and a line
/// each minute elsewhere, as in the log of a job.
#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    bar: ProgressBar,
    last_line: Mutex<Instant>,
}

impl ProgressDisplay {
    /// Nothing is done.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{pos}/{len}] {msg} ({elapsed})")
        {
            bar.set_style(style);
        }
        Self { bar, last_line: Mutex::new(Instant::now()) }
    }

    /// So many of so many steps are done, and what is said of the last.
    pub(crate) fn show(&self, done: u64, steps: u64, message: String) {
        if self.bar.is_hidden() {
            let mut last_line = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
            if last_line.elapsed() >= BETWEEN_LINES {
                *last_line = Instant::now();
                say(format!("{done} of {steps} {message}").trim_end());
            }
        }
        self.bar.set_length(steps);
        self.bar.set_position(done);
        self.bar.set_message(message);
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
