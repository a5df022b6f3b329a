//! The command line.

mod bench;
mod budget;
mod emulation;
mod eval;
mod generate;
mod inspect;
mod judging;
mod matrix;
mod policy;
mod regime;
mod setup;
mod task;
mod tune;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{ArgAction, ColorChoice, CommandFactory, Parser, Subcommand, ValueEnum};
use sparserl_core::language::{LANGUAGE_VERSION, vocabulary_hash};

pub(crate) use bench::{BenchArgs, ReportArgs};
pub(crate) use emulation::EmulationArgs;
pub(crate) use eval::EvalArgs;
pub(crate) use generate::GenerateArgs;
pub(crate) use inspect::InspectArgs;
pub(crate) use judging::{JudgingArgs, OpponentArgs};
pub(crate) use matrix::{MatrixArgs, default_limits};
pub(crate) use policy::{PolicyArg, PolicyArgs};
pub(crate) use regime::RegimeArgs;
pub(crate) use setup::{CudaArg, SetupArgs};
pub(crate) use task::{AskedTaskArgs, TaskArgs};
pub(crate) use tune::{StoreChoice, TuneArgs};
pub(crate) use verify::VerifyArgs;

use crate::console;

/// More than anyone looks at.
const MOST_CANDIDATES: i64 = 1000;

/// What is wrong with arguments that are each right.
type Mistake = (ErrorKind, &'static str);

static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (kernel language {LANGUAGE_VERSION}, vocabulary {:016x})",
        env!("CARGO_PKG_VERSION"),
        vocabulary_hash()
    )
});

/// Writes a CUDA kernel for one sparse matrix.
#[derive(Debug, Parser)]
#[command(name = "sparserl-cli", version = VERSION.as_str(), max_term_width = 100)]
pub(crate) struct Cli {
    /// Threads for the work of this process: reading, packing and emulating [default: one for each
    /// core]
    #[arg(
        long, global = true, value_name = "N", help_heading = "Of every command",
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub(crate) threads: Option<u16>,
    /// When messages are coloured; NO_COLOR has a say in `auto`
    #[arg(
        long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto,
        help_heading = "Of every command"
    )]
    color: ColorChoice,
    /// Say on standard error what is done and when; twice, with what. SPARSERL_LOG asks for more or
    /// less of some modules, as in SPARSERL_LOG=info,sparserl_gpu=debug
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Of every command")]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line; what is wrong with it ends the program, with exit code 2. From now
    /// on messages have colours as it says.
    pub(crate) fn parse_or_exit() -> Self {
        console::set_color(color(std::env::args_os()));
        Self::try_parse().and_then(Self::checked).unwrap_or_else(|error| error.exit())
    }

    /// Refuses what the declarations cannot.
    pub(crate) fn checked(self) -> Result<Self, clap::Error> {
        let checked = match &self.command {
            Command::Gen(args) => args.task.check(),
            Command::Tune(args) => args.task.check(),
            Command::Inspect(args) => args.task.check(),
            Command::Verify(args) => args.asked.check(),
            Command::Eval(args) => args.asked.check(),
            Command::Bench(args) => args.check(),
            Command::Report(_)
            | Command::Setup(_)
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Serve { .. } => Ok(()),
        };
        match checked {
            Ok(()) => Ok(self),
            Err((kind, message)) => Err(Self::command().error(kind, message)),
        }
    }
}

/// What `--color` says, also on a command line that is wrong otherwise.
fn color(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let words: Vec<OsString> = arguments.collect();
    let joined = words.iter().filter_map(|word| word.to_str()?.strip_prefix("--color="));
    let apart = words.windows(2).filter(|pair| pair[0] == "--color");
    let mut said = joined.chain(apart.filter_map(|pair| pair[1].to_str()));
    said.find_map(|when| ColorChoice::from_str(when, false).ok()).unwrap_or_default()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a kernel for a matrix and write it, with all that a caller needs, into a folder
    Gen(GenerateArgs),
    /// Search on a GPU for the fastest kernel of a matrix, as long as it may take, and write it.
    /// Interrupted with Ctrl-C, it writes the best so far; started again on its folder, it goes on
    Tune(TuneArgs),
    /// Show what a policy sees of a matrix, as text, JSON or a spy plot
    Inspect(InspectArgs),
    /// Judge one kernel, on a GPU: is it right, and how fast is it beside cuSPARSE? Or emulated,
    /// without one: is it right, and what does it do wrong? Exits with 1 when it is not right
    Verify(VerifyArgs),
    /// Judge a folder of candidates on a GPU: how many compile and are right, pass@k, and how fast
    /// the best of each matrix is beside cuSPARSE. Or emulated, without one: how many are right.
    /// Exits with 0 though some are wrong, and with 3 when nothing can be said of one
    Eval(EvalArgs),
    /// Measure on a GPU how much faster than cuSPARSE the best of several candidates is, on many
    /// matrices; exits with 3 when one had to be skipped
    Bench(BenchArgs),
    /// Make the report of a benchmark anew from its results
    Report(ReportArgs),
    /// Install NVIDIA's compiler (NVRTC), which compiling and emulating kernels need, into the
    /// user's data folder; needs python3 with pip
    Setup(SetupArgs),
    /// Print what a shell needs to complete this program's command lines; its own documentation
    /// says where that belongs
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of this program and its commands into a folder, such as
    /// ~/.local/share/man/man1
    Man {
        /// The folder
        folder: PathBuf,
    },
    /// Compile or run kernels for the process that started this one
    #[command(hide = true)]
    Serve {
        /// What to serve
        role: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn colours_are_known_before_the_rest_is() {
        let said = |line: &str| color(line.split(' ').map(OsString::from));
        assert_eq!(said("x gen a.mtx --color never"), ColorChoice::Never);
        assert_eq!(said("x --color=always nonsense"), ColorChoice::Always);
        assert_eq!(said("x --color purple"), ColorChoice::Auto);
        assert_eq!(said("x gen"), ColorChoice::Auto);
    }

    #[test]
    fn columns_go_with_spmm() {
        assert!(Cli::try_parse_from("x gen a.mtx --op spmm".split(' ')).is_err());
        let spmv = Cli::try_parse_from("x gen a.mtx --cols 3".split(' ')).unwrap();
        assert!(spmv.checked().is_err());
        for arguments in
            ["x verify k.skl --matrix a.mtx --cols 3", "x verify k.skl --matrix a --op spmm"]
        {
            assert!(Cli::try_parse_from(arguments.split(' ')).and_then(Cli::checked).is_err());
        }
    }
}
