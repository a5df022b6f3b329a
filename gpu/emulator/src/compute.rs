//! Arithmetic on a warp's registers.

use crate::code::{Register, RegisterCounts, WARP};
use crate::ptx::PtxError;

/// An instruction on registers alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Compute {}

/// What selection asks of an instruction's operands. Numbered from 0 as they are written.
pub trait Operands {
    /// How many there are.
    fn count(&self) -> usize;
    /// A source of 1 (predicate), 8, 16, 32 or 64 bits: a register, or an immediate, a special register or a variable's
    /// address, which become constants. Float immediates (`0f3F800000`, `0d...`) give their bits.
    ///
    /// # Errors
    /// When it is none of these, or of another size.
    fn read(&mut self, index: usize, bits: u32) -> Result<Register, PtxError>;
    /// Whether a predicate source is written as `!%p`.
    fn is_negated(&self, index: usize) -> bool;
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
    /// Selects the instruction of an opcode such as `["add", "s32"]` or `["setp", "lt", "u32"]`; `None` when it is no
    /// arithmetic.
    ///
    /// # Errors
    /// When the opcode is arithmetic, but this form of it is not known; the error names it.
    pub fn select(opcode: &[&str], operands: &mut dyn Operands) -> Result<Option<Self>, PtxError> {
        let _ = (opcode, operands);
        Ok(None)
    }

    /// Executes it for some lanes (a bit for each).
    #[inline]
    pub fn execute(&self, registers: &mut Registers, lanes: u32) {
        let _ = (registers, lanes);
    }
}

/// The registers of a warp, with what is known of their values.
///
/// A value is *undefined* where it comes from memory that was never written, and *wrapped* where it comes from a 16- or
/// 32-bit sum, difference, product or shift whose result fits neither as signed nor as unsigned.
#[derive(Clone, Debug)]
pub struct Registers {
    /// A bit for each lane.
    pub predicates: Vec<u32>,
    /// 32 bits for each lane.
    pub words: Vec<[u32; WARP]>,
    /// 64 bits for each lane.
    pub longs: Vec<[u64; WARP]>,
}

impl Registers {
    /// All zero.
    #[must_use]
    pub fn new(counts: RegisterCounts) -> Self {
        Self {
            predicates: vec![0; counts.predicates],
            words: vec![[0; WARP]; counts.words],
            longs: vec![[0; WARP]; counts.longs],
        }
    }

    /// Lanes in which a register is undefined.
    #[must_use]
    pub fn undefined(&self, register: Register) -> u32 {
        let _ = register;
        0
    }

    /// Lanes in which a register is wrapped.
    #[must_use]
    pub fn wrapped(&self, register: Register) -> u32 {
        let _ = register;
        0
    }

    /// Says in which of the `lanes`, whose value was just set, it is undefined and in which wrapped.
    pub fn taint(&mut self, register: Register, lanes: u32, undefined: u32, wrapped: u32) {
        let _ = (register, lanes, undefined, wrapped);
    }
}
