//! The commands: what each is told, and how it shows what it does.

mod ablate;
mod archive;
mod asked;
mod collect;
mod compile;
mod evaluate;
mod export;
mod fit_cost;
mod iterate;
mod measuring;
mod models;
mod pass_at_k;
mod portfolio;
mod ppo;
mod prepare;
mod replay;
mod stage;
mod table;
mod tables;
mod train;

use std::path::Path;

use anyhow::Context as _;
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_trainer::corpus::RealMatrices;
use sparserl_trainer::whole_file;

pub(crate) use ablate::Ablate;
pub(crate) use archive::Archive;
pub(crate) use asked::results_folder;
pub(crate) use collect::Collect;
pub(crate) use compile::Compile;
pub(crate) use evaluate::Evaluate;
pub(crate) use export::Export;
pub(crate) use fit_cost::FitCost;
pub(crate) use iterate::Iterate;
pub(crate) use measuring::{Measuring, SERVE};
pub(crate) use pass_at_k::PassAtK;
pub(crate) use portfolio::Portfolio;
pub(crate) use ppo::Ppo;
pub(crate) use prepare::Prepare;
pub(crate) use replay::Replay;
pub(crate) use stage::StageArgs;
pub(crate) use table::Table;
pub(crate) use tables::Tables;
pub(crate) use train::Train;

/// The real matrices of a folder; none where no folder is named.
fn real_matrices(folder: Option<&Path>) -> anyhow::Result<RealMatrices> {
    Ok(match folder {
        Some(folder) => RealMatrices::open(folder)?,
        None => RealMatrices::none(),
    })
}

/// The recordings of a folder, of which there are some.
fn read_recordings(folder: &Path) -> anyhow::Result<Recordings> {
    let recordings = Recordings::read(folder)?;
    anyhow::ensure!(
        !recordings.as_slice().is_empty(),
        "no recordings in `{}`: `collect` writes them to the folder `recordings` within its output",
        folder.display()
    );
    Ok(recordings)
}

/// Opens a folder of recordings to add to, without what is left of processes that were killed while
/// they wrote to it.
fn open_recorder(folder: &Path) -> anyhow::Result<Recorder> {
    let recorder = Recorder::append_to(folder)?;
    whole_file::remove_lost(folder, Some("parquet".as_ref()));
    Ok(recorder)
}

/// Writes a result as JSON, whole or not at all.
pub(crate) fn write_json(path: &Path, result: &impl serde::Serialize) -> anyhow::Result<()> {
    whole_file::write_json(path, result)
        .with_context(|| format!("cannot write `{}`", path.display()))
}
