use super::scalar::AnyScalars;
use super::{CsrView, Scalar, bf16, f16};

/// A borrowed matrix whose element type is known at run time.
///
/// Code that takes it is compiled once, in its own crate; generic code is compiled anew for each
/// type in each crate that calls it.
#[derive(Clone, Copy, Debug)]
pub enum AnyCsrView<'a> {
    /// In single precision.
    F32(CsrView<'a, f32>),
    /// In double precision.
    F64(CsrView<'a, f64>),
    /// In half precision.
    F16(CsrView<'a, f16>),
    /// In half precision with the exponents of single precision.
    BF16(CsrView<'a, bf16>),
}

impl<'a, T: Scalar> From<CsrView<'a, T>> for AnyCsrView<'a> {
    fn from(matrix: CsrView<'a, T>) -> Self {
        match T::any(matrix.values()) {
            AnyScalars::F32(values) => Self::F32(matrix.with_values(values)),
            AnyScalars::F64(values) => Self::F64(matrix.with_values(values)),
            AnyScalars::F16(values) => Self::F16(matrix.with_values(values)),
            AnyScalars::BF16(values) => Self::BF16(matrix.with_values(values)),
        }
    }
}
