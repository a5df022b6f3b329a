//! Arithmetic on a warp's registers.
//!
//! ```text
//! opcode, operands ─► select ─► Compute ─► execute ─► Registers
//! ```
//!
//! [`Compute::select`] makes a closure of an instruction, by way of a `Form`, which looks at its
//! modifiers and operands. The closure is one loop over all 32 lanes (`lanes`); its function of one
//! lane comes from a module of its own for each kind of arithmetic. What PTX leaves open is decided
//! there and said there.
//!
//! What is known of values ([`Registers`]) is carried along in [`Compute::execute`], and only once
//! any register was ever marked.

mod approximate;
mod bits;
mod carry;
mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod lanes;
mod moves;
mod pending;
mod registers;
mod rounding;
mod select;
#[cfg(test)]
mod tests;

use std::fmt;

use self::lanes::{PredicateSource, Run};
use self::pending::{Ambiguous, widens_signed};
use self::registers::{Marks, Pending};
use self::select::{Flow, Form, Plan, Type};
use crate::error::PtxError;

pub(crate) use self::registers::Saved;
pub use self::registers::{Register, RegisterCounts, Registers, WARP};

/// An instruction on registers alone.
#[derive(Clone)]
pub struct Compute {
    opcode: Box<str>,
    reads: Box<[Register]>,
    writes: Box<[Register]>,
    run: Run,
    flow: Flow,
    ambiguous: Option<Ambiguous>,
    widens_signed: Option<bool>,
}

/// What selection asks of an instruction's operands. Numbered from 0 as they are written.
pub trait Operands {
    /// How many there are.
    fn count(&self) -> usize;
    /// A source of 1 (predicate), 8, 16, 32 or 64 bits: a register, or an immediate, a special
    /// register or a variable's address, which become constants. Float immediates (`0f3F800000`,
    /// `0d...`) give their bits.
    ///
    /// # Errors
    /// When it is none of these, or of another size.
    fn read(&mut self, index: usize, bits: u32) -> Result<Register, PtxError>;
    /// Whether a predicate source is written as `!%p`.
    fn is_negated(&self, index: usize) -> bool;
    /// Whether it is written as a number.
    fn is_immediate(&self, index: usize) -> bool;
    /// A destination; `None` for `_`.
    ///
    /// # Errors
    /// When it is no register.
    fn write(&mut self, index: usize) -> Result<Option<Register>, PtxError>;
    /// Both halves of a destination `%p|%q`; a destination without `|` is the first.
    ///
    /// # Errors
    /// When they are no registers.
    fn write_pair(&mut self, index: usize) -> Result<[Option<Register>; 2], PtxError>;
    /// Elements of a vector `{a, b}`; 1 for anything else.
    fn elements(&self, index: usize) -> usize;
    /// An element of a vector as a source.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_element(
        &mut self,
        index: usize,
        element: usize,
        bits: u32,
    ) -> Result<Register, PtxError>;
    /// An element of a vector as a destination.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_element(&mut self, index: usize, element: usize)
    -> Result<Option<Register>, PtxError>;
    /// An error about this instruction, with its line.
    fn error(&self, reason: String) -> PtxError;
}

impl Compute {
    /// Selects the instruction of an opcode such as `["add", "s32"]` or `["setp", "lt", "u32"]`;
    /// `None` when it is no arithmetic.
    ///
    /// # Errors
    /// When the opcode is arithmetic, but this form of it is not known; the error names it.
    pub fn select(opcode: &[&str], operands: &mut dyn Operands) -> Result<Option<Self>, PtxError> {
        let Some(select) = selector(opcode) else { return Ok(None) };
        let mut form = Form::new(opcode, operands);
        let Plan { run, flow } = select(&mut form)?;
        form.finish()?;
        let name = form.name().into();
        let (reads, writes) = (form.reads.into(), form.writes.into());
        let (ambiguous, widens_signed) = (Ambiguous::of(opcode, &*operands), widens_signed(opcode));
        Ok(Some(Self { opcode: name, reads, writes, run, flow, ambiguous, widens_signed }))
    }

    /// Shows all registers to `visit`, with whether they are written.
    pub(crate) fn registers(&self, visit: &mut dyn FnMut(Register, bool)) {
        self.reads.iter().for_each(|&register| visit(register, false));
        self.writes.iter().for_each(|&register| visit(register, true));
    }

    /// The lanes of its result, as it is in the registers, in which a number was cut off or has
    /// wrapped just now.
    pub(crate) fn cuts(&self, registers: &Registers) -> u32 {
        let [to] = *self.writes else { return 0 };
        let was_wrapped = self.reads.iter().fold(0, |all, &from| all | registers.wrapped(from));
        let wrapped = registers.wrapped(to) & !was_wrapped;
        let (Some(bits), [from @ Register::Word(number)]) = (self.narrows_to(), &*self.reads)
        else {
            return wrapped;
        };
        if *from == to {
            return wrapped;
        }
        let values = registers.words.get(usize::from(*number)).copied().unwrap_or([0; WARP]);
        (0..WARP)
            .filter(|&lane| does_not_fit(values[lane].into(), bits))
            .fold(wrapped, |cut, lane| cut | 1 << lane)
    }

    /// The bits that it converts a whole number of 32 bits to, if they are fewer.
    fn narrows_to(&self) -> Option<u32> {
        let bits = |ty: &str| match ty {
            "u8" | "s8" => Some(8),
            "u16" | "s16" => Some(16),
            "u32" | "s32" => Some(32),
            _ => None,
        };
        let mut parts = self.opcode.split('.');
        let (op, to, from) = (parts.next()?, bits(parts.next()?)?, bits(parts.next()?)?);
        (op == "cvt" && from == 32 && to < 32 && parts.next().is_none()).then_some(to)
    }

    /// Whether it rounds a number of a wider type to a narrower one.
    pub(crate) fn rounds_to(&self) -> Option<&str> {
        let mut types = self
            .opcode
            .split('.')
            .skip(1)
            .filter(|p| matches!(*p, "f16" | "bf16" | "f16x2" | "bf16x2" | "f32" | "f64"));
        let (to, from) = (types.next()?, types.next()?);
        let width = |ty: &str| match ty {
            "f64" => 3,
            "f32" => 2,
            _ => 1,
        };
        (self.opcode.starts_with("cvt.") && width(to) < width(from)).then_some(to)
    }

    /// Whether it only moves or converts.
    pub(crate) fn is_move(&self) -> bool {
        matches!(self.opcode.split('.').next(), Some("mov" | "cvt"))
    }

    /// Whether it multiplies floating-point numbers.
    pub(crate) fn multiplies(&self) -> bool {
        let mut parts = self.opcode.split('.');
        let is_product = matches!(parts.next(), Some("mul" | "fma" | "mad"));
        is_product && parts.any(|part| part.trim_start_matches('b').starts_with('f'))
    }

    /// Whether it divides whole numbers, which rounds.
    pub(crate) fn divides(&self) -> bool {
        ["div.s", "div.u"].iter().any(|name| self.opcode.starts_with(name))
    }

    /// Whether it makes an integer of a floating-point number.
    pub(crate) fn makes_integer(&self) -> bool {
        let mut types = self.opcode.rsplit('.');
        let (from, to) = (types.next().unwrap_or_default(), types.next().unwrap_or_default());
        self.opcode.starts_with("cvt.")
            && from.trim_start_matches('b').starts_with('f')
            && to.starts_with(['s', 'u'])
    }

    /// Executes it for some lanes (a bit for each).
    #[inline]
    pub fn execute(&self, registers: &mut Registers, lanes: u32) {
        let pending = match self.ambiguous {
            Some(ambiguous) => ambiguous.look(registers, &self.reads),
            None => Pending::default(),
        };
        if registers.tainted || pending != Pending::default() {
            self.execute_marked(registers, lanes, pending);
            return;
        }
        let wrapped = (self.run)(registers, lanes) & lanes;
        if wrapped != 0 {
            self.mark(registers, lanes, Marks { wrapped, ..Marks::default() });
        }
    }

    #[cold]
    fn execute_marked(&self, registers: &mut Registers, lanes: u32, pending: Pending) {
        // Before it runs, as it may overwrite what it reads.
        let mut marks = self.marks(registers);
        marks.pending.signed |= pending.signed;
        marks.pending.unsigned |= pending.unsigned;
        marks.wrapped |= (self.run)(registers, lanes);
        self.mark(registers, lanes, marks);
    }

    fn mark(&self, registers: &mut Registers, lanes: u32, marks: Marks) {
        if let Flow::Carry { writes: true, .. } = self.flow {
            registers.carry_undefined =
                registers.carry_undefined & !lanes | marks.undefined & lanes;
        }
        for &register in &self.writes {
            registers.set_marks(register, lanes, marks);
        }
    }

    /// What is known of the result, but for whether it wraps itself.
    fn marks(&self, registers: &Registers) -> Marks {
        if let Flow::Choose(predicate) = self.flow
            && let [p, a, b] = *self.reads
        {
            let (p, a, b) = (registers.marks(p), registers.marks(a), registers.marks(b));
            let chosen = predicate.read(registers);
            let choose = |a: u32, b: u32| a & chosen | b & !chosen;
            return Marks {
                undefined: p.undefined | choose(a.undefined, b.undefined),
                wrapped: choose(a.wrapped, b.wrapped),
                pending: Pending {
                    signed: choose(a.pending.signed, b.pending.signed),
                    unsigned: choose(a.pending.unsigned, b.pending.unsigned),
                },
                read_by: p.read_by.or(a.read_by).or(b.read_by),
            };
        }
        if let Flow::Decide { value, sources } = self.flow {
            let of = |source: PredicateSource| {
                let marks = registers.marks(Register::Predicate(source.number));
                let held = source.read(registers);
                (marks, !marks.undefined & if value { held } else { !held })
            };
            let [(a, a_decides), (b, b_decides)] = sources.map(of);
            let undefined = (a.undefined | b.undefined) & !(a_decides | b_decides);
            return Marks { undefined, read_by: a.read_by.or(b.read_by), ..Marks::default() };
        }
        let mut all = Marks::default();
        for &register in &self.reads {
            let marks = registers.marks(register);
            all.undefined |= marks.undefined;
            all.read_by = all.read_by.or(marks.read_by);
            all.wrapped |= marks.wrapped;
            all.pending.signed |= marks.pending.signed;
            all.pending.unsigned |= marks.pending.unsigned;
        }
        if let Flow::Carry { reads: true, .. } = self.flow {
            all.undefined |= registers.carry_undefined;
        }
        if let Some(signed) = self.widens_signed {
            let Pending { signed: as_signed, unsigned } = std::mem::take(&mut all.pending);
            all.wrapped |= if signed { as_signed } else { unsigned };
        }
        if !matches!(self.flow, Flow::Keep) {
            (all.wrapped, all.pending) = (0, Pending::default());
        }
        all
    }
}

/// Whether a number of 32 bits has more than so many, whether it is signed or not.
pub(crate) fn does_not_fit(value: u64, bits: u32) -> bool {
    let value = value as u32;
    let above = value >> bits;
    let is_negative = value >> (bits - 1) == u32::MAX >> (bits - 1);
    above != 0 && !is_negative
}

impl fmt::Debug for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} <- {:?}", self.opcode, self.writes, self.reads)
    }
}

impl PartialEq for Compute {
    /// The same instruction on the same registers.
    fn eq(&self, other: &Self) -> bool {
        let key = |compute: &Self| {
            (compute.opcode.clone(), compute.writes.clone(), compute.reads.clone())
        };
        key(self) == key(other)
    }
}

/// Makes a plan of an opcode's modifiers and operands.
type Select = fn(&mut Form<'_>) -> Result<Plan, PtxError>;

/// What selects the instructions of an opcode.
fn selector(opcode: &[&str]) -> Option<Select> {
    if carry::is_carried(opcode) {
        return Some(carry::select);
    }
    Some(match *opcode.first()? {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max"
        | "sad" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "ex2" | "lg2" | "tanh"
        | "copysign" => arithmetic,
        "mul24" | "mad24" => integer::product24,
        "dp4a" | "dp2a" => integer::dot,
        "and" | "or" | "xor" | "not" | "cnot" => bits::logic,
        "lop3" => bits::table,
        "shl" | "shr" => bits::shift,
        "shf" => bits::funnel,
        "popc" | "clz" | "brev" => bits::count,
        "bfind" => bits::find,
        "bfe" => bits::extract,
        "bfi" => bits::insert,
        "bmsk" => bits::ones,
        "szext" => bits::extend,
        "prmt" => bits::permute,
        "fns" => bits::find_nth,
        "testp" => bits::test,
        "setp" => compare::set_predicate,
        "set" => compare::set,
        "selp" => compare::select,
        "slct" => compare::select_by_sign,
        "mov" => moves::select,
        "cvt" => convert::select,
        _ => return None,
    })
}

/// By type.
fn arithmetic(form: &mut Form<'_>) -> Result<Plan, PtxError> {
    let ty = form.ty()?;
    match ty {
        Type::F32 | Type::F64 | Type::F32x2 => float::select(form, ty),
        _ if ty.is_half() => half::select(form, ty),
        _ => integer::select(form, ty),
    }
}
