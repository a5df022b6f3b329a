//! Small modules, and what becomes of them.

mod arithmetic;
mod calls;
mod instructions;
mod module;
mod never_panics;

use super::Module;
use crate::code::{Constant, Kernel, Op, Register};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// The kernel `k` of a module with this text.
fn kernel_of(text: &str) -> Result<Kernel, String> {
    let text = format!("{HEAD}{text}");
    Module::parse(&text).and_then(|module| module.kernel("k")).map_err(|error| error.to_string())
}

/// A kernel of these statements, with one parameter and a few registers.
fn kernel(statements: &str) -> Result<Kernel, String> {
    kernel_of(&format!(
        ".visible .entry k(.param .u64 k_param_0)\n{{\n.reg .pred %p<4>; .reg .b16 %rs<4>; \
         .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .f64 %fd<4>;\n{statements}\nret;\n}}"
    ))
}

/// What the statements do.
fn ops(statements: &str) -> Vec<Op> {
    kernel(statements).unwrap().code.into_iter().map(|instruction| instruction.op).collect()
}

/// What the first statement does.
fn op(statement: &str) -> Op {
    ops(statement).remove(0)
}

/// Why the statements cannot be run.
fn error(statements: &str) -> String {
    kernel(statements).unwrap_err()
}

/// What a register holds from the beginning.
fn held(kernel: &Kernel, register: Register) -> Option<Constant> {
    kernel.constants.iter().find(|(r, _)| *r == register).map(|(_, constant)| *constant)
}
