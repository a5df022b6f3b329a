//! CUDA's driver: buffers with guard zones, launches, streams, clocks; operators for programs that
//! have streams and vectors of their own.

pub mod device;
pub(crate) mod device_csr;
pub mod operator;
