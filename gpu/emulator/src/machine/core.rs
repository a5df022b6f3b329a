//! What the warps of a block share.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::arrivals::Arrival;
use super::findings::{Culprit, Findings};
use super::grid::Grid;
use super::groups::{Copy, Groups};
use super::membership::Membership;
use super::order::BlockOrder;
use super::phases::MBarriers;
use super::polls::Watched;
use super::sent::Sent;
use super::shared::SharedMemory;
use super::stamp::Stamp;
use super::warp::Serial;
use crate::code::WARP;
use crate::counters::Counters;
use crate::finding::{FindingKind, PlacedAddress};

/// Where undefined values of shared memory and of threads' own come from, as far as they were
/// stored: the instruction that read each, by thread for the latter, and by address.
type Stored = BTreeMap<(Option<usize>, usize), u32>;

/// What the warps of a block share.
#[derive(Debug)]
pub(crate) struct Core<'g> {
    pub(crate) grid: &'g Grid<'g>,
    /// Its number in the grid.
    pub(super) number: u32,
    pub(super) position: [u32; 3],
    /// Its part in its cluster.
    pub(super) membership: Membership,
    pub(crate) shared: SharedMemory,
    pub(crate) order: BlockOrder,
    pub(crate) counters: Counters,
    pub(super) findings: Findings,
    pub(super) undefined_stored: Stored,
    /// Copies under way to shared memory, by warp.
    pub(super) copies: Vec<Groups<Copy>>,
    /// Where each warp has waited for any last.
    pub(super) waited_at: BTreeMap<usize, u32>,
    /// Bulk copies from there, by warp.
    pub(super) sent: Vec<Sent>,
    pub(super) mbarriers: MBarriers,
    /// Shuffles that have read from lanes that do not take part, or have ended.
    pub(super) read_absent: BTreeSet<u32>,
    /// By instruction: what it was the first to read of what nobody has written.
    pub(super) undefined_reads: BTreeMap<u32, Option<PlacedAddress>>,
    /// Where turns are taken at random.
    pub(crate) random: Option<Rng>,
    /// How lanes of a warp run one after the other at first, if they do.
    pub(super) serial: Option<Serial>,
    /// What the present strong access has read.
    pub(crate) watched: Vec<Watched>,
    /// Whether it has changed memory.
    pub(crate) has_changed: bool,
    /// Warps that have come to a barrier since the last look.
    pub(crate) arrivals: Vec<Arrival>,
    /// Nothing more can be learnt.
    pub(crate) is_stuck: bool,
}

impl Core<'_> {
    /// Adds a finding about a lane at an instruction. What it says is asked for the first time
    /// only.
    #[cold]
    pub(crate) fn report(
        &mut self,
        kind: FindingKind,
        counter: u32,
        warp: usize,
        lane: usize,
        describe: impl FnOnce() -> (Option<PlacedAddress>, String),
    ) {
        let thread = self.grid.thread(warp * WARP + lane);
        let culprit = Culprit { instruction: counter as usize, block: self.position, thread };
        self.findings.add(kind, culprit, self.grid.kernel, describe);
    }

    /// The same about an access that is remembered.
    pub(crate) fn report_of(
        &mut self,
        kind: FindingKind,
        instruction: u32,
        stamp: Stamp,
        describe: impl FnOnce() -> (Option<PlacedAddress>, String),
    ) {
        let block = self.grid.block(stamp.block());
        let thread = self.grid.thread(stamp.thread() as usize);
        let culprit = Culprit { instruction: instruction as usize, block, thread };
        self.findings.add(kind, culprit, self.grid.kernel, describe);
    }
}
