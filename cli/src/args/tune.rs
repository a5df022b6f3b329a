//! `tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sparserl_core::outcome::Regime;

use super::{MatrixArgs, OpponentArgs, PolicyArgs, TaskArgs};

#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// How long to search in this run, as in 90s, 5m or 2h; measuring the best ones once more and
    /// writing the fastest comes on top
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = budget)]
    pub(crate) budget: Duration,
    /// Folder for the kernel, all that was measured and tune.json [default: MATRIX.spmv.DTYPE.tune
    /// or MATRIX.spmmN.DTYPE.tune in the current folder]; one of an earlier run for the same
    /// matrix, task and GPU is gone on with
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Replace the kernel in the folder although it was edited. One that is edited while the search
    /// runs is kept otherwise, and the new one written beside it
    #[arg(long)]
    pub(crate) force: bool,
    /// Times that decide: with an empty L2 cache, or those of launches in a chain, as a solver has
    /// them
    #[arg(long, value_enum, default_value_t = RegimeArg::Cold)]
    regime: RegimeArg,
    /// Of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of the GPU
    #[arg(long, value_name = "D", default_value_t = 0)]
    pub(crate) device: u32,
    #[command(flatten)]
    pub(crate) opponents: OpponentArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// File with the winners of other matrices: those of the most similar ones are tried first, and
    /// this one's are added [default: in the user's cache folder]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Use and keep no winners of other matrices
    #[arg(long, conflicts_with = "store")]
    no_store: bool,
    /// Also write the packed arrays that the kernel reads, as packed.safetensors
    #[arg(long)]
    pub(crate) packed: bool,
    /// Print tune.json instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

/// Where the winners of other matrices are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// Where the user's caches are.
    Usual,
    /// In this file.
    At(PathBuf),
    /// Nowhere.
    Nowhere,
}

impl TuneArgs {
    /// The folder to write.
    pub(crate) fn output(&self) -> PathBuf {
        let usual = || format!("{}.tune", self.matrix.folder_name(self.task.product())).into();
        self.output.clone().unwrap_or_else(usual)
    }

    pub(crate) fn regime(&self) -> Regime {
        match self.regime {
            RegimeArg::Cold => Regime::Cold,
            RegimeArg::Warm => Regime::Warm,
        }
    }

    pub(crate) fn store(&self) -> StoreChoice {
        match &self.store {
            _ if self.no_store => StoreChoice::Nowhere,
            Some(path) => StoreChoice::At(path.clone()),
            None => StoreChoice::Usual,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RegimeArg {
    /// One launch after the L2 cache was overwritten
    Cold,
    /// Launches in a chain
    Warm,
}

/// Reads a duration such as `90s` or `1h 30m`.
fn budget(text: &str) -> Result<Duration, String> {
    let budget = humantime::parse_duration(text).ok().filter(|budget| !budget.is_zero());
    budget.ok_or_else(|| format!("`{text}` is no time above 0: give one as in 90s, 5m or 2h"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn tune(arguments: &str) -> TuneArgs {
        let words = ["sparserl-cli", "tune"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Tune(args) => args,
            _ => unreachable!("asked for tune"),
        }
    }

    #[test]
    fn a_budget_is_a_time() {
        assert_eq!(tune("a.mtx").budget, Duration::from_secs(300));
        assert_eq!(tune("a.mtx --budget 90s").budget, Duration::from_secs(90));
        assert_eq!(tune("a.mtx --budget 2h").budget, Duration::from_secs(7200));
        for wrong in ["", "5", "0s", "-1m", "soon", "1e9h"] {
            let error = budget(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("5m"), "{error}");
        }
    }

    #[test]
    fn the_folder_is_named_after_matrix_and_task() {
        let output = |arguments| {
            let args = tune(arguments);
            args.output()
        };
        assert_eq!(output("a/beam.mtx"), Path::new("beam.spmv.f32.tune"));
        assert_eq!(output("beam.mtx -o x"), Path::new("x"));
    }

    #[test]
    fn winners_are_kept_where_they_are_wanted() {
        assert_eq!(tune("a.mtx").store(), StoreChoice::Usual);
        assert_eq!(tune("a.mtx --store w.redb").store(), StoreChoice::At("w.redb".into()));
        assert_eq!(tune("a.mtx --no-store").store(), StoreChoice::Nowhere);
    }
}
