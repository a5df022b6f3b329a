//! Who has come to the barriers of a block.

use std::collections::BTreeMap;

use crate::code::BarrierReduction;

/// Lanes of a warp come to a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(super) barrier: u32,
    pub(super) warp: usize,
    /// The warp's epoch from then on.
    pub(super) epoch: u32,
    pub(super) lanes: u32,
    /// Number of the instruction.
    pub(super) counter: u32,
    pub(super) waits: bool,
    /// Whether the lanes, which need not wait for other warps, wait for the rest of their own.
    pub(super) waits_for_lanes: bool,
    /// Threads that take part; all of the block without.
    pub(super) threads: Option<u32>,
    pub(super) aligned: bool,
    pub(super) reduction: Option<BarrierReduction>,
    /// Lanes whose predicate is true.
    pub(super) holds: u32,
    /// Whether any lane's predicate is undefined.
    pub(super) is_undefined: bool,
    /// The instruction that read it so.
    pub(super) read_by: Option<u32>,
}

/// Who has come to each barrier since it last opened.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    pub(super) arrived: BTreeMap<u32, Vec<Arrival>>,
}
