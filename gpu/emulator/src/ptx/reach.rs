//! What a kernel can come to.

use std::collections::{HashMap, HashSet};

use super::Module;
use super::syntax::{Declaration, Function, Initial, Instruction, Operand, StatementKind};

/// The kernel and the functions that it may call, directly or not.
#[derive(Debug)]
pub(super) struct Reach {
    /// Their numbers, the kernel first.
    pub(super) functions: Vec<usize>,
    /// Those of them whose address is taken.
    pub(super) by_address: Vec<usize>,
}

impl Reach {
    /// Of the kernel that is the module's function of that number.
    pub(super) fn of(module: &Module, kernel: usize) -> Self {
        let mut search = Search {
            module,
            reach: Self { functions: vec![kernel], by_address: Vec::new() },
            functions: HashSet::from([kernel]),
            by_address: HashSet::new(),
            declared: module.source.variables.iter().map(|v| (v.name.as_str(), v)).collect(),
            variables: HashSet::new(),
        };
        let mut next = 0;
        while let Some(&number) = search.reach.functions.get(next) {
            next += 1;
            let Some(function) = module.source.functions.get(number) else { continue };
            for instruction in instructions(function) {
                let is_call = instruction.opcode.starts_with("call");
                names(instruction).for_each(|name| search.name(name, is_call));
            }
        }
        search.reach
    }
}

struct Search<'m> {
    module: &'m Module,
    reach: Reach,
    functions: HashSet<usize>,
    by_address: HashSet<usize>,
    declared: HashMap<&'m str, &'m Declaration>,
    /// Those that were come to.
    variables: HashSet<&'m str>,
}

impl<'m> Search<'m> {
    /// A name that an instruction or an initialiser has.
    fn name(&mut self, name: &'m str, is_call: bool) {
        if let Some(&number) = self.module.functions.get(name) {
            if self.functions.insert(number) {
                self.reach.functions.push(number);
            }
            if !is_call && self.by_address.insert(number) {
                self.reach.by_address.push(number);
            }
            return;
        }
        let mut left = vec![name];
        while let Some(name) = left.pop() {
            let Some(variable) = self.declared.get(name).copied() else { continue };
            if !self.variables.insert(name) {
                continue;
            }
            for initial in &variable.initial {
                match initial {
                    Initial::Address { name, .. } if self.module.functions.contains_key(name) => {
                        self.name(name, false);
                    }
                    Initial::Address { name, .. } => left.push(name),
                    _ => {}
                }
            }
        }
    }
}

pub(super) fn instructions(function: &Function) -> impl Iterator<Item = &Instruction> {
    function.body.iter().flatten().filter_map(|statement| match &statement.kind {
        StatementKind::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

/// Names in an instruction's operands.
pub(super) fn names(instruction: &Instruction) -> impl Iterator<Item = &str> {
    instruction.operands.iter().flat_map(|operand| {
        let parts = match operand {
            Operand::Vector(parts) | Operand::List(parts) => parts.as_slice(),
            Operand::Pair(parts) => parts.as_slice(),
            _ => std::slice::from_ref(operand),
        };
        parts.iter().filter_map(|part| match part {
            Operand::Name { name, .. } => Some(name.as_str()),
            Operand::Address { base, .. } => base.as_deref(),
            _ => None,
        })
    })
}
