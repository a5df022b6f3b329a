//! From CUDA to machine code, without a GPU.

pub mod cache;
mod compiler;
pub mod nvrtc;
pub mod pool;

pub use compiler::CubinCompiler;
