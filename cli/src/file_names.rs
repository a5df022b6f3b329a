//! What the files of a kernel's folder are called.

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
