use core::fmt::{Debug, Display, LowerExp};

use half::{bf16, f16};

use crate::task::Dtype;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// An element type of a matrix: `f32`, `f64`, `f16` or `bf16`.
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
    /// The type of sums of its products, and of α and β: that of [`Dtype::accumulator`].
    type Accumulator: Scalar;

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
    /// Values of this type as those of a type that is known at run time.
    fn any(values: &[Self]) -> AnyScalars<'_>;
}

/// Values of a type that is known at run time.
#[derive(Clone, Copy, Debug)]
pub enum AnyScalars<'a> {
    /// In single precision.
    F32(&'a [f32]),
    /// In double precision.
    F64(&'a [f64]),
    /// In half precision.
    F16(&'a [f16]),
    /// In half precision with the exponents of single precision.
    BF16(&'a [bf16]),
}

impl Scalar for f32 {
    type Accumulator = Self;

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
    fn any(values: &[Self]) -> AnyScalars<'_> {
        AnyScalars::F32(values)
    }
}

impl Scalar for f64 {
    type Accumulator = Self;

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
    fn any(values: &[Self]) -> AnyScalars<'_> {
        AnyScalars::F64(values)
    }
}

/// The value in `f32`, rounded to an odd last bit where it does not fit: rounding that to nearest
/// in a type with fewer bits gives what rounding the value itself gives (Boldo and Melquiond,
/// Emulation of FMA and Correctly Rounded Sums, 2008). Conversions of `half` from `f64` round
/// twice.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let (bits, found) = (nearest.to_bits(), f64::from(nearest));
    if found == value || !nearest.is_finite() || bits % 2 == 1 {
        return nearest;
    }
    f32::from_bits(if found.abs() < value.abs() { bits + 1 } else { bits - 1 })
}

/// Evaluates an expression in which a word stands for the [`Scalar`](crate::matrix::Scalar) of a
/// [`Dtype`](crate::task::Dtype), so that what is done for each of them is written once.
#[macro_export]
macro_rules! with_scalar {
    ($dtype:expr, $scalar:ident => $value:expr) => {
        match $dtype {
            $crate::task::Dtype::F32 => {
                type $scalar = f32;
                $value
            }
            $crate::task::Dtype::F64 => {
                type $scalar = f64;
                $value
            }
            $crate::task::Dtype::F16 => {
                type $scalar = $crate::matrix::f16;
                $value
            }
            $crate::task::Dtype::BF16 => {
                type $scalar = $crate::matrix::bf16;
                $value
            }
        }
    };
}

macro_rules! half_scalars {
    ($($half:ident $dtype:ident,)*) => {
        $(impl Scalar for $half {
            type Accumulator = f32;

            const DTYPE: Dtype = Dtype::$dtype;
            const NAN: Self = Self::NAN;

            fn from_f64(value: f64) -> Self {
                Self::from_f32(to_odd(value))
            }
            fn to_f64(self) -> f64 {
                Self::to_f64(self)
            }
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn from_bits(bits: u64) -> Self {
                Self::from_bits(bits as u16)
            }
            fn any(values: &[Self]) -> AnyScalars<'_> {
                AnyScalars::$dtype(values)
            }
        })*
    };
}

half_scalars! {
    f16 F16,
    bf16 BF16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_rounded_once_and_read_back() {
        // Just above the middle of two numbers, by less than f32 shows.
        let above = |middle: f64| middle * (1.0 + 2f64.powi(-40));
        assert_eq!(
            <f16 as Scalar>::from_f64(above(1.0 + 2f64.powi(-11))),
            f16::from_f32(1.0009766)
        );
        assert_eq!(<f16 as Scalar>::from_f64(1.0 + 2f64.powi(-11)), f16::ONE);
        assert_eq!(<bf16 as Scalar>::from_f64(above(1.0 + 2f64.powi(-8))).to_f32(), 1.0078125);
        assert_eq!(<bf16 as Scalar>::from_f64(1.0 + 2f64.powi(-8)), bf16::ONE);
        assert_eq!(<f16 as Scalar>::from_f64(65519.9).to_f32(), 65504.0);
        assert_eq!(<f16 as Scalar>::from_f64(65520.0), f16::INFINITY);
        assert_eq!(<f16 as Scalar>::from_f64(-1e-8).bits(), 0x8000);
        assert_eq!(<bf16 as Scalar>::from_f64(1e300), bf16::INFINITY);
        assert_eq!(<bf16 as Scalar>::from_f64(-1e-300).bits(), 0x8000);
        for bits in 0..=u16::MAX {
            let number = f16::from_bits(bits);
            let upper = bf16::from_bits(bits);
            if !number.is_nan() {
                assert_eq!(<f16 as Scalar>::from_f64(Scalar::to_f64(number)).to_bits(), bits);
            }
            if !upper.is_nan() {
                assert_eq!(<bf16 as Scalar>::from_f64(Scalar::to_f64(upper)).to_bits(), bits);
            }
        }
    }

    #[test]
    fn accumulators_are_those_of_the_task() {
        fn agrees<T: Scalar>() {
            assert_eq!(T::Accumulator::DTYPE, T::DTYPE.accumulator());
            assert_eq!(size_of::<T>(), T::DTYPE.size());
            assert!(T::NAN.to_f64().is_nan());
        }
        for dtype in Dtype::ALL {
            assert_eq!(with_scalar!(dtype, T => T::DTYPE), dtype);
        }
        agrees::<f32>();
        agrees::<f64>();
        agrees::<f16>();
        agrees::<bf16>();
    }
}
