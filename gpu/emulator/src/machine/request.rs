//! What an instruction does with memory and values, as what carries it out is told.

use crate::code::{Order, Scope};

/// An instruction's access by some lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) counter: u32,
    pub(super) warp: usize,
    /// Bytes that a lane accesses, all elements together.
    pub(super) bytes: u32,
    pub(super) order: Order,
    /// Whom a strong access is strong to.
    pub(super) scope: Scope,
    /// Through the cache for what is only read.
    pub(super) read_only_path: bool,
    /// Lanes that have yet to wait for the kernels before this one.
    pub(super) early: u32,
}

/// Where the value of a register matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// Number of the instruction.
    pub(super) counter: u32,
    pub(super) warp: usize,
    pub(super) lane: usize,
    /// What depends on the value.
    pub(super) what: &'static str,
}
