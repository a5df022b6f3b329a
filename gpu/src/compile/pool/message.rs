//! What the pool and its processes say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::compile::nvrtc::{
    CompileError, CompileOptions, CubinParts, Looked, NoCompiler, UnsupportedByAll, Version,
};
use sparserl_core::target::Architecture;

/// The role of these processes.
pub(crate) const ROLE: &str = "compile";

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Find the compilers.
    Discover,
    /// The exact build of the compiler that `Compile` would take.
    Build(CompileTarget),
    Compile {
        source: String,
        kernel: String,
        target: CompileTarget,
        options: CompileOptions,
    },
    /// As `Compile`, but to PTX, for the architecture of `target`.
    CompilePtx {
        source: String,
        kernel: String,
        target: CompileTarget,
        options: CompileOptions,
    },
}

/// What code is made for, which decides on the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompileTarget {
    /// The architecture.
    pub architecture: Architecture,
    /// The major CUDA version of the driver that has to load the machine code, if there is one.
    pub driver_major: Option<u32>,
}

impl From<Architecture> for CompileTarget {
    /// The architecture, whichever driver loads the code.
    fn from(architecture: Architecture) -> Self {
        Self { architecture, driver_major: None }
    }
}

/// Which compiler it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) version: Version,
    /// [`Nvrtc::build`](crate::compile::nvrtc::Nvrtc::build).
    pub(super) id: String,
}

#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    /// Versions, and where they were found.
    Discovered(Vec<(Version, PathBuf)>),
    /// With all that decides that it is this one, if that can be told.
    Build(Build, Option<Vec<Looked>>),
    /// The PTX follows as a blob.
    Ptx,
    /// The machine code follows as a blob.
    Compiled(CubinParts),
    Failed(Failure),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    Compile(CompileError),
    Unsupported(UnsupportedByAll),
    NoCompiler(NoCompiler),
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        Self::Compile(error)
    }
}

impl From<UnsupportedByAll> for Failure {
    fn from(error: UnsupportedByAll) -> Self {
        Self::Unsupported(error)
    }
}

impl From<NoCompiler> for Failure {
    fn from(error: NoCompiler) -> Self {
        Self::NoCompiler(error)
    }
}
