//! The C API: `sparserl.h` over the same generation as `sparserl-cli gen`.
//!
//! ```text
//! C ─► api ─► Context ─┬─► Matrix: copied and checked
//!                      └─► Plan ─► make: plain CSR at once ─► search, in the background
//!                                   │                            │ the better kernel
//!               execute ─► Side ◄───┴────────────────────────────┘
//! ```
//!
//! - [`api`] is every function of the header, with its documentation; all it does is to read
//!   arguments. Each call goes through `status::call`: no panic gets out, and the text of an error
//!   is kept for the thread. `float_environment` keeps the caller's out of the way.
//! - `handle` gives out handles that are never dereferenced: one that was destroyed, or is of
//!   another kind, is an error and no crash.
//! - `plan` is what a plan is; `make` makes it, of what `code` writes and compiles; `ahead`
//!   compiles all that plans can begin with; `search` finds better programs for it, and
//!   `remembered` keeps which they were; `file` keeps a plan.
//! - `operands` says how dense operands may lie, `copies` copies those that are column-major.
//! - `huge_pages` is the allocator.
//!
//! The header is written by cbindgen from [`api`] (`ffi/tests/header.rs` says how).

mod ahead;
pub mod api;
mod code;
mod context;
mod copies;
mod effort;
mod epilogue;
mod execute;
mod file;
mod float_environment;
mod handle;
#[cfg(target_os = "linux")]
mod huge_pages;
mod kernel;
mod make;
mod map;
mod matrix;
mod op;
mod operands;
mod options;
mod pattern;
mod plain;
mod plan;
mod progress;
mod query;
mod remembered;
mod scatter;
mod search;
mod side;
mod status;
mod transpose;
mod trial;
mod types;
mod update;
mod verbose;
mod workspace;
