//! What the suites that cross crates share.
//!
//! - [`emulated`]: CUDA sources with planted bugs or none, run by the emulator.
//! - [`matrices`]: matrices that a line of words describes, so that a failure can be repeated.
//! - [`golden`]: the programs of `tests/golden`, each with its matrix.
//! - [`module_order`]: whether the modules of a crate depend downwards only.
//! - [`programs`]: programs drawn at random.
//! - [`report`]: what a run on a CUDA device came to.
//! - [`trials`]: suites whose tests are found when they run.

pub mod emulated;
pub mod golden;
pub mod matrices;
pub mod module_order;
pub mod programs;
pub mod report;
pub mod trials;

use std::path::{Path, PathBuf};

/// Names the root of the repository for binaries that run on another machine than they were built
/// on.
pub const ROOT_VARIABLE: &str = "SPARSERL_ROOT";

/// The root of the repository: what [`ROOT_VARIABLE`] says, else where this was built, else, when
/// that is on another machine, the working directory.
#[must_use]
pub fn root() -> PathBuf {
    if let Some(root) = std::env::var_os(ROOT_VARIABLE).filter(|root| !root.is_empty()) {
        return root.into();
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if built.is_dir() { built } else { PathBuf::from(".") }
}
