//! The models that commands are given: networks, exported policies, and the one that is compiled
//! in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use sparserl_onnx_models::speeds::SpeedModel;
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};
use sparserl_trainer::corpus::Split;
use sparserl_trainer::network::{Modalities, ModelFile, NetworkPolicy, Processor};

/// A policy of a file or folder.
pub(crate) struct NamedModel {
    pub(crate) name: String,
    /// Changes with what it says.
    pub(crate) version: String,
    /// How it was trained.
    pub(crate) provenance: String,
    pub(crate) policy: Arc<dyn SpeedModel + Send + Sync>,
}

/// The split that a model was trained by; that of one that does not say so has no real matrix.
/// `provenance` is what the last stage of its training left.
///
/// # Errors
/// When it says something that is no split.
pub(crate) fn split(provenance: &str) -> anyhow::Result<Split> {
    let said = || -> Option<serde_json::Value> {
        let mut provenance: serde_json::Value = serde_json::from_str(provenance).ok()?;
        if let Some(reinforcement) = provenance.get("reinforcement") {
            provenance = serde_json::from_str(reinforcement.as_str()?).ok()?;
        }
        Some(provenance.get_mut("config")?.get_mut("split")?.take())
    };
    let Some(said) = said() else { return Ok(Split::NoReal) };
    let unknown = || format!("it says that it was trained by the split {said}: train it anew");
    serde_json::from_value(said.clone()).with_context(unknown)
}

/// Refuses a model that says that it has learned from real matrices: what it chooses for them says
/// nothing.
///
/// # Errors
/// When it says so.
pub(crate) fn ensure_no_real(name: &str, provenance: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        split(provenance).with_context(|| format!("`{name}`"))? == Split::NoReal,
        "`{name}` has learned from real matrices: name one that was trained by the split `no_real`"
    );
    Ok(())
}

/// What models are called in results: the files' or folders' names without what follows a dot;
/// those of a `model.safetensors`, as every stage writes one, by their folders.
///
/// # Errors
/// When two would be called the same.
pub(crate) fn names(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, &Path)>> {
    let mut named: Vec<(String, &Path)> = Vec::new();
    for path in paths {
        let of_stage = path.file_name().is_some_and(|name| name == "model.safetensors");
        let folder = path.parent().and_then(Path::file_name).filter(|_| of_stage);
        let own = if path.is_dir() { path.file_name() } else { path.file_stem() };
        let name = folder.or(own).unwrap_or_default().to_string_lossy().into_owned();
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
        let (version, provenance) = (file.fingerprint(), file.provenance.clone());
        let policy = NetworkPolicy::<Processor>::new(&file, Modalities::ALL, Default::default());
        Ok(NamedModel { name, version, provenance, policy: Arc::new(policy) })
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
    let description = model.description();
    let (version, provenance) = (description.version().to_owned(), description.provenance.clone());
    Ok(NamedModel { name, version, provenance, policy: Arc::new(OnnxPolicy::open(model, engine)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiled_in_policy_has_learned_from_real_matrices_and_says_so() {
        let model = shipped(&Engine::Embedded).unwrap();
        let refused = ensure_no_real(&model.name, &model.provenance).unwrap_err().to_string();
        assert!(refused.starts_with("`learned` has learned from real matrices"), "{refused}");
        let twin = model.provenance.replace("everything", "no_real");
        assert!(ensure_no_real("twin", &twin).is_ok());
        assert!(ensure_no_real("made", "by hand").is_ok());
        let stage = serde_json::json!({ "config": { "split": "everything" } });
        let improved = serde_json::json!({ "reinforcement": stage.to_string(), "iterations": 1 });
        assert!(ensure_no_real("improved", &improved.to_string()).is_err());
        let of_one = stage.to_string().replace("\"everything\"", "{\"leave_out\":\"heat\"}");
        let refused = format!("{:#}", ensure_no_real("older", &of_one).unwrap_err());
        assert!(refused.starts_with("`older`: it says that it was trained by"), "{refused}");
    }
}
