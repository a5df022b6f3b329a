use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ndarray::{ArrayD, ArrayViewD};
use ort::environment::Environment;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{HasSelectedOutputs, OutputSelector, RunOptions, Session, SessionInputValue};
use ort::value::{Tensor, TensorRef};

use super::{EngineError, ExecutionProvider, Graph, Input, Shared, one_line};

/// ONNX Runtime as a library that was found at run time.
#[derive(Clone, Debug)]
pub struct OnnxRuntime {
    environment: Environment,
    provider: ExecutionProvider,
}

/// The one library of this process: ONNX Runtime cannot be loaded twice, and where loading it has
/// failed, ort must not be asked again: it takes what is not there for loaded.
static LIBRARY: OnceLock<(PathBuf, Result<Environment, String>)> = OnceLock::new();

impl OnnxRuntime {
    /// Loads the library; in one process always the same one.
    ///
    /// # Errors
    /// When there is none, it is too old, or another one has been loaded already.
    pub fn load(library: &Path) -> Result<Self, EngineError> {
        let load = || {
            // The loader would wait for a pipe.
            let is_other = |metadata: &fs::Metadata| !metadata.is_file() && !metadata.is_dir();
            let builder = match fs::metadata(library) {
                Ok(metadata) if is_other(&metadata) => Err("it is no regular file".to_owned()),
                _ => ort::init_from(library).map_err(|error| one_line(&error)),
            };
            let environment = builder.and_then(|builder| {
                builder.with_telemetry(false).build().map_err(|error| one_line(&error))
            });
            (library.to_owned(), environment)
        };
        let (asked, environment) = LIBRARY.get_or_init(load);
        let reason = match environment {
            Ok(environment) if asked == library => {
                let (environment, provider) = (environment.clone(), ExecutionProvider::default());
                return Ok(Self { environment, provider });
            }
            Ok(_) => format!("`{}` has been loaded already", asked.display()),
            Err(reason) if asked == library => reason.clone(),
            Err(reason) => format!("`{}` was asked for first: {reason}", asked.display()),
        };
        Err(EngineError::Absent { library: library.into(), reason })
    }

    /// Runs models by this provider; opening one fails where that is not possible.
    #[must_use]
    pub fn on(self, provider: ExecutionProvider) -> Self {
        Self { provider, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.provider {
            ExecutionProvider::Cpu => "ONNX Runtime",
            ExecutionProvider::Cuda => "ONNX Runtime (CUDA)",
        }
    }

    pub(super) fn open(
        &self,
        file: &[u8],
        outputs: &'static [&'static str],
    ) -> Result<Arc<dyn Graph>, EngineError> {
        let name = self.name();
        let session = || {
            let mut builder = Session::builder(&self.environment)?
                .with_optimization_level(GraphOptimizationLevel::All)?
                // Steps are small: threads cost more than they give.
                .with_intra_threads(1)?;
            if self.provider == ExecutionProvider::Cuda {
                // TF32 would change the fourth digit.
                let provider = ort::ep::CUDA::default().with_tf32(false).build();
                builder = builder.with_execution_providers([provider.error_on_failure()])?;
            }
            let none = OutputSelector::no_default();
            let selected = outputs.iter().fold(none, |selected, &name| selected.with(name));
            let options = RunOptions::new()?.with_outputs(selected);
            Ok((builder.commit_from_memory(file)?, options))
        };
        let prepared = session().map_err(|error: ort::Error| EngineError::Refused {
            engine: name,
            reason: one_line(&error),
        })?;
        Ok(Arc::new(RuntimeGraph { prepared: Mutex::new(prepared), outputs, name }))
    }
}

struct RuntimeGraph {
    prepared: Mutex<(Session, RunOptions<HasSelectedOutputs>)>,
    outputs: &'static [&'static str],
    name: &'static str,
}

impl Graph for RuntimeGraph {
    fn run(&self, inputs: Vec<Input>) -> Result<Vec<ArrayD<f32>>, EngineError> {
        let run = || {
            let values = inputs.iter().map(value).collect::<Result<Vec<_>, ort::Error>>()?;
            let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
            let (session, options) = &mut *prepared;
            let found = session.run_with_options(values, options)?;
            let output = |name: &&'static str| match found.get(*name) {
                Some(value) => Ok(value.try_extract_array::<f32>()?.to_owned()),
                None => Err(ort::Error::new(format!("no output `{name}`"))),
            };
            self.outputs.iter().map(output).collect::<Result<Vec<_>, ort::Error>>()
        };
        run().map_err(|error| EngineError::Failed { engine: self.name, reason: one_line(&error) })
    }
}

/// An input as a value of ONNX Runtime, which borrows the numbers.
fn value(input: &Input) -> Result<(&'static str, SessionInputValue<'_>), ort::Error> {
    Ok(match input {
        Input::Floats(name, array) => (*name, TensorRef::from_array_view(array.view())?.into()),
        Input::Integers(name, array) => (*name, TensorRef::from_array_view(array.view())?.into()),
        Input::Shared(name, Shared { shape, numbers }) => {
            let array = ArrayViewD::from_shape(&shape[..], numbers);
            let array = array.map_err(|error| ort::Error::new(error.to_string()))?;
            (*name, TensorRef::from_array_view(array)?.into())
        }
        Input::Cached(name, cache) => (*name, Tensor::from_array(cache.to_array())?.into()),
    })
}
