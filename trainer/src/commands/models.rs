use std::path::{Path, PathBuf};
use std::sync::Arc;

use sparserl_onnx_models::speeds::SpeedModel;
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};
use sparserl_trainer::network::{Modalities, ModelFile, NetworkPolicy, Processor};

/// A policy of a file or folder.
pub(crate) struct NamedModel {
    pub(crate) name: String,
    /// Changes with what it says.
    pub(crate) version: String,
    pub(crate) policy: Arc<dyn SpeedModel + Send + Sync>,
}

/// The files' or folders' names without what follows a dot: what models are called in results.
///
/// # Errors
/// When two would be called the same.
pub(crate) fn names(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, &Path)>> {
    let mut named: Vec<(String, &Path)> = Vec::new();
    for path in paths {
        let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        let is_new = named.iter().all(|(known, _)| *known != name);
        anyhow::ensure!(is_new, "two models are called `{name}`: rename one");
        named.push((name, path));
    }
    Ok(named)
}

/// Opens networks, and folders of exported ones.
///
/// # Errors
/// When one cannot be read, or two have the same name.
pub(crate) fn open(paths: &[PathBuf], engine: &Engine) -> anyhow::Result<Vec<NamedModel>> {
    let open = |(name, path): (String, &Path)| {
        if path.is_dir() {
            return exported(name, &Model::read(path)?, engine);
        }
        let file = ModelFile::read(path)?;
        let version = format!("{} steps", file.steps);
        let policy = NetworkPolicy::<Processor>::new(&file, Modalities::ALL, Default::default());
        Ok(NamedModel { name, version, policy: Arc::new(policy) })
    };
    names(paths)?.into_iter().map(open).collect()
}

/// Opens the policy that is compiled in.
///
/// # Errors
/// When the engine refuses it.
pub(crate) fn shipped(engine: &Engine) -> anyhow::Result<NamedModel> {
    exported("learned".to_owned(), &Model::shipped()?, engine)
}

fn exported(name: String, model: &Model, engine: &Engine) -> anyhow::Result<NamedModel> {
    let version = model.description().version().to_owned();
    Ok(NamedModel { name, version, policy: Arc::new(OnnxPolicy::open(model, engine)?) })
}
