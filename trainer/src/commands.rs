//! The commands: what each is told, and how it shows what it does.

mod archive;
mod collect;
mod evaluate;
mod fit_cost;
mod measuring;
mod prepare;
mod replay;
mod train;

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use sparserl_trainer::corpus::RealMatrices;

pub(crate) use archive::Archive;
pub(crate) use collect::Collect;
pub(crate) use evaluate::Evaluate;
pub(crate) use fit_cost::FitCost;
pub(crate) use measuring::{Measuring, SERVE};
pub(crate) use prepare::Prepare;
pub(crate) use replay::Replay;
pub(crate) use train::Train;

/// The real matrices of a folder; none where no folder is named.
fn real_matrices(folder: Option<&Path>) -> anyhow::Result<RealMatrices> {
    Ok(match folder {
        Some(folder) => RealMatrices::open(folder)?,
        None => RealMatrices::none(),
    })
}

/// Writes a result under a temporary name, and then gives it its own.
pub(crate) fn write_json(path: &Path, result: &impl serde::Serialize) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = || -> std::io::Result<()> {
        // For everyone to read, as far as the user's mask allows.
        let permissions = Permissions::from_mode(0o666);
        let folder = folder.unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(folder)?;
        serde_json::to_writer_pretty(&mut file, result)?;
        writeln!(file)?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write `{}`", path.display()))
}
