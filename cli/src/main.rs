//! `sparserl-cli`: from a matrix file to a CUDA kernel made for it, and how good such kernels are.
//!
//! ```text
//! gen      load ─► search ─► pack, emit, compile ─► measure ─► check ─► kernel_folder ─► summary
//! tune     load, winners ─► search ⇄ measure, recordings ─► finals ─► kernel_folder ─► summary
//! inspect  load ─► feature_table, JSON, spy_plot
//! verify   kernel_file, load ─► judge ─► report, or emulate ─► emulation_report
//! eval     candidates, load ─► judge or emulate ─► results ─► summary ─► table
//! bench    matrix_source ─► search ─► measure ─► results ─► totals ─► terminal, report
//! report   results ─► report
//! setup    wheel ─► the user's data folder
//! completions, man   args ─► documentation
//! ```
//!
//! `args` says what each command takes; `generate`, `tune`, `inspect`, `verify`, `eval` and `bench`
//! do it. `gpu` opens what kernels are measured on, `recordings` keeps what was measured, and
//! `winners` the best for later searches; which is the fastest, and by how much, is found in
//! [`sparserl_core::results`]. `whole_file`, `output_folder` and `interrupt` see to it that nothing
//! is half written.
//!
//! Results go to standard output; progress, notes, warnings and errors to standard error. The exit
//! code is 0 when what was asked for is done, 1 when the kernel is wrong or none of those tried is
//! right, 2 when the command line is wrong, and 3 when nobody can say: `ending` decides it. Wrong
//! candidates of `eval` and `bench` are results.

use std::num::NonZero;
use std::process::ExitCode;
#[cfg(unix)]
use std::sync::Arc;

use anyhow::Context;
use sparserl_core::message;

mod args;
mod bench;
mod console;
mod documentation;
mod ending;
mod eval;
mod explanation;
mod feature_table;
mod file_names;
mod free_memory;
mod generate;
mod gpu;
mod host;
mod inspect;
mod instrument;
mod interrupt;
mod kernel_file;
mod kernel_folder;
mod load;
mod logging;
mod matrix_source;
mod output_folder;
mod policy;
mod program_words;
mod progress;
mod recordings;
mod setup;
mod software;
mod spy_plot;
mod summary;
mod text;
mod tune;
mod verify;
mod whole_file;
mod winners;

use args::{Cli, Command};
use ending::Ending;
use free_memory::free_addresses;

fn main() -> ExitCode {
    let Cli { threads, verbose, command, .. } = Cli::parse_or_exit();
    sparserl_gpu::panics::hide_caught();
    // What a serving process says on standard error belongs to the message that it died with.
    let begun = match command {
        Command::Serve { .. } => Ok(()),
        _ => {
            end_in_order_without_memory();
            be_told_of_files_that_grow_too_long();
            logging::begin(verbose)
        }
    };
    let pool = || match command {
        // Nothing in them runs on several threads.
        Command::Serve { .. } | Command::Completions { .. } | Command::Man { .. } => Ok(()),
        _ => limit(threads),
    };
    match begun.and_then(|()| pool()).and_then(|()| run(command)) {
        Ok(ending) => ending.into(),
        Err(error) => {
            console::say(&format!("error: {}", message::with_causes(error.as_ref())));
            ending::code(&error)
        }
    }
}

/// Bytes of addresses for a thread: its stack, and glibc's heap for what it allocates.
const ADDRESSES_OF_A_THREAD: u64 = 72 << 20;

/// Has all that runs on several threads run on so many, on as many as the limit of addresses has
/// room for, or on the one that there is where the system refuses more.
fn limit(threads: Option<u16>) -> anyhow::Result<()> {
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = threads.map_or_else(cores, usize::from);
    // Threads that find no memory as they begin would end the process.
    let most = free_addresses()
        .and_then(|free| usize::try_from(free / ADDRESSES_OF_A_THREAD).ok())
        .map(|most| most.max(1))
        .filter(|&most| most < wanted);
    if let Some(most) = most {
        let workers = match most {
            1 => "one thread does".to_owned(),
            _ => format!("{most} threads do"),
        };
        let limit = "the limit of addresses (`ulimit -v`) leaves room for no more";
        console::say(&format!("note: {workers} all the work: {limit}"));
    }
    let mut begun = Vec::new();
    // 0 is as many as rayon finds right.
    let number = most.unwrap_or(threads.unwrap_or(0).into());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(number);
    let pool = pool.spawn_handler(|thread| {
        begun.push(std::thread::Builder::new().spawn(|| thread.run())?);
        Ok(())
    });
    let Err(error) = pool.build_global() else { return Ok(()) };
    // What they take of the limit is needed.
    for thread in begun {
        let _ = thread.join();
    }
    console::say(&format!("note: one thread does all the work: {error}"));
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    // It goes on as long as this thread.
    alone.map(std::mem::forget).context("--threads")
}

/// A process that gets no memory says so in a line, and then is not to end by a signal.
fn end_in_order_without_memory() {
    #[cfg(unix)]
    {
        let always = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let abort = signal_hook::consts::SIGABRT;
        // Without it the signal is what ends the process.
        let _ = signal_hook::flag::register_conditional_shutdown(
            abort,
            ending::UNJUDGED.into(),
            always,
        );
    }
}

/// A file that may not grow any longer (`ulimit -f`) is an error like a full disk, no signal that
/// ends the process with half of its output written.
fn be_told_of_files_that_grow_too_long() {
    #[cfg(unix)]
    {
        // Without it the signal is what ends the process.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    }
}

fn run(command: Command) -> anyhow::Result<Ending> {
    match command {
        Command::Gen(args) => return generate::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Eval(args) => return eval::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => bench::report(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Completions { shell } => documentation::complete(shell),
        Command::Man { folder } => documentation::write_pages(&folder),
        Command::Serve { role } => sparserl_gpu::serve::serve(&role).map_err(Into::into),
    }?;
    Ok(Ending::Complete)
}
