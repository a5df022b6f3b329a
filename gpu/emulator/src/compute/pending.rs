//! Results that fit one reading of their bits, signed or unsigned, and not the other.
//!
//! `add.s16` and `mul.lo.s32` do not tell how their operands are meant: the compiler writes them
//! for signed and for unsigned numbers. That shows when the result is widened, so until then it is
//! marked as *pending*. Of 32 bits only results are followed that do not fit as signed: those that
//! do not fit as unsigned are common, since a number is subtracted by adding its complement; for
//! the same reason 16-bit sums with a constant are not followed as unsigned.

use super::Operands;
use super::registers::{Pending, Register, Registers, WARP};

/// How the exact result of an instruction is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exact {
    Sum,
    Difference,
    Product,
    ProductSum,
}

/// An instruction whose result may fit one reading only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ambiguous {
    exact: Exact,
    bits: u32,
    /// Whether it is looked at as unsigned.
    unsigned: bool,
}

impl Ambiguous {
    pub(super) fn of(opcode: &[&str], operands: &dyn Operands) -> Option<Self> {
        let (exact, ty) = match *opcode {
            ["add", ty] => (Exact::Sum, ty),
            ["sub", ty] => (Exact::Difference, ty),
            ["mul", "lo", ty] => (Exact::Product, ty),
            ["mad", "lo", ty] => (Exact::ProductSum, ty),
            _ => return None,
        };
        let bits = match ty {
            "s16" | "u16" => 16,
            "s32" | "u32" => 32,
            _ => return None,
        };
        let has_immediate = (0..operands.count()).any(|index| operands.is_immediate(index));
        let unsigned = bits == 16 && exact != Exact::Difference && !has_immediate;
        Some(Self { exact, bits, unsigned })
    }

    /// Looks at the operands, before the instruction is executed.
    #[inline]
    pub(super) fn look(self, registers: &Registers, reads: &[Register]) -> Pending {
        let value = |index: usize| match reads.get(index) {
            Some(&Register::Word(number)) => {
                registers.words.get(usize::from(number)).copied().unwrap_or([0; WARP])
            }
            _ => [0; WARP],
        };
        let (a, b) = (value(0), value(1));
        match (self.bits, self.exact) {
            (32, Exact::Sum) => outside_signed(&a, &b, |a, b| {
                let sum = a.wrapping_add(b);
                (a ^ sum) & (b ^ sum)
            }),
            (32, Exact::Difference) => {
                outside_signed(&a, &b, |a, b| (a ^ b) & (a ^ a.wrapping_sub(b)))
            }
            (32, Exact::Product) => outside_signed(&a, &b, |a, b| {
                let product = i64::from(a.cast_signed()) * i64::from(b.cast_signed());
                if i32::try_from(product).is_ok() { 0 } else { 1 << 31 }
            }),
            _ => self.look_closely([a, b, value(2)]),
        }
    }

    fn look_closely(self, operands: [[u32; WARP]; 3]) -> Pending {
        let lanes: [[u32; 3]; WARP] = std::array::from_fn(|lane| operands.map(|words| words[lane]));
        let mut pending = Pending::default();
        for (lane, operands) in lanes.iter().enumerate() {
            let of = |index: usize, signed: bool| -> i64 {
                let word = operands[index];
                match (self.bits, signed) {
                    (16, true) => (word as u16).cast_signed().into(),
                    (16, false) => (word as u16).into(),
                    // As unsigned, 32 bits are not looked at.
                    _ => word.cast_signed().into(),
                }
            };
            let exact = |signed: bool| {
                let (a, b) = (of(0, signed), of(1, signed));
                match self.exact {
                    Exact::Sum => a + b,
                    Exact::Difference => a - b,
                    Exact::Product => a * b,
                    Exact::ProductSum => a * b + of(2, signed),
                }
            };
            let half = 1_i64 << (self.bits - 1);
            let fits_signed = (-half..half).contains(&exact(true));
            let fits_unsigned = !self.unsigned || (0..2 * half).contains(&exact(false));
            pending.signed |= u32::from(!fits_signed) << lane;
            pending.unsigned |= u32::from(!fits_unsigned) << lane;
        }
        pending
    }
}

/// Lanes in which the result does not fit as signed: those for which `f` gives a number with the
/// sign bit.
#[inline]
fn outside_signed(a: &[u32; WARP], b: &[u32; WARP], f: impl Fn(u32, u32) -> u32) -> Pending {
    let outside: [u32; WARP] = std::array::from_fn(|lane| f(a[lane], b[lane]));
    if outside.iter().fold(0, |all, lane| all | lane) >> 31 == 0 {
        return Pending::default();
    }
    let lanes = outside.iter().enumerate();
    let signed = lanes.fold(0, |mask, (lane, outside)| mask | (outside >> 31) << lane);
    Pending { signed, unsigned: 0 }
}

/// Whether an instruction widens its operands as signed, or as unsigned.
pub(super) fn widens_signed(opcode: &[&str]) -> Option<bool> {
    match *opcode {
        ["mul" | "mad", "wide", ty] => Some(ty.starts_with('s')),
        ["cvt", to, from] => match (to.get(1..), from) {
            (Some("32" | "64"), "s16") | (Some("64"), "s32") => Some(true),
            (Some("32" | "64"), "u16") | (Some("64"), "u32") => Some(false),
            _ => None,
        },
        _ => None,
    }
}
