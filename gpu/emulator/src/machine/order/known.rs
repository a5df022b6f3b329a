//! What threads know of others, within a warp and beyond.

use std::sync::Arc;

use super::super::clock::{Clock, WarpClock};
use super::super::stamp::Stamp;
use super::{Lane, lanes_of};
use crate::code::WARP;

/// What a warp knows of its block.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    /// Accesses of an own lane before this epoch are known to that lane; the present epoch, while
    /// this is live. Even.
    pub(super) epoch: u32,
    /// Accesses of own lanes before this epoch are known to all of them.
    pub(super) together: u32,
    /// By lane and lane, where lanes know more of each other than that.
    pub(super) lanes: Option<Box<[[u32; WARP]; WARP]>>,
    /// By warp: its accesses before this epoch are known.
    pub(super) warps: Box<[u32]>,
}

impl Knowledge {
    /// Whether an access by a thread of the block was ordered before what lane `reader` of `warp`
    /// did next.
    #[inline]
    pub(super) fn covers(&self, warp: usize, reader: Lane, access: Stamp) -> bool {
        let (thread, epoch) = (access.thread() as usize, access.epoch());
        let (other_warp, lane) = (thread / WARP, thread % WARP);
        if other_warp != warp {
            return self.warps.get(other_warp).is_some_and(|&known| epoch < known);
        }
        if lane == reader {
            return epoch < self.epoch;
        }
        epoch < self.together
            || self.lanes.as_ref().is_some_and(|lanes| epoch < lanes[reader % WARP][lane])
    }

    /// The next epoch. What was done before is known below the one returned, which is less than the
    /// stamp of anything that is done after.
    pub(super) fn advance(&mut self) -> u32 {
        self.epoch = self.epoch.saturating_add(2);
        self.epoch - 1
    }

    /// What some lanes of a warp know together.
    pub(super) fn leaf(&self, warp: usize, of: u32) -> Box<[WarpClock]> {
        let clock = |(number, &known): (usize, &u32)| {
            if number != warp {
                return WarpClock { all: known, lanes: None };
            }
            let mut lanes = [self.together; WARP];
            for lane in lanes_of(of) {
                for (joined, &known) in
                    lanes.iter_mut().zip(self.lanes.iter().flat_map(|l| &l[lane]))
                {
                    *joined = known.max(*joined);
                }
            }
            lanes_of(of).for_each(|lane| lanes[lane] = self.epoch);
            WarpClock { all: self.together, lanes: Some(Arc::new(lanes)) }
        };
        self.warps.iter().enumerate().map(clock).collect()
    }
}

/// A clock that lanes of a warp have each for itself, or all together.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    pub(super) all: Clock,
    /// What lanes know besides.
    pub(super) lanes: Option<Box<[Clock; WARP]>>,
}

impl Spread {
    pub(super) fn add(&mut self, lane: Lane, clock: &Clock) {
        if !clock.is_empty() {
            self.lanes.get_or_insert_default()[lane % WARP].join(clock);
        }
    }

    pub(super) fn of(&self, lane: Lane) -> Clock {
        let mut clock = self.all.clone();
        if let Some(lanes) = &self.lanes {
            clock.join(&lanes[lane % WARP]);
        }
        clock
    }

    #[inline]
    pub(super) fn covers(&self, lane: Lane, access: Stamp) -> bool {
        self.all.covers(access)
            || self.lanes.as_ref().is_some_and(|lanes| lanes[lane % WARP].covers(access))
    }

    /// Some lanes tell each other what they know.
    pub(super) fn meet(&mut self, met: u32, are_all: bool) {
        let Some(lanes) = &mut self.lanes else { return };
        let mut joined = Clock::default();
        lanes_of(met).for_each(|lane| joined.join(&lanes[lane]));
        if are_all {
            self.all.join(&joined);
            self.lanes = None;
        } else {
            lanes_of(met).for_each(|lane| lanes[lane] = joined.clone());
        }
    }

    /// What all lanes know together.
    pub(super) fn joined(&self) -> Clock {
        let mut joined = self.all.clone();
        self.lanes.iter().flat_map(|lanes| lanes.iter()).for_each(|lane| joined.join(lane));
        joined
    }
}
