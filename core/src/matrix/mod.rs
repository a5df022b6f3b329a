//! Sparse matrices: validated coordinate ([`Coo`]) and compressed-row ([`Csr`]) forms, the file
//! formats that they come from ([`market`], [`smtx`]) and generators of known families
//! ([`generate`]).

mod assemble;
mod coo;
mod csr;
#[cfg(feature = "std")]
pub mod file;
pub mod generate;
pub mod market;
mod scalar;
mod scan;
pub mod smtx;
#[cfg(feature = "std")]
mod sprs_conversion;
mod tasks;

pub use coo::{Coo, CooError, Duplicates};
pub use csr::{Csr, CsrError, CsrView, Offsets, OffsetsView};
pub use scalar::Scalar;
