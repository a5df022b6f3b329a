//! `gen`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use sparserl_core::pipeline::Budget;
use sparserl_core::target::Target;

use super::{MOST_CANDIDATES, MatrixArgs, OpponentArgs, PolicyArgs, RegimeArgs, TaskArgs};

const DEFAULT_BUDGET: Budget = Budget::Candidates(8);

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// GPU to generate for: an architecture, sm_70 to sm_121, or a GPU such as v100, a100, h100,
    /// b200 or rtx4090 [default: the GPU measured on, else h200]
    #[arg(long, value_name = "GPU")]
    pub(crate) arch: Option<Target>,
    /// Folder to write [default: MATRIX.spmv.DTYPE or MATRIX.spmmN.DTYPE in the current folder]; a
    /// folder that holds nothing but what an earlier run wrote is replaced, unless its kernel was
    /// edited since
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Replace a folder whose kernel was edited, too
    #[arg(long)]
    pub(crate) force: bool,
    /// Candidates to measure on the GPU, as in 8, or seconds to spend on it, as in 10s; the fastest
    /// right ones are written. A number below that of --candidates is raised to it. Without a GPU
    /// that runs --arch, nothing is measured [default: 8]
    #[arg(long, value_name = "BUDGET", value_parser = super::budget::parse)]
    budget: Option<Budget>,
    /// Number of the GPU to measure on [default: 0]
    #[arg(long, value_name = "N")]
    device: Option<u32>,
    #[command(flatten)]
    pub(crate) opponents: OpponentArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) regime: RegimeArgs,
    /// Say what the program does in words, and why it was chosen: what is predicted of it, and of
    /// the runners-up
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) explain: bool,
    /// Measure nothing: take the candidate that the policy finds best, and check it by emulation
    #[arg(long, conflicts_with = "budget")]
    pub(crate) no_measure: bool,
    /// Check the kernels by emulation on the CPU before they are written: on the whole matrix where
    /// it is small, else on a sample of its rows; one that is wrong is not written [default where
    /// nothing is measured]
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not check them by emulation
    #[arg(long, conflicts_with = "check")]
    pub(crate) no_check: bool,
    /// Kernels to write, best first; more than one go into subfolders 1, 2, …
    #[arg(
        long, value_name = "K", default_value = "1",
        value_parser = clap::value_parser!(i64).range(1..=MOST_CANDIDATES)
    )]
    candidates: i64,
    /// Leave out the packed arrays that the kernel reads (packed.safetensors) and the host programs
    /// that run it with them
    #[arg(long)]
    no_packed: bool,
    /// Write them, which is what happens anyway
    #[arg(long, hide = true, conflicts_with = "no_packed")]
    packed: bool,
    /// Write no machine code, and measure nothing
    #[arg(long)]
    pub(crate) no_compile: bool,
    /// Print the summary as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

impl GenerateArgs {
    /// What may be spent on measuring: a number of candidates is at least that of kernels to write.
    pub(crate) fn budget(&self) -> Budget {
        match self.budget.unwrap_or(DEFAULT_BUDGET) {
            Budget::Candidates(count) => Budget::Candidates(count.max(self.candidates().get())),
            time @ Budget::Time(_) => time,
        }
    }

    /// Whether packed arrays and host programs are written.
    pub(crate) fn packed(&self) -> bool {
        !self.no_packed
    }

    pub(crate) fn device(&self) -> u32 {
        self.device.unwrap_or(0)
    }

    /// Whether something was said about measuring, so that it is missed where there is none.
    pub(crate) fn expects_measuring(&self) -> bool {
        self.budget.is_some() || self.device.is_some()
    }

    pub(crate) fn candidates(&self) -> NonZeroUsize {
        usize::try_from(self.candidates)
            .ok()
            .and_then(NonZeroUsize::new)
            .unwrap_or(NonZeroUsize::MIN)
    }

    /// The folder to write.
    pub(crate) fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| self.matrix.folder_name(self.task.product()).into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn generate(arguments: &str) -> GenerateArgs {
        let words = ["sparserl-cli", "gen"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Gen(args) => args,
            _ => unreachable!("asked for gen"),
        }
    }

    #[test]
    fn as_many_are_measured_as_are_written() {
        let budget = |arguments| generate(arguments).budget();
        assert_eq!(budget("a.mtx"), DEFAULT_BUDGET);
        assert_eq!(budget("a.mtx --candidates 9"), Budget::Candidates(9));
        assert_eq!(budget("a.mtx --candidates 9 --budget 20"), Budget::Candidates(20));
        assert_eq!(
            budget("a.mtx --candidates 9 --budget 2s"),
            Budget::Time(std::time::Duration::from_secs(2))
        );
    }

    #[test]
    fn the_folder_is_named_after_matrix_and_task() {
        let output = |arguments| {
            let args = generate(arguments);
            args.output()
        };
        assert_eq!(output("a/bcsstk17.mtx"), Path::new("bcsstk17.spmv.f32"));
        assert_eq!(
            output("dlmc_0.7_conv.v2.SMTX.gz --op spmm --cols 32 --dtype f64"),
            Path::new("dlmc_0.7_conv.v2.spmm32.f64")
        );
        assert_eq!(output("x.mtx -o out/here"), Path::new("out/here"));
    }
}
