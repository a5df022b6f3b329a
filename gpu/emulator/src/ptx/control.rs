//! Which instruction is which; branches.

use super::PtxError;
use super::lower::Lowering;
use super::names::Named;
use super::outlined::Label;
use super::syntax::{Instruction, Operand};
use crate::code::{Constant, Guard, Op, Register};

impl<'m> Lowering<'m> {
    /// Emits a written instruction.
    pub(super) fn instruction(&mut self, instruction: &'m Instruction) -> Result<(), PtxError> {
        self.here.guard = None;
        if let Some((name, expected)) = &instruction.guard {
            let Named::Register(Register::Predicate(predicate), _) = self.resolve(name)? else {
                return Err(self.error(format!("`{name}` is no predicate")));
            };
            self.here.guard = Some(Guard { predicate, expected: *expected });
        }
        let parts: Vec<&str> = instruction.opcode.split('.').collect();
        let (first, modifiers) = parts.split_first().unwrap_or((&"", &[]));
        let operands = instruction.operands.as_slice();
        let unknown = || format!("unknown instruction `{}`", instruction.opcode);
        let op = match *first {
            "ld" | "ldu" => return self.load(modifiers, operands),
            "st" => self.store(modifiers, operands)?,
            "atom" | "red" => self.atomic(*first == "atom", modifiers, operands)?,
            "cp" => self.copy_async(modifiers, operands)?,
            "mma" => self.mma(modifiers, operands)?,
            "ldmatrix" | "stmatrix" => self.move_matrix(first, modifiers, operands)?,
            "mbarrier" => return self.mbarrier(modifiers, operands),
            "cvta" => return self.convert_address(modifiers, operands),
            "mapa" => return self.map_address(modifiers, operands),
            "getctarank" => return self.rank_of_address(modifiers, operands),
            "isspacep" => return self.is_space(modifiers, operands),
            "bra" => match (modifiers, operands) {
                ([] | ["uni"], [Operand::Name { name, negated: false, offset: 0 }]) => {
                    Op::Branch { target: self.target(name)? }
                }
                _ => return Err(self.error(unknown())),
            },
            "brx" => match (modifiers, operands) {
                (["idx"] | ["idx", "uni"], [index, Operand::Name { name, .. }]) => {
                    let table = self.table(name);
                    let table =
                        table.ok_or_else(|| self.error(format!("`{name}` is no branch table")))?;
                    self.count_statements(table.len())?;
                    let targets: Result<_, _> = table.iter().map(|l| self.target(l)).collect();
                    Op::BranchIndexed { index: self.read(index, 32)?, targets: targets? }
                }
                _ => return Err(self.error(unknown())),
            },
            "ret" => match self.frame.end {
                _ if !matches!(modifiers, [] | ["uni"]) || !operands.is_empty() => {
                    return Err(self.error(unknown()));
                }
                Some(_) if self.frame.is_kernel => Op::Exit,
                Some(_) if self.frame.is_last && self.here.guard.is_none() => return Ok(()),
                Some(Label(end)) => Op::Branch { target: end as u32 },
                None => Op::Exit,
            },
            "exit" if modifiers.is_empty() && operands.is_empty() => Op::Exit,
            "trap" | "brkpt" if modifiers.is_empty() && operands.is_empty() => Op::Trap,
            "call" if matches!(modifiers, [] | ["uni"]) => return self.call(operands),
            "griddepcontrol" if matches!(modifiers, ["wait"]) => Op::WaitForGrids,
            "nanosleep" | "prefetch" | "prefetchu" | "discard" | "applypriority"
            | "griddepcontrol" | "pmevent" | "setmaxnreg" => Op::Nothing,
            "createpolicy" => {
                let destination = operands.first().ok_or_else(|| self.error(unknown()))?;
                let destination = self.write_bits(destination, 64)?;
                let zero = self.constant(Constant::Bits(0), 64)?;
                return self.emit_compute(&["mov", "b64"], &[destination, zero]);
            }
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" | "bar" | "barrier"
            | "membar" | "fence" => {
                let known = self.warp(first, modifiers, operands)?;
                known.ok_or_else(|| self.error(unknown()))?
            }
            _ => self.compute(instruction)?,
        };
        self.emit(op)
    }

    fn target(&self, name: &str) -> Result<u32, PtxError> {
        match self.label(name) {
            Some(Label(number)) => Ok(number as u32),
            None => Err(self.error(format!("no label `{name}`"))),
        }
    }
}
