//! Atomic read-modify-writes.

use half::{bf16, f16};

use super::core::Core;
use super::global::Region;
use super::lanes::lanes_of;
use super::order::{Effect, Log, Place};
use super::request::{Request, Use};
use super::touch::in_shared;
use super::warp::Warp;
use crate::code::{Atomic, AtomicOperation, AtomicType, Order, Register, Scope, Space, WARP};
use crate::finding::FindingKind;

const READ_WRITE: Effect = Effect {
    reads: true,
    writes: true,
    acquires: false,
    releases: false,
    scope: Scope::Device,
    names_scope: true,
};

impl Core<'_> {
    /// Executes an atomic, lane by lane and element by element.
    pub(super) fn atomic(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        atomic: &Atomic,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let elements = atomic.operands.len() as u32;
        let request = Request {
            counter,
            warp: warp.index,
            bytes: atomic.bytes(),
            order: if atomic.order == Order::Weak { Order::Relaxed } else { atomic.order },
            scope: atomic.scope,
            read_only_path: false,
            early: warp.early,
        };
        let (addresses, parts) = self.places(warp, counter, &atomic.address, lanes);
        let mut changes: Vec<Change<'_>> =
            atomic.operands.iter().map(|&operand| Change::new(atomic, warp, operand)).collect();
        for (space, lanes) in parts {
            if lanes == 0 {
                continue;
            }
            self.record_access(request.warp, counter, space, &addresses, lanes);
            match space {
                Space::Global | Space::Generic => {
                    self.counters.global_atomics += u64::from(lanes.count_ones());
                }
                Space::Shared | Space::Cluster if elements == 1 => {
                    self.counters.shared_accesses += 1;
                }
                Space::Shared | Space::Cluster | Space::Local | Space::Parameter => {
                    let lane = lanes.trailing_zeros() as usize;
                    self.report(FindingKind::OutOfBounds, counter, warp.index, lane, || {
                        let which =
                            if elements == 1 { "neither global nor shared" } else { "not global" };
                        (None, format!("an atomic on memory that is {which}"))
                    });
                    continue;
                }
            }
            let mut near = None;
            for lane in lanes_of(lanes) {
                let address = addresses[lane];
                if space == Space::Shared {
                    let Some(offset) = self.within_shared(request, lane, address) else { continue };
                    if let [change] = changes.as_mut_slice() {
                        self.atomic_shared(request, lane, offset, change, log);
                    }
                } else if space == Space::Cluster {
                    let Some(visit) = self.visit(request, lane, address, log) else { continue };
                    if let Some(offset) = self.within_shared(request, lane, visit.address)
                        && let [change] = changes.as_mut_slice()
                    {
                        self.atomic_shared(request, lane, offset, change, log);
                    }
                    self.leave(&visit, log);
                } else if let Some(offset) = self.within(&mut near, request, lane, address)
                    && let Some(region) = near
                {
                    self.atomic_global(request, lane, (address, offset), region, &mut changes, log);
                }
            }
        }
        for (&destination, change) in atomic.destinations.iter().zip(&changes) {
            warp.set(destination, lanes, &change.old);
            if change.old_undefined != 0 {
                warp.registers.taint(destination, lanes, change.old_undefined, Some(counter));
            }
        }
    }

    fn atomic_shared(
        &mut self,
        request: Request,
        lane: usize,
        offset: usize,
        change: &mut Change<'_>,
        log: &mut Log<'_>,
    ) {
        let (grid, bytes, at) = (self.grid, request.bytes, offset as u64);
        let (old, is_defined) = self.shared.read(offset, bytes);
        let (new, writes) = change.apply(lane, old, is_defined);
        let is_sound = !change.takes_undefined(lane, is_defined);
        self.watch(Place::Shared(at), bytes, old);
        self.has_changed |= old != new;
        self.shared.write(offset, bytes, new, is_sound);
        let effect = Effect { writes, ..READ_WRITE };
        let conflict = self.observe_shared(request, lane, offset, writes);
        self.report_race(request, lane, conflict, || in_shared(grid, at));
        self.order_strongly(request, lane, Place::Shared(at), effect, log);
    }

    fn atomic_global(
        &mut self,
        request: Request,
        lane: usize,
        (address, offset): (u64, usize),
        region: Region<'_>,
        changes: &mut [Change<'_>],
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        let Request { counter, warp, .. } = request;
        let place = || grid.global.place(address);
        let Some(cells) = region.cells else {
            self.report(FindingKind::WriteToReadOnly, counter, warp, lane, || {
                (Some(place()), String::new())
            });
            return;
        };
        let bytes = request.bytes / changes.len().max(1) as u32;
        let mut effects = Vec::with_capacity(changes.len());
        for (element, change) in changes.iter_mut().enumerate() {
            let step = element * bytes as usize;
            let (address, offset) = (address + step as u64, offset + step);
            let is_defined = region.buffer.is_defined(offset, bytes);
            if change.takes_undefined(lane, is_defined) {
                let at = Use { counter, warp, lane, what: "the new value" };
                self.report_undefined(at, change.read_by(lane), || Some(place()));
            }
            let old = region.buffer.read(offset, bytes);
            let (new, writes) = change.apply(lane, old, is_defined);
            self.watch(Place::Global(address), bytes, old);
            self.has_changed |= old != new;
            self.remember_atomic(request, lane, address, log);
            self.remember_write(request, lane, address, bytes, [old, new], log);
            region.buffer.write(offset, bytes, new);
            effects.push((address, Effect { writes, ..READ_WRITE }));
        }
        let writes = effects.iter().any(|(_, effect)| effect.writes);
        let conflict = self.observe_global(request, lane, cells, offset, writes);
        self.report_race(request, lane, conflict, place);
        for (address, effect) in effects {
            self.order_strongly(request, lane, Place::Global(address), effect, log);
        }
    }
}

/// What an atomic does to one element, in all lanes.
struct Change<'a> {
    atomic: &'a Atomic,
    operands: [u64; WARP],
    replacements: [u64; WARP],
    /// Lanes in which an operand is undefined, and the instruction that read it so.
    undefined: u32,
    read_by: Option<u32>,
    /// What was there before.
    old: [u64; WARP],
    /// Lanes in which nobody had written it.
    old_undefined: u32,
}

impl<'a> Change<'a> {
    fn new(atomic: &'a Atomic, warp: &Warp, operand: Register) -> Self {
        let given = || [Some(operand), atomic.replacement].into_iter().flatten();
        Self {
            atomic,
            operands: warp.long(operand),
            replacements: atomic.replacement.map_or([0; WARP], |register| warp.long(register)),
            undefined: given().fold(0, |all, one| all | warp.registers.undefined(one)),
            read_by: given().find_map(|register| warp.registers.read_by(register)),
            old: [0; WARP],
            old_undefined: 0,
        }
    }

    /// The new value, and whether it is written: a comparison that fails does not.
    fn apply(&mut self, lane: usize, old: u64, is_defined: bool) -> (u64, bool) {
        let Atomic { operation, ty, .. } = *self.atomic;
        self.old[lane] = old;
        self.old_undefined |= u32::from(!is_defined) << lane;
        let (operand, mask) = (self.operands[lane], mask(ty.bytes()));
        let new = operation.apply(ty, old, operand, self.replacements[lane]) & mask;
        (new, operation != AtomicOperation::CompareAndSwap || old == operand & mask)
    }

    /// Whether the new value depends on what nobody has written.
    fn takes_undefined(&self, lane: usize, is_defined: bool) -> bool {
        let needs_old = self.atomic.operation != AtomicOperation::Exchange;
        self.undefined >> lane & 1 != 0 || needs_old && !is_defined
    }

    /// The instruction that read an undefined operand of a lane.
    fn read_by(&self, lane: usize) -> Option<u32> {
        self.read_by.filter(|_| self.undefined >> lane & 1 != 0)
    }
}

impl AtomicType {
    /// Bytes of an element.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::B16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::S32 | Self::F32 | Self::F16x2 | Self::BF16x2 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }
}

impl AtomicOperation {
    /// The new value.
    pub(super) fn apply(self, ty: AtomicType, old: u64, operand: u64, replacement: u64) -> u64 {
        match self {
            Self::Exchange => operand,
            Self::CompareAndSwap if old == operand & mask(ty.bytes()) => replacement,
            Self::CompareAndSwap => old,
            _ => match ty {
                AtomicType::U32 | AtomicType::S32 | AtomicType::B16 => {
                    let signed = ty == AtomicType::S32;
                    combine_words(self, signed, old as u32, operand as u32).into()
                }
                AtomicType::U64 | AtomicType::S64 => {
                    self.on_longs(ty == AtomicType::S64, old, operand)
                }
                AtomicType::F32 => {
                    let (a, b) = (f32::from_bits(old as u32), f32::from_bits(operand as u32));
                    let result = self.on_floats(a.into(), b.into(), || f64::from(a + b));
                    // It is one of binary32.
                    (result as f32).to_bits().into()
                }
                AtomicType::F64 => {
                    let (a, b) = (f64::from_bits(old), f64::from_bits(operand));
                    self.on_floats(a, b, || a + b).to_bits()
                }
                AtomicType::F16 => self.on_halves(old as u16, operand as u16).into(),
                AtomicType::BF16 => self.on_bfloats(old as u16, operand as u16).into(),
                AtomicType::F16x2 | AtomicType::BF16x2 => {
                    let half = |shift: u32| {
                        let (a, b) = ((old >> shift) as u16, (operand >> shift) as u16);
                        let result = match ty {
                            AtomicType::F16x2 => self.on_halves(a, b),
                            _ => self.on_bfloats(a, b),
                        };
                        u64::from(result) << shift
                    };
                    half(0) | half(16)
                }
            },
        }
    }

    fn on_longs(self, signed: bool, a: u64, b: u64) -> u64 {
        let is_less = if signed { a.cast_signed() < b.cast_signed() } else { a < b };
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Min => {
                if is_less {
                    a
                } else {
                    b
                }
            }
            Self::Max => {
                if is_less {
                    b
                } else {
                    a
                }
            }
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::Increment => {
                if a >= b {
                    0
                } else {
                    a + 1
                }
            }
            Self::Decrement => {
                if a == 0 || a > b {
                    b
                } else {
                    a - 1
                }
            }
            Self::Exchange | Self::CompareAndSwap => b,
        }
    }

    fn on_floats(self, a: f64, b: f64, sum: impl FnOnce() -> f64) -> f64 {
        match self {
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            _ => sum(),
        }
    }

    fn on_halves(self, a: u16, b: u16) -> u16 {
        let (a, b) = (f16::from_bits(a).to_f64(), f16::from_bits(b).to_f64());
        // A sum of two of binary16 is exact in binary64.
        f16::from_f64(self.on_floats(a, b, || a + b)).to_bits()
    }

    fn on_bfloats(self, a: u16, b: u16) -> u16 {
        let (a, b) = (bf16::from_bits(a), bf16::from_bits(b));
        // Rounding to odd in between makes two roundings one: the sum of two bfloat16 may need more
        // than 53 bits.
        let (wide_a, wide_b) = (f64::from(a.to_f32()), f64::from(b.to_f32()));
        let sum = || {
            let sum = wide_a + wide_b;
            let part = sum - wide_a;
            let error = (wide_a - (sum - part)) + (wide_b - part);
            let is_odd = sum.to_bits() & 1 != 0;
            if error == 0.0 || is_odd || !sum.is_finite() {
                sum
            } else if (error > 0.0) == (sum > 0.0) {
                f64::from_bits(sum.to_bits() + 1)
            } else {
                f64::from_bits(sum.to_bits() - 1)
            }
        };
        bf16::from_f64(self.on_floats(wide_a, wide_b, sum)).to_bits()
    }
}

/// Combines two 32-bit numbers as atomics and warp-wide reductions do.
pub(super) fn combine_words(operation: AtomicOperation, signed: bool, a: u32, b: u32) -> u32 {
    let wide = |value: u32| {
        if signed { i64::from(value.cast_signed()).cast_unsigned() } else { value.into() }
    };
    match operation {
        AtomicOperation::Decrement | AtomicOperation::Increment => {
            operation.on_longs(false, a.into(), b.into()) as u32
        }
        _ => operation.on_longs(signed, wide(a), wide(b)) as u32,
    }
}

/// The bits of an element.
pub(super) fn mask(bytes: u32) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

#[cfg(test)]
mod tests {
    use AtomicOperation::*;

    use super::*;

    #[test]
    fn integers() {
        let u32 = |op: AtomicOperation, a: u32, b: u32| {
            op.apply(AtomicType::U32, a.into(), b.into(), 77) as u32
        };
        assert_eq!(u32(Add, u32::MAX, 2), 1);
        assert_eq!(u32(Max, u32::MAX, 2), u32::MAX);
        assert_eq!(AtomicOperation::Max.apply(AtomicType::S32, u64::from(u32::MAX), 2, 0), 2);
        assert_eq!([u32(Increment, 3, 3), u32(Increment, 2, 3)], [0, 3]);
        assert_eq!([u32(Decrement, 0, 3), u32(Decrement, 9, 3), u32(Decrement, 2, 3)], [3, 3, 1]);
        assert_eq!([u32(CompareAndSwap, 5, 5), u32(CompareAndSwap, 5, 6)], [77, 5]);
        assert_eq!(u32(Exchange, 5, 6), 6);
        assert_eq!([u32(And, 6, 3), u32(Or, 6, 3), u32(Xor, 6, 3)], [2, 7, 5]);
    }

    #[test]
    fn floats_round_once() {
        let sum =
            Add.apply(AtomicType::F32, 1.0f32.to_bits().into(), 2f32.powi(-24).to_bits().into(), 0);
        assert_eq!(sum, u64::from(1.0f32.to_bits()));
        let halves = Add.apply(AtomicType::F16x2, 0x3C00_4000, 0x3C00_3C00, 0);
        assert_eq!(halves, 0x4000_4200);
        // 1 + 2^-8 + 2^-60 is just above the middle of two neighbours.
        let a = bf16::from_f64(1.0 + 2f64.powi(-7)).to_bits();
        let half_ulp = bf16::from_f64(2f64.powi(-8)).to_bits();
        assert_eq!(Add.apply(AtomicType::BF16, a.into(), half_ulp.into(), 0) as u16, a + 1);
    }
}
