//! `sparserl-trainer`: the stages of training as commands, each of which can be interrupted and
//! goes on where it stopped.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use sparserl_core::results::ValueSource;
use sparserl_gpu::evaluator::{GpuEvaluator, compile_pool};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::store::recording::Recorder;
use sparserl_gpu::worker::Protocol;
use sparserl_trainer::collect::Collector;
use sparserl_trainer::configuration::Collection;
use sparserl_trainer::corpus::RealMatrices;
use sparserl_trainer::shards::Shards;

/// The hidden command that this program starts its own processes with.
const SERVE: &str = "serve";
/// Samples of each regime: medians are enough for training.
const SAMPLES: u32 = 3;

/// Trains policies that write CUDA kernels for sparse matrices.
#[derive(Parser)]
#[command(name = "sparserl-trainer", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure programs on the matrices of a corpus, and record what comes of them.
    ///
    /// Any number of processes may collect into one folder at the same time, on any machines that
    /// see it, as a job array does. Started again, it goes on where it stopped.
    Collect(Collect),
    /// A process of another command.
    #[command(hide = true, name = SERVE)]
    Serve {
        /// What to do.
        role: Vec<String>,
    },
}

#[derive(clap::Args)]
struct Collect {
    /// What to collect (TOML): matrices, tasks, programs.
    configuration: PathBuf,
    /// Folder of the recordings and of what is done.
    #[arg(short, long)]
    output: PathBuf,
    /// Folder of real matrices with their `MANIFEST.tsv`; without, only generated ones are used.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Number of the GPU.
    #[arg(long, default_value_t = 0)]
    device: u32,
    /// Begin nothing new after so many minutes.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Minutes after which a shard of a process that was lost is given to another; longer than any
    /// matrix takes.
    #[arg(long, value_name = "MINUTES", default_value_t = 20)]
    lease: u64,
    /// Matrices for which programs are made at the same time, while others are measured.
    #[arg(long, value_name = "MATRICES", default_value = "6")]
    ahead: NonZeroUsize,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Collect(args) => collect(&args),
        Command::Serve { role } => sparserl_gpu::serve::serve(&role).map_err(Into::into),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn collect(args: &Collect) -> anyhow::Result<()> {
    let collection = Collection::read(&args.configuration)?;
    let real = match &args.real {
        Some(folder) => RealMatrices::open(folder)?,
        None => RealMatrices::none(),
    };
    let command = ServerCommand::this_program([SERVE])?;
    let compilers = Arc::new(compile_pool(command.clone())?);
    let protocol =
        Protocol { warm_samples: SAMPLES, cold_samples: SAMPLES, ..Protocol::screening() };
    let evaluator = GpuEvaluator::open(command, compilers, args.device, protocol)?;
    let context = evaluator.context(ValueSource::Random).context("nothing was compiled")?;
    let target = evaluator.facts().target;
    // Nothing is left behind where there is no GPU.
    let lease = Duration::from_secs(60 * args.lease);
    let mut shards = Shards::open(&args.output.join("shards"), collection.matrices, lease)?;
    let recorder = Recorder::append_to(args.output.join("recordings"))?;

    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the program at once.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let bar = ProgressBar::new(collection.matrices);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{pos}/{len}] {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.set_position(shards.done()?);
    let deadline = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let start = Instant::now();
    let compiler = evaluator.compiler();
    let measuring = (evaluator, compiler);
    let mut collector = Collector::new(&collection, &real, measuring, target, (recorder, context));
    let go_on = || {
        !interrupted.load(Ordering::Relaxed)
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
    };
    let collected = collector.run(&mut shards, args.ahead, go_on, |progress| {
        bar.inc(1);
        let programs = progress.collected.programs;
        bar.set_message(format!("{programs} programs, last {}", progress.recipe.family()));
    });
    bar.finish_and_clear();
    let collected = collected?;
    let seconds = start.elapsed().as_secs_f64();
    say(&format!(
        "{} matrices, {} programs ({} right) in {seconds:.0} s, of which the GPU was asked for {:.0}; \
         {} of {} matrices are done",
        collected.matrices,
        collected.programs,
        collected.right,
        collected.judging.as_secs_f64(),
        shards.done()?,
        collection.matrices
    ));
    Ok(())
}

/// The one place that writes to the terminal.
#[allow(clippy::print_stderr)]
fn say(line: &str) {
    eprintln!("{line}");
}
