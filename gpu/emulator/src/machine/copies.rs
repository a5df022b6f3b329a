//! `cp.async`: copies to shared memory that are under way.

use super::core::Core;
use super::groups::{Copy, Payload};
use super::lanes::lanes_of;
use super::races::Conflict;
use super::request::Request;
use super::touch::{in_shared, words_of};
use super::traffic::sectors;
use super::warp::Warp;
use crate::code::{Address, Order, Register, Scope};
use crate::finding::FindingKind;

impl Core<'_> {
    pub(super) fn issue_copies(
        &mut self,
        warp: &mut Warp,
        request: Request,
        [destination, source]: [&Address; 2],
        source_bytes: Option<Register>,
        lanes: u32,
    ) {
        let (targets, _) = self.places(warp, request.counter, destination, lanes);
        let (addresses, _) = self.places(warp, request.counter, source, lanes);
        let counts = source_bytes.map(|register| warp.word(register));
        self.counters.global_loads += 1;
        warp.loads += 1;
        self.counters.global_load_sectors += sectors(&addresses, lanes);
        self.count_shared(&targets, lanes, request.bytes);
        for lane in lanes_of(lanes) {
            let count = counts.map_or(request.bytes, |counts| counts[lane].min(request.bytes));
            let read = self.read_source(request, lane, addresses[lane], count);
            if let Some(read) = read
                && let Some(copy) = self.begin_copy(request, lane, targets[lane], read, false)
                && let Some(copies) = self.copies.get_mut(warp.index)
            {
                copies.issue(lane, copy);
            }
        }
    }

    /// Reads the source of a lane's copy in global memory, of which `count` bytes are read.
    pub(super) fn read_source(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
        count: u32,
    ) -> Option<Payload> {
        let grid = self.grid;
        let mut read = Payload { data: [0; 16], defined: true, source: (address, count) };
        if count == 0 {
            return Some(read);
        }
        let part = Request { bytes: count, ..request };
        let mut near = None;
        let offset = self.within(&mut near, part, lane, address)?;
        let region = near?;
        // However few bytes are read.
        if !address.is_multiple_of(request.bytes.into()) {
            self.misaligned(request, lane, || grid.global.place(address));
            return None;
        }
        for (byte, to) in read.data.iter_mut().enumerate().take(count as usize) {
            *to = region.buffer.read(offset + byte, 1) as u8;
            read.defined &= region.buffer.is_defined(offset + byte, 1);
        }
        if let Some(cells) = region.cells {
            let conflict = self.observe_global(part, lane, cells, offset, false);
            self.report_race(part, lane, conflict, || grid.global.place(address));
        }
        Some(read)
    }

    /// Begins a lane's copy to a place in shared memory, of the own block or of another that stands
    /// in its place.
    pub(super) fn begin_copy(
        &mut self,
        request: Request,
        lane: usize,
        target: u64,
        Payload { data, defined, source }: Payload,
        is_from_elsewhere: bool,
    ) -> Option<Copy> {
        let grid = self.grid;
        let destination = self.within_shared(request, lane, target)?;
        let bytes = request.bytes as usize;
        // Until it is waited for, nobody can tell what is there.
        for word in (destination..destination + bytes).step_by(4) {
            self.shared.write(word, 4, 0, false);
            self.shared.awaited.entry(word).or_default().begin(request.counter);
        }
        let conflict = match is_from_elsewhere {
            true => self.observe_coming(request, lane, destination, true),
            false => self.observe_shared(request, lane, destination, true),
        };
        self.report_race(request, lane, conflict, || in_shared(grid, target));
        let counter = request.counter;
        Some(Copy { lane, counter, destination, bytes, data, defined, source, is_from_elsewhere })
    }

    /// A copy may read its source until it is waited for: whoever changed it before is told.
    fn check_source(&mut self, warp: usize, copy: &Copy) {
        let (address, count) = copy.source;
        let grid = self.grid;
        let Some(region) = grid.global.near(address) else { return };
        let (Some(offset), Some(cells)) =
            (region.buffer.offset(address, count.into()), region.cells)
        else {
            return;
        };
        let is_same =
            |(byte, &was): (usize, &u8)| region.buffer.read(offset + byte, 1) == was.into();
        if copy.data.iter().enumerate().take(count as usize).all(is_same) {
            return;
        }
        let written = (offset / 4..(offset + count as usize).div_ceil(4))
            .find_map(|word| cells.access(word, |cell| cell.written(0xF)));
        if let Some(conflict) = written {
            self.report(FindingKind::Race, conflict.instruction, warp, copy.lane, || {
                let detail = "an asynchronous copy still reads it: nobody has waited for that";
                (Some(grid.global.place(address)), detail.to_owned())
            });
        }
    }

    /// Writes what copies have brought.
    pub(super) fn finish_copies(
        &mut self,
        warp: usize,
        counter: u32,
        lanes: u32,
        groups: Option<u32>,
    ) {
        self.waited_at.insert(warp, counter);
        let done = self.copies.get_mut(warp).map(|copies| copies.wait(lanes, groups));
        for copy in done.into_iter().flatten() {
            self.end_copy(warp, counter, &copy);
        }
    }

    /// A copy to a word of shared memory has come: whether it was alone under way.
    fn comes_alone(&mut self, place: usize) -> bool {
        let Some(awaited) = self.shared.awaited.get_mut(&place) else { return true };
        awaited.copies -= 1;
        let were_several = awaited.were_several;
        if awaited.copies == 0 {
            self.shared.awaited.remove(&place);
        }
        !were_several
    }

    /// Writes what a copy of that warp has brought.
    pub(super) fn end_copy(&mut self, warp: usize, counter: u32, copy: &Copy) {
        let grid = self.grid;
        self.check_source(warp, copy);
        let request = Request {
            counter,
            warp,
            bytes: copy.bytes as u32,
            order: Order::Weak,
            scope: Scope::Device,
            read_only_path: false,
            early: 0,
        };
        for (index, word) in copy.data.chunks(4).enumerate().take(copy.bytes / 4) {
            let value = word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            let place = copy.destination + index * 4;
            // Nobody can tell which of several copies comes last.
            let is_alone = self.comes_alone(place);
            self.shared.write(place, 4, value, copy.defined && is_alone);
        }
        let conflict = match copy.is_from_elsewhere {
            true => self.observe_coming(request, copy.lane, copy.destination, false),
            false => self.observe_shared(request, copy.lane, copy.destination, true),
        };
        self.report_race(request, copy.lane, conflict, || in_shared(grid, copy.destination as u64));
        if copy.source.1 != 0 {
            let to = self.own_place(copy.destination as u64);
            self.record(warp, copy.counter, |trace, who| {
                trace.copy(who, copy.lane, [to, copy.source.0], copy.source.1);
            });
        }
    }

    /// Remembers a write of shared memory by a copy from elsewhere, which is under way from now on,
    /// or until now.
    fn observe_coming(
        &mut self,
        request: Request,
        lane: usize,
        offset: usize,
        begins: bool,
    ) -> Option<Conflict> {
        let (stamp, counter) = (self.stamp(request, lane), request.counter);
        let Self { order, grid, shared, .. } = self;
        let is_before = |old| order.is_before(old, request.warp, lane);
        let mut conflict = None;
        for (word, mask) in words_of(offset, request.bytes) {
            let Some(cell) = shared.cell(word) else { continue };
            let stamp = stamp.of_bytes(mask);
            let found = match begins {
                true => cell.touch(true, stamp.under_way(), counter, &grid.sizes, is_before),
                false => cell.land(stamp, counter, &grid.sizes, is_before),
            };
            conflict = conflict.or(found);
        }
        conflict
    }
}
