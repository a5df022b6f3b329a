//! Records what is executed, where that is asked for.

use std::sync::PoisonError;

use super::access::Values;
use super::core::Core;
use super::lanes::lanes_of;
use super::warp::Warp;
use crate::code::{SHARED_BITS, Space, WARP};
use crate::compute::{Compute, does_not_fit};
use crate::trace::{Trace, Who, local_place, shared_place};

impl Core<'_> {
    /// Lets something be added to the trace, if there is one.
    #[inline]
    pub(super) fn record(&self, warp: usize, counter: u32, add: impl FnOnce(&mut Trace, Who)) {
        if let Some(trace) = &self.grid.trace {
            let who = Who { block: self.number, warp, counter };
            add(&mut trace.lock().unwrap_or_else(PoisonError::into_inner), who);
        }
    }

    /// Arithmetic of some lanes, which was executed.
    #[cold]
    pub(super) fn record_compute(&self, warp: &Warp, counter: u32, what: &Compute, lanes: u32) {
        let cut = what.cuts(&warp.registers) & lanes;
        self.record(warp.index, counter, |trace, who| {
            trace.compute(who, lanes);
            trace.cut(who, cut);
        });
    }

    /// An access of memory of one space.
    #[inline]
    pub(super) fn record_access(
        &self,
        warp: usize,
        counter: u32,
        space: Space,
        addresses: &[u64; WARP],
        lanes: u32,
    ) {
        if self.grid.trace.is_some() {
            let place = |lane: usize| match space {
                Space::Shared => self.own_place(addresses[lane]),
                Space::Cluster => self.place_in_cluster(addresses[lane]),
                Space::Local => local_place(self.number, warp * WARP + lane, addresses[lane]),
                Space::Global | Space::Generic | Space::Parameter => addresses[lane],
            };
            let places = std::array::from_fn(place);
            self.record(warp, counter, |trace, who| trace.access(who, lanes, &places));
        }
    }

    /// Numbers that a store of so many bytes cuts off.
    #[inline]
    pub(super) fn record_cuts(
        &self,
        warp: usize,
        counter: u32,
        bytes: u32,
        stored: &Values,
        lanes: u32,
    ) {
        if self.grid.trace.is_some() && bytes < 4 {
            let is_cut = |&lane: &usize| {
                let value = stored.values[0][lane];
                does_not_fit(value, bytes * 8)
            };
            let cut = lanes_of(lanes).filter(is_cut).fold(0, |cut, lane| cut | 1 << lane);
            self.record(warp, counter, |trace, who| trace.cut(who, cut));
        }
    }

    /// The place of an address in the block's own shared memory.
    pub(super) fn own_place(&self, address: u64) -> u64 {
        shared_place(self.grid.cluster_of(self.position), self.membership.rank, address)
    }

    fn place_in_cluster(&self, address: u64) -> u64 {
        let rank = (address >> SHARED_BITS).saturating_sub(1) as u32;
        let address = address & ((1 << SHARED_BITS) - 1);
        shared_place(self.grid.cluster_of(self.position), rank, address)
    }
}
