//! `cvt`.

use ::half::{bf16, f16};

use super::float::{Finish, Float};
use super::half::Half;
use super::integer::Integer;
use super::lanes::{Destination, Pair, Run, Source, Value, checked1, map1, map2, map3};
use super::rounding::{self, Format, Rounding};
use super::select::{Form, Plan, Type};
use crate::compute::Register;
use crate::error::PtxError;

/// Runs a body with `$T` standing for the integer that a type names, of 8 bits too.
macro_rules! with_any_integer {
    ($form:expr, $ty:expr, $T:ident => $body:expr) => {
        match $ty {
            Type::U8 => {
                type $T = u8;
                $body
            }
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
            Type::S8 => {
                type $T = i8;
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
    };
}

/// How a conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    /// To integral numbers.
    integral: Option<Rounding>,
    /// To numbers of the format.
    rounding: Option<Rounding>,
    flush: bool,
    saturate: bool,
    relu: bool,
    /// No infinities: the largest number instead.
    finite: bool,
}

/// `cvt`
pub(super) fn select(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if form.take("pack") {
        return pack(form);
    }
    let (from, to) = (form.ty()?, form.ty()?);
    let integral = form.take_any(|name| match name {
        "rni" => Some(Rounding::Nearest),
        "rzi" => Some(Rounding::Zero),
        "rmi" => Some(Rounding::Down),
        "rpi" => Some(Rounding::Up),
        _ => None,
    });
    let rounding = form.take_any(Rounding::parse);
    let finite = form.take("satfinite");
    let Finish { flush, saturate } = Finish::take(form);
    let relu = form.take("relu");
    let mode = Mode { integral, rounding, flush, saturate, relu, finite };
    if matches!(to, Type::F16x2 | Type::BF16x2) {
        return pair(form, from, to, mode);
    }
    match from {
        Type::F16 => from_half::<f16>(form, to, mode),
        Type::BF16 => from_half::<bf16>(form, to, mode),
        Type::F32 => from_float::<f32>(form, to, mode),
        Type::F64 => from_float::<f64>(form, to, mode),
        _ => with_any_integer!(form, from, A => from_integer::<A>(form, to, mode)),
    }
}

fn from_integer<A: Integer>(form: &mut Form<'_>, to: Type, mode: Mode) -> Result<Plan, PtxError> {
    if mode.integral.is_some() || mode.relu || mode.finite || mode.flush && to != Type::F32 {
        return Err(form.unknown());
    }
    let rounding = mode.rounding.unwrap_or(Rounding::Nearest);
    let saturate = mode.saturate;
    let run = match to {
        Type::F16 => form.unary(move |a: A| half_of_integer::<f16>(a.wide(), rounding))?,
        Type::BF16 => form.unary(move |a: A| half_of_integer::<bf16>(a.wide(), rounding))?,
        Type::F32 => float_of_integer::<A, f32>(form, rounding, saturate, |a| match a.both() {
            (signed, _) if A::SIGNED => signed as f32,
            (_, unsigned) => unsigned as f32,
        })?,
        Type::F64 => float_of_integer::<A, f64>(form, rounding, saturate, |a| match a.both() {
            (signed, _) if A::SIGNED => signed as f64,
            (_, unsigned) => unsigned as f64,
        })?,
        _ if mode.rounding.is_some() => return Err(form.unknown()),
        _ => return Ok(Plan::keep(between_integers::<A>(form, to, saturate)?)),
    };
    Ok(Plan::clear(run))
}

fn half_of_integer<H: Half>(value: i128, rounding: Rounding) -> H {
    H::from_bits(H::FORMAT.integer(value, rounding) as u32)
}

fn float_of_integer<A: Integer, F: Float>(
    form: &mut Form<'_>,
    rounding: Rounding,
    saturate: bool,
    nearest: impl Fn(A) -> F + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    if rounding == Rounding::Nearest && !saturate {
        return form.unary(nearest);
    }
    form.unary(move |a: A| {
        let value = F::of_bits(F::FORMAT.integer(a.wide(), rounding));
        if saturate { value.saturate() } else { value }
    })
}

fn between_integers<A: Integer>(
    form: &mut Form<'_>,
    to: Type,
    saturate: bool,
) -> Result<Run, PtxError> {
    let source = form.source::<A>(1)?;
    let range = Range::of(to).ok_or_else(|| form.unknown())?;
    let register = form.register(0)?;
    if saturate {
        let f = move |a: A| range.nearest(a.wide());
        return extended(form, register, source, range, f);
    }
    // The destination's sign matters only where the register is wider.
    let is_word = Destination::<u32>::new(register).is_some();
    match to {
        Type::U8 if is_word => truncated::<A, u8>(form, register, source),
        Type::S8 if is_word => truncated::<A, i8>(form, register, source),
        Type::U16 | Type::S16 if is_word => truncated::<A, u16>(form, register, source),
        Type::U32 | Type::S32 if is_word => truncated::<A, u32>(form, register, source),
        Type::U64 | Type::S64 => truncated::<A, u64>(form, register, source),
        _ => extended(form, register, source, range, move |a: A| range.extend(a.wide() as u64)),
    }
}

fn truncated<A: Integer, D: Integer>(
    form: &Form<'_>,
    register: Option<Register>,
    source: Source<A>,
) -> Result<Run, PtxError> {
    let d = Destination::<D>::new(register).ok_or_else(|| form.unknown())?;
    let f = |a: A| D::truncate(a.wide());
    if D::SIZE >= A::SIZE {
        return Ok(map1(d, source, f));
    }
    let wraps = |a: A| {
        let (signed, unsigned) = a.both();
        D::wraps(signed, unsigned)
    };
    Ok(checked1(d, source, f, wraps))
}

/// What an integer type holds.
#[derive(Clone, Copy, Debug)]
struct Range {
    bits: u32,
    is_signed: bool,
}

impl Range {
    fn of(ty: Type) -> Option<Self> {
        let is_signed = match ty {
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => false,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 => true,
            _ => return None,
        };
        Some(Self { bits: ty.bits(), is_signed })
    }

    /// The lower bits, extended to 64.
    fn extend(self, value: u64) -> u64 {
        let unused = 64 - self.bits;
        let value = value << unused;
        if self.is_signed { (value as i64 >> unused) as u64 } else { value >> unused }
    }

    /// The nearest integer, extended to 64 bits.
    fn nearest(self, value: i128) -> u64 {
        let half = 1_i128 << (self.bits - 1);
        let (least, most) = if self.is_signed { (-half, half - 1) } else { (0, 2 * half - 1) };
        value.clamp(least, most) as u64
    }

    /// The nearest to a float, extended to 64 bits. Of no number it is 0, or only the highest bit
    /// where 64 bits are involved.
    fn nearest_float(self, value: f64, is_double: bool) -> u64 {
        if value.is_nan() {
            let is_wide = is_double || self.bits == 64;
            return if is_wide { self.extend(1 << (self.bits - 1)) } else { 0 };
        }
        // Saturates.
        self.nearest(value as i128)
    }
}

/// `f` gives 64 bits, of which a 32-bit register takes what the type has; but 16 for a signed type
/// of 8.
fn extended<A: Value>(
    form: &Form<'_>,
    register: Option<Register>,
    source: Source<A>,
    range: Range,
    f: impl Fn(A) -> u64 + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    if let Some(d) = Destination::<u64>::new(register) {
        return Ok(map1(d, source, f));
    }
    let mask = u32::MAX >> (32 - range.bits.clamp(16, 32));
    match Destination::<u32>::new(register) {
        Some(d) if range.bits <= 32 => Ok(map1(d, source, move |a| f(a) as u32 & mask)),
        _ => Err(form.unknown()),
    }
}

fn from_half<H: Half>(form: &mut Form<'_>, to: Type, mode: Mode) -> Result<Plan, PtxError> {
    let f = move |a: H| f64::from(a.wide());
    from_number(form, to, mode, H::FORMAT, f)
}

fn from_float<F: Float>(form: &mut Form<'_>, to: Type, mode: Mode) -> Result<Plan, PtxError> {
    if to == Type::Tf32 {
        return to_tf32(form, mode);
    }
    let finish = Finish { flush: mode.flush && F::SIZE == 32, saturate: false };
    from_number(form, to, mode, F::FORMAT, move |a: F| finish.before(a).wide())
}

/// From a float, whose value `wide` gives.
fn from_number<A: Value>(
    form: &mut Form<'_>,
    to: Type,
    mode: Mode,
    format: Format,
    wide: impl Fn(A) -> f64 + Send + Sync + 'static,
) -> Result<Plan, PtxError> {
    let a = form.source::<A>(1)?;
    Ok(Plan::clear(match to {
        Type::F16 => to_half::<A, f16>(form, a, mode, format, wide)?,
        Type::BF16 => to_half::<A, bf16>(form, a, mode, format, wide)?,
        Type::F32 => to_float::<A, f32>(form, a, mode, format, wide)?,
        Type::F64 => to_float::<A, f64>(form, a, mode, format, wide)?,
        _ => {
            if mode.rounding.is_some() || mode.relu || mode.finite {
                return Err(form.unknown());
            }
            let Some(integral) = mode.integral else { return Err(form.unknown()) };
            let is_double = format == rounding::F64;
            let range = Range::of(to).ok_or_else(|| form.unknown())?;
            let register = form.register(0)?;
            extended(form, register, a, range, move |a| {
                range.nearest_float(to_integral(wide(a), integral), is_double)
            })?
        }
    }))
}

#[inline(always)]
fn to_integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// The value itself, or rounded to an integral number. Either is exact in every format.
fn integral_of(mode: Mode, value: f64) -> f64 {
    mode.integral.map_or(value, |rounding| to_integral(value, rounding))
}

fn to_float<A: Value, F: Float>(
    form: &mut Form<'_>,
    a: Source<A>,
    mode: Mode,
    format: Format,
    wide: impl Fn(A) -> f64 + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    if mode.relu || mode.finite || mode.integral.is_some() && format != F::FORMAT {
        return Err(form.unknown());
    }
    let finish = Finish { flush: mode.flush && F::SIZE == 32, saturate: mode.saturate };
    let d = form.destination(0)?;
    Ok(match mode.rounding {
        None | Some(Rounding::Nearest) => {
            map1(d, a, move |a| finish.after(F::narrow(integral_of(mode, wide(a)))))
        }
        Some(rounding) => map1(d, a, move |a| {
            let value = wide(a).to_bits();
            finish.after(F::of_bits(rounding::F64.convert(value, F::FORMAT, rounding)))
        }),
    })
}

fn to_half<A: Value, H: Half>(
    form: &mut Form<'_>,
    a: Source<A>,
    mode: Mode,
    format: Format,
    wide: impl Fn(A) -> f64 + Send + Sync + 'static,
) -> Result<Run, PtxError> {
    if mode.integral.is_some() && format != H::FORMAT {
        return Err(form.unknown());
    }
    Ok(map1(form.destination(0)?, a, move |a| round_half::<H>(wide(a), mode)))
}

fn round_half<H: Half>(value: f64, mode: Mode) -> H {
    let value = integral_of(mode, value);
    let value = if mode.relu && value <= 0.0 { 0.0 } else { value };
    let value = if mode.saturate { value.saturate() } else { value };
    let rounding = mode.rounding.unwrap_or(Rounding::Nearest);
    let bits = rounding::F64.convert(value.to_bits(), H::FORMAT, rounding);
    let result = H::from_bits(bits as u32);
    if mode.finite && result.wide().is_infinite() {
        return H::from_bits(result.to_bits() - 1);
    }
    result
}

/// Two floats into one register: the first into its upper half.
fn pair(form: &mut Form<'_>, from: Type, to: Type, mode: Mode) -> Result<Plan, PtxError> {
    if from != Type::F32 || mode.integral.is_some() || mode.rounding.is_none() || form.count() != 3
    {
        return Err(form.unknown());
    }
    let finish = Finish { flush: mode.flush, saturate: false };
    fn run<H: Half>(form: &mut Form<'_>, mode: Mode, finish: Finish) -> Result<Run, PtxError> {
        let round = move |a: f32| round_half::<H>(finish.before(a).into(), mode);
        let sources = (form.source::<f32>(1)?, form.source::<f32>(2)?);
        Ok(map2(form.destination(0)?, sources, move |a, b| Pair([round(b), round(a)])))
    }
    Ok(Plan::clear(if to == Type::F16x2 {
        run::<f16>(form, mode, finish)?
    } else {
        run::<bf16>(form, mode, finish)?
    }))
}

/// The result has the layout of binary32, with 10 bits of mantissa.
fn to_tf32(form: &mut Form<'_>, mode: Mode) -> Result<Plan, PtxError> {
    let Some(rounding) = mode.rounding else { return Err(form.unknown()) };
    if mode.integral.is_some() || mode.flush || mode.saturate {
        return Err(form.unknown());
    }
    let unused = 13;
    let run = form.unary(move |a: f32| {
        let a = if mode.relu && a <= 0.0 { 0.0 } else { a };
        if a.is_nan() {
            return 0x7fff_ffff;
        }
        let bits = rounding::F32.convert(u64::from(a.to_bits()), rounding::TF32, rounding) as u32;
        let is_infinite = bits << unused & 0x7fff_ffff == f32::INFINITY.to_bits();
        (if mode.finite && is_infinite { bits - 1 } else { bits }) << unused
    })?;
    Ok(Plan::clear(run))
}

/// `cvt.pack.sat`: two 32-bit integers into the halves of a register, or into its lower quarters
/// below half of another.
fn pack(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if !form.take("sat") {
        return Err(form.unknown());
    }
    let has_third = form.count() == 4;
    if has_third && form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let (from, to) = (form.ty()?, form.ty()?);
    if from != Type::S32 || has_third != (to.bits() == 8) {
        return Err(form.unknown());
    }
    let clamp: fn(i32) -> u32 = match to {
        Type::U16 => |a| u16::saturated(a.into()).into(),
        Type::S16 => |a| u32::from(i16::saturated(a.into()) as u16),
        Type::U8 => |a| u8::saturated(a.into()).into(),
        Type::S8 => |a| u32::from(i8::saturated(a.into()) as u8),
        _ => return Err(form.unknown()),
    };
    let bits = to.bits();
    let both = move |a, b| clamp(a) << bits | clamp(b);
    let (d, a, b) = (form.destination(0)?, form.source::<i32>(1)?, form.source::<i32>(2)?);
    Ok(Plan::clear(if has_third {
        map3(d, (a, b, form.source::<u32>(3)?), move |a, b, c| both(a, b) | c << 16)
    } else {
        map2(d, (a, b), both)
    }))
}
