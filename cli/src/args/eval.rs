//! `eval`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};

use super::matrix::{ReadingArgs, is_standard_input};
use super::{AskedTaskArgs, EmulationArgs, JudgingArgs, MatrixArgs};

#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    /// Folder of candidates: programs (.skl) and CUDA sources (.cu), found in its subfolders too.
    /// Those for M.mtx lie in the subfolder M; with one matrix and no such subfolder, all are for
    /// it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) candidates: PathBuf,
    /// Matrices to judge them on, as `gen` takes them, but for standard input
    #[arg(
        long = "matrix", value_name = "FILE", required = true, num_args = 1..,
        value_parser = OsStringValueParser::new().try_map(read_again)
    )]
    matrices: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) asked: AskedTaskArgs,
    /// Sizes k of pass@k, separated by commas
    #[arg(
        short, value_name = "K", value_delimiter = ',', default_value = "1,2,5,10",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    k: Vec<u32>,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    #[command(flatten)]
    pub(crate) emulation: EmulationArgs,
    /// File to write with all results, as JSON; it is written after every matrix
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Folder of recordings (Parquet) to add every program to, with what became of it, all its
    /// samples and those of its opponents, for training, which then needs no GPU; CUDA sources
    /// are not recorded
    #[arg(long, value_name = "FOLDER", conflicts_with = "emulate")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with the results in the file: a matrix whose candidates are still the same is not
    /// measured again
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Print the results as one JSON document, the one that --output writes
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be read more than once: each matrix is, so that not all are held at the same time.
fn read_again(path: OsString) -> Result<PathBuf, &'static str> {
    match is_standard_input(path.as_ref()) {
        true => Err("matrices are read more than once: name a file"),
        false => Ok(path.into()),
    }
}

impl EvalArgs {
    /// What is read.
    pub(crate) fn matrices(&self) -> Vec<MatrixArgs> {
        let args = |path: &PathBuf| MatrixArgs::new(path.clone(), self.reading.clone());
        self.matrices.iter().map(args).collect()
    }

    /// The sizes k, ascending, each once.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let mut sizes = self.k.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}
