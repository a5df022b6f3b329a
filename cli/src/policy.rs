//! The policy that chooses programs.

use anyhow::{Context as _, anyhow, bail};
use sparserl_onnx_models::{Engine, EngineError, ExecutionProvider, OpenedPolicy, PolicySource};

use crate::args::{PolicyArg, PolicyArgs};

/// The policy that is asked for.
pub(crate) fn open(args: &PolicyArgs) -> anyhow::Result<OpenedPolicy> {
    let source = match &args.policy {
        PolicyArg::Cost if args.onnxruntime.is_some() || args.ep != ExecutionProvider::Cpu => {
            bail!("the cost model is no network: leave out --onnxruntime and --ep")
        }
        PolicyArg::Cost => return Ok(OpenedPolicy::open(&PolicySource::Cost, &Engine::Embedded)?),
        PolicyArg::Learned => PolicySource::Learned,
        PolicyArg::Exported(path) => PolicySource::Exported(path.clone()),
    };
    Ok(OpenedPolicy::open(&source, &engine(args)?)?)
}

/// What runs trained policies.
fn engine(args: &PolicyArgs) -> anyhow::Result<Engine> {
    let engine = Engine::choose(args.onnxruntime.as_deref(), args.ep);
    let engine = engine.map_err(|error| match error {
        EngineError::Unnamed { .. } => anyhow!("{error}; --onnxruntime LIBRARY names it"),
        error => anyhow!(error),
    });
    engine.context("the policy cannot be run")
}
