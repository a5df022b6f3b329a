//! Code generation: from a program to a CUDA translation unit that stands alone.
//!
//! The device code proper lives in `core/cuda/*.cuh`. A source holds the definitions that its
//! program uses, and one kernel that sends each thread block to the part it works on. It depends on
//! the program and on the forms that its arrays have ([`Signature`]), never on a size: sizes are
//! arguments, so that matrices which share a program share its machine code.

mod call;
mod dense;
mod emit;
mod ending;
mod epilogue;
mod header;
mod items;
mod lines;
mod parameter;
mod part;
mod signature;
mod source;
mod transposing;
mod unfused;

pub(crate) use dense::WIDEST_LOAD;
pub use dense::row_alignment;
pub use emit::{emit, emit_ending};
pub use ending::{Alignment, Ending};
pub use epilogue::{Epilogue, Extent, UserArray, UserElement, UserField, UserFieldError, UserKind};
pub use parameter::{Parameter, ParameterKind, Size};
pub(crate) use part::loads_vectors;
pub use signature::Signature;
pub use source::{Argument, ArgumentKind, CudaSource, EmitError};
pub use transposing::Transposing;
