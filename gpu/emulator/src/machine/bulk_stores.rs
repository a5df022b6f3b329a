//! `cp.async.bulk` from shared to global memory.
//!
//! A copy takes a snapshot when it is issued, and is there when it is waited for: until then a
//! device may read the source or not have written anything. What a thread has written to the source
//! is there for copies behind a `fence.proxy.async` of somebody who knows of it (PTX ISA,
//! "Proxies").

use super::access::Request;
use super::block::Core;
use super::order::lanes_of;
use super::touch::in_shared;
use super::undefined::Use;
use super::warp::Warp;
use crate::code::{BulkStore, Order, Scope};
use crate::finding::FindingKind;

/// Bytes of a part of a copy.
const PART: u32 = 16;

/// A part of a copy that was issued and not waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Who has issued it, and where.
    counter: u32,
    lane: usize,
    /// In shared memory.
    source: usize,
    /// In global memory.
    address: u64,
    words: [u32; PART as usize / 4],
}

impl Core<'_> {
    /// Executes an instruction about copies from shared memory.
    pub(super) fn bulk_store(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        store: &BulkStore,
        lanes: u32,
    ) {
        match store {
            BulkStore::Issue { destination, source, bytes } => {
                let (targets, _) = self.places(warp, counter, destination, lanes);
                let (sources, _) = self.places(warp, counter, source, lanes);
                let counts = warp.word(*bytes);
                self.counters.global_stores += 1;
                for lane in lanes_of(lanes) {
                    let count = counts[lane];
                    self.counters.global_store_sectors += u64::from(count.div_ceil(32));
                    let request = request(counter, warp.index);
                    self.send(
                        Request { early: warp.early, ..request },
                        lane,
                        [targets[lane], sources[lane]],
                        count,
                    );
                }
            }
            BulkStore::Commit => {
                if let Some(sent) = self.sent.get_mut(warp.index) {
                    sent.commit(lanes);
                }
            }
            BulkStore::Wait { groups } => self.receive(warp.index, lanes, Some(*groups)),
            BulkStore::Fence => self.fence_copies(warp.index, lanes),
        }
    }

    /// Issues a lane's copy.
    fn send(&mut self, request: Request, lane: usize, [target, source]: [u64; 2], count: u32) {
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
            if self.within(&mut near, request, lane, address).is_none() {
                return;
            }
            if near.is_none_or(|region| region.cells.is_none()) {
                self.report(FindingKind::WriteToReadOnly, counter, warp, lane, || {
                    (Some(grid.global.place(address)), String::new())
                });
                return;
            }
            let conflict = self.observe_shared(request, lane, from, false);
            self.report_race(request, lane, conflict, || in_shared(grid, from as u64));
            if conflict.is_none() {
                self.report_unfenced(request, lane, from);
            }
            let mut words = [0; PART as usize / 4];
            for (index, word) in words.iter_mut().enumerate() {
                let (value, is_defined) = self.shared.read(from + index * 4, 4);
                *word = value as u32;
                if !is_defined {
                    let at = Use { counter, warp, lane, what: "the value stored" };
                    self.report_undefined(at, None, || Some(in_shared(grid, from as u64)));
                }
            }
            if let Some(sent) = self.sent.get_mut(warp) {
                sent.issue(lane, Sent { counter, lane, source: from, address, words });
            }
        }
    }

    /// Copies of some lanes arrive, but for so many groups of each; without a number all do.
    fn receive(&mut self, warp: usize, lanes: u32, groups: Option<u32>) {
        let grid = self.grid;
        let arrived = self.sent.get_mut(warp).map(|sent| sent.wait(lanes, groups));
        for Sent { counter, lane, source, address, words } in arrived.into_iter().flatten() {
            self.report_overwritten(warp, lane, source, &words);
            let Some(region) = grid.global.near(address) else { continue };
            let offset = region.buffer.offset(address, PART.into());
            let (Some(offset), Some(cells)) = (offset, region.cells) else { continue };
            let request = request(counter, warp);
            let conflict = self.observe_global(request, lane, cells, offset, true);
            self.report_race(request, lane, conflict, || grid.global.place(address));
            for (index, &word) in words.iter().enumerate() {
                region.buffer.write(offset + index * 4, 4, word.into());
            }
            self.has_changed = true;
        }
    }

    /// Threads end: what they have sent arrives, but nobody can have waited for that.
    #[inline]
    pub(super) fn end_bulk_stores(&mut self, warp: usize, lanes: u32) {
        if !self.grid.has_bulk_stores {
            return;
        }
        let open = self.sent.get(warp).and_then(|sent| sent.first(lanes)).copied();
        if let Some(Sent { counter, lane, source, .. }) = open {
            let grid = self.grid;
            self.report(FindingKind::Race, counter, warp, lane, || {
                let detail = "the thread ends before it has waited for the copy to have read this";
                (Some(in_shared(grid, source as u64)), detail.to_owned())
            });
            self.receive(warp, lanes, None);
        }
    }

    /// A copy may read its source until it is waited for: whoever changed it before is told.
    fn report_overwritten(&mut self, warp: usize, lane: usize, source: usize, words: &[u32]) {
        let grid = self.grid;
        for (index, &was) in words.iter().enumerate() {
            let at = source + index * 4;
            if self.shared.read(at, 4).0 == was.into() {
                continue;
            }
            if let Some(by) = self.shared.cell(at / 4).and_then(|cell| cell.written(0xF)) {
                self.report(FindingKind::Race, by.instruction, warp, lane, || {
                    let detail = "an asynchronous copy still reads it: nobody has waited for that";
                    (Some(in_shared(grid, at as u64)), detail.to_owned())
                });
            }
        }
    }

    /// Reports what a copy reads and a thread has written without a fence between.
    fn report_unfenced(&mut self, request: Request, lane: usize, from: usize) {
        let grid = self.grid;
        let words = from / 4..(from + PART as usize) / 4;
        let Some(&word) = self.unfenced.range(words).next() else { return };
        let written = self.shared.cell(word).and_then(|cell| cell.written(0xF));
        let at = written.map(|by| grid.kernel.place(by.instruction)).unwrap_or_default();
        self.report(FindingKind::Race, request.counter, request.warp, lane, || {
            let detail =
                format!("written {at}, without `fence.proxy.async` between that and the copy");
            (Some(in_shared(grid, word as u64 * 4)), detail)
        });
    }

    /// A thread has written to shared memory, which copies from there need not see.
    #[inline]
    pub(super) fn needs_fence(&mut self, offset: usize, bytes: u32) {
        if self.grid.has_bulk_stores {
            self.unfenced.extend(offset / 4..(offset + bytes as usize).div_ceil(4));
        }
    }

    /// `fence.proxy.async` of some lanes.
    fn fence_copies(&mut self, warp: usize, lanes: u32) {
        let Self { order, shared, unfenced, .. } = self;
        unfenced.retain(|&word| {
            let written = shared.cell(word).and_then(|cell| cell.written(0xF));
            let is_before = |lane| written.is_none_or(|by| order.is_before(by.stamp, warp, lane));
            !lanes_of(lanes).any(is_before)
        });
    }
}

/// What copies access, a part at a time.
fn request(counter: u32, warp: usize) -> Request {
    Request {
        counter,
        warp,
        bytes: PART,
        order: Order::Weak,
        scope: Scope::Device,
        read_only_path: false,
        early: 0,
    }
}
