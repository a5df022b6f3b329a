//! Operands as registers and addresses.

use std::cell::Cell;

use super::PtxError;
use super::lower::Lowering;
use super::names::Named;
use super::scope::Variable;
use super::syntax::{Instruction, Operand};
use crate::code::{Address, Constant, Op, Register, Space};
use crate::compute::{Compute, Operands};

impl<'m> Lowering<'m> {
    /// A source of 1, 8, 16, 32 or 64 bits.
    pub(super) fn read(&mut self, operand: &'m Operand, bits: u32) -> Result<Register, PtxError> {
        match operand {
            Operand::Name { negated: true, .. } => Err(self.error("`!` is not allowed here")),
            operand => self.read_either(operand, bits),
        }
    }

    /// A source that may be written `!%p`, which is for the caller to look at.
    fn read_either(&mut self, operand: &'m Operand, bits: u32) -> Result<Register, PtxError> {
        match operand {
            Operand::Integer(value) => self.constant(Constant::Bits(*value), bits),
            Operand::Single(single) => {
                let double = f64::from(f32::from_bits(*single)).to_bits();
                let value = if bits == 64 { double } else { u64::from(*single) };
                self.constant(Constant::Bits(value), bits)
            }
            Operand::Double(double) => {
                let single = (f64::from_bits(*double) as f32).to_bits();
                let value = if bits == 64 { *double } else { u64::from(single) };
                self.constant(Constant::Bits(value), bits)
            }
            Operand::Name { name, offset, .. } => match self.resolve(name)? {
                Named::Variable(variable) => self.read_address(name, variable, *offset, bits),
                _ if *offset != 0 => Err(self.error(format!("`{name}` is no variable"))),
                Named::Register(register, held) => {
                    let fits = match bits {
                        1 => held == 1,
                        64 => held == 64,
                        _ => held >= bits && held != 64 && held != 1,
                    };
                    if !fits {
                        return Err(self.error(format!("`{name}` has {held} bits, not {bits}")));
                    }
                    Ok(register)
                }
                Named::Constant(constant, held) if held == bits => self.constant(constant, bits),
                Named::Clock(held) if held == bits => {
                    let destination = self.fresh(bits)?;
                    self.emit(Op::Clock { destination })?;
                    Ok(destination)
                }
                Named::Constant(_, held) | Named::Clock(held) => {
                    Err(self.error(format!("`{name}` has {held} bits, not {bits}")))
                }
            },
            _ => Err(self.error("expected a register or a number")),
        }
    }

    /// The address of a variable, within its own space.
    fn read_address(
        &mut self,
        name: &str,
        variable: Variable,
        offset: i64,
        bits: u32,
    ) -> Result<Register, PtxError> {
        if let Some(frame) = self.frame_of(variable) {
            let address = variable.address.wrapping_add_signed(offset);
            let (long, within) = (self.fresh(64)?, self.constant(Constant::Bits(address), 64)?);
            self.emit_compute(&["add", "s64"], &[long, frame, within])?;
            if bits == 64 {
                return Ok(long);
            }
            let word = self.fresh(32)?;
            self.emit_compute(&["cvt", "u32", "u64"], &[word, long])?;
            return Ok(word);
        }
        if bits == 64 || bits == 32 && variable.space != Space::Global {
            let address = variable.address.wrapping_add_signed(offset);
            return self.constant(Constant::Bits(address), bits);
        }
        Err(self.error(format!("the address of `{name}` does not fit {bits} bits")))
    }

    /// The register that has the address of the frame in which a variable lies.
    fn frame_of(&self, variable: Variable) -> Option<Register> {
        self.own.as_ref().map(|own| own.frame).filter(|_| variable.space == Space::Local)
    }

    /// A source that may be wider than what is used of it.
    pub(super) fn read_wide(
        &mut self,
        operand: &'m Operand,
        bits: u32,
    ) -> Result<Register, PtxError> {
        if let Operand::Name { name, negated: false, offset: 0 } = operand
            && let Named::Register(register @ Register::Long(_), _) = self.resolve(name)?
        {
            return Ok(register);
        }
        self.read(operand, bits)
    }

    /// A destination and its bits; `None` for `_`.
    pub(super) fn write(
        &mut self,
        operand: &'m Operand,
    ) -> Result<Option<(Register, u32)>, PtxError> {
        match operand {
            Operand::Ignored => Ok(None),
            Operand::Name { name, negated: false, offset: 0 } => match self.resolve(name)? {
                Named::Register(register, bits) => Ok(Some((register, bits))),
                _ => Err(self.error(format!("`{name}` is no register"))),
            },
            _ => Err(self.error("expected a register")),
        }
    }

    /// A destination of 1, 32 or 64 bits; one that nobody reads for `_`.
    pub(super) fn write_bits(
        &mut self,
        operand: &'m Operand,
        bits: u32,
    ) -> Result<Register, PtxError> {
        match self.write(operand)? {
            None => self.fresh(bits),
            Some((register, held)) if held == bits => Ok(register),
            Some((_, held)) => {
                Err(self.error(format!("the destination has {held} bits, not {bits}")))
            }
        }
    }

    /// `d|p` or `d`: a destination of 1, 32 or 64 bits, and a predicate.
    pub(super) fn write_with_predicate(
        &mut self,
        operand: &'m Operand,
        bits: u32,
    ) -> Result<(Register, Option<Register>), PtxError> {
        match operand {
            Operand::Pair(pair) => {
                let predicate = match &pair[1] {
                    Operand::Ignored => None,
                    predicate => Some(self.write_bits(predicate, 1)?),
                };
                Ok((self.write_bits(&pair[0], bits)?, predicate))
            }
            _ => Ok((self.write_bits(operand, bits)?, None)),
        }
    }

    /// A predicate that may be written `!%p`, and whether it is.
    pub(super) fn read_predicate(
        &mut self,
        operand: &'m Operand,
    ) -> Result<(Register, bool), PtxError> {
        let negated = matches!(operand, Operand::Name { negated: true, .. });
        Ok((self.read_either(operand, 1)?, negated))
    }

    /// `[base+offset]` in a space; none is generic.
    pub(super) fn address(
        &mut self,
        operand: &'m Operand,
        space: Option<Space>,
    ) -> Result<Address, PtxError> {
        let Operand::Address { base, offset } = operand else {
            return Err(self.error("expected an address in `[ ]`"));
        };
        let offset = *offset;
        let wanted = space.unwrap_or(Space::Generic);
        let Some(name) = base else {
            return Ok(Address { space: wanted, base: None, offset });
        };
        match self.resolve(name)? {
            Named::Register(register, bits) => {
                let has_32_bits = matches!(
                    wanted,
                    Space::Shared | Space::Cluster | Space::Local | Space::Parameter
                );
                if bits != 64 && !(bits == 32 && has_32_bits) {
                    return Err(
                        self.error(format!("`{name}` has {bits} bits, which no address has"))
                    );
                }
                // Within a function, parameters are part of the frame.
                let is_frame = wanted == Space::Parameter && !self.frame.is_kernel;
                let space = if is_frame { Space::Local } else { wanted };
                Ok(Address { space, base: Some(register), offset })
            }
            Named::Variable(variable) => {
                // Parameters of calls and of functions are part of the frame.
                let is_frame = wanted == Space::Parameter && variable.space == Space::Local;
                let is_own = wanted == Space::Cluster && variable.space == Space::Shared;
                if wanted != Space::Generic && wanted != variable.space && !is_frame && !is_own {
                    return Err(self.error(format!("`{name}` lies in another space")));
                }
                let offset = variable.address.wrapping_add_signed(offset).cast_signed();
                Ok(Address { space: variable.space, base: self.frame_of(variable), offset })
            }
            _ => Err(self.error(format!("`{name}` is no address"))),
        }
    }

    /// Selects arithmetic, or says that the instruction is unknown.
    pub(super) fn compute(&mut self, instruction: &'m Instruction) -> Result<Op, PtxError> {
        let opcode: Vec<&str> = instruction.opcode.split('.').collect();
        let mut written = Written {
            lowering: self,
            operands: &instruction.operands,
            converts: opcode.first() == Some(&"cvt"),
            seen: 0,
            asked: Cell::new(0),
        };
        let selected = Compute::select(&opcode, &mut written)?;
        let (seen, asked) = (written.seen, written.asked.get());
        let Some(compute) = selected else {
            return Err(self.error(format!("unknown instruction `{}`", instruction.opcode)));
        };
        for (index, operand) in instruction.operands.iter().enumerate() {
            let bit = 1_u32.checked_shl(index as u32).unwrap_or(0);
            if seen & bit == 0 {
                let reason = format!("`{}` has too many operands", instruction.opcode);
                return Err(self.error(reason));
            }
            if matches!(operand, Operand::Name { negated: true, .. }) && asked & bit == 0 {
                return Err(self.error(format!("`{}` takes no `!`", instruction.opcode)));
            }
        }
        Ok(Op::Compute(compute))
    }

    /// Emits arithmetic that is not written: a destination, then sources.
    pub(super) fn emit_compute(
        &mut self,
        opcode: &[&str],
        registers: &[Register],
    ) -> Result<(), PtxError> {
        let mut made = Made { registers, line: self.here.line };
        match Compute::select(opcode, &mut made)? {
            Some(compute) => self.emit(Op::Compute(compute)),
            None => Err(self.error(format!("unknown instruction `{}`", opcode.join(".")))),
        }
    }
}

/// The operands of an instruction, as they are written.
struct Written<'l, 'm> {
    lowering: &'l mut Lowering<'m>,
    operands: &'m [Operand],
    /// Whether a source may be wider than what is converted of it (PTX ISA, operand size exceeding
    /// instruction-type size).
    converts: bool,
    /// A bit for each operand that was read or written.
    seen: u32,
    /// A bit for each operand of which was asked whether it is negated.
    asked: Cell<u32>,
}

impl<'m> Written<'_, 'm> {
    fn operand(&mut self, index: usize) -> Result<&'m Operand, PtxError> {
        self.seen |= 1_u32.checked_shl(index as u32).unwrap_or(0);
        self.operands.get(index).ok_or_else(|| self.lowering.error("too few operands"))
    }

    fn element(&mut self, index: usize, element: usize) -> Result<&'m Operand, PtxError> {
        match self.operand(index)? {
            Operand::Vector(elements) => {
                elements.get(element).ok_or_else(|| self.lowering.error("too few elements"))
            }
            operand => Ok(operand),
        }
    }
}

impl Operands for Written<'_, '_> {
    fn count(&self) -> usize {
        self.operands.len()
    }

    fn read(&mut self, index: usize, bits: u32) -> Result<Register, PtxError> {
        let operand = self.operand(index)?;
        if !self.converts || bits > 32 {
            return self.lowering.read_either(operand, bits);
        }
        match self.lowering.read_wide(operand, bits)? {
            wide @ Register::Long(_) => {
                let word = self.lowering.fresh(32)?;
                self.lowering.emit_compute(&["cvt", "u32", "u64"], &[word, wide])?;
                Ok(word)
            }
            register => Ok(register),
        }
    }

    fn is_negated(&self, index: usize) -> bool {
        self.asked.set(self.asked.get() | 1_u32.checked_shl(index as u32).unwrap_or(0));
        matches!(self.operands.get(index), Some(Operand::Name { negated: true, .. }))
    }

    fn is_immediate(&self, index: usize) -> bool {
        matches!(self.operands.get(index), Some(Operand::Integer(_)))
    }

    fn write(&mut self, index: usize) -> Result<Option<Register>, PtxError> {
        let operand = self.operand(index)?;
        Ok(self.lowering.write(operand)?.map(|(register, _)| register))
    }

    fn write_pair(&mut self, index: usize) -> Result<[Option<Register>; 2], PtxError> {
        match self.operand(index)? {
            Operand::Pair(pair) => {
                let first = self.lowering.write(&pair[0])?.map(|(register, _)| register);
                let second = self.lowering.write(&pair[1])?.map(|(register, _)| register);
                Ok([first, second])
            }
            operand => Ok([self.lowering.write(operand)?.map(|(register, _)| register), None]),
        }
    }

    fn elements(&self, index: usize) -> usize {
        match self.operands.get(index) {
            Some(Operand::Vector(elements)) => elements.len(),
            _ => 1,
        }
    }

    fn read_element(
        &mut self,
        index: usize,
        element: usize,
        bits: u32,
    ) -> Result<Register, PtxError> {
        let operand = self.element(index, element)?;
        self.lowering.read(operand, bits)
    }

    fn write_element(
        &mut self,
        index: usize,
        element: usize,
    ) -> Result<Option<Register>, PtxError> {
        let operand = self.element(index, element)?;
        Ok(self.lowering.write(operand)?.map(|(register, _)| register))
    }

    fn error(&self, reason: String) -> PtxError {
        self.lowering.error(reason)
    }
}

/// Registers as operands.
struct Made<'r> {
    registers: &'r [Register],
    line: u32,
}

impl Made<'_> {
    fn register(&self, index: usize) -> Result<Register, PtxError> {
        let register = self.registers.get(index).copied();
        register.ok_or_else(|| self.error("too few operands".to_owned()))
    }
}

impl Operands for Made<'_> {
    fn count(&self) -> usize {
        self.registers.len()
    }

    fn read(&mut self, index: usize, _bits: u32) -> Result<Register, PtxError> {
        self.register(index)
    }

    fn is_negated(&self, _index: usize) -> bool {
        false
    }

    fn is_immediate(&self, _index: usize) -> bool {
        false
    }

    fn write(&mut self, index: usize) -> Result<Option<Register>, PtxError> {
        self.register(index).map(Some)
    }

    fn write_pair(&mut self, index: usize) -> Result<[Option<Register>; 2], PtxError> {
        Ok([Some(self.register(index)?), None])
    }

    fn elements(&self, _index: usize) -> usize {
        1
    }

    fn read_element(
        &mut self,
        index: usize,
        _element: usize,
        _bits: u32,
    ) -> Result<Register, PtxError> {
        self.register(index)
    }

    fn write_element(
        &mut self,
        index: usize,
        _element: usize,
    ) -> Result<Option<Register>, PtxError> {
        self.register(index).map(Some)
    }

    fn error(&self, reason: String) -> PtxError {
        PtxError::new(self.line, reason)
    }
}
