use core::fmt::{Debug, Display, LowerExp};

use crate::task::Dtype;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// An element type of a matrix: `f32` or `f64`.
pub trait Scalar:
    sealed::Sealed
    + bytemuck::Pod
    + Copy
    + Debug
    + Display
    + LowerExp
    + PartialOrd
    + Send
    + Sync
    + 'static
{
    /// The run-time name of this type.
    const DTYPE: Dtype;
    /// Quiet NaN: marks the slots of a padded layout that hold no entry.
    const NAN: Self;

    /// Nearest value of this type; overflow gives ±∞.
    fn from_f64(value: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    /// The bits, zero-extended: equality of bits is lossless equality (−0 ≠ +0).
    fn bits(self) -> u64;
    /// The value with these [`Scalar::bits`].
    fn from_bits(bits: u64) -> Self;
}

impl Scalar for f32 {
    const DTYPE: Dtype = Dtype::F32;
    const NAN: Self = Self::NAN;

    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
}

impl Scalar for f64 {
    const DTYPE: Dtype = Dtype::F64;
    const NAN: Self = Self::NAN;

    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}
