//! From a program to its outcome on a GPU: is the kernel right, and how fast is it against cuSPARSE?
//!
//! ```text
//! Program ─► pack, emit ─► CompilePool ─► Executable ─► Worker ──────────► Outcome ─► Recorder
//!                          (processes)        ▲         (a process)                      │
//! CUDA from anywhere ─► RawKernel ────────────┘         judge: verify, time              ▼
//!                                                       cusparse: baselines            Replay
//! ```
//!
//! - [`evaluator`] is that path for programs.
//! - [`pool`] compiles in processes, many at once, and outlives sources that crash the compiler; [`nvrtc`] finds
//!   NVIDIA's run-time compilers and turns source into a [`Cubin`](nvrtc::Cubin), without a GPU; [`cache`] keeps cubins
//!   on disk, so that nothing is compiled twice.
//! - [`executable`] is a kernel with all that a launch takes; [`raw`] makes one of CUDA sources from anywhere.
//! - [`emulated`] judges kernels without a GPU: it runs their PTX on the CPU and finds what a GPU would hide.
//! - [`worker`] judges kernels in a process that they may take down. In there, `judge` verifies them against an
//!   independent product and times them in turn with the algorithms of `cusparse`.
//! - [`recording`] keeps what was found out about programs, and answers from it where there is no GPU.
//! - [`device`] is CUDA's driver; [`process`] starts the processes, and is what they run.
//!
//! Neither CUDA nor a GPU is needed to build this crate: NVRTC and the driver are loaded when they are first used, and
//! a missing one is an error of one line.

pub mod architecture;
pub mod cache;
mod cusparse;
pub mod device;
mod device_csr;
pub mod emulated;
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
