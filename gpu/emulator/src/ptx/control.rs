//! Which instruction is which; branches and calls.

use super::PtxError;
use super::lower::{Label, Lowering};
use super::names::{Named, Place, Scope};
use super::syntax::{Declaration, Instruction, Operand};
use crate::code::{Constant, Guard, Op, Register, Space};

/// How deep calls may nest.
const MOST_CALLS: usize = 32;

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
            "ldmatrix" => self.load_matrix(modifiers, operands)?,
            "mbarrier" => return self.mbarrier(modifiers, operands),
            "cvta" => return self.convert_address(modifiers, operands),
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

    /// `call (results), function, (arguments)`: inlines the function.
    fn call(&mut self, operands: &'m [Operand]) -> Result<(), PtxError> {
        let (results, operands) = match operands {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            [Operand::Ignored, rest @ ..] => (&[][..], rest),
            _ => (&[][..], operands),
        };
        let (name, arguments) = match operands {
            [Operand::Name { name, negated: false, offset: 0 }, rest @ ..] => match rest {
                [] => (name, &[][..]),
                [Operand::List(arguments)] => (name, arguments.as_slice()),
                _ => return Err(self.error(format!("indirect calls (`{name}`) are not supported"))),
            },
            _ => return Err(self.error("expected the name of a function to call")),
        };
        if name == "__assertfail" {
            return self.emit(Op::Trap);
        }
        if name == "vprintf" {
            // What it prints is of no account, and its result of hardly any.
            return self.emit(Op::Nothing);
        }
        let module = self.module;
        let number = module.functions.get(name.as_str()).copied();
        let function = number.and_then(|number| module.source.functions.get(number));
        let Some((number, function)) = number.zip(function) else {
            return Err(self.error(format!("indirect calls (`{name}`) are not supported")));
        };
        if function.body.is_none() {
            return Err(self.error(format!("`{name}` is not part of the module")));
        }
        if function.is_kernel {
            return Err(self.error(format!("`{name}` is a kernel and cannot be called")));
        }
        if self.calls.contains(&number) {
            return Err(self.error(format!("recursion (`{name}`) is not supported")));
        }
        if self.calls.len() > MOST_CALLS {
            return Err(self.error("calls nest too deeply"));
        }
        let mut scope = Scope::default();
        self.bind(&mut scope, name, &function.results, results)?;
        self.bind(&mut scope, name, &function.parameters, arguments)?;
        let end = self.new_label();
        let here = self.here;
        if let Some(guard) = here.guard {
            self.here.guard = Some(Guard { expected: !guard.expected, ..guard });
            self.emit(Op::Branch { target: end.0 as u32 })?;
        }
        self.body(number, function, scope, end)?;
        self.here = here;
        self.stand(end);
        Ok(())
    }

    /// Lets the parameters of a function stand for the variables that are passed.
    fn bind(
        &mut self,
        scope: &mut Scope<'m>,
        function: &str,
        parameters: &'m [Declaration],
        arguments: &'m [Operand],
    ) -> Result<(), PtxError> {
        if parameters.len() != arguments.len() {
            return Err(self.error(format!("another number of parameters than `{function}` has")));
        }
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let Operand::Name { name, negated: false, offset: 0 } = argument else {
                return Err(self.error("arguments have to be `.param` variables"));
            };
            let place = match self.resolve(name)? {
                Named::Variable(place @ Place { space: Space::Local, .. }) => place,
                _ => return Err(self.error(format!("`{name}` is no `.param` variable"))),
            };
            if place.bytes < parameter.bytes() {
                return Err(self.error(format!("`{name}` is smaller than `{function}` takes")));
            }
            scope.declare_place(&parameter.name, place);
        }
        Ok(())
    }
}
