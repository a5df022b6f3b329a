//! `cp.async.bulk` and `cp.reduce.async.bulk` from shared to global memory.
//!
//! A copy takes a snapshot when it is issued. Until a `wait_group` a device may read the source or
//! not have written anything; behind one with `.read` it has read the source and may still write.
//! So what it writes is under way until a `wait_group` without `.read`, and comes before nothing
//! that anybody does, its own thread included (PTX ISA, `cp.async.bulk.wait_group`). A reduction
//! changes memory when it is issued, as it may, since its elements are changed atomically; it is
//! under way for as long.

use super::atomic::mask;
use super::core::Core;
use super::global::Region;
use super::lanes::lanes_of;
use super::races::{Conflict, SharedCells};
use super::request::{Request, Use};
use super::sent::{PART, Source, Words, Write};
use super::touch::{in_shared, words_of};
use super::warp::Warp;
use crate::code::{AtomicOperation, AtomicType, BulkStore, Order, Scope};
use crate::finding::FindingKind;

impl Core<'_> {
    /// Executes an instruction about copies from shared memory.
    pub(super) fn bulk_store(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        store: &BulkStore,
        lanes: u32,
    ) {
        match *store {
            BulkStore::Issue { destination, source, bytes, reduction } => {
                let (targets, _) = self.places(warp, counter, &destination, lanes);
                let (sources, _) = self.places(warp, counter, &source, lanes);
                let counts = warp.word(bytes);
                self.counters.global_stores += 1;
                let request = request(counter, warp.index, reduction.is_some());
                let request = Request { early: warp.early, ..request };
                for lane in lanes_of(lanes) {
                    let count = counts[lane];
                    self.counters.global_store_sectors += u64::from(count.div_ceil(32));
                    let places = [targets[lane], sources[lane]];
                    self.send(request, lane, places, count, reduction);
                }
            }
            BulkStore::Commit => {
                if let Some(sent) = self.sent.get_mut(warp.index) {
                    sent.sources.commit(lanes);
                    sent.writes.commit(lanes);
                }
            }
            BulkStore::Wait { groups, reads_only } => {
                self.end_reads(warp.index, lanes, Some(groups));
                if !reads_only {
                    self.receive(warp.index, lanes, groups);
                }
            }
            BulkStore::Fence(fence) => self.fence_proxies(warp.index, lanes, fence),
        }
    }

    /// Issues a lane's copy.
    fn send(
        &mut self,
        request: Request,
        lane: usize,
        [target, source]: [u64; 2],
        count: u32,
        reduction: Option<(AtomicOperation, AtomicType)>,
    ) {
        let grid = self.grid;
        let Request { counter, warp, .. } = request;
        if !count.is_multiple_of(PART) {
            self.report(FindingKind::Misaligned, counter, warp, lane, || {
                let detail = format!("a bulk copy of {count} bytes, no multiple of 16");
                (Some(in_shared(grid, source)), detail)
            });
            return;
        }
        let mut near = None;
        for at in (0..u64::from(count)).step_by(PART as usize) {
            let address = target + at;
            let Some(from) = self.within_shared(request, lane, source + at) else { return };
            let Some(offset) = self.within(&mut near, request, lane, address) else { return };
            let Some(region @ Region { cells: Some(cells), .. }) = near else {
                self.report(FindingKind::WriteToReadOnly, counter, warp, lane, || {
                    (Some(grid.global.place(address)), String::new())
                });
                return;
            };
            let words = self.read_for_copy(request, lane, from);
            let conflict = self.observe_sent(request, lane, cells, offset, true);
            self.report_race(request, lane, conflict, || grid.global.place(address));
            let words = match reduction {
                None => Some(words),
                Some(reduction) => {
                    if conflict.is_none() {
                        self.report_unfenced_global(request, lane, address);
                    }
                    self.reduce_global(request, lane, region, (address, offset), &words, reduction);
                    None
                }
            };
            let places = [address, self.own_place(source + at)];
            self.record(warp, counter, |trace, who| trace.copy(who, lane, places, PART));
            if let Some(sent) = self.sent.get_mut(warp) {
                sent.writes.issue(lane, Write { counter, lane, address, words });
            }
        }
    }

    /// Reads a part of a copy's source.
    fn read_for_copy(&mut self, request: Request, lane: usize, offset: usize) -> Words {
        let Request { counter, warp, .. } = request;
        let mut words = [0; PART as usize / 4];
        let (data, is_defined) = self.read_shared_source(request, lane, offset);
        for (word, bytes) in words.iter_mut().zip(data.chunks(4)) {
            *word = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
        }
        if !is_defined {
            let (at, grid) = (Use { counter, warp, lane, what: "the value stored" }, self.grid);
            self.report_undefined(at, None, || Some(in_shared(grid, offset as u64)));
        }
        if let Some(sent) = self.sent.get_mut(warp) {
            sent.sources.issue(lane, Source { counter, lane, offset, words });
        }
        words
    }

    /// Changes the elements of a part of memory by those of a copy.
    fn reduce_global(
        &mut self,
        request: Request,
        lane: usize,
        region: Region<'_>,
        (address, offset): (u64, usize),
        words: &Words,
        (operation, ty): (AtomicOperation, AtomicType),
    ) {
        let (grid, bytes) = (self.grid, ty.bytes());
        let Request { counter, warp, .. } = request;
        for step in (0..PART).step_by(bytes as usize) {
            let place = offset + step as usize;
            if !region.buffer.is_defined(place, bytes) {
                let at = Use { counter, warp, lane, what: "the new value" };
                let address = address + u64::from(step);
                self.report_undefined(at, None, || Some(grid.global.place(address)));
            }
            let word = |index: u32| words.get(index as usize).copied().map_or(0, u64::from);
            let both = word(step / 4) | word(step / 4 + 1) << 32;
            let operand = both >> (step % 4 * 8) & mask(bytes);
            let old = region.buffer.read(place, bytes);
            let new = operation.apply(ty, old, operand, 0) & mask(bytes);
            region.buffer.write(place, bytes, new);
        }
        self.has_changed = true;
    }

    /// Copies of some lanes have read their sources, but for so many groups of each; without a
    /// number all have. They may have read them until now: whoever has changed one is told.
    fn end_reads(&mut self, warp: usize, lanes: u32, groups: Option<u32>) {
        let grid = self.grid;
        let read = self.sent.get_mut(warp).map(|sent| sent.sources.wait(lanes, groups));
        for Source { lane, offset, words, .. } in read.into_iter().flatten() {
            for (index, &was) in words.iter().enumerate() {
                let at = offset + index * 4;
                if self.shared.read(at, 4).0 == was.into() {
                    continue;
                }
                if let Some(by) = self.shared.cell(at / 4).and_then(|cell| cell.written(0xF)) {
                    self.report(FindingKind::Race, by.instruction, warp, lane, || {
                        let detail =
                            "an asynchronous copy still reads it: nobody has waited for that";
                        (Some(in_shared(grid, at as u64)), detail.to_owned())
                    });
                }
            }
        }
    }

    /// What copies of some lanes write is there, but for so many groups of each.
    fn receive(&mut self, warp: usize, lanes: u32, groups: u32) {
        let grid = self.grid;
        let arrived = self.sent.get_mut(warp).map(|sent| sent.writes.wait(lanes, Some(groups)));
        for write in arrived.into_iter().flatten() {
            let Write { counter, lane, address, words } = write;
            let request = request(counter, warp, words.is_none());
            let Some(region) = grid.global.near(address) else { continue };
            let offset = region.buffer.offset(address, PART.into());
            let (Some(offset), Some(cells)) = (offset, region.cells) else { continue };
            let conflict = self.observe_sent(request, lane, cells, offset, false);
            self.report_race(request, lane, conflict, || grid.global.place(address));
            self.bring(&write);
        }
    }

    /// Writes what a part of a copy brings.
    fn bring(&mut self, write: &Write) {
        let Some(region) = self.grid.global.near(write.address) else { return };
        let Some(offset) = region.buffer.offset(write.address, PART.into()) else { return };
        for (index, &word) in write.words.iter().flatten().enumerate() {
            region.buffer.write(offset + index * 4, 4, word.into());
        }
        self.has_changed = true;
    }

    /// Threads end: what they have sent arrives, but nobody can have waited for that. The end of
    /// the kernel does, as long as shared memory was there to be read.
    #[inline]
    pub(super) fn end_bulk_stores(&mut self, warp: usize, lanes: u32) {
        if !self.grid.bulk.stores {
            return;
        }
        let open = self.sent.get(warp).and_then(|sent| sent.sources.first(lanes)).copied();
        if let Some(Source { counter, lane, offset, .. }) = open {
            let grid = self.grid;
            self.report(FindingKind::Race, counter, warp, lane, || {
                let detail = "the thread ends before it has waited for the copy to have read this";
                (Some(in_shared(grid, offset as u64)), detail.to_owned())
            });
            self.end_reads(warp, lanes, None);
        }
        let under_way = self.sent.get_mut(warp).map(|sent| sent.writes.wait(lanes, None));
        for write in under_way.into_iter().flatten() {
            self.bring(&write);
        }
    }

    /// Remembers a write of a part of global memory that is under way from now on, or until now.
    fn observe_sent(
        &self,
        request: Request,
        lane: usize,
        cells: &SharedCells,
        offset: usize,
        begins: bool,
    ) -> Option<Conflict> {
        let (stamp, counter) = (self.stamp(request, lane), request.counter);
        let sizes = self.grid.sizes.as_slice();
        let is_before = |old| self.order.is_before(old, request.warp, lane);
        let mut conflict = None;
        for (word, mask) in words_of(offset, request.bytes) {
            let stamp = stamp.of_bytes(mask);
            let found = cells.access(word, |cell| match begins {
                true => cell.touch(true, stamp.under_way(), counter, sizes, is_before),
                false => cell.land(stamp, counter, sizes, is_before),
            });
            conflict = conflict.or(found);
        }
        conflict
    }
}

/// What copies access, a part at a time. Those that change elements do so by strong accesses (PTX
/// ISA, `cp.reduce.async.bulk`: `.relaxed.gpu`).
fn request(counter: u32, warp: usize, reduces: bool) -> Request {
    Request {
        counter,
        warp,
        bytes: PART,
        order: if reduces { Order::Relaxed } else { Order::Weak },
        scope: Scope::Device,
        read_only_path: false,
        early: 0,
    }
}
