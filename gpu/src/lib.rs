//! From a kernel's CUDA source to its machine code and to its result on a device.
//!
//! ```text
//! CUDA source ─► NVRTC ─► Cubin (+ registers, spills) ─► Module ─► Kernel::launch ─► outputs
//!                  │        │
//!                  └─ CubinCache
//! ```
//!
//! - [`nvrtc`] finds NVIDIA's run-time compilers and turns source into a [`Cubin`](nvrtc::Cubin). No GPU is needed.
//! - [`cache`] keeps cubins on disk, so that nothing is compiled twice.
//! - [`pool`] compiles in processes, many at once, and outlives sources that crash the compiler.
//! - [`device`] runs a cubin on a CUDA device, with guard zones around every buffer.
//! - [`process`] starts the processes that do what may crash or hang, and is what those processes run.
//! - [`recording`] keeps what was found out about programs, and answers from it where there is no GPU.
//!
//! Neither CUDA nor a GPU is needed to build this crate: NVRTC and the driver are loaded when they are first used, and
//! a missing one is an error of one line.

pub mod architecture;
pub mod cache;
mod cusparse;
pub mod device;
mod device_csr;
pub mod evaluator;
pub mod executable;
pub mod fingerprint;
mod judge;
pub mod nvrtc;
pub mod pool;
pub mod process;
pub mod raw;
pub mod recording;
pub mod worker;

pub use architecture::Architecture;
