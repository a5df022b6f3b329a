//! Code generation: from a program to a CUDA translation unit that stands alone.
//!
//! The device code proper lives in `core/cuda/*.cuh`: statements of layouts, which are written for
//! the program by a small preprocessor, and definitions, of which a source holds those that it
//! uses. A program of one part is one kernel; of several, the kernel sends each thread block to
//! the function of the part it works on. A source depends on the program and on the forms that its
//! arrays have ([`Signature`]), not on a size: sizes are arguments, so that matrices which share a
//! program share its machine code. Only [`emit_for`] makes them constants, for a matrix that has a
//! kernel to itself.

mod access;
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
mod preprocess;
mod signature;
mod source;
mod statements;
mod transposing;
mod unfused;

pub(crate) use access::loads_vectors;
pub(crate) use dense::WIDEST_LOAD;
pub use dense::row_alignment;
pub use emit::{emit, emit_ending, emit_for};
pub use ending::{Alignment, Ending};
pub use epilogue::{Epilogue, Extent, UserArray, UserElement, UserField, UserFieldError, UserKind};
pub use parameter::{Parameter, ParameterKind, Prefetched, Size};
pub use signature::Signature;
pub use source::{Argument, ArgumentKind, CudaSource, EmitError, Launch, OtherSize, SizeConstant};
pub use transposing::Transposing;
