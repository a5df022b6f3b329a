//! Logic, shifts and what else is done to bits.

use super::integer::{Integer, with_integer};
use super::lanes::{Run, Value, checked2, map2, map4, test1};
use super::select::{Flow, Form, Plan, Type};
use crate::compute::WARP;
use crate::error::PtxError;

/// `and`, `or`, `xor`, `not`, `cnot`.
pub(super) fn logic(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    if ty == Type::Predicate {
        return predicate_logic(form);
    }
    let run = match ty {
        Type::U16 => word_logic::<u16>(form)?,
        Type::U32 => word_logic::<u32>(form)?,
        Type::U64 => word_logic::<u64>(form)?,
        _ => return Err(form.unknown()),
    };
    Ok(Plan::clear(run))
}

fn word_logic<T>(form: &mut Form<'_>) -> Result<Run, PtxError>
where
    T: Value
        + PartialEq
        + From<bool>
        + std::ops::BitAnd<Output = T>
        + std::ops::BitOr<Output = T>
        + std::ops::BitXor<Output = T>
        + std::ops::Not<Output = T>,
{
    match form.root() {
        "and" => form.binary(|a: T, b: T| a & b),
        "or" => form.binary(|a: T, b: T| a | b),
        "xor" => form.binary(|a: T, b: T| a ^ b),
        "not" => form.unary(|a: T| !a),
        "cnot" => form.unary(|a: T| T::from(a == T::from(false))),
        _ => Err(form.unknown()),
    }
}

fn predicate_logic(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let d = form.predicate_destination(0)?;
    let a = form.predicate(1)?;
    if form.root() == "not" {
        return Ok(Plan::clear(std::sync::Arc::new(move |registers, lanes| {
            d.write(registers, lanes, !a.read(registers));
            0
        })));
    }
    let b = form.predicate(2)?;
    let f = match form.root() {
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a: u32, b: u32| a ^ b,
        _ => return Err(form.unknown()),
    };
    let run: Run = std::sync::Arc::new(move |registers, lanes| {
        d.write(registers, lanes, f(a.read(registers), b.read(registers)));
        0
    });
    Ok(match form.root() {
        "and" => Plan { run, flow: Flow::Decide { value: false, sources: [a, b] } },
        "or" => Plan { run, flow: Flow::Decide { value: true, sources: [a, b] } },
        _ => Plan::clear(run),
    })
}

/// `lop3`: any function of three bits, by its table.
pub(super) fn table(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let combination = form.take_any(|name| matches!(name, "and" | "or").then_some(name == "and"));
    let (a, b, c, table) =
        (form.source(1)?, form.source(2)?, form.source(3)?, form.source::<u32>(4)?);
    let f = |a: u32, b: u32, c: u32, table: u32| {
        let row = |index: u32| {
            let pick = |value: u32, bit: u32| if index >> bit & 1 == 1 { value } else { !value };
            let chosen = (table >> index & 1).wrapping_neg();
            pick(a, 2) & pick(b, 1) & pick(c, 0) & chosen
        };
        (0..8).fold(0, |sum, index| sum | row(index))
    };
    let Some(is_and) = combination else {
        return Ok(Plan::clear(map4(form.destination::<u32>(0)?, (a, b, c, table), f)));
    };
    let (d, p) = form.destination_with_predicate::<u32>(0)?;
    let q = form.predicate(5)?;
    Ok(Plan::clear(std::sync::Arc::new(move |registers, lanes| {
        use super::lanes::read_lanes;
        let (a, b) = (read_lanes(a, registers), read_lanes(b, registers));
        let (c, table) = (read_lanes(c, registers), read_lanes(table, registers));
        let values: [u32; WARP] =
            std::array::from_fn(|lane| f(a[lane], b[lane], c[lane], table[lane]));
        let set = (0..WARP).fold(0, |set, lane| set | u32::from(values[lane] != 0) << lane);
        let q = q.read(registers);
        d.write(registers, lanes, &values);
        p.write(registers, lanes, if is_and { set & q } else { set | q });
        0
    })))
}

/// `shl` and `shr`: counts beyond the width act as the width.
pub(super) fn shift(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    let is_left = form.root() == "shl";
    with_integer!(form, ty, T => {
        let (d, sources) = (form.destination::<T>(0)?, (form.source::<T>(1)?, form.source::<u32>(2)?));
        Ok(if is_left {
            Plan::keep(checked2(d, sources, T::shl, T::shl_wraps))
        } else if T::SIGNED {
            // Of signed numbers this is a division.
            Plan::keep(map2(d, sources, T::shr))
        } else {
            Plan::clear(map2(d, sources, T::shr))
        })
    })
}

/// `shf`: shifts two words as one.
pub(super) fn funnel(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let is_left = match (form.take("l"), form.take("r")) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(form.unknown()),
    };
    let is_wrapping = match (form.take("wrap"), form.take("clamp")) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(form.unknown()),
    };
    let run = form.ternary(move |a: u32, b: u32, count: u32| {
        let both = u64::from(b) << 32 | u64::from(a);
        let count = if is_wrapping { count & 31 } else { count.min(32) };
        if is_left { (both << count >> 32) as u32 } else { (both >> count) as u32 }
    })?;
    Ok(Plan::clear(run))
}

/// `popc`, `clz`, `brev`.
pub(super) fn count(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    Ok(Plan::clear(match (form.root(), ty) {
        ("popc", Type::U32) => form.unary(u32::count_ones)?,
        ("popc", Type::U64) => form.unary(u64::count_ones)?,
        ("clz", Type::U32) => form.unary(u32::leading_zeros)?,
        ("clz", Type::U64) => form.unary(u64::leading_zeros)?,
        ("brev", Type::U32) => form.unary(u32::reverse_bits)?,
        ("brev", Type::U64) => form.unary(u64::reverse_bits)?,
        _ => return Err(form.unknown()),
    }))
}

/// `bfind`: the highest bit that differs from the sign, or all ones.
pub(super) fn find(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    fn run<T: Integer>(form: &mut Form<'_>) -> Result<Plan, PtxError> {
        let is_shift = form.take("shiftamt");
        Ok(Plan::clear(form.unary(move |a: T| {
            let (signed, unsigned) = a.both();
            let magnitude = if T::SIGNED && signed < 0 { !(signed as u64) } else { unsigned };
            match magnitude.checked_ilog2() {
                Some(bit) if is_shift => T::SIZE - 1 - bit,
                Some(bit) => bit,
                None => u32::MAX,
            }
        })?))
    }
    match form.ty()? {
        Type::U32 => run::<u32>(form),
        Type::S32 => run::<i32>(form),
        Type::U64 => run::<u64>(form),
        Type::S64 => run::<i64>(form),
        _ => Err(form.unknown()),
    }
}

/// `fns`: the n-th set bit from a bit on, upwards or downwards, or all ones. The manual leaves open
/// what a bit past the highest gives; here that is all ones.
pub(super) fn find_nth(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let run = form.ternary(|mask: u32, base: u32, offset: u32| {
        let Some(up) = u32::MAX.checked_shl(base) else { return u32::MAX };
        let (offset, down) = (offset.cast_signed(), !up | 1 << base);
        // The bits in question, the nearest lowest.
        let candidates = match offset {
            0 => mask & 1 << base,
            1.. => mask & up,
            _ => (mask & down).reverse_bits(),
        };
        let others = 1..=offset.unsigned_abs().saturating_sub(1).min(u32::BITS);
        let rest = others.fold(candidates, |rest, _| rest & rest.saturating_sub(1));
        match rest.trailing_zeros() {
            u32::BITS => u32::MAX,
            bit if offset < 0 => u32::BITS - 1 - bit,
            bit => bit,
        }
    })?;
    Ok(Plan::clear(run))
}

/// `bfe`: bits of a field, extended by zeros or the field's highest bit.
pub(super) fn extract(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    fn run<T: Integer>(form: &mut Form<'_>) -> Result<Plan, PtxError> {
        Ok(Plan::clear(form.ternary(|a: T, from: u32, len: u32| {
            let (from, len) = (from & 0xff, len & 0xff);
            let (signed, unsigned) = a.both();
            let field = if from < 64 { unsigned >> from } else { 0 };
            let low = if len < 64 { field & ((1 << len) - 1) } else { field };
            // The sign is that of the field's highest bit, or of the highest bit there is.
            let top = (from + len).saturating_sub(1).min(T::SIZE - 1);
            let is_negative = T::SIGNED && len != 0 && signed as u64 >> top & 1 == 1;
            let filled = len.min(T::SIZE.saturating_sub(from));
            let value = if is_negative && filled < 64 { low | u64::MAX << filled } else { low };
            T::truncate(i128::from(value))
        })?))
    }
    match form.ty()? {
        Type::U32 => run::<u32>(form),
        Type::S32 => run::<i32>(form),
        Type::U64 => run::<u64>(form),
        Type::S64 => run::<i64>(form),
        _ => Err(form.unknown()),
    }
}

/// `bfi`: sets a field.
pub(super) fn insert(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    fn field(a: u64, b: u64, from: u32, len: u32) -> u64 {
        let (from, len) = (from & 0xff, len & 0xff);
        let ones = if len < 64 { (1 << len) - 1 } else { u64::MAX };
        let mask = if from < 64 { ones << from } else { 0 };
        b & !mask | if from < 64 { a << from } else { 0 } & mask
    }
    let ty = form.ty()?;
    let (from, len) = (form.source(3)?, form.source(4)?);
    let run = match ty {
        Type::U32 => {
            let f = |a: u32, b: u32, from, len| field(a.into(), b.into(), from, len) as u32;
            map4(form.destination(0)?, (form.source(1)?, form.source(2)?, from, len), f)
        }
        Type::U64 => {
            map4(form.destination(0)?, (form.source(1)?, form.source(2)?, from, len), field)
        }
        _ => return Err(form.unknown()),
    };
    Ok(Plan::keep(run))
}

/// `bmsk`: ones from a bit on.
pub(super) fn ones(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let is_wrapping = clamp_or_wrap(form)?;
    if form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let run = form.binary(move |from: u32, len: u32| {
        let (from, len) =
            if is_wrapping { (from & 31, len & 31) } else { (from.min(32), len.min(32)) };
        (((1_u64 << len) - 1) << from) as u32
    })?;
    Ok(Plan::clear(run))
}

/// `szext`: extends the lower bits by zeros or their highest bit.
pub(super) fn extend(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let is_wrapping = clamp_or_wrap(form)?;
    let is_signed = match form.ty()? {
        Type::S32 => true,
        Type::U32 => false,
        _ => return Err(form.unknown()),
    };
    let run = form.binary(move |a: u32, len: u32| {
        let len = if is_wrapping { len & 31 } else { len.min(32) };
        let low = (u64::from(a) & ((1 << len) - 1)) as u32;
        let is_negative = is_signed && len != 0 && a >> (len - 1) & 1 == 1;
        if is_negative { low | (u64::MAX << len) as u32 } else { low }
    })?;
    Ok(Plan::clear(run))
}

fn clamp_or_wrap(form: &mut Form<'_>) -> Result<bool, PtxError> {
    match (form.take("wrap"), form.take("clamp")) {
        (true, false) => Ok(true),
        (false, true) => Ok(false),
        _ => Err(form.unknown()),
    }
}

/// `prmt`: picks bytes of two words.
pub(super) fn permute(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    if form.ty()? != Type::U32 {
        return Err(form.unknown());
    }
    let modes = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
    let mode = form.take_any(|name| modes.iter().position(|&mode| mode == name));
    let run = form.ternary(move |a: u32, b: u32, selector: u32| {
        let bytes = u64::from(b) << 32 | u64::from(a);
        let byte = |index: u32| (bytes >> (8 * (index & 7))) as u8;
        let s = selector & 3;
        let pick = |k: u32| match mode {
            None => {
                let nibble = selector >> (4 * k);
                let byte = byte(nibble);
                // The highest bit of a nibble asks for the byte's sign instead.
                if nibble & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 }
            }
            Some(0) => byte(s + k),
            Some(1) => byte(s.wrapping_sub(k)),
            Some(2) => byte(s),
            Some(3) => byte(s.max(k)),
            Some(4) => byte(s.min(k)),
            Some(_) => byte((s & 1) * 2 + (k & 1)),
        };
        u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
    })?;
    Ok(Plan::clear(run))
}

/// `mov.pred`, by way of its source's lanes.
pub(super) fn move_predicate(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let (d, a) = (form.predicate_destination(0)?, form.predicate(1)?);
    let run: Run = std::sync::Arc::new(move |registers, lanes| {
        d.write(registers, lanes, a.read(registers));
        0
    });
    Ok(Plan { run, flow: Flow::Keep })
}

/// `testp`: what kind of number it is.
pub(super) fn test(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    fn class(name: &str) -> Option<fn(f64, bool) -> bool> {
        Some(match name {
            "finite" => |a, _| a.is_finite(),
            "infinite" => |a, _| a.is_infinite(),
            "number" => |a, _| !a.is_nan(),
            "notanumber" => |a, _| a.is_nan(),
            // Zero counts as normal.
            "normal" => |a, is_subnormal| a.is_finite() && !is_subnormal,
            "subnormal" => |_, is_subnormal| is_subnormal,
            _ => return None,
        })
    }
    let ty = form.ty()?;
    let Some(class) = form.take_any(class) else { return Err(form.unknown()) };
    let d = form.predicate_destination(0)?;
    let run: Run = match ty {
        Type::F32 => {
            let lanes_of = test1(form.source(1)?, move |a: f32| class(a.into(), a.is_subnormal()));
            std::sync::Arc::new(move |registers, lanes| {
                d.write(registers, lanes, lanes_of(registers));
                0
            })
        }
        Type::F64 => {
            let lanes_of = test1(form.source(1)?, move |a: f64| class(a, a.is_subnormal()));
            std::sync::Arc::new(move |registers, lanes| {
                d.write(registers, lanes, lanes_of(registers));
                0
            })
        }
        _ => return Err(form.unknown()),
    };
    Ok(Plan::clear(run))
}
