//! SparseRL's core: from a sparse matrix to the CUDA source of a kernel made for it.
//!
//! The modules follow the data path, and [`pipeline`] walks it in one call:
//!
//! ```text
//! bytes ─► matrix ─► structure ─► decode ─► language ─┬─► layout ──► Packed ─┐
//!          Coo, Csr  MatrixStats  Policy    Program   └─► codegen ─► source ─┴─► kernel ─► outcome
//! ```
//!
//! Dependencies follow another order, in which no module uses a later one: `matrix`, `reference`,
//! `structure`, `syntax`, `layout`, `language`, `codegen`, `kernel`, `decode`, `search`, `outcome`,
//! `pipeline`. [`syntax`] knows no layouts, [`layout`] has one module for each and a registry,
//! [`language`] is both together. [`results`] are the statistics of outcomes. [`pipeline`] searches
//! without measuring, [`search`] by measuring.
//!
//! The crate is `no_std` with `alloc`; the `std` feature adds threads and `sprs` conversions.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
pub mod codegen;
pub mod decode;
pub mod kernel;
pub mod language;
pub mod layout;
pub mod matrix;
mod memo;
pub mod message;
pub mod outcome;
pub mod pipeline;
pub mod plan;
mod quoted;
pub mod random;
pub mod reference;
#[cfg(feature = "std")]
pub mod regular_file;
pub mod results;
pub mod search;
pub mod structure;
pub mod syntax;
pub mod target;
pub mod task;
mod timing;
