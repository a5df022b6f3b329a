//! The front end: from PTX text to code.
//!
//! ```text
//! text ─► lexer ─► parser (statement, local) ─► syntax ─► variables ─► Module
//! Module ─► lower (names, operands, reach, shared; memory_access, atomics, bulk, warp, cluster, control, calls) ─► Kernel
//! ```
//!
//! Functions are inlined where they are called, except for those that call themselves or are called
//! by their address. Instructions that no launch can tell apart from
//! nothing (prefetches, cache hints) become [`Op::Nothing`](crate::code::Op::Nothing); one that is
//! not known is an error that names it.

mod atomics;
mod bulk;
mod calls;
mod cluster;
mod control;
mod guesses;
mod lexer;
mod liveness;
mod local;
mod lower;
mod matrix;
mod mbarrier;
mod memory_access;
mod names;
mod operands;
mod outlined;
mod parser;
mod reach;
mod scope;
mod shared;
mod statement;
mod syntax;
#[cfg(test)]
mod tests;
mod variables;
mod warp;

use std::collections::HashMap;

use crate::code::{Kernel, Variable};
pub use crate::error::PtxError;

/// A PTX module.
#[derive(Clone, Debug)]
pub struct Module {
    source: syntax::Source,
    /// Index of a function by name.
    functions: HashMap<String, usize>,
    /// Addresses of the variables in device memory, and of the functions.
    addresses: HashMap<String, u64>,
    variables: Vec<Variable>,
}

impl Module {
    /// Reads a module's text.
    ///
    /// # Errors
    /// When it is no PTX. Instructions are looked at when a kernel is asked for.
    pub fn parse(text: &str) -> Result<Self, PtxError> {
        let source = parser::parse(lexer::tokens(text)?)?;
        let functions = parser::index(&source)?;
        let (addresses, variables) = variables::place(&source, &functions)?;
        Ok(Self { source, functions, addresses, variables })
    }

    /// Names of the kernels (`.entry`), as they are written.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        let kernels = self.source.functions.iter().filter(|f| f.is_kernel && f.body.is_some());
        kernels.map(|f| f.name.as_str()).collect()
    }

    /// Makes a kernel ready to run.
    ///
    /// # Errors
    /// When there is none of that name, or when it uses an instruction or a feature that the
    /// emulator does not have; the error names it.
    pub fn kernel(&self, name: &str) -> Result<Kernel, PtxError> {
        lower::kernel(self, name)
    }
}
