//! What threads access and what bulk copies do: two proxies of one memory.
//!
//! Bulk copies are carried out in the *async proxy*. What threads have written is there for a copy
//! behind a `fence.proxy.async` only (PTX ISA, "Proxies" and "Async proxy"), whichever thread that
//! knows of the write has executed it; and an mbarrier that a copy arrives at has to be fenced
//! after its initialisation, by `fence.mbarrier_init` or such a fence. What a copy has brought
//! needs no fence once somebody has waited for it. Where copies come over what threads have read or
//! written, the manual wants the fence as well; kernels in use rely on an mbarrier or a barrier
//! there, and nothing is said of that as long as one orders the two.

use std::sync::PoisonError;

use super::core::Core;
use super::lanes::lanes_of;
use super::races::Conflict;
use super::request::Request;
use super::touch::{in_shared, words_of};
use crate::code::{Op, ProxyFence};
use crate::finding::{FindingKind, PlacedAddress};

impl Core<'_> {
    /// A thread has written to shared memory, which copies from there need not see.
    #[inline]
    pub(super) fn needs_fence(&mut self, offset: usize, bytes: u32) {
        if self.grid.bulk.from_shared {
            self.shared.unfenced.extend(offset / 4..(offset + bytes as usize).div_ceil(4));
        }
    }

    /// Some lanes execute a fence between the proxies.
    pub(super) fn fence_proxies(&mut self, warp: usize, lanes: u32, fence: ProxyFence) {
        let Self { grid, order, shared, mbarriers, .. } = self;
        if matches!(fence, ProxyFence::All | ProxyFence::Shared) && grid.bulk.from_shared {
            let cells = std::mem::take(&mut shared.unfenced);
            let is_left = |word: &usize| {
                let written = shared.cell(*word).and_then(|cell| cell.written(0xF));
                let is_before =
                    |lane| written.is_none_or(|by| order.is_before(by.stamp, warp, lane));
                !lanes_of(lanes).any(is_before)
            };
            shared.unfenced = cells.into_iter().filter(is_left).collect();
        }
        if fence != ProxyFence::Global {
            for state in mbarriers.values_mut() {
                let knows = |lane| order.is_before(state.initialised, warp, lane);
                state.is_fenced |= lanes_of(lanes).any(knows);
            }
        }
        let is_far = grid.bulk.from_shared && grid.has_clusters();
        let reaches_others = match fence {
            ProxyFence::All | ProxyFence::Global => grid.bulk.from_global || is_far,
            ProxyFence::Shared => is_far,
            ProxyFence::Initialisation => false,
        };
        if reaches_others {
            let known = order.known_to(warp, lanes);
            grid.fenced.lock().unwrap_or_else(PoisonError::into_inner).join(&known);
        }
    }

    /// Reads 16 bytes of shared memory that a copy takes from there. Gives whether all are defined.
    pub(super) fn read_shared_source(
        &mut self,
        request: Request,
        lane: usize,
        from: usize,
    ) -> ([u8; 16], bool) {
        let grid = self.grid;
        let conflict = self.observe_shared(request, lane, from, false);
        self.report_race(request, lane, conflict, || in_shared(grid, from as u64));
        if conflict.is_none() {
            self.report_unfenced(request, lane, from);
        }
        let (mut data, mut is_defined) = ([0; 16], true);
        for (index, bytes) in data.chunks_mut(4).enumerate() {
            let (value, defined) = self.shared.read(from + index * 4, 4);
            bytes.copy_from_slice(&(value as u32).to_le_bytes());
            is_defined &= defined;
        }
        (data, is_defined)
    }

    /// Reports what a copy reads from shared memory and a thread has written without a fence
    /// between.
    fn report_unfenced(&mut self, request: Request, lane: usize, from: usize) {
        let grid = self.grid;
        let words = from / 4..(from + request.bytes as usize) / 4;
        let Some(&word) = self.shared.unfenced.range(words).next() else { return };
        let Some(written) = self.shared.cell(word).and_then(|cell| cell.written(0xF)) else {
            return;
        };
        // Threads of other blocks fence what they have written here before they say so.
        let is_own = written.stamp.block() == self.order.block();
        if !is_own && self.fenced_clock().covers(written.stamp) {
            return;
        }
        let place = || in_shared(grid, word as u64 * 4);
        self.report_written_unfenced(request, lane, written.instruction, place);
    }

    /// The same of global memory, where what another copy has written needs no fence.
    pub(super) fn report_unfenced_global(&mut self, request: Request, lane: usize, address: u64) {
        let grid = self.grid;
        let Some(region) = grid.global.near(address) else { return };
        let offset = region.buffer.offset(address, request.bytes.into());
        let (Some(offset), Some(cells)) = (offset, region.cells) else { return };
        let fenced = self.fenced_clock();
        let is_copy = |instruction: u32| {
            let instruction = grid.kernel.code.get(instruction as usize);
            instruction.is_some_and(|at| matches!(at.op, Op::BulkStore(_)))
        };
        let order = &self.order;
        let unfenced = words_of(offset, request.bytes).find_map(|(word, _)| {
            cells.access(word, |cell| {
                let mut writes = cell.writes().filter(|&(stamp, instruction)| {
                    // Of what is in no order with the copy is told as a race.
                    let is_before = order.is_before(stamp, request.warp, lane);
                    is_before && !is_copy(instruction) && !fenced.covers(stamp)
                });
                let (stamp, instruction) = writes.next()?;
                Some(Conflict { is_write: true, stamp, instruction })
            })
        });
        if let Some(Conflict { instruction, .. }) = unfenced {
            let place = || grid.global.place(address);
            self.report_written_unfenced(request, lane, instruction, place);
        }
    }

    /// Reports what a copy reads, and an instruction has written, without a fence between.
    fn report_written_unfenced(
        &mut self,
        request: Request,
        lane: usize,
        instruction: u32,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        let at = self.grid.kernel.place(instruction);
        self.report(FindingKind::Race, request.counter, request.warp, lane, || {
            let detail =
                format!("written {at}, without `fence.proxy.async` between that and the copy");
            (Some(place()), detail)
        });
    }

    /// What was done before any fence between the proxies that is not of shared memory alone.
    fn fenced_clock(&self) -> super::clock::Clock {
        self.grid.fenced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
