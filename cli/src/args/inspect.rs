//! `inspect`.

use std::path::PathBuf;

use clap::Args;

use super::{MatrixArgs, TaskArgs};

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Draw a spy plot into this .svg or .png; without it, no file is written
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Count the legal programs of a large matrix too, which can take minutes
    #[arg(long)]
    pub(crate) count: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Put the whole embedding into the JSON document: every sampled nonzero, grid and feature
    #[arg(long, requires = "json")]
    pub(crate) embedding: bool,
}
