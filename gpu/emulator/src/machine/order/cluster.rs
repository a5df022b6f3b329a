//! What the barrier of a cluster orders, and shared memory that several blocks touch.

use super::super::clock::Clock;
use super::super::stamp::Stamp;
use super::{BLOCK, BlockOrder, CLUSTER, Lane, Released, Releases, lanes_of};
use crate::code::WARP;

impl BlockOrder {
    /// The block's number.
    pub(crate) fn block(&self) -> u32 {
        self.block
    }

    /// Takes what is released in the block's shared memory, to lend it.
    pub(crate) fn take_shared(&mut self) -> Releases {
        std::mem::take(&mut self.shared)
    }

    /// Puts what is released in another block's shared memory in its place, or back.
    pub(crate) fn swap_shared(&mut self, other: &mut Releases) {
        std::mem::swap(&mut self.shared, other);
    }

    /// Some lanes arrive at the barrier of a cluster of one block, or of several: what they release
    /// there, if they do, or have fenced before; and all that they have done.
    pub(crate) fn release_to_cluster(
        &mut self,
        warp: usize,
        lanes: u32,
        releases: bool,
        has_others: bool,
    ) -> [Clock; 2] {
        let (block, levels) = (self.block, self.levels);
        let scope = if has_others { CLUSTER } else { BLOCK };
        let Some(own) = self.warps.get_mut(warp) else { return Default::default() };
        let mut fenced = Clock::default();
        if self.has_fenced {
            for lane in lanes_of(lanes) {
                let Released { patterns, .. } = own.released(block, levels, warp, lane);
                fenced.join(&patterns[scope]);
            }
        }
        let done = self.known_to(warp, lanes);
        [if releases { done.clone() } else { fenced }, done]
    }

    /// What some lanes have done, and what they know of others.
    pub(crate) fn known_to(&mut self, warp: usize, lanes: u32) -> Clock {
        let (block, levels) = (self.block, self.levels);
        let Some(own) = self.warps.get_mut(warp) else { return Clock::default() };
        own.version += 1;
        own.knowledge.advance();
        let mut known = Clock::of_block(block, levels, own.knowledge.leaf(warp, lanes));
        lanes_of(lanes).for_each(|lane| known.join(&own.acquired.of(lane)));
        known
    }

    /// Some lanes have waited at the barrier, where this was released.
    pub(crate) fn acquire_of_cluster(
        &mut self,
        warp: usize,
        lanes: u32,
        all_lanes: u32,
        released: &Clock,
    ) {
        let Some(own) = self.warps.get_mut(warp) else { return };
        if lanes == 0 || released.is_empty() {
            return;
        }
        self.has_acquired = true;
        own.version += 1;
        if lanes & all_lanes == all_lanes {
            own.acquired.all.join(released);
        } else {
            lanes_of(lanes).for_each(|lane| own.acquired.add(lane, released));
        }
    }

    /// Whether a lane has acquired anything of another block.
    pub(crate) fn has_heard_of(&self, warp: usize, lane: Lane, block: u32) -> bool {
        let own = self.warps.get(warp);
        block == self.block || own.is_some_and(|own| own.acquired.of(lane % WARP).knows(block))
    }

    /// Whether any thread of the block has acquired what comes after an access.
    pub(crate) fn has_acquired(&self, access: Stamp) -> bool {
        self.warps.iter().any(|own| own.acquired.joined().covers(access))
    }
}
