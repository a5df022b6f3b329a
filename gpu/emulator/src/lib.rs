//! A PTX emulator that finds what a GPU would hide.
//!
//! ```text
//! PTX text ─► ptx: parse, select ─► Kernel ─┐
//!                            Launch ────────┼─► machine ─► Report: findings, counters
//! buffers ─► Memory ────────────────────────┘              (results are in Memory)
//! ```
//!
//! - [`ptx`] reads the text that NVRTC writes and turns a kernel into [`code`]: instructions on
//!   numbered registers.
//! - [`compute`] is the arithmetic of a warp's registers.
//! - [`memory`] holds the buffers, [`machine`] runs a kernel over them as a [`mod@launch`] says: it
//!   schedules blocks, warps and lanes, and checks every access.
//! - [`occupancy`] says how many blocks the registers of a multiprocessor suffice for.
//! - [`finding`] says what is wrong and where, [`counters`] what the kernel costs.
//! - [`trace`] says where values come from, of launches for which it was asked.
//!
//! Nothing here needs a GPU, a driver or CUDA.
//!
//! # A race in a reduction
//!
//! Two warps leave a number each thread in shared memory, and the first adds those of the second to
//! its own. Without a barrier between the two it may come too early.
//!
//! ```
//! use sparserl_emulator::finding::FindingKind;
//! use sparserl_emulator::launch::{Argument, Launch, Options};
//! use sparserl_emulator::machine::run;
//! use sparserl_emulator::memory::Memory;
//! use sparserl_emulator::ptx::Module;
//!
//! let with = |barrier: &str| {
//!     format!(
//!         ".version 8.0
//!         .target sm_80
//!         .address_size 64
//!         .visible .entry reduce(.param .u64 reduce_param_0)
//!         {{
//!             .reg .pred %p<2>;
//!             .reg .b32 %r<8>;
//!             .reg .b64 %rd<4>;
//!             .shared .align 4 .b8 numbers[256];
//!             mov.u32 %r0, %tid.x;
//!             shl.b32 %r1, %r0, 2;
//!             mov.u32 %r2, numbers;
//!             add.s32 %r2, %r2, %r1;
//!             st.shared.u32 [%r2], %r0;
//!             {barrier}
//!             setp.gt.u32 %p1, %r0, 31;
//!             @%p1 bra END;
//!             ld.shared.u32 %r3, [%r2+128];
//!             add.s32 %r4, %r3, %r0;
//!             ld.param.u64 %rd1, [reduce_param_0];
//!             mul.wide.u32 %rd2, %r0, 4;
//!             add.s64 %rd3, %rd1, %rd2;
//!             st.global.u32 [%rd3], %r4;
//!             END: ret;
//!         }}"
//!     )
//! };
//! let findings = |ptx: &str| {
//!     let kernel = Module::parse(ptx)?.kernel("reduce")?;
//!     let mut memory = Memory::new();
//!     let sums = memory.uninitialised("sums", 32 * 4);
//!     let launch = Launch {
//!         grid: [1, 1, 1],
//!         block: [64, 1, 1],
//!         dynamic_shared: 0,
//!         arguments: vec![Argument::Buffer(sums)],
//!     };
//!     // Another seed is another order in which warps and lanes take turns.
//!     let report = run(&kernel, &launch, &mut memory, &Options { seed: 1, ..Options::default() })?;
//!     Ok::<_, Box<dyn std::error::Error>>((report.findings, memory.bytes(sums)))
//! };
//!
//! let (found, sums) = findings(&with("bar.sync 0;"))?;
//! assert!(found.is_empty());
//! assert_eq!(sums[4..8], 34_u32.to_le_bytes(), "1 + 33");
//!
//! let (found, _) = findings(&with(""))?;
//! assert!(found.iter().any(|finding| finding.kind == FindingKind::Race));
//! let said = found.iter().map(ToString::to_string).find(|text| text.starts_with("race")).unwrap();
//! // race (PTX line 18), block (0,0,0) thread (0,0,0), address 0x80 (shared `numbers` + 128 of 256
//! // bytes): written by block (0,0,0) thread (32,0,0) at PTX line 14, in no order (32 times)
//! assert!(said.contains("shared `numbers` + 128 of 256 bytes"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

/// The example in the file that introduces this crate is compiled and run like those in here.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Introduction;

pub mod code;
pub mod compute;
pub mod counters;
mod error;
pub mod finding;
pub mod launch;
pub mod machine;
pub mod memory;
pub mod occupancy;
pub mod ptx;
pub mod trace;
