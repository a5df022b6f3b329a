//! Trained policies and the code that runs them.
//!
//! ```text
//! matrix, task, GPU ─► inputs ─► encoder.onnx ─► memory ─► decoder.onnx ─► tokens, speeds
//!                                                             ▲ key–value cache, terms
//! LearnedChooser: beam under the mask ─► re-ranked by the ensemble ─► first four choices
//!                 + the cost model's programs ─► re-ranked ─► those after them
//! ```
//!
//! What a model is given ([`inputs`], [`terms`]) and what it was made for ([`signature`]) is said
//! here, for training and for use alike. A [`Model`] is two ONNX files; an [`Engine`] runs them as
//! an [`OnnxPolicy`].

pub mod chooser;
mod engine;
pub mod inputs;
mod model;
pub mod onnx;
mod opened;
mod policy;
pub mod programs;
pub mod reference;
pub mod signature;
pub mod speeds;
pub mod terms;

pub use engine::{
    Engine, EngineError, ExecutionProvider, LIBRARY_VARIABLE, OnnxRuntime, UnknownProvider,
};
pub use model::{DECODER, Description, ENCODER, Model, ModelError};
pub use opened::{COST_VERSION, OpenError, OpenedChoices, OpenedPolicy, PolicySource};
pub use policy::OnnxPolicy;
