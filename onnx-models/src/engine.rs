//! What runs the graphs of a model: an engine of our own that is always there, or ONNX Runtime.

mod cache;
mod embedded;
mod onnx_runtime;
mod provider;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::{Array, ArrayD, Dimension};

pub(crate) use cache::Cache;
pub use onnx_runtime::OnnxRuntime;
pub use provider::{ExecutionProvider, UnknownProvider};

/// The environment variable that names ONNX Runtime's library.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// What runs a model.
#[derive(Clone, Debug, Default)]
pub enum Engine {
    /// Compiled into the program: needs nothing else.
    #[default]
    Embedded,
    /// ONNX Runtime, found at run time.
    OnnxRuntime(OnnxRuntime),
}

/// An input of a graph, by name.
pub(crate) enum Input {
    Floats(&'static str, ArrayD<f32>),
    Integers(&'static str, ArrayD<i64>),
    Cached(&'static str, Cache),
    Shared(&'static str, Shared),
}

impl Input {
    pub(crate) fn floats(name: &'static str, array: Array<f32, impl Dimension>) -> Self {
        Self::Floats(name, array.into_dyn())
    }

    pub(crate) fn integers(name: &'static str, array: Array<i64, impl Dimension>) -> Self {
        Self::Integers(name, array.into_dyn())
    }
}

/// Numbers in a shape, for inputs of several runs.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Arc<Vec<f32>>,
}

impl Shared {
    pub(crate) fn input(&self, name: &'static str) -> Input {
        Input::Shared(name, self.clone())
    }
}

impl From<ArrayD<f32>> for Shared {
    fn from(array: ArrayD<f32>) -> Self {
        Self { shape: array.shape().to_vec(), numbers: Arc::new(array.into_iter().collect()) }
    }
}

/// A graph that is ready to give some of its outputs.
pub(crate) trait Graph: Send + Sync {
    /// Runs it: these outputs, in the order in which they were asked for.
    fn run(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, EngineError>;
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
    /// An execution provider of ONNX Runtime was asked for, and nobody named its library.
    #[error("`{provider}` needs ONNX Runtime: name its library, or set {LIBRARY_VARIABLE} to it")]
    Unnamed {
        /// The provider.
        provider: ExecutionProvider,
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
    /// What runs models: ONNX Runtime where its library is named, by the caller or else by
    /// [`LIBRARY_VARIABLE`], and where that is not so the engine that is compiled in.
    ///
    /// # Errors
    /// When the library is not usable, or when the provider needs one and none is named.
    pub fn choose(
        library: Option<&Path>,
        provider: ExecutionProvider,
    ) -> Result<Self, EngineError> {
        Self::choose_from(library, env::var_os(LIBRARY_VARIABLE), provider)
    }

    fn choose_from(
        library: Option<&Path>,
        variable: Option<OsString>,
        provider: ExecutionProvider,
    ) -> Result<Self, EngineError> {
        let variable = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
        match (library.or(variable.as_deref()), provider) {
            (Some(library), _) => Ok(Self::OnnxRuntime(OnnxRuntime::load(library)?.on(provider))),
            (None, ExecutionProvider::Cpu) => Ok(Self::Embedded),
            (None, ExecutionProvider::Cuda) => Err(EngineError::Unnamed { provider }),
        }
    }

    /// What it is called in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Embedded => embedded::NAME,
            Self::OnnxRuntime(runtime) => runtime.name(),
        }
    }

    /// Makes the graph of an ONNX file ready to give some of its outputs; what only others need is
    /// not computed.
    pub(crate) fn open(
        &self,
        file: &[u8],
        outputs: &'static [&'static str],
    ) -> Result<Arc<dyn Graph>, EngineError> {
        let graph = match self {
            Self::Embedded => Arc::new(embedded::EmbeddedGraph::new(file, outputs)?),
            Self::OnnxRuntime(runtime) => runtime.open(file, outputs)?,
        };
        Ok(Arc::new(FiniteGraph { graph, engine: self.name(), outputs }))
    }
}

/// A graph whose results are numbers: weights of any size are finite, but what they make may not
/// be, and nothing can be chosen by that.
struct FiniteGraph {
    graph: Arc<dyn Graph>,
    engine: &'static str,
    outputs: &'static [&'static str],
}

impl Graph for FiniteGraph {
    fn run(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, EngineError> {
        let results = self.graph.run(inputs)?;
        let mut named = self.outputs.iter().zip(&results);
        match named.find(|(_, result)| !result.iter().all(|number| number.is_finite())) {
            None => Ok(results),
            Some((name, _)) => {
                let reason = format!("`{name}` of the policy is not finite: train it anew");
                Err(EngineError::Failed { engine: self.engine, reason })
            }
        }
    }
}

/// An error of an engine in one line.
fn one_line(error: &dyn std::fmt::Display) -> String {
    format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which library is loaded, by the error that says that it is not there; nothing for the engine
    /// that is compiled in.
    fn chosen(library: Option<&str>, variable: Option<&str>) -> Option<PathBuf> {
        let variable = variable.map(OsString::from);
        match Engine::choose_from(library.map(Path::new), variable, ExecutionProvider::Cpu) {
            Ok(engine) => {
                assert!(matches!(engine, Engine::Embedded));
                None
            }
            Err(EngineError::Absent { library, .. }) => Some(library),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_library_is_named_by_the_caller_or_else_by_the_variable() {
        assert_eq!(chosen(None, None), None);
        assert_eq!(chosen(None, Some("")), None);
        assert_eq!(chosen(None, Some("absent.so")), Some("absent.so".into()));
        assert_eq!(chosen(Some("own.so"), Some("absent.so")), Some("own.so".into()));
    }

    #[test]
    fn a_provider_of_onnx_runtime_is_refused_without_its_library() {
        let engine = Engine::choose_from(None, None, ExecutionProvider::Cuda);
        let error = engine.map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("`cuda` needs ONNX Runtime: "), "{error}");
        assert!(error.contains(LIBRARY_VARIABLE) && !error.contains("--"), "{error}");
    }
}
