//! The policy that chooses programs.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use sparserl_core::decode::{Chooser, CostChooser};
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_onnx_models::{Engine, Model, OnnxPolicy, OnnxRuntime};

use crate::args::{ExecutionProvider, PolicyArg, PolicyArgs};

/// Raised when the cost model's choice for some matrix changes.
const COST_VERSION: &str = "3";
/// Names ONNX Runtime's library.
const LIBRARY: &str = "ORT_DYLIB_PATH";

/// A policy that is ready to choose.
#[derive(Debug)]
pub(crate) enum Policy {
    Cost(CostChooser),
    Learned(Box<LearnedChooser<OnnxPolicy>>),
}

impl Policy {
    /// The policy that is asked for.
    pub(crate) fn open(args: &PolicyArgs) -> anyhow::Result<Self> {
        let model = match &args.policy {
            PolicyArg::Cost if args.onnxruntime.is_some() || args.ep != ExecutionProvider::Cpu => {
                bail!("the cost model is no network: leave out --onnxruntime and --ep")
            }
            PolicyArg::Cost => return Ok(Self::Cost(CostChooser)),
            PolicyArg::Learned => Model::shipped()?,
            PolicyArg::Exported(path) => Model::read(path)?,
        };
        let engine = engine(args)?;
        let policy = OnnxPolicy::open(&model, &engine)?;
        let name = policy.description().name.clone();
        let chooser = LearnedChooser::new(name, policy, Picking::RerankedWithCostModel);
        Ok(Self::Learned(Box::new(chooser)))
    }

    pub(crate) fn chooser(&self) -> &dyn Chooser {
        match self {
            Self::Cost(chooser) => chooser,
            Self::Learned(chooser) => chooser.as_ref(),
        }
    }

    /// What it is called in a sentence.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Cost(_) => "the cost model".to_owned(),
            Self::Learned(chooser) => format!("the policy {}", chooser.name()),
        }
    }

    /// Changes with what it chooses.
    pub(crate) fn version(&self) -> &str {
        match self {
            Self::Cost(_) => COST_VERSION,
            Self::Learned(chooser) => chooser.policy().description().version(),
        }
    }
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
