//! How kernels are emulated.

use clap::Args;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::pool::PoolCompileError;
use sparserl_gpu::emulated::ground::{DEFAULT_SAMPLE, GroundError};
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError};

use crate::kernel_file::Kind;

/// More than any schedule is worth.
const MOST_SEEDS: i64 = 1000;

/// Whether and how a kernel is emulated.
#[derive(Args, Debug)]
pub(crate) struct EmulationArgs {
    /// Judge on the CPU instead, by emulating PTX: finds wrong results, accesses out of bounds,
    /// uninitialised memory, races and barriers that not all threads reach; measures nothing
    #[arg(long, conflicts_with_all = ["device", "no_baselines"])]
    pub(crate) emulate: bool,
    /// Orders in which threads take turns, all of which are tried; twice as many where threads of
    /// CUDA read by atomic operations what others store [default: 2]
    #[arg(
        long, value_name = "N", requires = "emulate",
        value_parser = clap::value_parser!(u32).range(1..=MOST_SEEDS)
    )]
    seeds: Option<u32>,
    /// Emulate rows with at most so many entries, each counted once for each column of B; 0 takes
    /// the whole matrix [default: 100000 for a program, which is generated anew for these rows; 0
    /// for CUDA, which may rely on the matrix's sizes]
    #[arg(long, value_name = "ENTRIES", requires = "emulate")]
    sample: Option<usize>,
    /// Instructions that a warp may execute; one that needs more is taken never to end, or where
    /// the matrix implies more if one warp does all of the work, nothing is said of it [default:
    /// what the matrix implies, from 10000000 to 200000000]
    #[arg(
        long, value_name = "N", requires = "emulate",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    most_instructions: Option<u64>,
    /// GPU architecture to emulate, sm_70 to sm_121 [default: sm_90]
    #[arg(long, value_name = "SM", requires = "emulate")]
    arch: Option<Architecture>,
}

impl EmulationArgs {
    /// How thoroughly.
    pub(crate) fn options(&self) -> EmulationOptions {
        let default = EmulationOptions::default();
        let seeds = self.seeds.unwrap_or(default.seeds);
        EmulationOptions { seeds, budget: self.most_instructions, ..default }
    }

    /// What allows a kernel more than it was given up after, if anything does.
    pub(crate) fn hint(error: &GroundError) -> Option<&'static str> {
        match error {
            GroundError::Emulator(EmulatorError::Budget { .. }) => {
                Some("--most-instructions N allows more")
            }
            GroundError::Emulator(
                EmulatorError::OutOfTime { .. }
                | EmulatorError::Pool(PoolCompileError::TimedOut { .. }),
            ) => Some("--deadline SECONDS allows more"),
            _ => None,
        }
    }

    /// Entries that are emulated at most of a kernel of this kind; absent for the whole matrix.
    pub(crate) fn sample(&self, kind: Kind) -> Option<usize> {
        match (self.sample, kind) {
            (Some(0), _) | (None, Kind::Cuda) => None,
            (Some(most), _) => Some(most),
            (None, Kind::Program) => Some(DEFAULT_SAMPLE),
        }
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.arch.unwrap_or(Architecture::Sm90)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn emulation(arguments: &str) -> Result<EmulationArgs, clap::Error> {
        let words = "x verify k.skl --matrix a.mtx".split(' ').chain(arguments.split_whitespace());
        match Cli::try_parse_from(words)?.command {
            Command::Verify(args) => Ok(args.emulation),
            _ => unreachable!("asked for verify"),
        }
    }

    #[test]
    fn what_is_not_said_is_the_default() {
        let default = emulation("--emulate").unwrap();
        assert_eq!(default.options(), EmulationOptions::default());
        assert_eq!(default.sample(Kind::Program), Some(DEFAULT_SAMPLE));
        assert_eq!(default.sample(Kind::Cuda), None);
        assert_eq!(emulation("--emulate --sample 9").unwrap().sample(Kind::Cuda), Some(9));
        let asked = "--emulate --seeds 5 --sample 0 --arch sm_70 --most-instructions 1000";
        let asked = emulation(asked).unwrap();
        assert_eq!((asked.options().seeds, asked.sample(Kind::Program)), (5, None));
        assert_eq!(asked.options().budget, Some(1000));
        assert_eq!(asked.architecture(), Architecture::Sm70);
    }

    #[test]
    fn emulation_and_a_gpu_exclude_each_other() {
        for wrong in [
            "--seeds 2",
            "--sample 9",
            "--most-instructions 9",
            "--arch sm_80",
            "--emulate --device 1",
            "--emulate --no-baselines",
            "--emulate --seeds 0",
        ] {
            assert!(emulation(wrong).is_err(), "{wrong}");
        }
        assert!(!emulation("").unwrap().emulate);
    }
}
