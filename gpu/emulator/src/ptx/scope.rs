//! What is declared between `{` and `}`.

use std::collections::HashMap;

use super::syntax::{RegisterName, Type};
use crate::code::{Register, Space};

/// A variable, whose address is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) space: Space,
    pub(super) address: u64,
    /// Size of the variable.
    pub(super) bytes: u64,
}

/// The names that are declared between `{` and `}`.
#[derive(Debug, Default)]
pub(super) struct Scope<'m> {
    /// Registers as they are declared.
    declared: HashMap<&'m str, (Type, Option<u64>)>,
    /// Registers that were used.
    pub(super) registers: HashMap<&'m str, (Register, u32)>,
    /// Variables.
    pub(super) variables: HashMap<&'m str, Variable>,
}

impl<'m> Scope<'m> {
    pub(super) fn declare_registers(&mut self, ty: Type, names: &'m [RegisterName]) {
        for RegisterName { name, count } in names {
            self.declared.insert(name, (ty, *count));
        }
    }

    pub(super) fn declare_variable(&mut self, name: &'m str, variable: Variable) {
        self.variables.insert(name, variable);
    }

    /// The type of a register, if it is declared here, by its own name or as one of `%r<10>`.
    pub(super) fn declared_type(&self, name: &str) -> Option<Type> {
        if let Some((ty, None)) = self.declared.get(name) {
            return Some(*ty);
        }
        let digits = name.bytes().rev().take(10).take_while(u8::is_ascii_digit).count();
        (1..=digits).find_map(|digits| {
            let (prefix, number) = name.split_at_checked(name.len() - digits)?;
            let Some((ty, Some(count))) = self.declared.get(prefix) else { return None };
            let is_plain = digits == 1 || !number.starts_with('0');
            (is_plain && number.parse::<u64>().ok()? < *count).then_some(*ty)
        })
    }
}
