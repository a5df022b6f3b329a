//! Threads that give up waiting.
//!
//! Nothing promises that who waits for another thread looks for it less often than any number of
//! times before that one gets any further. A kernel that waits for so many looks, or for a time, has
//! to be right without what it has waited for. Where turns are taken at random, a warp that polls
//! in vain is now and then let look for thousands of times while nobody else does anything, and go
//! on for a while if it stops waiting. Where nothing else can go on, some are let look for longer,
//! as they would on a device.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::block::{Block, Core, PLAIN_SLICE};
use super::order::Releases;
use super::warp::Warp;

/// Looks in a row, while others could go on: who makes more does so to tell of a fault.
pub(super) const LOOKS: u32 = 5_000;
/// And where nobody else can.
const LOOKS_OF_THE_LAST: u32 = 20_000;
/// Warps of a launch that may do the latter in vain.
const MOST_IN_VAIN: u32 = 4;
/// Strong accesses of one that has stopped waiting, before others go on.
const ALONE: u32 = 16;
/// Blocks, the first ones, of which a warp may look at shared memory for so long.
pub(super) const PATIENT_BLOCKS: u32 = 8;

impl Block<'_> {
    /// Lets a warp that polls look again, for so many times at most, before anybody else does
    /// anything; one that stops waiting goes on for a while. Gives whether any does.
    pub(super) fn look_on(&mut self, index: usize, releases: &mut Releases, looks: u32) -> bool {
        let mut awake = 0;
        for _ in 0..looks {
            let Some(warp) = self.warps.get_mut(index) else { return false };
            if warp.strong.is_none() {
                warp.dozes = false;
                self.core.run(warp, PLAIN_SLICE);
            }
            let polls_shared = warp.strong.is_none();
            if polls_shared && !warp.dozes || self.core.is_stuck {
                return true;
            }
            if !polls_shared {
                self.access_of(index, releases);
            }
            let waits = self.warps.get(index).is_some_and(|warp| warp.is_asleep || warp.dozes);
            awake = if waits { 0 } else { awake + 1 };
            if awake > ALONE {
                return true;
            }
        }
        awake > 0
    }
}

impl Block<'_> {
    /// Where nothing else can go on: lets a warp that polls look for longer, as it would on a
    /// device. Gives whether it has stopped waiting.
    pub(super) fn looks_at_last(&mut self, index: usize, releases: &mut Releases) -> bool {
        let grid = self.core.grid;
        let in_vain = &grid.looked_in_vain;
        if in_vain.load(Relaxed) >= MOST_IN_VAIN {
            return false;
        }
        let goes_on = self.look_on(index, releases, LOOKS_OF_THE_LAST);
        in_vain.fetch_add(u32::from(!goes_on), Relaxed);
        goes_on
    }
}

impl Core<'_> {
    /// The same of a warp that polls shared memory, while others could go on.
    pub(super) fn doze_on(&mut self, warp: &mut Warp) {
        for _ in 0..LOOKS {
            if !warp.dozes || self.is_stuck {
                return;
            }
            warp.dozes = false;
            self.run(warp, PLAIN_SLICE);
        }
    }

    /// Whether a warp that polls at an instruction is the one that is let look for long there.
    pub(super) fn tries_patience(&mut self, counter: u32) -> bool {
        let is_chosen = self.random.as_mut().is_some_and(|random| random.u8(..) < 85);
        is_chosen
            && self.grid.looked_at.lock().unwrap_or_else(PoisonError::into_inner).insert(counter)
    }
}
