//! SparseRL's core: from a sparse matrix to the CUDA source of a kernel made for it.
//!
//! The modules follow the data path:
//!
//! ```text
//! bytes ─► matrix ─► structure ─► decode ─► language ─► layout ─► codegen
//!          Coo, Csr  embedding    Policy    Program     Packed    CudaSource + Launch
//! ```
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
pub mod outcome;
pub mod pipeline;
pub mod plan;
pub mod random;
pub mod reference;
pub mod results;
pub mod structure;
pub mod syntax;
pub mod target;
pub mod task;
