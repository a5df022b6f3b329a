//! Names of the files that generation writes.

/// The files of a kernel's folder.
pub(crate) const SOURCE: &str = "kernel.cu";
pub(crate) const PROGRAM: &str = "program.skl";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const CUBIN: &str = "kernel.cubin";
pub(crate) const PACKED: &str = "packed.safetensors";
/// Lists the kernels where there are several.
pub(crate) const CANDIDATES: &str = "candidates.json";
