//! Phases of mbarriers, and what comes to them.

use std::collections::BTreeMap;

use super::groups::Copy;
use super::stamp::Stamp;

/// The mbarriers of a block, by address.
pub(crate) type MBarriers = BTreeMap<u64, State>;

/// What an mbarrier holds.
#[derive(Debug)]
pub(crate) struct State {
    /// Arrivals that later phases count.
    pub(super) expected: u32,
    /// Arrivals that this phase still waits for.
    pub(super) pending: u32,
    /// Bytes that it waits for.
    pub(super) bytes: i64,
    /// Phases that have ended.
    pub(super) phase: u32,
    /// Questions of this phase that were answered before anything came.
    pub(super) denials: u8,
    /// The last of them: which warp's, and at which of its instructions.
    pub(super) denied: Option<(usize, u64)>,
    pub(super) under_way: Vec<UnderWay>,
    /// The instruction by which bytes were expected last.
    pub(super) expected_at: Option<u32>,
    /// When and where it was initialised.
    pub(super) initialised: Stamp,
    pub(super) initialised_at: u32,
    /// Whether bulk copies need see that.
    pub(super) is_fenced: bool,
}

/// What will come to an mbarrier by itself.
#[derive(Debug)]
pub(super) enum UnderWay {
    /// A part of a bulk copy that was issued in a phase, by a thread of a warp of the block or of
    /// another block.
    Copy { warp: Option<usize>, copy: Copy, phase: u32 },
    /// An arrival of a thread behind its copies.
    Arrival { warp: usize, lane: usize },
}

impl State {
    /// What `ld` would read, if that were allowed.
    pub(super) fn bits(&self) -> u64 {
        u64::from(self.phase) << 32 | u64::from(self.pending)
    }

    /// So many more bytes are to come in this phase, as an instruction says.
    pub(super) fn expect(&mut self, bytes: u32, counter: u32) {
        self.bytes += i64::from(bytes);
        self.expected_at = Some(counter);
    }

    /// Parts of bulk copies are under way to it, which a warp of its block has issued or that of
    /// another block.
    pub(super) fn expects(&mut self, warp: Option<usize>, parts: Vec<Copy>) {
        let phase = self.phase;
        self.under_way.extend(parts.into_iter().map(|copy| UnderWay::Copy { warp, copy, phase }));
    }

    /// Begins the next phase if this one has ended.
    pub(super) fn turn(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase = self.phase.wrapping_add(1);
            self.pending = self.expected;
            self.denials = 0;
        }
    }
}
