//! Layouts: how the rows of each part are stored, and how threads walk them.
//!
//! Each layout is one module that holds its production of the grammar, its packing and the inverse,
//! its cost, and the call of its device block. [`pack`] turns a matrix and a program into the named
//! arrays that the kernel reads; [`unpack`] gives the matrix back, bit for bit.

mod array;
pub(crate) mod bcsr;
mod coding;
mod cost;
pub(crate) mod csr;
pub(crate) mod dia;
mod emulated;
mod mapping;
pub(crate) mod merge;
mod pack;
pub(crate) mod sell;

pub use array::{Array, ArrayData, ArrayRole, ElementType, Meaning};
pub use bcsr::BcsrLayout;
pub use cost::{Cost, CostModel, PartCost, PartTime};
pub use csr::CsrLayout;
pub use dia::DiaLayout;
pub use emulated::{EmulatedCost, EmulatedFeatures};
pub use mapping::Mapping;
pub use merge::{MergeLayout, Reduction};
pub use pack::{Launch, PackError, Packed, PackedPart, UnpackError, pack, unpack};
pub use sell::SellLayout;

pub(crate) use array::Stored;
pub(crate) use pack::PartSource;

use crate::structure::Table;
