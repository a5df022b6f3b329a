use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use sparserl_core::results::ValueSource;
use sparserl_gpu::evaluator::{GpuEvaluator, compile_pool};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::store::recording::Recorder;
use sparserl_gpu::worker::Protocol;
use sparserl_trainer::collect::Collector;
use sparserl_trainer::configuration::Collection;
use sparserl_trainer::corpus::{RealMatrices, Recipes};
use sparserl_trainer::proposals::Stratified;
use sparserl_trainer::shards::Shards;

use crate::console::{progress_bar, say};
use crate::interruption::Interruption;

/// The hidden command that this program starts its own processes with.
pub(crate) const SERVE: &str = "serve";
/// Samples of each regime: medians are enough for training.
const SAMPLES: u32 = 3;

#[derive(clap::Args)]
pub(crate) struct Collect {
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
    /// Matrices for which kernels are made at the same time, while others are measured; with sixteen
    /// cores twelve keep a GPU at work.
    #[arg(long, value_name = "MATRICES", default_value = "12")]
    ahead: NonZeroUsize,
}

impl Collect {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let collection = Collection::read(&self.configuration)?;
        let real = match &self.real {
            Some(folder) => RealMatrices::open(folder)?,
            None => RealMatrices::none(),
        };
        let command = ServerCommand::this_program([SERVE])?;
        let compilers = Arc::new(compile_pool(command.clone())?);
        let protocol =
            Protocol { warm_samples: SAMPLES, cold_samples: SAMPLES, ..Protocol::screening() };
        let evaluator = GpuEvaluator::open(command, compilers, self.device, protocol)?;
        let context = evaluator.context(ValueSource::Random).context("nothing was compiled")?;
        let target = evaluator.facts().target;
        // Nothing is left behind where there is no GPU.
        let lease = Duration::from_secs(60 * self.lease);
        let mut shards = Shards::open(&self.output.join("shards"), collection.matrices, lease)?;
        let recorder = Recorder::append_to(self.output.join("recordings"))?;

        let interruption = Interruption::watch()?;
        let bar = progress_bar(collection.matrices);
        bar.set_position(shards.done()?);
        let deadline =
            self.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
        let start = Instant::now();
        let compiler = evaluator.compiler();
        let measuring = (evaluator, compiler);
        let recipes = Recipes::of_corpus(collection.corpus, collection.matrices, &real);
        let what = (&recipes, collection.tasks.as_slice());
        let experiment = Stratified::new(&collection);
        let mut collector =
            Collector::new(experiment, what, measuring, target, (recorder, context));
        let go_on = || {
            !interruption.was_asked_for()
                && deadline.is_none_or(|deadline| Instant::now() < deadline)
        };
        let collected = collector.run(&mut shards, self.ahead, go_on, |progress| {
            bar.inc(1);
            let programs = progress.collected.programs;
            bar.set_message(format!("{programs} programs, last {}", progress.recipe.family()));
        });
        bar.finish_and_clear();
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
            collection.matrices
        ));
        Ok(())
    }
}
