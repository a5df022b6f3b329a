//! What runs the graphs of a model: an engine in pure Rust that is always there, or ONNX Runtime.

mod embedded;
mod onnx_runtime;

use std::path::PathBuf;

use ndarray::{ArrayD, ArrayViewD};

pub use onnx_runtime::OnnxRuntime;

/// What runs a model.
#[derive(Clone, Debug, Default)]
pub enum Engine {
    /// tract, compiled into the program: needs nothing else.
    #[default]
    Embedded,
    /// ONNX Runtime, found at run time.
    OnnxRuntime(OnnxRuntime),
}

/// An input of a graph, by name.
pub(crate) enum Input<'a> {
    Floats(&'static str, ArrayViewD<'a, f32>),
    Integers(&'static str, ArrayViewD<'a, i64>),
}

/// A graph that is ready to run.
pub(crate) trait Graph: Send + Sync {
    /// Runs it: the outputs of these names, in their order.
    fn run(
        &self,
        inputs: &[Input<'_>],
        outputs: &[&'static str],
    ) -> Result<Vec<ArrayD<f32>>, EngineError>;
}

/// An engine that is missing, or fails.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no ONNX Runtime, or one that is not usable.
    #[error("ONNX Runtime `{}` is not usable: {reason}", library.display())]
    Absent {
        /// The library that was looked for.
        library: PathBuf,
        /// Why, in one line.
        reason: String,
    },
    /// A graph is not one that the engine can run.
    #[error("{engine} refuses the policy: {reason}")]
    Refused {
        /// The engine.
        engine: &'static str,
        /// Its reason, in one line.
        reason: String,
    },
    /// It failed to run.
    #[error("{engine} failed: {reason}")]
    Failed {
        /// The engine.
        engine: &'static str,
        /// Its reason, in one line.
        reason: String,
    },
}

impl Engine {
    /// What it is called in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded => embedded::NAME,
            Self::OnnxRuntime(runtime) => runtime.name(),
        }
    }

    /// Makes a graph of an ONNX file ready.
    pub(crate) fn open(&self, file: &[u8]) -> Result<Box<dyn Graph>, EngineError> {
        match self {
            Self::Embedded => Ok(Box::new(embedded::EmbeddedGraph::new(file)?)),
            Self::OnnxRuntime(runtime) => runtime.open(file),
        }
    }
}

/// An error of an engine in one line.
fn one_line(error: &dyn std::fmt::Display) -> String {
    format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join("; ")
}
