//! From a function of one lane to one of a warp's registers.
//!
//! Each closure here is one loop over all lanes, on whole arrays and without branches of its own,
//! so that the compiler vectorises it. Lanes that do not take part are computed like the others and
//! not stored.

use std::array;
use std::marker::PhantomData;
use std::sync::Arc;

use super::registers::Registers;
use crate::compute::{Register, WARP};

/// Executes an instruction for some lanes; tells in which its result wraps.
pub(super) type Run = Arc<dyn Fn(&mut Registers, u32) -> u32 + Send + Sync>;

/// The bit of each lane.
const BIT: [u32; WARP] = {
    let mut bits = [1; WARP];
    let mut lane = 1;
    while lane < WARP {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// What a bank holds for each lane.
pub(super) trait Bits: Copy + Default + Send + Sync + 'static {
    const ZERO: &'static [Self; WARP];
    fn number(register: Register) -> Option<u16>;
    fn bank(registers: &Registers) -> &[[Self; WARP]];
    fn bank_mut(registers: &mut Registers) -> &mut [[Self; WARP]];
}

impl Bits for u32 {
    const ZERO: &'static [u32; WARP] = &[0; WARP];
    fn number(register: Register) -> Option<u16> {
        if let Register::Word(number) = register { Some(number) } else { None }
    }
    #[inline]
    fn bank(registers: &Registers) -> &[[u32; WARP]] {
        &registers.words
    }
    #[inline]
    fn bank_mut(registers: &mut Registers) -> &mut [[u32; WARP]] {
        &mut registers.words
    }
}

impl Bits for u64 {
    const ZERO: &'static [u64; WARP] = &[0; WARP];
    fn number(register: Register) -> Option<u16> {
        if let Register::Long(number) = register { Some(number) } else { None }
    }
    #[inline]
    fn bank(registers: &Registers) -> &[[u64; WARP]] {
        &registers.longs
    }
    #[inline]
    fn bank_mut(registers: &mut Registers) -> &mut [[u64; WARP]] {
        &mut registers.longs
    }
}

/// A value that a register holds.
pub(super) trait Value: Copy + Send + Sync + 'static {
    type Bits: Bits;
    /// Its own bits; its register may have more.
    const SIZE: u32;
    fn from_bits(bits: Self::Bits) -> Self;
    fn to_bits(self) -> Self::Bits;
}

macro_rules! values {
    ($($value:ty, $bits:ty, $size:literal, $from:expr, $to:expr;)*) => { $(
        impl Value for $value {
            type Bits = $bits;
            const SIZE: u32 = $size;
            #[inline(always)]
            fn from_bits(bits: $bits) -> Self { ($from)(bits) }
            #[inline(always)]
            fn to_bits(self) -> $bits { ($to)(self) }
        }
    )* };
}

values! {
    u8, u32, 8, |bits: u32| bits as u8, u32::from;
    // Registers have at least 16 bits.
    i8, u32, 8, |bits: u32| bits as i8, |value: i8| u32::from(value as u16);
    u16, u32, 16, |bits: u32| bits as u16, u32::from;
    i16, u32, 16, |bits: u32| bits as i16, |value: i16| u32::from(value as u16);
    u32, u32, 32, |bits: u32| bits, |value: u32| value;
    i32, u32, 32, |bits: u32| bits as i32, |value: i32| value as u32;
    f32, u32, 32, f32::from_bits, f32::to_bits;
    u64, u64, 64, |bits: u64| bits, |value: u64| value;
    i64, u64, 64, |bits: u64| bits as i64, |value: i64| value as u64;
    f64, u64, 64, f64::from_bits, f64::to_bits;
    half::f16, u32, 16, |bits: u32| half::f16::from_bits(bits as u16), |value: half::f16| u32::from(value.to_bits());
    half::bf16, u32, 16, |bits: u32| half::bf16::from_bits(bits as u16), |value: half::bf16| u32::from(value.to_bits());
}

/// Two values in one register; the first in the lower bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair<T>(pub(super) [T; 2]);

impl<T: Value<Bits = u32>> Value for Pair<T> {
    type Bits = u32;
    const SIZE: u32 = 32;
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        Self([T::from_bits(bits & 0xffff), T::from_bits(bits >> 16)])
    }
    #[inline(always)]
    fn to_bits(self) -> u32 {
        self.0[0].to_bits() | self.0[1].to_bits() << 16
    }
}

/// Two of binary32 in one register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FloatPair(pub(super) [f32; 2]);

impl Value for FloatPair {
    type Bits = u64;
    const SIZE: u32 = 64;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self([f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)])
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self.0[0].to_bits()) | u64::from(self.0[1].to_bits()) << 32
    }
}

/// A register that is read.
pub(super) struct Source<T> {
    number: u16,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<T> {}

impl<T: Value> Source<T> {
    /// `None` when it is of the wrong bank.
    pub(super) fn new(register: Register) -> Option<Self> {
        T::Bits::number(register).map(|number| Self { number, value: PhantomData })
    }

    #[inline(always)]
    fn read(self, registers: &Registers) -> &[T::Bits; WARP] {
        T::Bits::bank(registers).get(usize::from(self.number)).unwrap_or(T::Bits::ZERO)
    }
}

/// A register that is written; none for `_`.
pub(super) struct Destination<T> {
    number: Option<u16>,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Destination<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Destination<T> {}

impl<T: Value> Destination<T> {
    /// `None` when it is of the wrong bank.
    pub(super) fn new(register: Option<Register>) -> Option<Self> {
        let number = match register {
            Some(register) => Some(T::Bits::number(register)?),
            None => None,
        };
        Some(Self { number, value: PhantomData })
    }

    #[inline(always)]
    pub(super) fn write(self, registers: &mut Registers, lanes: u32, values: &[T::Bits; WARP]) {
        let Some(number) = self.number else { return };
        let Some(slot) = T::Bits::bank_mut(registers).get_mut(usize::from(number)) else { return };
        if lanes == u32::MAX {
            *slot = *values;
        } else {
            for ((slot, value), bit) in slot.iter_mut().zip(values).zip(BIT) {
                *slot = if lanes & bit == 0 { *slot } else { *value };
            }
        }
    }
}

/// A predicate that is read, or its negation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredicateSource {
    pub(super) number: u16,
    pub(super) negated: bool,
}

impl PredicateSource {
    #[inline(always)]
    pub(super) fn read(self, registers: &Registers) -> u32 {
        let lanes = registers.predicates.get(usize::from(self.number)).copied().unwrap_or(0);
        if self.negated { !lanes } else { lanes }
    }
}

/// A predicate that is written; none for `_`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredicateDestination(pub(super) Option<u16>);

impl PredicateDestination {
    #[inline(always)]
    pub(super) fn write(self, registers: &mut Registers, lanes: u32, values: u32) {
        let Some(number) = self.0 else { return };
        if let Some(slot) = registers.predicates.get_mut(usize::from(number)) {
            *slot = *slot & !lanes | values & lanes;
        }
    }
}

/// `d = f(a)`
pub(super) fn map1<A: Value, D: Value>(
    d: Destination<D>,
    a: Source<A>,
    f: impl Fn(A) -> D + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let a = a.read(registers);
        let values = array::from_fn(|lane| f(A::from_bits(a[lane])).to_bits());
        d.write(registers, lanes, &values);
        0
    })
}

/// `d = f(a)`, in which `wraps(a)` tells of the result.
pub(super) fn checked1<A: Value, D: Value>(
    d: Destination<D>,
    a: Source<A>,
    f: impl Fn(A) -> D + Send + Sync + 'static,
    wraps: impl Fn(A) -> bool + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let a = a.read(registers);
        let values = array::from_fn(|lane| f(A::from_bits(a[lane])).to_bits());
        let wrapped = mask(|lane| wraps(A::from_bits(a[lane])));
        d.write(registers, lanes, &values);
        wrapped
    })
}

/// `d = f(a, b)`
pub(super) fn map2<A: Value, B: Value, D: Value>(
    d: Destination<D>,
    (a, b): (Source<A>, Source<B>),
    f: impl Fn(A, B) -> D + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let (a, b) = (a.read(registers), b.read(registers));
        let values =
            array::from_fn(|lane| f(A::from_bits(a[lane]), B::from_bits(b[lane])).to_bits());
        d.write(registers, lanes, &values);
        0
    })
}

/// `d = f(a, b)`, in which `wraps(a, b)` tells of the result.
pub(super) fn checked2<A: Value, B: Value, D: Value>(
    d: Destination<D>,
    (a, b): (Source<A>, Source<B>),
    f: impl Fn(A, B) -> D + Send + Sync + 'static,
    wraps: impl Fn(A, B) -> bool + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let (a, b) = (a.read(registers), b.read(registers));
        let values =
            array::from_fn(|lane| f(A::from_bits(a[lane]), B::from_bits(b[lane])).to_bits());
        let wrapped = mask(|lane| wraps(A::from_bits(a[lane]), B::from_bits(b[lane])));
        d.write(registers, lanes, &values);
        wrapped
    })
}

/// `d = f(a, b, c)`
pub(super) fn map3<A: Value, B: Value, C: Value, D: Value>(
    d: Destination<D>,
    (a, b, c): (Source<A>, Source<B>, Source<C>),
    f: impl Fn(A, B, C) -> D + Send + Sync + 'static,
) -> Run {
    checked3(d, (a, b, c), f, |_, _, _| false)
}

/// `d = f(a, b, c)`, in which `wraps(a, b, c)` tells of the result.
pub(super) fn checked3<A: Value, B: Value, C: Value, D: Value>(
    d: Destination<D>,
    (a, b, c): (Source<A>, Source<B>, Source<C>),
    f: impl Fn(A, B, C) -> D + Send + Sync + 'static,
    wraps: impl Fn(A, B, C) -> bool + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let (a, b, c) = (a.read(registers), b.read(registers), c.read(registers));
        let of =
            |lane: usize| (A::from_bits(a[lane]), B::from_bits(b[lane]), C::from_bits(c[lane]));
        let values = array::from_fn(|lane| {
            let (a, b, c) = of(lane);
            f(a, b, c).to_bits()
        });
        let wrapped = mask(|lane| {
            let (a, b, c) = of(lane);
            wraps(a, b, c)
        });
        d.write(registers, lanes, &values);
        wrapped
    })
}

/// `d = f(a, b, c, e)`
pub(super) fn map4<A: Value, B: Value, C: Value, E: Value, D: Value>(
    d: Destination<D>,
    (a, b, c, e): (Source<A>, Source<B>, Source<C>, Source<E>),
    f: impl Fn(A, B, C, E) -> D + Send + Sync + 'static,
) -> Run {
    Arc::new(move |registers, lanes| {
        let (a, b) = (a.read(registers), b.read(registers));
        let (c, e) = (c.read(registers), e.read(registers));
        let values = array::from_fn(|lane| {
            f(
                A::from_bits(a[lane]),
                B::from_bits(b[lane]),
                C::from_bits(c[lane]),
                E::from_bits(e[lane]),
            )
            .to_bits()
        });
        d.write(registers, lanes, &values);
        0
    })
}

/// Lanes in which `f(a)`.
pub(super) fn test1<A: Value>(a: Source<A>, f: impl Fn(A) -> bool) -> impl Fn(&Registers) -> u32 {
    move |registers| {
        let a = a.read(registers);
        mask(|lane| f(A::from_bits(a[lane])))
    }
}

/// Lanes in which `f(a, b)`.
pub(super) fn test2<A: Value>(
    (a, b): (Source<A>, Source<A>),
    f: impl Fn(A, A) -> bool,
) -> impl Fn(&Registers) -> u32 {
    move |registers| {
        let (a, b) = (a.read(registers), b.read(registers));
        mask(|lane| f(A::from_bits(a[lane]), A::from_bits(b[lane])))
    }
}

/// `d = p ? a : b`
pub(super) fn choose<T: Value>(
    d: Destination<T>,
    (a, b): (Source<T>, Source<T>),
    p: PredicateSource,
) -> Run {
    Arc::new(move |registers, lanes| {
        let (a, b, p) = (a.read(registers), b.read(registers), p.read(registers));
        let values = array::from_fn(|lane| if p & BIT[lane] == 0 { b[lane] } else { a[lane] });
        d.write(registers, lanes, &values);
        0
    })
}

/// Lanes in which `f`.
#[inline(always)]
fn mask(f: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for (lane, bit) in BIT.into_iter().enumerate() {
        mask |= if f(lane) { bit } else { 0 };
    }
    mask
}

/// `values`, a value for each lane of a mask: `yes` where its bit is set.
#[inline(always)]
pub(super) fn spread<T: Copy>(mask: u32, yes: T, no: T) -> [T; WARP] {
    array::from_fn(|lane| if mask & BIT[lane] == 0 { no } else { yes })
}

/// `f` of each lane's value of both.
#[inline(always)]
pub(super) fn read_lanes<T: Value>(source: Source<T>, registers: &Registers) -> [T; WARP] {
    let bits = source.read(registers);
    array::from_fn(|lane| T::from_bits(bits[lane]))
}
