//! Layouts: how the rows of each part are stored, and how threads walk them.
//!
//! Each layout is one module that holds its production of the grammar, its packing and the inverse,
//! its cost, and the call of its device code; a line of the registry makes it part of the
//! language. [`pack`] turns a matrix and a program into the named arrays that the kernel reads;
//! [`unpack`] gives the matrix back, bit for bit.

mod array;
mod bcsr;
mod binned;
mod call;
mod chunk;
mod coding;
mod cost;
mod csr;
mod cvse;
mod dia;
mod ell;
mod emulated;
mod layout_module;
mod mapping;
mod merge;
mod pack;
mod packed;
mod packer;
mod pricing;
pub(crate) mod registry;
mod sell;

pub use array::{Array, ArrayData, ArrayRole, ElementType, Meaning};
pub use bcsr::BcsrLayout;
pub use binned::BinnedLayout;
pub use call::{OwnSize, PartSize};
pub use chunk::ChunkLayout;
pub use cost::{CostConstants, CostModel, PartCost, PartTime, StartUp};
pub use csr::CsrLayout;
pub use cvse::CvseLayout;
pub use dia::DiaLayout;
pub use ell::EllLayout;
pub use emulated::{EmulatedCost, EmulatedFeatures};
pub use mapping::Mapping;
pub use merge::{MergeLayout, Reduction};
pub use pack::PackError;
pub use packed::{LinearGeometry, Packed, PackedPart, UnpackError, unpack};
pub use packer::{Packer, Packing, pack};
pub use pricing::Cost;
pub use registry::{Alternative, Derivation, Layout, Mask, Node, Part, Program, Slot, Space};
pub use sell::SellLayout;

pub(crate) use array::ArrayReader;
pub(crate) use call::{DeviceCall, DeviceCode, DeviceStruct, Member, Operand, SizeInputs};
pub(crate) use layout_module::LayoutModule;
pub(crate) use mapping::WIDEST_PANEL;
pub(crate) use packed::{is_declared, part_name};
#[cfg(all(test, feature = "std"))]
pub(crate) use packer::packings;
pub(crate) use registry::{PANEL, VECTOR, each_layout};
