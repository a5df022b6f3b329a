//! Sparse matrices: validated coordinate ([`Coo`]) and compressed-row ([`Csr`]) forms, the file
//! formats that they come from ([`market`], [`smtx`]), generators of known families ([`generate`]),
//! and samples of their rows ([`sample_rows`]).

mod assemble;
mod coo;
mod csr;
#[cfg(feature = "std")]
pub mod file;
pub mod generate;
pub mod market;
mod sample;
mod scalar;
mod scan;
pub mod smtx;
#[cfg(feature = "std")]
mod sprs_conversion;
mod tasks;

pub use coo::{Coo, CooError, Duplicates};
pub use csr::{Csr, CsrError, CsrView, Offsets, OffsetsView};
pub use sample::{RowSample, middle_rows, sample_rows};
pub use scalar::Scalar;
