//! What chooses programs.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sparserl_onnx_models::ExecutionProvider;

#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    /// What chooses the programs: `learned`, the trained policy within this program; `cost`, the
    /// cost model alone; or an exported policy, its folder or one of the two .onnx files in it
    #[arg(long, value_name = "POLICY", default_value = "learned")]
    pub(crate) policy: PolicyArg,
    /// Run the policy in this library, libonnxruntime.so of version 1.24 or newer, instead of
    /// within this program [default: $ORT_DYLIB_PATH where that is set]
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) onnxruntime: Option<PathBuf>,
    /// Where ONNX Runtime runs it
    #[arg(long, value_name = "EP", default_value_t, value_parser = provider())]
    pub(crate) ep: ExecutionProvider,
}

/// A policy as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyArg {
    Learned,
    Cost,
    Exported(PathBuf),
}

impl From<&str> for PolicyArg {
    fn from(text: &str) -> Self {
        match text {
            "learned" => Self::Learned,
            "cost" => Self::Cost,
            path => Self::Exported(path.into()),
        }
    }
}

/// Reads an execution provider of ONNX Runtime; messages and completions list them.
fn provider() -> impl TypedValueParser<Value = ExecutionProvider> {
    let names = ExecutionProvider::ALL.map(ExecutionProvider::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<ExecutionProvider>())
}
