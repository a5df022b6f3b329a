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
//! - [`device`] runs a cubin on a CUDA device, with guard zones around every buffer.
//! - [`recording`] keeps what was found out about programs, and answers from it where there is no GPU.
//!
//! Neither CUDA nor a GPU is needed to build this crate: NVRTC and the driver are loaded when they are first used, and
//! a missing one is an error of one line.

pub mod architecture;
pub mod cache;
pub mod device;
pub mod fingerprint;
pub mod nvrtc;
pub mod recording;

pub use architecture::Architecture;
