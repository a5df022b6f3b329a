//! Arithmetic on binary floats of any format up to 64 bits, rounded once and in any direction: in
//! integers, so that every result is exact before it is rounded. For what the host's own arithmetic
//! does not have.

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Bits of the mantissa that are stored.
    mantissa: u32,
    /// Bits of the exponent.
    exponent: u32,
}

pub(super) const F16: Format = Format { mantissa: 10, exponent: 5 };
pub(super) const BF16: Format = Format { mantissa: 7, exponent: 8 };
pub(super) const TF32: Format = Format { mantissa: 10, exponent: 8 };
pub(super) const F32: Format = Format { mantissa: 23, exponent: 8 };
pub(super) const F64: Format = Format { mantissa: 52, exponent: 11 };

/// Where a result goes that lies between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest, and of two as near to the even one.
    Nearest,
    /// To the nearest, and of two as near away from zero.
    NearestAway,
    Zero,
    Down,
    Up,
}

impl Rounding {
    /// `.rn`, `.rna`, `.rz`, `.rm`, `.rp`
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "rn" => Self::Nearest,
            "rna" => Self::NearestAway,
            "rz" => Self::Zero,
            "rm" => Self::Down,
            "rp" => Self::Up,
            _ => return None,
        })
    }
}

/// A number, taken apart.
#[derive(Clone, Copy, Debug)]
enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// `mantissa · 2^exponent`
#[derive(Clone, Copy, Debug)]
struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign(self, negative: bool) -> u64 {
        u64::from(negative) << (self.mantissa + self.exponent)
    }

    fn infinity(self, negative: bool) -> u64 {
        self.sign(negative) | ((1 << self.exponent) - 1) << self.mantissa
    }

    /// What arithmetic gives for no number.
    pub(super) fn nan(self) -> u64 {
        if self == F64 { 0x7ff8_0000_0000_0000 } else { (1 << (self.mantissa + self.exponent)) - 1 }
    }

    fn open(self, bits: u64) -> Number {
        let negative = bits >> (self.mantissa + self.exponent) & 1 == 1;
        let mantissa = bits & ((1 << self.mantissa) - 1);
        let exponent = (bits >> self.mantissa & ((1 << self.exponent) - 1)) as i32;
        if exponent == (1 << self.exponent) - 1 {
            return if mantissa == 0 { Number::Infinite { negative } } else { Number::Nan };
        }
        let (mantissa, exponent) =
            if exponent == 0 { (mantissa, 1) } else { (mantissa | 1 << self.mantissa, exponent) };
        Number::Finite(Exact {
            negative,
            mantissa: mantissa.into(),
            exponent: exponent - self.bias() - self.mantissa as i32,
        })
    }

    /// The bits of what a number is rounded to.
    #[inline(never)]
    fn round(self, number: Exact, rounding: Rounding) -> u64 {
        let Exact { negative, mantissa, exponent } = number;
        let sign = self.sign(negative);
        if mantissa == 0 {
            return sign;
        }
        let top = exponent + 127 - mantissa.leading_zeros() as i32;
        let least = 1 - self.bias() - self.mantissa as i32;
        let mut unit = (top - self.mantissa as i32).max(least);
        let shift = unit - exponent;
        let mut kept = if shift <= 0 {
            mantissa << shift.unsigned_abs()
        } else {
            let shift = shift.unsigned_abs();
            let kept = mantissa.checked_shr(shift).unwrap_or(0);
            let lost = mantissa ^ kept.checked_shl(shift).unwrap_or(0);
            let order = match 1_u128.checked_shl(shift - 1) {
                Some(half) => lost.cmp(&half),
                None => std::cmp::Ordering::Less,
            };
            let is_up = match rounding {
                Rounding::Nearest => order.is_gt() || order.is_eq() && kept & 1 == 1,
                Rounding::NearestAway => order.is_ge(),
                Rounding::Zero => false,
                Rounding::Down => negative && lost != 0,
                Rounding::Up => !negative && lost != 0,
            };
            kept + u128::from(is_up)
        };
        if kept >> (self.mantissa + 1) != 0 {
            kept >>= 1;
            unit += 1;
        }
        if kept >> self.mantissa == 0 {
            return sign | kept as u64;
        }
        let biased = unit + self.mantissa as i32 + self.bias();
        if biased >= (1 << self.exponent) - 1 {
            let infinity = self.infinity(negative);
            let is_infinite = match rounding {
                Rounding::Nearest | Rounding::NearestAway => true,
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            return if is_infinite { infinity } else { infinity - 1 };
        }
        let stored = kept as u64 & ((1 << self.mantissa) - 1);
        sign | (biased as u64) << self.mantissa | stored
    }

    /// `a + b`
    #[inline(never)]
    pub(super) fn add(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        self.sum(self.open(a), self.open(b), rounding)
    }

    /// `a · b`
    #[inline(never)]
    pub(super) fn mul(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        match product(self.open(a), self.open(b)) {
            Number::Nan => self.nan(),
            Number::Infinite { negative } => self.infinity(negative),
            Number::Finite(exact) => self.round(exact, rounding),
        }
    }

    /// `a · b + c`, rounded once.
    #[inline(never)]
    pub(super) fn fma(self, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
        self.sum(product(self.open(a), self.open(b)), self.open(c), rounding)
    }

    fn sum(self, a: Number, b: Number, rounding: Rounding) -> u64 {
        let (a, b) = match (a, b) {
            (Number::Finite(a), Number::Finite(b)) => (a, b),
            (Number::Nan, _) | (_, Number::Nan) => return self.nan(),
            (Number::Infinite { negative: a }, Number::Infinite { negative: b }) if a != b => {
                return self.nan();
            }
            (Number::Infinite { negative }, _) | (_, Number::Infinite { negative }) => {
                return self.infinity(negative);
            }
        };
        match (a.mantissa, b.mantissa) {
            (0, 0) if a.negative == b.negative => self.sign(a.negative),
            (0, 0) => self.sign(rounding == Rounding::Down),
            (0, _) => self.round(b, rounding),
            (_, 0) => self.round(a, rounding),
            _ => self.round(add_exact(a.aligned(), b.aligned(), rounding), rounding),
        }
    }

    /// `a / b`
    #[inline(never)]
    pub(super) fn div(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        let (a, b) = match (self.open(a), self.open(b)) {
            (Number::Finite(a), Number::Finite(b)) => (a, b),
            (Number::Infinite { negative }, Number::Finite(b)) => {
                return self.infinity(negative != b.negative);
            }
            (Number::Finite(a), Number::Infinite { negative }) => {
                return self.sign(negative != a.negative);
            }
            _ => return self.nan(),
        };
        let negative = a.negative != b.negative;
        match (a.mantissa, b.mantissa) {
            (0, 0) => self.nan(),
            (_, 0) => self.infinity(negative),
            (0, _) => self.sign(negative),
            _ => {
                let a = a.aligned();
                // At least 70 bits of quotient, and one that tells whether anything is left.
                let quotient = a.mantissa / b.mantissa;
                let is_left = quotient * b.mantissa != a.mantissa;
                let mantissa = quotient << 1 | u128::from(is_left);
                self.round(
                    Exact { negative, mantissa, exponent: a.exponent - b.exponent - 1 },
                    rounding,
                )
            }
        }
    }

    /// `√a`
    #[inline(never)]
    pub(super) fn sqrt(self, a: u64, rounding: Rounding) -> u64 {
        match self.open(a) {
            Number::Finite(a) if a.mantissa == 0 => self.sign(a.negative),
            Number::Finite(a) if !a.negative => {
                let mut a = a.aligned();
                if a.exponent & 1 != 0 {
                    a.mantissa <<= 1;
                    a.exponent -= 1;
                }
                let root = a.mantissa.isqrt();
                let mantissa = root << 1 | u128::from(root * root != a.mantissa);
                let exponent = a.exponent / 2 - 1;
                self.round(Exact { negative: false, mantissa, exponent }, rounding)
            }
            Number::Infinite { negative: false } => self.infinity(false),
            _ => self.nan(),
        }
    }

    /// A number of this format in another.
    #[inline(never)]
    pub(super) fn convert(self, bits: u64, to: Self, rounding: Rounding) -> u64 {
        match self.open(bits) {
            Number::Nan => to.nan(),
            Number::Infinite { negative } => to.infinity(negative),
            Number::Finite(exact) => to.round(exact, rounding),
        }
    }

    /// An integer in this format.
    #[inline(never)]
    pub(super) fn integer(self, value: i128, rounding: Rounding) -> u64 {
        let exact = Exact { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 };
        self.round(exact, rounding)
    }
}

impl Exact {
    /// The same number with the mantissa's highest bit at 125: room for a sum's carry above, and
    /// for all that matters below.
    fn aligned(self) -> Self {
        let shift = self.mantissa.leading_zeros().saturating_sub(2);
        Self { mantissa: self.mantissa << shift, exponent: self.exponent - shift as i32, ..self }
    }
}

fn product(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Finite(a), Number::Finite(b)) => Number::Finite(Exact {
            negative: a.negative != b.negative,
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        }),
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) => {
            Number::Infinite { negative: a != b }
        }
        (Number::Infinite { negative }, Number::Finite(other))
        | (Number::Finite(other), Number::Infinite { negative }) => {
            if other.mantissa == 0 {
                Number::Nan
            } else {
                Number::Infinite { negative: negative != other.negative }
            }
        }
    }
}

/// The sum of two aligned numbers, but for bits so low that all that matters is whether any of them
/// is set: these are one bit together. With 20 or more bits below a 106-bit product, and
/// cancellation of more than one bit only where the exponents differ by at most one, no rounding
/// sees the difference.
fn add_exact(a: Exact, b: Exact, rounding: Rounding) -> Exact {
    let (large, small) =
        if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa) { (a, b) } else { (b, a) };
    let shift = large.exponent.abs_diff(small.exponent);
    let kept = small.mantissa.checked_shr(shift).unwrap_or(0);
    let is_lost = kept.checked_shl(shift).unwrap_or(0) != small.mantissa;
    let moved = kept | u128::from(is_lost);
    let exponent = large.exponent;
    if large.negative == small.negative {
        return Exact { negative: large.negative, mantissa: large.mantissa + moved, exponent };
    }
    let mantissa = large.mantissa - moved;
    let negative = if mantissa == 0 { rounding == Rounding::Down } else { large.negative };
    Exact { negative, mantissa, exponent }
}
