//! What all commands share that measure on a GPU: its options, and the work that processes divide
//! by shards.

use std::num::{NonZeroUsize, ParseIntError};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::value_parser;
use serde::Serialize;
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;
use sparserl_gpu::evaluator::{GpuEvaluator, compile_pool};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::store::recording::Context as RecordingContext;
use sparserl_gpu::worker::Protocol;
use sparserl_trainer::collect::{Collected, Collector, Experiment};
use sparserl_trainer::corpus::{RealMatrices, Recipes};
use sparserl_trainer::shards::Shards;

use super::{open_recorder, real_matrices, results_folder};
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

/// The hidden command that this program starts its own processes with.
pub(crate) const SERVE: &str = "serve";
/// Samples of each regime: medians are enough for training.
const SAMPLES: u32 = 3;

/// How an experiment is run, whatever it is.
#[derive(Clone, clap::Args)]
pub(crate) struct Measuring {
    /// Folder of the recordings and of what is done.
    #[arg(short, long)]
    pub(crate) output: PathBuf,
    /// Folder of real matrices with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
    /// Number of the GPU.
    #[arg(long, default_value_t = 0)]
    pub(crate) device: u32,
    /// Begin nothing new after so many minutes.
    #[arg(long = "minutes", value_name = "MINUTES")]
    deadline: Option<Deadline>,
    /// Minutes after which a shard of a process that was lost is given to another; longer than any
    /// matrix takes.
    #[arg(long, value_name = "MINUTES", default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    pub(crate) lease: u64,
    /// Matrices for which kernels are made at the same time, while others are measured; with
    /// sixteen cores twelve keep a GPU at work.
    #[arg(long, value_name = "MATRICES", default_value = "12")]
    ahead: NonZeroUsize,
}

/// Opens a GPU to measure what is trained on.
pub(crate) fn open_gpu(number: u32) -> anyhow::Result<(GpuEvaluator, RecordingContext)> {
    let command = ServerCommand::this_program([SERVE])?;
    let compilers = Arc::new(compile_pool(command.clone())?);
    let protocol =
        Protocol { warm_samples: SAMPLES, cold_samples: SAMPLES, ..Protocol::screening() };
    let evaluator = GpuEvaluator::open(command, compilers, number, protocol)?;
    let context = evaluator.context(ValueSource::Random).context("nothing was compiled")?;
    Ok((evaluator, context))
}

/// So many minutes.
pub(super) fn duration(minutes: u64) -> Duration {
    Duration::from_secs(minutes.saturating_mul(60))
}

/// When minutes that a command line names are over, counted from when it is read: all parts of a
/// command share them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(
    /// Absent where no clock reaches it.
    Option<Instant>,
);

impl FromStr for Deadline {
    type Err = ParseIntError;

    fn from_str(minutes: &str) -> Result<Self, Self::Err> {
        Ok(Self(Instant::now().checked_add(duration(minutes.parse()?))))
    }
}

impl Deadline {
    /// The moment; none where no clock reaches it.
    pub(super) fn instant(self) -> Option<Instant> {
        self.0
    }
}

impl Measuring {
    /// The real matrices; none where no folder is named.
    pub(crate) fn real(&self) -> anyhow::Result<RealMatrices> {
        real_matrices(self.real.as_deref())
    }

    /// The folder of the real matrices.
    pub(crate) fn real_folder(&self) -> Option<&Path> {
        self.real.as_deref()
    }

    /// When nothing new is begun any more.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline.and_then(Deadline::instant)
    }

    /// The same in another folder, until the same moment.
    pub(crate) fn at(&self, output: &Path) -> Self {
        Self { output: output.to_owned(), ..self.clone() }
    }

    /// Runs an experiment on what others have not done yet, in a folder of what is `asked` for.
    /// Whether all is done.
    pub(crate) fn run<X: Experiment>(
        &self,
        recipes: &Recipes<'_>,
        tasks: &[Task],
        experiment: X,
        asked: &impl Serialize,
    ) -> anyhow::Result<bool> {
        let (evaluator, context) = open_gpu(self.device)?;
        let target = evaluator.facts().target;
        // Nothing is left behind where there is no GPU.
        results_folder(&self.output, asked)?;
        let lease = duration(self.lease);
        let mut shards = Shards::open(&self.output.join("shards"), recipes.count(), lease)?;
        let recorder = open_recorder(&self.output.join("recordings"))?;

        let interruption = Interruption::watch()?;
        let (display, before) = (ProgressDisplay::new(), shards.done()?);
        display.show(before, recipes.count(), String::new());
        let deadline = self.deadline();
        let start = Instant::now();
        let compiler = evaluator.compiler();
        let (measuring, recording) = ((evaluator, compiler), (recorder, context));
        let mut collector =
            Collector::new(experiment, (recipes, tasks), measuring, target, recording);
        let go_on = || {
            !interruption.was_asked_for()
                && deadline.is_none_or(|deadline| Instant::now() < deadline)
        };
        let collected = collector.run(&mut shards, self.ahead, go_on, |progress| {
            let Collected { matrices, programs, .. } = progress.collected;
            let message = format!("{programs} programs, last {}", progress.recipe.family());
            display.show(before + matrices, recipes.count(), message);
        });
        drop(display);
        let collected = collected?;
        let seconds = start.elapsed().as_secs_f64();
        say(&format!(
            "{} matrices, {} programs ({} right) in {seconds:.0} s, for {:.0} of which the GPU was \
             asked; {} of {} matrices are done",
            collected.matrices,
            collected.programs,
            collected.right,
            collected.judging.as_secs_f64(),
            shards.done()?,
            recipes.count()
        ));
        Ok(shards.done()? == recipes.count())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        measuring: Measuring,
    }

    fn parse(minutes: &str) -> Measuring {
        Command::parse_from(["trainer", "--output", "a", "--minutes", minutes]).measuring
    }

    #[test]
    fn the_parts_of_a_command_share_its_minutes() {
        let measuring = parse("30");
        let first = measuring.at(Path::new("first")).deadline().unwrap();
        thread::sleep(Duration::from_millis(2));
        assert_eq!(measuring.at(Path::new("second")).deadline(), Some(first));
        assert!(first > Instant::now() + Duration::from_secs(29 * 60));
    }

    #[test]
    fn no_minutes_are_over_at_once_and_too_many_never() {
        assert!(parse("0").deadline().unwrap() <= Instant::now());
        assert_eq!(parse(&u64::MAX.to_string()).deadline(), None);
    }
}
