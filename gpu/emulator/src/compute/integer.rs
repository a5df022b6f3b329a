//! Integer arithmetic.
//!
//! PTX leaves division by zero open; here quotient and remainder then have all bits set. The least
//! integer divided by
//! -1 wraps.

use super::lanes::{Pair, Run, Value, checked2, checked3};
use super::select::{Form, Plan, Type};
use crate::error::PtxError;

/// An integer of 8 to 64 bits.
pub(super) trait Integer: Value + Ord {
    const SIGNED: bool;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The upper half of the product.
    fn mul_high(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn rem(self, other: Self) -> Self;
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    fn shl(self, count: u32) -> Self;
    fn shr(self, count: u32) -> Self;
    /// The exact value.
    fn wide(self) -> i128;
    /// The lower bits.
    fn truncate(value: i128) -> Self;
    /// The nearest that there is.
    fn saturated(value: i128) -> Self;
    /// The bits read as signed and as unsigned.
    fn both(self) -> (i64, u64);
    /// Whether an exact result fits neither as signed nor as unsigned, given the operands read
    /// either way. Only asked of up to 32 bits.
    fn wraps(signed: i64, unsigned: u64) -> bool;
    fn add_wraps(self, other: Self) -> bool;
    fn sub_wraps(self, other: Self) -> bool;
    fn shl_wraps(self, count: u32) -> bool;
}

macro_rules! integers {
    ($($integer:ident, $signed:ident, $unsigned:ident, $wide:ident, $checked:literal;)*) => { $(
        impl Integer for $integer {
            const SIGNED: bool = $integer::MIN != 0;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self {
                ((self as $wide * other as $wide) >> $integer::BITS) as $integer
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn abs(self) -> Self { (self as $signed).wrapping_abs() as $integer }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn shl(self, count: u32) -> Self {
                if count < $integer::BITS { self.wrapping_shl(count) } else { 0 }
            }
            #[inline(always)]
            fn shr(self, count: u32) -> Self { self.wrapping_shr(count.min($integer::BITS - 1)) >> u32::from(!Self::SIGNED && count >= $integer::BITS) }
            #[inline(always)]
            fn wide(self) -> i128 { i128::from(self) }
            #[inline(always)]
            fn truncate(value: i128) -> Self { value as $integer }
            #[inline(always)]
            fn saturated(value: i128) -> Self {
                value.clamp(i128::from($integer::MIN), i128::from($integer::MAX)) as $integer
            }
            #[inline(always)]
            fn both(self) -> (i64, u64) {
                (i64::from(self as $signed), u64::from(self as $unsigned))
            }
            #[inline(always)]
            fn wraps(signed: i64, unsigned: u64) -> bool {
                $checked && (i64::from(signed as $signed) != signed) & (u64::from(unsigned as $unsigned) != unsigned)
            }
            #[inline(always)]
            fn add_wraps(self, other: Self) -> bool {
                // Only the sum of two numbers with the highest bit set that loses it is outside
                // both ranges.
                $checked && ((self & other & !self.wrapping_add(other)) as $signed).is_negative()
            }
            #[inline(always)]
            fn sub_wraps(self, other: Self) -> bool {
                $checked && ((!self & other & self.wrapping_sub(other)) as $signed).is_negative()
            }
            #[inline(always)]
            fn shl_wraps(self, count: u32) -> bool {
                if !$checked { return false; }
                if count >= $integer::BITS { return self != 0; }
                let result = self.wrapping_shl(count);
                ((result as $signed).wrapping_shr(count) != self as $signed)
                    & ((result as $unsigned).wrapping_shr(count) != self as $unsigned)
            }
        }
    )* };
}

integers! {
    u8, i8, u8, u16, true;
    i8, i8, u8, i16, true;
    u16, i16, u16, u32, true;
    i16, i16, u16, i32, true;
    u32, i32, u32, u64, true;
    i32, i32, u32, i64, true;
    u64, i64, u64, u128, false;
    i64, i64, u64, i128, false;
}

/// Runs a body with `$T` standing for the integer that a type names.
macro_rules! with_integer {
    ($form:expr, $ty:expr, $T:ident => $body:expr) => {{
        use $crate::compute::select::Type;
        match $ty {
            Type::U16 => {
                type $T = u16;
                $body
            }
            Type::U32 => {
                type $T = u32;
                $body
            }
            Type::U64 => {
                type $T = u64;
                $body
            }
            Type::S16 => {
                type $T = i16;
                $body
            }
            Type::S32 => {
                type $T = i32;
                $body
            }
            Type::S64 => {
                type $T = i64;
                $body
            }
            _ => return Err($form.unknown()),
        }
    }};
}
pub(super) use with_integer;

/// `add`, `sub`, `mul`, `mad`, `div`, `rem`, `abs`, `neg`, `min`, `max`, `sad` on integers.
pub(super) fn select(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    match form.root() {
        "mul" | "mad" => return product(form, ty),
        "add" | "sub" if form.take("sat") => return saturating(form, ty),
        _ => {}
    }
    if matches!(ty, Type::U16x2 | Type::S16x2) {
        return packed(form, ty);
    }
    with_integer!(form, ty, T => arithmetic::<T>(form))
}

fn arithmetic<T: Integer>(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let run = match form.root() {
        "add" => {
            let sources = (form.source(1)?, form.source(2)?);
            checked2(form.destination(0)?, sources, T::add, T::add_wraps)
        }
        "sub" => {
            let sources = (form.source(1)?, form.source(2)?);
            checked2(form.destination(0)?, sources, T::sub, T::sub_wraps)
        }
        "min" => binary(form, T::min)?,
        "max" if form.take("relu") => binary(form, |a: T, b| a.max(b).max(T::truncate(0)))?,
        "max" => binary(form, T::max)?,
        "neg" => form.unary(T::neg)?,
        "abs" => return Ok(Plan::clear(form.unary(T::abs)?)),
        "div" if !T::SIGNED => return Ok(Plan::clear(binary(form, T::div)?)),
        "div" => binary(form, T::div)?,
        "rem" => return Ok(Plan::clear(binary(form, T::rem)?)),
        "sad" => {
            let run = form.ternary(|a: T, b: T, c: T| c.add(a.max(b).sub(a.min(b))))?;
            return Ok(Plan::clear(run));
        }
        _ => return Err(form.unknown()),
    };
    Ok(Plan::keep(run))
}

fn binary<T: Integer>(
    form: &mut Form<'_>,
    f: impl Fn(T, T) -> T + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    form.binary(f)
}

fn saturating(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    let run = match (form.root(), ty) {
        ("add", Type::S32) => binary(form, i32::saturating_add)?,
        ("sub", Type::S32) => binary(form, i32::saturating_sub)?,
        _ => return Err(form.unknown()),
    };
    Ok(Plan::keep(run))
}

fn packed(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    fn each<T: Integer + Value<Bits = u32>>(form: &mut Form<'_>) -> Result<Plan, PtxError> {
        let f = match form.root() {
            "add" => T::add,
            "min" => T::min,
            "max" => T::max,
            _ => return Err(form.unknown()),
        };
        let run = form
            .binary(move |a: Pair<T>, b: Pair<T>| Pair([f(a.0[0], b.0[0]), f(a.0[1], b.0[1])]))?;
        Ok(Plan::clear(run))
    }
    if ty == Type::S16x2 { each::<i16>(form) } else { each::<u16>(form) }
}

/// `mul` and `mad`.
fn product(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    let is_mad = form.root() == "mad";
    if form.take("wide") {
        return match ty {
            Type::U16 => wide::<u16, u32>(form, is_mad),
            Type::S16 => wide::<i16, i32>(form, is_mad),
            Type::U32 => wide::<u32, u64>(form, is_mad),
            Type::S32 => wide::<i32, i64>(form, is_mad),
            _ => Err(form.unknown()),
        };
    }
    if form.take("hi") {
        if form.take("sat") {
            if !is_mad || ty != Type::S32 {
                return Err(form.unknown());
            }
            let run = form.ternary(|a: i32, b: i32, c: i32| a.mul_high(b).saturating_add(c))?;
            return Ok(Plan::clear(run));
        }
        return Ok(Plan::clear(with_integer!(form, ty, T => if is_mad {
            form.ternary(|a: T, b: T, c: T| a.mul_high(b).add(c))?
        } else {
            binary(form, T::mul_high)?
        })));
    }
    if !form.take("lo") {
        return Err(form.unknown());
    }
    Ok(Plan::keep(with_integer!(form, ty, T => if is_mad {
        low_sum::<T>(form)?
    } else {
        let sources = (form.source(1)?, form.source(2)?);
        checked2(form.destination(0)?, sources, T::mul, product_wraps::<T>)
    })))
}

#[inline(always)]
fn product_wraps<T: Integer>(a: T, b: T) -> bool {
    let ((a, unsigned_a), (b, unsigned_b)) = (a.both(), b.both());
    T::wraps(a.wrapping_mul(b), unsigned_a.wrapping_mul(unsigned_b))
}

#[inline(always)]
fn sum_wraps<T: Integer, D: Integer>(a: T, b: T, c: D) -> bool {
    let ((a, unsigned_a), (b, unsigned_b), (c, unsigned_c)) = (a.both(), b.both(), c.both());
    D::wraps(
        a.wrapping_mul(b).wrapping_add(c),
        unsigned_a.wrapping_mul(unsigned_b).wrapping_add(unsigned_c),
    )
}

fn low_sum<T: Integer>(form: &mut Form<'_>) -> Result<Run, PtxError> {
    let sources = (form.source(1)?, form.source(2)?, form.source(3)?);
    let f = |a: T, b: T, c: T| a.mul(b).add(c);
    Ok(checked3(form.destination(0)?, sources, f, sum_wraps::<T, T>))
}

fn wide<T: Integer + Into<W>, W: Integer>(
    form: &mut Form<'_>,
    is_mad: bool,
) -> Result<Plan, PtxError> {
    Ok(Plan::keep(if is_mad {
        let sources = (form.source(1)?, form.source(2)?, form.source(3)?);
        let f = |a: T, b: T, c: W| a.into().mul(b.into()).add(c);
        checked3(form.destination(0)?, sources, f, sum_wraps::<T, W>)
    } else {
        form.binary(|a: T, b: T| a.into().mul(b.into()))?
    }))
}

/// `mul24` and `mad24`: on the lower 24 bits of 32.
pub(super) fn product24(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let is_signed = match form.ty()? {
        Type::S32 => true,
        Type::U32 => false,
        _ => return Err(form.unknown()),
    };
    let shift = match (form.take("lo"), form.take("hi")) {
        (true, false) => 0,
        (false, true) => 16,
        _ => return Err(form.unknown()),
    };
    let is_saturating = form.take("sat");
    let product = move |a: u32, b: u32| {
        let narrow = |a: u32| {
            if is_signed { i64::from((a << 8) as i32 >> 8) } else { i64::from(a & 0xff_ffff) }
        };
        ((narrow(a) * narrow(b)) >> shift) as u32
    };
    Ok(Plan::clear(match (form.root(), is_saturating) {
        ("mul24", false) => form.binary(product)?,
        ("mad24", false) => form.ternary(move |a, b, c: u32| product(a, b).wrapping_add(c))?,
        ("mad24", true) if is_signed && shift == 16 => {
            form.ternary(move |a, b, c: i32| (product(a, b) as i32).saturating_add(c))?
        }
        _ => return Err(form.unknown()),
    }))
}

/// `dp4a` and `dp2a`: sums of products of bytes.
pub(super) fn dot(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let (second, first) = (form.ty()?, form.ty()?);
    let signed = |ty| match ty {
        Type::S32 => Some(true),
        Type::U32 => Some(false),
        _ => None,
    };
    let (Some(first), Some(second)) = (signed(first), signed(second)) else {
        return Err(form.unknown());
    };
    let byte = |word: u32, index: u32, is_signed: bool| {
        let byte = (word >> (8 * index)) as u8;
        if is_signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    let half = |word: u32, index: u32, is_signed: bool| {
        let half = (word >> (16 * index)) as u16;
        if is_signed { i32::from(half as i16) } else { i32::from(half) }
    };
    Ok(Plan::clear(if form.root() == "dp4a" {
        form.ternary(move |a: u32, b: u32, c: i32| {
            (0..4).fold(c, |sum, index| {
                let product = byte(a, index, first).wrapping_mul(byte(b, index, second));
                sum.wrapping_add(product)
            })
        })?
    } else {
        let from = match (form.take("lo"), form.take("hi")) {
            (true, false) => 0,
            (false, true) => 2,
            _ => return Err(form.unknown()),
        };
        form.ternary(move |a: u32, b: u32, c: i32| {
            (0..2).fold(c, |sum, index| {
                let product = half(a, index, first).wrapping_mul(byte(b, from + index, second));
                sum.wrapping_add(product)
            })
        })?
    }))
}
