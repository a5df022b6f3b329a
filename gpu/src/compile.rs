//! From CUDA to machine code, without a GPU.

pub mod cache;
pub mod nvrtc;
pub mod pool;
