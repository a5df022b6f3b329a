//! Code generation: from a program to a CUDA translation unit that stands alone.
//!
//! The device code proper lives in `core/cuda/*.cuh`. A source holds the definitions that its
//! program uses, and one kernel that sends each thread block to the part it works on. It depends on
//! the program and on the forms that its arrays have ([`Signature`]), never on a size: sizes are
//! arguments, so that matrices which share a program share its machine code.

mod call;
mod epilogue;
mod header;
mod items;
mod parameter;
mod part;
mod signature;
mod source;

pub use epilogue::{
    Ending, Epilogue, Extent, UserArray, UserElement, UserField, UserFieldError, UserKind,
};
pub use parameter::{Argument, ArgumentKind, Parameter, ParameterKind, Size};
pub(crate) use part::loads_vectors;
pub use signature::Signature;
pub use source::{CudaSource, EmitError, emit, emit_ending};
