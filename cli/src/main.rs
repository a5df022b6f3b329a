//! `sparserl-cli`: from a matrix file to a CUDA kernel made for it.
//!
//! ```text
//! args ─► generate ─► load ─► search ─► measure ─► pack ─► emit ─► compile ─► plan ─► output_folder ─► summary
//!     ├─► inspect ──► load ─► text, JSON, spy_plot
//!     ├─► bench, report: search and judge on many matrices ─► results.json, report.html
//!     ├─► verify ───► load ─► gpu ─► report
//!     └─► eval ─────► candidates ─► load ─► gpu ─► results ─► summary ─► table
//! ```
//!
//! Results go to standard output; progress, notes and errors to standard error. The exit code is 1
//! when something is wrong with what was given, 2 when the command line is.

use std::process::ExitCode;

mod args;
mod bench;
mod compile;
mod console;
mod eval;
mod feature_table;
mod figures;
mod generate;
mod gpu;
mod inspect;
mod interrupt;
mod load;
mod measure;
mod output_folder;
mod plan;
mod progress;
mod software;
mod spread;
mod spy_plot;
mod summary;
mod text;
mod verify;
mod whole_file;

use args::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse_or_exit().command {
        Command::Gen(args) => generate::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Serve { role } => sparserl_gpu::process::serve(&role).map_err(Into::into),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => bench::report(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
