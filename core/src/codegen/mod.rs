//! Code generation: from a packed matrix to a CUDA translation unit that stands alone.
//!
//! The device code proper lives in `core/cuda/*.cuh`. A source holds the blocks that its program
//! needs, and one kernel that sends each thread block to the part it works on.

mod blocks;
mod call;
mod source;

pub use source::{Argument, ArgumentKind, CudaSource, EmitError, emit};

pub(crate) use call::DeviceCall;
