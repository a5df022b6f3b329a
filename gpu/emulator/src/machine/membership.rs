//! What a block knows of its cluster.

use super::clock::Clock;

/// A block's part in its cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) rank: u32,
    /// By warp.
    pub(super) warps: Vec<Lanes>,
    /// What those that have arrived in this phase release.
    pub(super) released: Clock,
    /// What they have done before, whether they release it or not.
    pub(super) done: Clock,
    /// What was released in the last phase.
    pub(super) last: Clock,
    /// What was done before phases that the block has come to.
    pub(super) outlived: Clock,
    /// Phases that have ended.
    pub(super) phases: u32,
    pub(super) is_visited: bool,
}

/// Lanes of a warp at the cluster's barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes {
    /// Those that have arrived in this phase, and the instruction and form by which the last did.
    pub(super) arrived: u32,
    pub(super) counter: u32,
    pub(super) aligned: bool,
    /// Of those, the ones that wait, and where.
    pub(super) waiting: u32,
    pub(super) waits_at: u32,
    /// Those that have yet to wait for the phase that has ended.
    pub(super) passed: u32,
}

impl Membership {
    pub(crate) fn new(rank: u32, warps: usize) -> Self {
        Self {
            rank,
            warps: vec![Lanes::default(); warps],
            released: Clock::default(),
            done: Clock::default(),
            last: Clock::default(),
            outlived: Clock::default(),
            phases: 0,
            is_visited: false,
        }
    }
}
