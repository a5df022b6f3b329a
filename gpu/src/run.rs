//! CUDA's driver: buffers with guard zones, launches, streams, clocks.

pub mod device;
pub(crate) mod device_csr;
