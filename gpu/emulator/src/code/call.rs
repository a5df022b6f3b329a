//! Calls of functions that are not inlined: those that call themselves, and those whose address is
//! taken.
//!
//! A function's memory for its results, parameters and variables is a *frame* of the thread's own
//! memory, which begins behind the caller's. A register of the function has the frame's address, so
//! that its code is the same however deep it is called.

use std::ops::Range;

use super::{Register, RegisterCounts};

/// Where functions seem to lie: addresses that nothing else has.
pub const FUNCTIONS: Range<u64> = 0x0400_0000_0000..0x0410_0000_0000;
/// Bytes of a thread's stack unless the host sets `cudaLimitStackSize`.
pub const STACK_BYTES: u32 = 1 << 10;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// Where the arguments lie in the caller's frame.
    pub arguments: Box<[Range<u32>]>,
    /// Registers that take the results.
    pub results: Box<[Range<u32>]>,
    /// The caller's number among [`Kernel::functions`](super::Kernel::functions); none for the
    /// kernel itself and what is inlined there.
    pub caller: Option<u32>,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The function of that number.
    Function(u32),
    /// The one whose address a 64-bit register has.
    Pointer(Register),
}

/// A function with code of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// What pointers to it hold.
    pub address: u64,
    /// Number of its first instruction.
    pub entry: u32,
    /// Its registers: from so many of each bank to so many.
    pub registers: Range<RegisterCounts>,
    /// The 64-bit register that has the frame's address in the thread's own memory.
    pub frame: Register,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// What of a frame lies between arrays, by distance from its beginning.
    pub gaps: Vec<Range<u32>>,
    /// Bytes of the stack that a call takes on a device at least: the address to return to, and the
    /// function's variables.
    pub stack_bytes: u32,
    /// Where the results lie in a frame.
    pub results: Box<[Range<u32>]>,
    /// Registers in which the parameters lie.
    pub parameters: Box<[Range<u32>]>,
}
