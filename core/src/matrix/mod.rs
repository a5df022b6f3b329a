//! Sparse matrices: validated coordinate ([`Coo`]) and compressed-row ([`Csr`]) forms.

mod coo;
mod csr;
mod scalar;

pub use coo::{Coo, Duplicates};
pub use csr::{Csr, CsrError, CsrView, Offsets, OffsetsView};
pub use scalar::Scalar;
