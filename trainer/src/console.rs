//! The one place that writes to the terminal: results to standard output, all else to standard
//! error.

use indicatif::{ProgressBar, ProgressStyle};

/// Writes a line.
#[allow(clippy::print_stderr)]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Writes a result.
#[allow(clippy::print_stdout)]
pub(crate) fn print(result: &str) {
    println!("{result}");
}

/// A bar of so many steps, with what is said of the last one.
pub(crate) fn progress_bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{pos}/{len}] {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar
}
