//! Arithmetic on binary16 and bfloat16, one or two in a register.

use ::half::{bf16, f16};

use super::approximate;
use super::float::{Float, pick};
use super::lanes::{Pair, Run, Value};
use super::rounding::{self, Format, Rounding};
use super::select::{Form, Plan, Type};
use crate::error::PtxError;

/// binary16 or bfloat16.
pub(super) trait Half: Value<Bits = u32> {
    const FORMAT: Format;
    fn wide(self) -> f32;
    /// Rounded to the nearest; 0x7fff for no number.
    fn narrow(value: f32) -> Self;
}

macro_rules! halves {
    ($($half:ident, $format:expr;)*) => { $(
        impl Half for $half {
            const FORMAT: Format = $format;
            fn wide(self) -> f32 { $half::to_f32(self) }
            fn narrow(value: f32) -> Self {
                if value.is_nan() { $half::from_bits(0x7fff) } else { $half::from_f32(value) }
            }
        }
    )* };
}

halves! {
    f16, rounding::F16;
    bf16, rounding::BF16;
}

/// A sum or product in binary64, rounded to a half once.
///
/// `value` is the sum of two numbers to the nearest, and `error` what is missing. Where something
/// is missing the last bit is made odd, in the direction of the exact value (rounding to odd): with
/// more than two bits to spare, here and again in binary32, the last rounding then gives what
/// rounding the exact value gives.
fn narrow_sum<H: Half>(value: f64, error: f64) -> H {
    let bits = value.to_bits();
    let is_outward = (error > 0.0) == (value > 0.0);
    let odd = match error.partial_cmp(&0.0) {
        Some(order) if order.is_ne() && bits & 1 == 0 => {
            f64::from_bits(if is_outward { bits + 1 } else { bits.wrapping_sub(1) })
        }
        _ => value,
    };
    H::narrow(narrow_to_odd(odd))
}

/// Binary64 to binary32, where any number that is not exact becomes the one next to it with an odd
/// last bit.
fn narrow_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let wide = f64::from(nearest);
    if wide == value || value.is_nan() {
        return nearest;
    }
    let toward_zero =
        if wide.abs() > value.abs() { f32::from_bits(nearest.to_bits() - 1) } else { nearest };
    f32::from_bits(toward_zero.to_bits() | 1)
}

/// `a · b + c`: the product is exact in binary64.
pub(super) fn fma<H: Half>(a: H, b: H, c: H) -> H {
    let (product, c) = (f64::from(a.wide()) * f64::from(b.wide()), f64::from(c.wide()));
    let sum = product + c;
    let rest = sum - product;
    narrow_sum(sum, (product - (sum - rest)) + (c - rest))
}

fn add<H: Half>(a: H, b: H) -> H {
    let (a, b) = (f64::from(a.wide()), f64::from(b.wide()));
    let sum = a + b;
    let rest = sum - a;
    narrow_sum(sum, (a - (sum - rest)) + (b - rest))
}

fn sub<H: Half>(a: H, b: H) -> H {
    add(a, neg(b))
}

fn mul<H: Half>(a: H, b: H) -> H {
    H::narrow(narrow_to_odd(f64::from(a.wide()) * f64::from(b.wide())))
}

fn neg<H: Half>(a: H) -> H {
    H::from_bits(a.to_bits() ^ 0x8000)
}

fn abs<H: Half>(a: H) -> H {
    H::from_bits(a.to_bits() & 0x7fff)
}

/// What happens to operands and results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finish {
    pub(super) flush: bool,
    saturate: bool,
    relu: bool,
}

impl Finish {
    pub(super) fn take(form: &mut Form<'_>) -> Self {
        Self { flush: form.take("ftz"), saturate: form.take("sat"), relu: form.take("relu") }
    }

    pub(super) fn before<H: Half>(self, value: H) -> H {
        let mantissa = if H::FORMAT == rounding::F16 { 0x3ff } else { 0x7f };
        let bits = value.to_bits();
        if self.flush && bits & 0x7fff <= mantissa { H::from_bits(bits & 0x8000) } else { value }
    }

    fn after<H: Half>(self, value: H) -> H {
        let value = self.before(value);
        let wide = value.wide();
        if self.saturate {
            H::narrow(wide.saturate())
        } else if self.relu && wide <= 0.0 {
            // No number stays.
            H::from_bits(0)
        } else {
            value
        }
    }

    fn map<H: Half, const N: usize>(self, args: [H; N], f: impl Fn([H; N]) -> H) -> H {
        self.after(f(args.map(|value| self.before(value))))
    }
}

/// Arithmetic on halves.
pub(super) fn select(form: &mut Form<'_>, ty: Type) -> Result<Plan, PtxError> {
    Ok(Plan::clear(match ty {
        Type::F16 | Type::F16x2 => run::<f16>(form, ty == Type::F16x2)?,
        Type::BF16 | Type::BF16x2 => run::<bf16>(form, ty == Type::BF16x2)?,
        _ => return Err(form.unknown()),
    }))
}

fn run<H: Half>(form: &mut Form<'_>, is_pair: bool) -> Result<Run, PtxError> {
    let finish = Finish::take(form);
    let keeps_nan = form.take("NaN");
    let by_size = form.take("xorsign") && form.take("abs");
    let is_extreme = matches!(form.root(), "min" | "max");
    if (keeps_nan || by_size) && !is_extreme {
        return Err(form.unknown());
    }
    if is_extreme {
        let is_max = form.root() == "max";
        return binary(form, is_pair, finish, move |a: H, b: H| {
            let (wide_a, wide_b) = (a.wide(), b.wide());
            if by_size {
                let sign = (a.to_bits() ^ b.to_bits()) & 0x8000;
                let size = H::narrow(pick(wide_a.abs(), wide_b.abs(), is_max, keeps_nan));
                return H::from_bits(size.to_bits() & 0x7fff | sign);
            }
            H::narrow(pick(wide_a, wide_b, is_max, keeps_nan))
        });
    }
    match form.root() {
        "abs" => return unary(form, is_pair, finish, abs::<H>),
        "neg" => return unary(form, is_pair, finish, neg::<H>),
        "ex2" | "tanh" if form.take("approx") => {
            let Some(f) = approximate::function(form.root()) else { return Err(form.unknown()) };
            return unary(form, is_pair, finish, move |a: H| {
                H::narrow(narrow_to_odd(f(a.wide().into())))
            });
        }
        _ => {}
    }
    if form.take_any(Rounding::parse).is_some_and(|rounding| rounding != Rounding::Nearest) {
        return Err(form.unknown());
    }
    match form.root() {
        "add" => binary(form, is_pair, finish, add::<H>),
        "sub" => binary(form, is_pair, finish, sub::<H>),
        "mul" => binary(form, is_pair, finish, mul::<H>),
        "fma" => ternary(form, is_pair, finish, fma::<H>),
        _ => Err(form.unknown()),
    }
}

fn unary<H: Half>(
    form: &mut Form<'_>,
    is_pair: bool,
    finish: Finish,
    f: impl Fn(H) -> H + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    let f = move |a| finish.map([a], |[a]| f(a));
    if is_pair { form.unary(move |a: Pair<H>| Pair([f(a.0[0]), f(a.0[1])])) } else { form.unary(f) }
}

fn binary<H: Half>(
    form: &mut Form<'_>,
    is_pair: bool,
    finish: Finish,
    f: impl Fn(H, H) -> H + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    let f = move |a, b| finish.map([a, b], |[a, b]| f(a, b));
    if is_pair {
        form.binary(move |a: Pair<H>, b: Pair<H>| Pair([f(a.0[0], b.0[0]), f(a.0[1], b.0[1])]))
    } else {
        form.binary(f)
    }
}

fn ternary<H: Half>(
    form: &mut Form<'_>,
    is_pair: bool,
    finish: Finish,
    f: impl Fn(H, H, H) -> H + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    let f = move |a, b, c| finish.map([a, b, c], |[a, b, c]| f(a, b, c));
    if is_pair {
        form.ternary(move |a: Pair<H>, b: Pair<H>, c: Pair<H>| {
            Pair([f(a.0[0], b.0[0], c.0[0]), f(a.0[1], b.0[1], c.0[1])])
        })
    } else {
        form.ternary(f)
    }
}
