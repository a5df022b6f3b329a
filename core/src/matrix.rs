//! Sparse matrices: validated coordinate ([`Coo`]) and compressed-row ([`Csr`]) forms, the file
//! formats that they come from ([`market`], [`smtx`], [`harwell_boeing`]), generators of known
//! families ([`generate`]), and samples of their rows ([`sample_rows`]).

mod any;
mod assemble;
mod coo;
mod csr;
mod elements;
#[cfg(feature = "std")]
pub mod file;
pub mod generate;
pub mod harwell_boeing;
mod identity;
pub mod market;
#[cfg(feature = "std")]
pub mod npz;
mod offsets;
mod plausible;
mod sample;
mod scalar;
mod scan;
pub mod smtx;
#[cfg(feature = "std")]
mod sprs_conversion;
pub(crate) mod tasks;

pub use any::AnyCsrView;
pub use assemble::Duplicates;
pub use coo::{Coo, CooError};
pub use csr::{Csr, CsrError, CsrView};
pub use elements::{Digest, Elements};
pub use half::{bf16, f16};
pub use identity::{Fingerprint, MatrixIdentity, ParseFingerprintError};
pub(crate) use offsets::KeptOffsets;
pub use offsets::{Offsets, OffsetsView};
pub use plausible::Absurd;
pub use sample::{RowSample, middle_rows, sample_rows, without_empty_columns};
pub use scalar::{AnyScalars, Scalar};
