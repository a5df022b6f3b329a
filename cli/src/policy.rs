//! The policy that chooses programs.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use sparserl_onnx_models::{Engine, OnnxRuntime, OpenedPolicy, PolicySource};

use crate::args::{ExecutionProvider, PolicyArg, PolicyArgs};

/// Names ONNX Runtime's library.
const LIBRARY: &str = "ORT_DYLIB_PATH";

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
    let set = || env::var_os(LIBRARY).filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(library) = args.onnxruntime.clone().or_else(set) else {
        if args.ep == ExecutionProvider::Cuda {
            bail!("--ep cuda needs ONNX Runtime: name its library by --onnxruntime or ${LIBRARY}");
        }
        return Ok(Engine::Embedded);
    };
    let runtime = OnnxRuntime::load(&library).context("the policy cannot be run")?;
    Ok(Engine::OnnxRuntime(match args.ep {
        ExecutionProvider::Cpu => runtime,
        ExecutionProvider::Cuda => runtime.on_cuda(),
    }))
}
