//! Functions with code of their own, and places in code.

use crate::code::Register;

/// A place in the code that may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub(super) usize);

/// A function that gets code of its own.
#[derive(Debug)]
pub(super) struct Outlined {
    /// Its number in the module.
    pub(super) number: usize,
    /// Where its code begins.
    pub(super) entry: Label,
}

/// The function whose own code is made.
#[derive(Debug)]
pub(super) struct Own {
    /// Among those with code of their own.
    pub(super) number: u32,
    /// Has the address of the frame.
    pub(super) frame: Register,
}
