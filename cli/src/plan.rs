//! Names of the files that generation writes, and what plan.json says of them.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The files of a kernel's folder.
pub(crate) const SOURCE: &str = "kernel.cu";
pub(crate) const PROGRAM: &str = "program.skl";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const CUBIN: &str = "kernel.cubin";
pub(crate) const PACKED: &str = "packed.safetensors";
/// Those by which it runs, and what the Makefile makes.
pub(crate) const HOST: &str = "run.cpp";
pub(crate) const MAKEFILE: &str = "Makefile";
pub(crate) const PYTHON: &str = "run.py";
pub(crate) const EXPECTED: &str = "expected.txt";
pub(crate) const HOST_PROGRAM: &str = "host";
/// Lists the kernels where there are several.
pub(crate) const CANDIDATES: &str = "candidates.json";

/// Whether the source in a kernel's folder is another than its plan knows. Plans of earlier versions
/// do not tell.
pub(crate) fn is_edited(folder: &Path) -> bool {
    let hash = || {
        let plan = fs::read(folder.join(PLAN)).ok()?;
        let plan: Value = serde_json::from_slice(&plan).ok()?;
        let written = plan.get("kernel")?.get("blake3")?.as_str()?;
        let source = fs::read(folder.join(SOURCE)).ok()?;
        Some(blake3::hash(&source).to_hex().as_str() != written)
    };
    hash().unwrap_or(false)
}
