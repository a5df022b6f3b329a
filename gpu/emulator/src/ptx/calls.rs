//! Calls: most functions are inlined, the others get code of their own.

use std::ops::Range;

use super::PtxError;
use super::lower::Lowering;
use super::names::Named;
use super::outlined::{Outlined, Own};
use super::scope::{Scope, Variable};
use super::syntax::{Declaration, DeclaredSpace, Function, Operand, StatementKind};
use super::variables::function_address;
use crate::code::{self, Call, Callee, Guard, Op, Space};

/// How deep calls may nest that are inlined.
const MOST_CALLS: usize = 32;
/// Bytes of the stack that the address takes to which a call returns.
const RETURN_ADDRESS: u64 = 8;

/// Bytes of all registers that a thread may have; what is passed beyond that lies on the stack.
const MOST_PASSED: u64 = 255 * 4;

impl<'m> Lowering<'m> {
    /// `call (results), function, (arguments)`, or with a register that has the function's address
    /// and a prototype behind.
    pub(super) fn call(&mut self, operands: &'m [Operand]) -> Result<(), PtxError> {
        let (results, operands) = match operands {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            [Operand::Ignored, rest @ ..] => (&[][..], rest),
            _ => (&[][..], operands),
        };
        let [callee @ Operand::Name { name, negated: false, offset: 0 }, rest @ ..] = operands
        else {
            return Err(self.error("expected the name of a function to call"));
        };
        let arguments = match rest {
            [] | [Operand::Name { .. }] => &[][..],
            [Operand::List(arguments)] | [Operand::List(arguments), Operand::Name { .. }] => {
                arguments.as_slice()
            }
            _ => return Err(self.error(format!("`{name}` is called with other than a list"))),
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
            let Ok(Named::Register(..)) = self.resolve(name) else {
                return Err(self.error(format!("`{name}` is not part of the module")));
            };
            let pointer = self.read(callee, 64)?;
            for number in self.reach.by_address.clone() {
                let function = module.source.functions.get(number);
                if function.is_some_and(|function| function.body.is_some() && !function.is_kernel) {
                    self.outline(number);
                }
            }
            return self.emit_call(Callee::Pointer(pointer), results, arguments);
        };
        if function.body.is_none() {
            return Err(self.error(format!("`{name}` is not part of the module")));
        }
        if function.is_kernel {
            return Err(self.error(format!("`{name}` is a kernel and cannot be called")));
        }
        let mut scope = Scope::default();
        self.bind(&mut scope, name, &function.results, results)?;
        self.bind(&mut scope, name, &function.parameters, arguments)?;
        // One that is found to call itself is not inlined any more.
        let is_outlined = self.outlined.iter().any(|outlined| outlined.number == number);
        if is_outlined || self.calls.contains(&number) {
            let callee = Callee::Function(self.outline(number));
            return self.emit_call(callee, results, arguments);
        }
        if self.calls.len() > MOST_CALLS {
            return Err(self.error("calls nest too deeply"));
        }
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
            let (name, variable) = self.passed(argument)?;
            if variable.bytes < parameter.bytes() {
                return Err(self.error(format!("`{name}` is smaller than `{function}` takes")));
            }
            scope.declare_variable(&parameter.name, variable);
        }
        Ok(())
    }

    /// A variable that is passed, by its name.
    fn passed(&mut self, argument: &'m Operand) -> Result<(&'m str, Variable), PtxError> {
        let Operand::Name { name, negated: false, offset: 0 } = argument else {
            return Err(self.error("arguments have to be `.param` variables"));
        };
        match self.resolve(name)? {
            Named::Variable(variable @ Variable { space: Space::Local, .. }) => {
                Ok((name, variable))
            }
            _ => Err(self.error(format!("`{name}` is no `.param` variable"))),
        }
    }

    fn emit_call(
        &mut self,
        callee: Callee,
        results: &'m [Operand],
        arguments: &'m [Operand],
    ) -> Result<(), PtxError> {
        let mut places = |operands: &'m [Operand]| -> Result<Box<[Range<u32>]>, PtxError> {
            operands.iter().map(|operand| Ok(range(self.passed(operand)?.1))).collect()
        };
        let (results, arguments) = (places(results)?, places(arguments)?);
        let caller = self.own.as_ref().map(|own| own.number);
        self.emit(Op::Call(Call { callee, arguments, results, caller }))
    }

    /// The number of a function among those with code of their own, of which it is one from now on.
    fn outline(&mut self, number: usize) -> u32 {
        let known = self.outlined.iter().position(|outlined| outlined.number == number);
        let index = known.unwrap_or_else(|| {
            let entry = self.new_label();
            self.outlined.push(Outlined { number, entry });
            self.outlined.len() - 1
        });
        index as u32
    }

    /// Emits the functions with code of their own, until no more come up.
    pub(super) fn outlined(&mut self) -> Result<Vec<code::Function>, PtxError> {
        let mut functions = Vec::new();
        while let Some(&Outlined { number, entry }) = self.outlined.get(functions.len()) {
            let Some(function) = self.module.source.functions.get(number) else { break };
            let from = self.counts();
            let own = Own { number: functions.len() as u32, frame: self.fresh(64)? };
            let frame = own.frame;
            self.own = Some(own);
            self.begin_frame(function.line);
            let mut scope = Scope::default();
            let results = self.declare(&mut scope, &function.results)?;
            let parameters = self.declare(&mut scope, &function.parameters)?;
            self.stand(entry);
            let end = self.new_label();
            self.body(number, function, scope, end)?;
            self.here.guard = None;
            self.stand(end);
            self.emit(Op::Return)?;
            let (frame_bytes, gaps) = self.end_frame();
            let between: u64 = gaps.iter().map(|gap| u64::from(gap.end - gap.start)).sum();
            let held = u64::from(frame_bytes).saturating_sub(between + MOST_PASSED);
            functions.push(code::Function {
                name: function.name.clone(),
                address: function_address(number),
                entry: self.place_of(entry),
                registers: from..self.counts(),
                frame,
                frame_bytes,
                gaps,
                stack_bytes: stack_bytes(function).max(held) as u32,
                results,
                parameters,
            });
        }
        Ok(functions)
    }

    /// Places results or parameters in the frame.
    fn declare(
        &mut self,
        scope: &mut Scope<'m>,
        declarations: &'m [Declaration],
    ) -> Result<Box<[Range<u32>]>, PtxError> {
        let mut ranges = Vec::new();
        for declaration in declarations {
            let variable = self.local(declaration)?;
            scope.declare_variable(&declaration.name, variable);
            ranges.push(range(variable));
        }
        Ok(ranges.into())
    }
}

fn range(variable: Variable) -> Range<u32> {
    variable.address as u32..(variable.address + variable.bytes) as u32
}

/// What a call takes of a device's stack at least, whatever the compiler keeps there besides.
fn stack_bytes(function: &Function) -> u64 {
    let arrays: u64 = function.local_arrays.iter().map(|array| array.end - array.start).sum();
    let of = |declaration: &Declaration| match function.local_arrays.last() {
        // The arrays lie apart in it.
        Some(last) if last.end == declaration.bytes() => arrays,
        _ => declaration.bytes(),
    };
    let variables = function.body.iter().flatten().filter_map(|statement| match &statement.kind {
        StatementKind::Variable(declaration) if declaration.space == DeclaredSpace::Local => {
            Some(of(declaration))
        }
        _ => None,
    });
    RETURN_ADDRESS + variables.sum::<u64>()
}
