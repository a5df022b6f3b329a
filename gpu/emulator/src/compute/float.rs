//! Arithmetic on binary32 and binary64.
//!
//! Results that are no number are the device's: 0x7fffffff in binary32, 0x7ff8000000000000 in
//! binary64, whatever the operands' payloads.

use super::approximate;
use super::lanes::{FloatPair, Run, Value};
use super::rounding::{self, Format, Rounding};
use super::select::{Form, Plan, Type};
use crate::error::PtxError;

/// binary32 or binary64.
pub(super) trait Float: Value + PartialOrd {
    const FORMAT: Format;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
    fn wide(self) -> f64;
    /// Rounded to the nearest.
    fn narrow(value: f64) -> Self;
    fn is_nan(self) -> bool;
    fn nan() -> Self;
    /// A subnormal number becomes a zero of the same sign.
    fn flush(self) -> Self;
    fn abs(self) -> Self;
    fn neg(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn is_negative(self) -> bool;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// Between 0 and 1; 0 for no number.
    fn saturate(self) -> Self;

    /// The device's own bits for no number.
    fn canonical(self) -> Self;
}

macro_rules! floats {
    ($($float:ident, $format:expr, $nan:literal, $bits:ident;)*) => { $(
        impl Float for $float {
            const FORMAT: Format = $format;
            #[inline(always)]
            fn bits(self) -> u64 { u64::from(self.to_bits()) }
            #[inline(always)]
            fn of_bits(bits: u64) -> Self { $float::from_bits(bits as $bits) }
            #[inline(always)]
            fn wide(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn narrow(value: f64) -> Self { value as $float }
            #[inline(always)]
            fn is_nan(self) -> bool { $float::is_nan(self) }
            #[inline(always)]
            fn nan() -> Self { $float::from_bits($nan) }
            #[inline(always)]
            fn canonical(self) -> Self {
                // On integers: of floats, the compiler may take one that is no number for another.
                let bits = self.to_bits();
                let is_nan = bits & ($bits::MAX >> 1) > $float::INFINITY.to_bits();
                $float::from_bits(if is_nan { $nan } else { bits })
            }
            #[inline(always)]
            fn flush(self) -> Self {
                if self.abs() < $float::MIN_POSITIVE { (0.0 as $float).copysign(self) } else { self }
            }
            #[inline(always)]
            fn abs(self) -> Self { $float::abs(self) }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self { $float::copysign(self, sign) }
            #[inline(always)]
            fn is_negative(self) -> bool { self.is_sign_negative() }
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self { self.mul_add(b, c) }
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn sqrt(self) -> Self { $float::sqrt(self) }
            #[inline(always)]
            fn saturate(self) -> Self {
                if self > 1.0 { 1.0 } else if self > 0.0 { self } else { 0.0 }
            }
        }
    )* };
}

floats! {
    f32, rounding::F32, 0x7fff_ffff, u32;
    f64, rounding::F64, 0x7ff8_0000_0000_0000, u64;
}

/// What happens to operands and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) flush: bool,
    pub(super) saturate: bool,
}

impl Finish {
    pub(super) fn take(form: &mut Form<'_>) -> Self {
        Self { flush: form.take("ftz"), saturate: form.take("sat") }
    }

    pub(super) fn before<F: Float>(self, value: F) -> F {
        if self.flush { value.flush() } else { value }
    }

    pub(super) fn after<F: Float>(self, value: F) -> F {
        let value = self.before(value.canonical());
        if self.saturate { value.saturate() } else { value }
    }

    fn is_none(self) -> bool {
        !self.flush && !self.saturate
    }

    fn unary<F: Float>(
        self,
        form: &mut Form<'_>,
        f: impl Fn(F) -> F + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        if self.is_none() {
            form.unary(move |a: F| f(a).canonical())
        } else {
            form.unary(move |a: F| self.after(f(self.before(a))))
        }
    }

    fn binary<F: Float>(
        self,
        form: &mut Form<'_>,
        f: impl Fn(F, F) -> F + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        if self.is_none() {
            form.binary(move |a: F, b: F| f(a, b).canonical())
        } else {
            form.binary(move |a: F, b: F| self.after(f(self.before(a), self.before(b))))
        }
    }

    fn ternary<F: Float>(
        self,
        form: &mut Form<'_>,
        f: impl Fn(F, F, F) -> F + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        if self.is_none() {
            form.ternary(move |a: F, b: F, c: F| f(a, b, c).canonical())
        } else {
            form.ternary(move |a: F, b: F, c: F| {
                self.after(f(self.before(a), self.before(b), self.before(c)))
            })
        }
    }
}

/// Arithmetic on binary32, pairs of it, and binary64.
pub(super) fn select(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    Ok(Plan::clear(match ty {
        Type::F32 => run::<f32>(form)?,
        Type::F64 => run::<f64>(form)?,
        Type::F32x2 => pairs(form)?,
        _ => return Err(form.unknown()),
    }))
}

fn run<F: Float>(form: &mut Form<'_>) -> Result<Run, PtxError> {
    let finish = Finish::take(form);
    match form.root() {
        "add" | "sub" | "mul" | "fma" | "mad" => sums_and_products::<F>(form, finish),
        "div" => quotient::<F>(form, finish),
        "rcp" | "sqrt" => root_or_reciprocal::<F>(form, finish),
        "min" | "max" => extreme::<F>(form, finish),
        // Payloads stay: these change the sign bit and nothing else.
        "abs" => form.unary(move |a: F| finish.before(a).abs()),
        "neg" => form.unary(move |a: F| finish.before(a).neg()),
        "copysign" => form.binary(|sign: F, a: F| a.copysign(sign)),
        "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh" if form.take("approx") => {
            let Some(f) = approximate::function(form.root()) else { return Err(form.unknown()) };
            let is_double = F::SIZE == 64;
            if is_double && form.root() != "rsqrt" {
                return Err(form.unknown());
            }
            if is_double && finish.flush {
                return finish.unary(form, move |a: F| upper_word(F::narrow(f(a.wide()))));
            }
            finish.unary(form, move |a: F| F::narrow(f(a.wide())))
        }
        _ => Err(form.unknown()),
    }
}

fn sums_and_products<F: Float>(form: &mut Form<'_>, finish: Finish) -> Result<Run, PtxError> {
    let rounding = form.take_any(Rounding::parse).unwrap_or(Rounding::Nearest);
    if rounding == Rounding::Nearest {
        return match form.root() {
            "add" => finish.binary(form, F::add),
            "sub" => finish.binary(form, |a: F, b: F| a.add(b.neg())),
            "mul" => finish.binary(form, F::mul),
            _ => finish.ternary(form, F::fma),
        };
    }
    let sum = move |a: F, b: F| F::of_bits(F::FORMAT.add(a.bits(), b.bits(), rounding));
    match form.root() {
        "add" => finish.binary(form, sum),
        "sub" => finish.binary(form, move |a: F, b: F| sum(a, b.neg())),
        "mul" => finish.binary(form, move |a: F, b: F| {
            F::of_bits(F::FORMAT.mul(a.bits(), b.bits(), rounding))
        }),
        _ => finish.ternary(form, move |a: F, b: F, c: F| {
            F::of_bits(F::FORMAT.fma(a.bits(), b.bits(), c.bits(), rounding))
        }),
    }
}

fn quotient<F: Float>(form: &mut Form<'_>, finish: Finish) -> Result<Run, PtxError> {
    if F::SIZE == 32 && form.take("full") {
        return finish.binary(form, F::div);
    }
    if F::SIZE == 32 && form.take("approx") {
        return finish.binary(form, |a: F, b: F| {
            // The reciprocal of a large divisor is subnormal, and the device takes it for zero.
            let size = b.wide().abs();
            let is_lost = size > f64::from(2_f32.powi(126)) && size < 2_f64.powi(128);
            if is_lost { a.mul(F::narrow(0.0_f64.copysign(b.wide()))) } else { a.div(b) }
        });
    }
    match form.take_any(Rounding::parse) {
        Some(Rounding::Nearest) => finish.binary(form, F::div),
        Some(rounding) => finish.binary(form, move |a: F, b: F| {
            F::of_bits(F::FORMAT.div(a.bits(), b.bits(), rounding))
        }),
        None => Err(form.unknown()),
    }
}

fn root_or_reciprocal<F: Float>(form: &mut Form<'_>, finish: Finish) -> Result<Run, PtxError> {
    let is_root = form.root() == "sqrt";
    let one = F::narrow(1.0);
    let is_approximate = form.take("approx");
    if is_approximate && F::SIZE == 64 {
        if is_root || !finish.flush {
            return Err(form.unknown());
        }
        return finish.unary(form, move |a: F| upper_word(one.div(upper_word(a))));
    }
    let rounding =
        if is_approximate { Some(Rounding::Nearest) } else { form.take_any(Rounding::parse) };
    match (rounding, is_root) {
        (Some(Rounding::Nearest), true) => finish.unary(form, F::sqrt),
        (Some(Rounding::Nearest), false) => finish.unary(form, move |a: F| one.div(a)),
        (Some(rounding), true) => {
            finish.unary(form, move |a: F| F::of_bits(F::FORMAT.sqrt(a.bits(), rounding)))
        }
        (Some(rounding), false) => finish
            .unary(form, move |a: F| F::of_bits(F::FORMAT.div(one.bits(), a.bits(), rounding))),
        (None, _) => Err(form.unknown()),
    }
}

/// Approximations in binary64 work on the upper word alone.
fn upper_word<F: Float>(value: F) -> F {
    if value.is_nan() { value } else { F::of_bits(value.bits() & !0xffff_ffff) }
}

/// `min` and `max`: of the operands that are numbers, and -0 below +0.
fn extreme<F: Float>(form: &mut Form<'_>, finish: Finish) -> Result<Run, PtxError> {
    let is_max = form.root() == "max";
    let keeps_nan = form.take("NaN");
    let by_size = form.take("xorsign");
    if by_size != form.take("abs") {
        return Err(form.unknown());
    }
    let extreme = move |a: F, b: F| pick(a, b, is_max, keeps_nan);
    if by_size {
        return finish.binary(form, move |a: F, b: F| {
            let sign =
                if a.is_negative() != b.is_negative() { F::narrow(-1.0) } else { F::narrow(1.0) };
            extreme(a.abs(), b.abs()).copysign(sign)
        });
    }
    match form.count() {
        4 => finish.ternary(form, move |a: F, b: F, c: F| extreme(extreme(a, b), c)),
        _ => finish.binary(form, extreme),
    }
}

#[inline(always)]
pub(super) fn pick<F: Float>(a: F, b: F, is_max: bool, keeps_nan: bool) -> F {
    if keeps_nan && (a.is_nan() || b.is_nan()) {
        return F::nan();
    }
    let is_first = if is_max {
        a > b || (a == b && b.is_negative())
    } else {
        a < b || (a == b && a.is_negative())
    };
    if is_first || b.is_nan() { a } else { b }
}

/// `add`, `sub`, `mul`, `fma` on two of binary32 at once.
fn pairs(form: &mut Form<'_>) -> Result<Run, PtxError> {
    let finish = Finish { flush: form.take("ftz"), saturate: false };
    let rounding = form.take_any(Rounding::parse).unwrap_or(Rounding::Nearest);
    let fma = move |a: f32, b: f32, c: f32| {
        let [a, b, c] = [a, b, c].map(|value| finish.before(value));
        let bits = rounding::F32.fma(a.bits(), b.bits(), c.bits(), rounding);
        finish.after(f32::of_bits(bits))
    };
    let one = 1.0;
    let mul = move |a: f32, b: f32| {
        let (a, b) = (finish.before(a), finish.before(b));
        finish.after(f32::of_bits(rounding::F32.mul(a.bits(), b.bits(), rounding)))
    };
    match form.root() {
        "add" => form.binary(move |a: FloatPair, b: FloatPair| {
            FloatPair([fma(a.0[0], one, b.0[0]), fma(a.0[1], one, b.0[1])])
        }),
        "sub" => form.binary(move |a: FloatPair, b: FloatPair| {
            FloatPair([fma(a.0[0], one, -b.0[0]), fma(a.0[1], one, -b.0[1])])
        }),
        "mul" => form.binary(move |a: FloatPair, b: FloatPair| {
            FloatPair([mul(a.0[0], b.0[0]), mul(a.0[1], b.0[1])])
        }),
        "fma" => form.ternary(move |a: FloatPair, b: FloatPair, c: FloatPair| {
            FloatPair([fma(a.0[0], b.0[0], c.0[0]), fma(a.0[1], b.0[1], c.0[1])])
        }),
        _ => Err(form.unknown()),
    }
}
