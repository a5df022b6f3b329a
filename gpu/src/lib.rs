//! From a program to its outcome on a GPU: is the kernel right, and how fast is it against
//! cuSPARSE?
//!
//! ```text
//! Program ─► pack, emit ─► CompilePool ─► Executable ─► Worker ──────────► Outcome ─► Recorder
//!                          (processes)        ▲         (a process)                      │
//! CUDA from anywhere ─► RawKernel ────────────┘         judge: verify, time              ▼
//!                                                       cusparse: baselines          Recordings
//! ```
//!
//! - [`evaluator`] is that path for programs.
//! - [`compile`] finds NVIDIA's run-time compilers and turns source into machine code, without a
//!   GPU: in processes, many at once, that sources may crash, and with a cache on disk, so that
//!   nothing is compiled twice.
//! - [`candidate`] is a kernel with all that a launch takes, made of a program or of CUDA from
//!   anywhere.
//! - [`isolate`] is the processes: who starts them, and what they say to each other; a [`worker`]
//!   judges kernels in one that they may take down. In there, `judge` verifies them against an
//!   independent product and times them in turn with the opponents of [`compare`].
//! - [`emulated`] judges kernels without a GPU: it runs their PTX on the CPU and finds what a GPU
//!   would hide.
//! - [`store`] keeps what was found out about programs.
//! - [`run`] is CUDA's driver; [`serve`] is what the processes run.
//!
//! Neither CUDA nor a GPU is needed to build this crate: NVRTC and the driver are loaded when they
//! are first used, and a missing one is an error of one line.

pub mod candidate;
pub mod compare;
pub mod compile;
pub mod emulated;
pub mod evaluator;
pub mod isolate;
mod judge;
pub mod panics;
pub mod run;
pub mod serve;
mod shared_library;
pub mod store;
pub mod worker;

pub use sparserl_core::target::Architecture;
