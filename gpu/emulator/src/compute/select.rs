//! What an opcode's modifiers and operands say.

use super::Operands;
use super::lanes::{
    Destination, PredicateDestination, PredicateSource, Run, Source, Value, map1, map2, map3,
};
use crate::compute::Register;
use crate::error::PtxError;

/// How an instruction is executed.
pub(super) struct Plan {
    pub(super) run: Run,
    pub(super) flow: Flow,
}

/// What becomes of marks. A result is undefined wherever a source is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flow {
    /// It is not wrapped whatever the sources are: the operation is modular on purpose, or no
    /// address comes of it.
    Clear,
    /// It is wrapped wherever a source is.
    Keep,
    /// It is what the one chosen of the first two sources is, and undefined where the predicate is.
    Choose(PredicateSource),
    /// It is defined where a defined one of two predicates has a value that decides it alone.
    Decide { value: bool, sources: [PredicateSource; 2] },
    /// As [`Clear`](Self::Clear), and the carry flag is read or written.
    Carry { reads: bool, writes: bool },
}

impl Plan {
    /// Of an operation that addresses are computed with.
    pub(super) fn keep(run: Run) -> Self {
        Self { run, flow: Flow::Keep }
    }

    /// Of any other.
    pub(super) fn clear(run: Run) -> Self {
        Self { run, flow: Flow::Clear }
    }
}

/// Types of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    Tf32,
    F32,
    F32x2,
    F64,
    U16x2,
    S16x2,
    Predicate,
}

impl Type {
    /// `.b` types are unsigned.
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "u8" | "b8" => Self::U8,
            "u16" | "b16" => Self::U16,
            "u32" | "b32" => Self::U32,
            "u64" | "b64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::BF16,
            "bf16x2" => Self::BF16x2,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f32x2" => Self::F32x2,
            "f64" => Self::F64,
            "u16x2" => Self::U16x2,
            "s16x2" => Self::S16x2,
            "pred" => Self::Predicate,
            _ => return None,
        })
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Predicate => 1,
            Self::U8 | Self::S8 => 8,
            Self::U16 | Self::S16 | Self::F16 | Self::BF16 => 16,
            Self::U32 | Self::S32 | Self::F32 | Self::Tf32 => 32,
            Self::F16x2 | Self::BF16x2 | Self::U16x2 | Self::S16x2 => 32,
            Self::U64 | Self::S64 | Self::F64 | Self::F32x2 => 64,
        }
    }

    pub(super) fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::BF16 | Self::BF16x2)
    }
}

/// An instruction that is being selected.
pub(super) struct Form<'a> {
    opcode: &'a [&'a str],
    /// Modifiers that were not looked at yet.
    rest: Vec<&'a str>,
    operands: &'a mut dyn Operands,
    /// Operands that were not looked at begin here.
    end: usize,
    pub(super) reads: Vec<Register>,
    pub(super) writes: Vec<Register>,
}

impl<'a> Form<'a> {
    pub(super) fn new(opcode: &'a [&'a str], operands: &'a mut dyn Operands) -> Self {
        let rest = opcode.get(1..).unwrap_or_default().to_vec();
        Self { opcode, rest, operands, end: 0, reads: Vec::new(), writes: Vec::new() }
    }

    pub(super) fn root(&self) -> &'a str {
        self.opcode.first().copied().unwrap_or_default()
    }

    pub(super) fn name(&self) -> String {
        self.opcode.join(".")
    }

    /// The error about a form that is not known.
    pub(super) fn unknown(&self) -> PtxError {
        self.operands.error(format!("unknown instruction `{}`", self.name()))
    }

    /// Every modifier and operand has to have been looked at.
    pub(super) fn finish(&self) -> Result<(), PtxError> {
        if let Some(modifier) = self.rest.first() {
            return Err(self
                .operands
                .error(format!("unknown modifier `.{modifier}` of `{}`", self.name())));
        }
        if self.operands.count() > self.end {
            return Err(self.operands.error(format!(
                "`{}` takes {} operands, not {}",
                self.name(),
                self.end,
                self.operands.count()
            )));
        }
        Ok(())
    }

    /// Whether a modifier is there.
    pub(super) fn take(&mut self, modifier: &str) -> bool {
        let place = self.rest.iter().position(|&other| other == modifier);
        place.map(|place| self.rest.remove(place)).is_some()
    }

    /// The first modifier that `f` knows.
    pub(super) fn take_any<T>(&mut self, f: impl Fn(&str) -> Option<T>) -> Option<T> {
        let (place, value) =
            self.rest.iter().enumerate().find_map(|(place, name)| Some((place, f(name)?)))?;
        self.rest.remove(place);
        Some(value)
    }

    /// The last modifier, a type.
    pub(super) fn ty(&mut self) -> Result<Type, PtxError> {
        match self.rest.pop().and_then(Type::parse) {
            Some(ty) => Ok(ty),
            None => Err(self.unknown()),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.operands.count()
    }

    pub(super) fn elements(&self, index: usize) -> usize {
        self.operands.elements(index)
    }

    fn seen(&mut self, index: usize) {
        self.end = self.end.max(index + 1);
    }

    fn wrong_size(&self, index: usize, bits: u32) -> PtxError {
        self.operands.error(format!(
            "operand {} of `{}` has not {bits} bits",
            index.saturating_add(1),
            self.name()
        ))
    }

    pub(super) fn source<T: Value>(&mut self, index: usize) -> Result<Source<T>, PtxError> {
        self.seen(index);
        let register = self.operands.read(index, T::SIZE)?;
        self.as_source(register, index)
    }

    pub(super) fn source_element<T: Value>(
        &mut self,
        index: usize,
        element: usize,
    ) -> Result<Source<T>, PtxError> {
        self.seen(index);
        let register = self.operands.read_element(index, element, T::SIZE)?;
        self.as_source(register, index)
    }

    fn as_source<T: Value>(
        &mut self,
        register: Register,
        index: usize,
    ) -> Result<Source<T>, PtxError> {
        self.reads.push(register);
        Source::new(register).ok_or_else(|| self.wrong_size(index, T::SIZE))
    }

    /// The register of a destination, whatever its bank.
    pub(super) fn register(&mut self, index: usize) -> Result<Option<Register>, PtxError> {
        self.seen(index);
        let register = self.operands.write(index)?;
        self.writes.extend(register);
        Ok(register)
    }

    pub(super) fn destination<T: Value>(
        &mut self,
        index: usize,
    ) -> Result<Destination<T>, PtxError> {
        let register = self.register(index)?;
        Destination::new(register).ok_or_else(|| self.wrong_size(index, T::SIZE))
    }

    pub(super) fn destination_element<T: Value>(
        &mut self,
        index: usize,
        element: usize,
    ) -> Result<Destination<T>, PtxError> {
        self.seen(index);
        let register = self.operands.write_element(index, element)?;
        self.writes.extend(register);
        Destination::new(register).ok_or_else(|| self.wrong_size(index, T::SIZE))
    }

    pub(super) fn predicate(&mut self, index: usize) -> Result<PredicateSource, PtxError> {
        self.seen(index);
        let register = self.operands.read(index, 1)?;
        self.reads.push(register);
        match register {
            Register::Predicate(number) => {
                Ok(PredicateSource { number, negated: self.operands.is_negated(index) })
            }
            _ => Err(self.wrong_size(index, 1)),
        }
    }

    pub(super) fn predicate_destination(
        &mut self,
        index: usize,
    ) -> Result<PredicateDestination, PtxError> {
        let register = self.register(index)?;
        self.as_predicate(register, index)
    }

    /// `%p|%q`
    pub(super) fn predicate_pair(
        &mut self,
        index: usize,
    ) -> Result<[PredicateDestination; 2], PtxError> {
        self.seen(index);
        let [first, second] = self.operands.write_pair(index)?;
        self.writes.extend(first);
        self.writes.extend(second);
        Ok([self.as_predicate(first, index)?, self.as_predicate(second, index)?])
    }

    fn as_predicate(
        &self,
        register: Option<Register>,
        index: usize,
    ) -> Result<PredicateDestination, PtxError> {
        match register {
            None => Ok(PredicateDestination(None)),
            Some(Register::Predicate(number)) => Ok(PredicateDestination(Some(number))),
            Some(_) => Err(self.wrong_size(index, 1)),
        }
    }

    /// `%d|%p`: a register and a predicate.
    pub(super) fn destination_with_predicate<T: Value>(
        &mut self,
        index: usize,
    ) -> Result<(Destination<T>, PredicateDestination), PtxError> {
        self.seen(index);
        let [first, second] = self.operands.write_pair(index)?;
        self.writes.extend(first);
        self.writes.extend(second);
        let destination = Destination::new(first).ok_or_else(|| self.wrong_size(index, T::SIZE))?;
        Ok((destination, self.as_predicate(second, index)?))
    }

    /// `d = f(a)`
    pub(super) fn unary<A: Value, D: Value>(
        &mut self,
        f: impl Fn(A) -> D + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        Ok(map1(self.destination(0)?, self.source(1)?, f))
    }

    /// `d = f(a, b)`
    pub(super) fn binary<A: Value, B: Value, D: Value>(
        &mut self,
        f: impl Fn(A, B) -> D + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        Ok(map2(self.destination(0)?, (self.source(1)?, self.source(2)?), f))
    }

    /// `d = f(a, b, c)`
    pub(super) fn ternary<A: Value, B: Value, C: Value, D: Value>(
        &mut self,
        f: impl Fn(A, B, C) -> D + Send + Sync + 'static,
    ) -> Result<Run, PtxError> {
        let sources = (self.source(1)?, self.source(2)?, self.source(3)?);
        Ok(map3(self.destination(0)?, sources, f))
    }
}
