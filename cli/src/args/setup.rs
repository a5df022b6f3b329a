//! `setup`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct SetupArgs {
    /// Major CUDA version of the compiler: that of 12 compiles for all GPUs from sm_70 on, that of
    /// 13 for those from sm_75 on
    #[arg(long, value_enum, default_value_t = CudaArg::Cuda12)]
    pub(crate) cuda: CudaArg,
    /// Install NVIDIA's wheel from this file instead of fetching it
    #[arg(long, value_name = "FILE.whl")]
    pub(crate) wheel: Option<PathBuf>,
    /// Install it anew where it is installed already
    #[arg(long)]
    pub(crate) force: bool,
    /// Print a JSON document with the version and the folder, not a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CudaArg {
    #[value(name = "12")]
    Cuda12,
    #[value(name = "13")]
    Cuda13,
}
