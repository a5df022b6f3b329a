//! What is judged: a kernel with all that its launch takes, made of a program or of CUDA from
//! anywhere.

pub mod executable;
pub mod raw;

use crate::compile::nvrtc::Cubin;

/// What GPU and emulator judge.
pub type Candidate<'a> = sparserl_core::kernel::Candidate<'a, Cubin, raw::RawKernel>;
