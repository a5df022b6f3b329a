//! A PTX emulator that finds what a GPU would hide.
//!
//! ```text
//! PTX text ─► ptx: parse, select ─► Kernel ─┐
//!                                           ├─► launch ─► Report: findings, counters
//! buffers ─► Memory ────────────────────────┘              (results are in Memory)
//! ```
//!
//! - [`ptx`] reads the text that NVRTC writes and turns a kernel into [`code`]: instructions on
//!   numbered registers.
//! - [`compute`] is the arithmetic of a warp's registers.
//! - [`memory`] holds the buffers, [`mod@launch`] runs a kernel over them: `machine` schedules
//!   blocks, warps and lanes, and checks every access.
//! - [`finding`] says what is wrong and where, [`counters`] what the kernel costs.
//!
//! Nothing here needs a GPU, a driver or CUDA.

pub mod code;
pub mod compute;
pub mod counters;
pub mod finding;
pub mod launch;
mod machine;
pub mod memory;
pub mod ptx;
