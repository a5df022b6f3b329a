//! `verify`.

use std::path::PathBuf;

use clap::Args;

use super::matrix::DuplicatesArg;
use super::{AskedTaskArgs, EmulationArgs, JudgingArgs, MatrixArgs};

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Kernel to judge: a program (.skl), or CUDA (.cu) whose launch is said by a `// launch:`
    /// comment or by a .json file of the same name beside it
    #[arg(value_name = "KERNEL")]
    pub(crate) kernel: PathBuf,
    /// Matrix to judge it on: .mtx (Matrix Market) or .smtx (DLMC), plain or compressed (.gz)
    #[arg(long, value_name = "FILE")]
    matrix: PathBuf,
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
    #[command(flatten)]
    pub(crate) asked: AskedTaskArgs,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    #[command(flatten)]
    pub(crate) emulation: EmulationArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl VerifyArgs {
    /// What is read.
    pub(crate) fn matrix(&self) -> MatrixArgs {
        MatrixArgs::new(self.matrix.clone(), self.duplicates)
    }
}
