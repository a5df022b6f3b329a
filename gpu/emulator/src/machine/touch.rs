//! Whether an access may be made, and what is remembered of it.

use std::ops::Range;

use super::activations::Calls;
use super::core::Core;
use super::global::Region;
use super::grid::Grid;
use super::order::{Effect, Log, Place, Releases};
use super::past::Past;
use super::polls::Watched;
use super::races::{Conflict, SharedCells};
use super::request::Request;
use super::stamp::Stamp;
use super::traffic::bank_conflicts;
use crate::code::{Kernel, Order, Scope, SharedArray, WARP};
use crate::finding::{FindingKind, PlacedAddress};

/// Why nothing comes after what an asynchronous copy writes.
const UNDER_WAY: &str = "a copy that is still under way: only its mbarrier, or \
                         `cp.async.bulk.wait_group` without `.read`, waits until it is there";

impl<'g> Core<'g> {
    /// Where an address lies in its buffer, which is put into `near`; reports those that lie
    /// nowhere.
    #[inline]
    pub(super) fn within(
        &mut self,
        near: &mut Option<Region<'g>>,
        request: Request,
        lane: usize,
        address: u64,
    ) -> Option<usize> {
        // Neighbouring lanes mostly access the same buffer.
        let bytes = u64::from(request.bytes);
        let global = &self.grid.global;
        let offset = |near: Option<Region<'g>>| near?.buffer.offset(address, bytes);
        let offset = offset(*near).or_else(|| {
            *near = global.near(address);
            offset(*near)
        });
        if offset.is_none() {
            self.out_of_bounds(request, lane, || global.place(address));
        } else if !address.is_multiple_of(bytes) && bytes.is_power_of_two() {
            self.misaligned(request, lane, || global.place(address));
            return None;
        }
        if request.early >> lane & 1 != 0 && near.is_some_and(|near| near.buffer.is_in_use()) {
            self.before_wait(request, lane, || global.place(address));
        }
        offset
    }

    pub(super) fn within_shared(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
    ) -> Option<usize> {
        let bytes = u64::from(request.bytes);
        let grid = self.grid;
        if !self.is_in_shared(address, bytes) {
            self.out_of_bounds(request, lane, || in_shared(grid, address));
            return None;
        }
        if !address.is_multiple_of(bytes) {
            self.misaligned(request, lane, || in_shared(grid, address));
            return None;
        }
        Some(address as usize)
    }

    /// Whether an access lies within one variable, or within what the launch has added.
    #[inline]
    fn is_in_shared(&self, address: u64, bytes: u64) -> bool {
        let kernel = self.grid.kernel;
        let Some(end) = address.checked_add(bytes) else { return false };
        if address >= kernel.shared_dynamic.into() {
            return end <= self.shared.len() as u64;
        }
        let arrays = &kernel.shared_arrays;
        let after = arrays.partition_point(|array| u64::from(array.bytes.start) <= address);
        let array = after.checked_sub(1).and_then(|index| arrays.get(index));
        array.is_some_and(|array| end <= array.bytes.end.into())
    }

    pub(super) fn within_local(
        &mut self,
        calls: &Calls,
        request: Request,
        lane: usize,
        address: u64,
    ) -> Option<usize> {
        let bytes = u64::from(request.bytes);
        let kernel = self.grid.kernel;
        let place = || PlacedAddress { address, place: in_local(kernel, address) };
        let is_within = |at: u64, gaps: &[Range<u32>], length: u32| {
            at.checked_add(bytes).is_some_and(|end| end <= length.into())
                && gap(gaps, at, bytes).is_none()
        };
        let is_inside = match calls.frame(kernel, lane, address) {
            Some((function, frame)) => {
                is_within(address - frame, &function.gaps, function.frame_bytes)
            }
            None => is_within(address, &kernel.local_gaps, kernel.local_bytes),
        };
        if !is_inside {
            self.out_of_bounds(request, lane, place);
            return None;
        }
        if !address.is_multiple_of(bytes) {
            self.misaligned(request, lane, place);
            return None;
        }
        Some(address as usize)
    }

    #[cold]
    pub(super) fn out_of_bounds(
        &mut self,
        request: Request,
        lane: usize,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        self.report(FindingKind::OutOfBounds, request.counter, request.warp, lane, || {
            (Some(place()), format!("an access of {} bytes", request.bytes))
        });
    }

    #[cold]
    pub(super) fn misaligned(
        &mut self,
        request: Request,
        lane: usize,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        self.report(FindingKind::Misaligned, request.counter, request.warp, lane, || {
            (Some(place()), format!("an access of {} bytes", request.bytes))
        });
    }

    #[cold]
    fn before_wait(
        &mut self,
        request: Request,
        lane: usize,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        self.report(FindingKind::BeforeWait, request.counter, request.warp, lane, || {
            (Some(place()), "kernels that it waits for later may be using it".to_owned())
        });
    }

    pub(super) fn count_shared(&mut self, addresses: &[u64; WARP], lanes: u32, bytes: u32) {
        self.counters.shared_accesses += 1;
        self.counters.bank_conflicts += bank_conflicts(addresses, lanes, bytes);
    }

    #[inline]
    pub(super) fn stamp(&self, request: Request, lane: usize) -> Stamp {
        let stamp = self.order.stamp(request.warp, lane, request.order != Order::Weak);
        if request.scope == Scope::Block { stamp.of_block() } else { stamp }
    }

    /// Remembers who accesses shared memory.
    #[inline]
    pub(super) fn observe_shared(
        &mut self,
        request: Request,
        lane: usize,
        offset: usize,
        writes: bool,
    ) -> Option<Conflict> {
        let stamp = self.stamp(request, lane);
        let (order, sizes) = (&self.order, self.grid.sizes.as_slice());
        let is_before = |old| order.is_before(old, request.warp, lane);
        let mut conflict = None;
        for (word, mask) in words_of(offset, request.bytes) {
            let Some(cell) = self.shared.cell(word) else { continue };
            let stamp = stamp.of_bytes(mask);
            let found = cell.touch(writes, stamp, request.counter, sizes, is_before);
            conflict = conflict.or(found);
        }
        conflict
    }

    /// Remembers who accesses a buffer that may be written.
    #[inline]
    pub(super) fn observe_global(
        &self,
        request: Request,
        lane: usize,
        cells: &SharedCells,
        offset: usize,
        writes: bool,
    ) -> Option<Conflict> {
        let stamp = self.stamp(request, lane);
        let sizes = self.grid.sizes.as_slice();
        let is_before = |old| self.order.is_before(old, request.warp, lane);
        let mut conflict = None;
        for (word, mask) in words_of(offset, request.bytes) {
            let stamp = stamp.of_bytes(mask);
            let found = cells
                .access(word, |cell| cell.touch(writes, stamp, request.counter, sizes, is_before));
            conflict = conflict.or(found);
        }
        conflict
    }

    /// A write by the launch of what is read through the read-only path, in whatever order.
    pub(super) fn observe_read_only(
        &self,
        request: Request,
        cells: &SharedCells,
        offset: usize,
    ) -> Option<Conflict> {
        words_of(offset, request.bytes)
            .find_map(|(word, mask)| cells.access(word, |cell| cell.written(mask)))
    }

    /// A strong write that a strong read of device memory need not see.
    pub(super) fn unordered_global(
        &self,
        request: Request,
        lane: usize,
        cells: &SharedCells,
        offset: usize,
    ) -> Option<Conflict> {
        let stamp = self.stamp(request, lane);
        let is_before = |old| self.order.is_before(old, request.warp, lane);
        words_of(offset, request.bytes).find_map(|(word, mask)| {
            cells.access(word, |cell| cell.unordered(stamp.of_bytes(mask), is_before))
        })
    }

    /// The same of shared memory.
    pub(super) fn unordered_shared(
        &mut self,
        request: Request,
        lane: usize,
        offset: usize,
    ) -> Option<Conflict> {
        let stamp = self.stamp(request, lane);
        let order = &self.order;
        let is_before = |old| order.is_before(old, request.warp, lane);
        let shared = &mut self.shared;
        words_of(offset, request.bytes)
            .find_map(|(word, mask)| shared.cell(word)?.unordered(stamp.of_bytes(mask), is_before))
    }

    /// Remarks that a strong read is in no order with a write.
    pub(super) fn remark(
        &mut self,
        request: Request,
        lane: usize,
        conflict: Option<Conflict>,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        let Some(Conflict { stamp, instruction, .. }) = conflict else { return };
        let grid = self.grid;
        self.report(FindingKind::UnorderedRead, request.counter, request.warp, lane, || {
            let [tx, ty, tz] = grid.thread(stamp.thread() as usize);
            let [bx, by, bz] = grid.block(stamp.block());
            let at = grid.kernel.place(instruction);
            let detail = format!(
                "written by block ({bx},{by},{bz}) thread ({tx},{ty},{tz}) {at}; nothing says \
                 that it is read after that"
            );
            (Some(place()), detail)
        });
    }

    /// What a strong read of device memory gives: what is there, or what was there before.
    pub(super) fn maybe_older(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
        bytes: u32,
        now: u64,
        log: &mut Log<'_>,
    ) -> u64 {
        let by = self.stamp(request, lane);
        let Log::Turn(Releases { past, .. }) = log else { return now };
        let Some(random) = &mut self.random else { return now };
        let order = &self.order;
        let is_before = |old| order.is_before(old, request.warp, lane);
        let older = past.before(address, bytes, now, by, order.last_fence(), is_before);
        match older.filter(|_| random.bool()) {
            Some(older) => older,
            None => {
                past.observe(address, by);
                now
            }
        }
    }

    /// Remembers that an atomic, which never gives an older value, has observed the last strong
    /// write of a place.
    pub(super) fn remember_atomic(
        &self,
        request: Request,
        lane: usize,
        address: u64,
        log: &mut Log<'_>,
    ) {
        if let Some(past) = self.past(log) {
            past.observe(address, self.stamp(request, lane));
        }
    }

    /// Remembers a strong write of device memory, for strong reads that may miss it.
    pub(super) fn remember_write(
        &self,
        request: Request,
        lane: usize,
        address: u64,
        bytes: u32,
        [before, after]: [u64; 2],
        log: &mut Log<'_>,
    ) {
        if before != after
            && let Some(past) = self.past(log)
        {
            past.write(address, bytes, [before, after], self.stamp(request, lane));
        }
    }

    /// The last strong writes of device memory, where strong reads may miss them.
    fn past<'r>(&self, log: &'r mut Log<'_>) -> Option<&'r mut Past> {
        match log {
            Log::Turn(releases) if self.random.is_some() && self.grid.has_strong_reads => {
                Some(&mut releases.past)
            }
            _ => None,
        }
    }

    /// Remembers what a strong access has read.
    pub(super) fn watch(&mut self, place: Place, bytes: u32, value: u64) {
        let watched = Watched { place, bytes, value };
        // Mostly all lanes look at one place.
        if self.watched.last() != Some(&watched) {
            self.watched.push(watched);
        }
    }

    /// Applies what a strong access orders.
    pub(super) fn order_strongly(
        &mut self,
        request: Request,
        lane: usize,
        place: Place,
        effect: Effect,
        log: &mut Log<'_>,
    ) {
        let order = request.order;
        let effect = Effect {
            acquires: effect.reads && matches!(order, Order::Acquire | Order::AcquireRelease),
            releases: effect.writes && matches!(order, Order::Release | Order::AcquireRelease),
            scope: request.scope,
            ..effect
        };
        self.order.strong_access(request.warp, lane, place, effect, log);
    }

    #[inline]
    pub(super) fn report_race(
        &mut self,
        request: Request,
        lane: usize,
        conflict: Option<Conflict>,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        let Some(Conflict { is_write, stamp, instruction }) = conflict else { return };
        let grid = self.grid;
        self.report(FindingKind::Race, request.counter, request.warp, lane, || {
            let what = if is_write { "written" } else { "read" };
            let [tx, ty, tz] = grid.thread(stamp.thread() as usize);
            let [bx, by, bz] = grid.block(stamp.block());
            let at = grid.kernel.place(instruction);
            let why = if request.read_only_path {
                "which the read-only path need not see"
            } else if stamp.is_under_way() {
                UNDER_WAY
            } else {
                "in no order"
            };
            let detail =
                format!("{what} by block ({bx},{by},{bz}) thread ({tx},{ty},{tz}) {at}, {why}");
            (Some(place()), detail)
        });
    }

    /// The same of a write, of which it is known whether the place holds its value already.
    #[inline]
    pub(super) fn report_race_of_write(
        &mut self,
        request: Request,
        lane: usize,
        conflict: Option<Conflict>,
        is_same_value: bool,
        place: impl FnOnce() -> PlacedAddress,
    ) {
        match conflict {
            // Whichever comes last, the same is there.
            Some(Conflict { is_write: true, .. }) if is_same_value => {
                self.report(FindingKind::SameValue, request.counter, request.warp, lane, || {
                    (Some(place()), "another thread has stored the same value".to_owned())
                });
            }
            conflict => self.report_race(request, lane, conflict, place),
        }
    }
}

/// The words that an access touches, with a bit for each byte of them.
#[inline]
pub(super) fn words_of(offset: usize, bytes: u32) -> impl Iterator<Item = (usize, u32)> {
    let mask = if bytes >= 4 { 0xF } else { ((1 << bytes) - 1) << (offset % 4) };
    let words = bytes.div_ceil(4) as usize;
    (offset / 4..offset / 4 + words).map(move |word| (word, mask))
}

/// What lies between two arrays of a thread's own memory and is touched by an access.
fn gap(gaps: &[Range<u32>], address: u64, bytes: u64) -> Option<&Range<u32>> {
    let after = gaps.partition_point(|gap| u64::from(gap.end) <= address);
    gaps.get(after).filter(|gap| u64::from(gap.start) < address + bytes)
}

/// Puts an address of a thread's own memory in words: one between two arrays is behind the first
/// or before the second, whichever is nearer.
pub(super) fn in_local(kernel: &Kernel, address: u64) -> String {
    if address > kernel.local_bytes.into() && !kernel.functions.is_empty() {
        return format!("the thread's stack + {}", address - u64::from(kernel.local_bytes));
    }
    match gap(&kernel.local_gaps, address, 1) {
        None => format!("the thread's own memory + {address} of {} bytes", kernel.local_bytes),
        Some(gap) => {
            let (past, before) = (address - u64::from(gap.start), u64::from(gap.end) - address);
            match past <= before {
                true => format!("{past} bytes past an array in the thread's own memory"),
                false => format!("{before} bytes before an array in the thread's own memory"),
            }
        }
    }
}

/// Puts an address of shared memory in words: with the variable that it lies in or after, as far as
/// that is known.
pub(super) fn in_shared(grid: &Grid<'_>, address: u64) -> PlacedAddress {
    let kernel = grid.kernel;
    let arrays = &kernel.shared_arrays;
    let after = arrays.partition_point(|array| u64::from(array.bytes.start) <= address);
    let place = match after.checked_sub(1).and_then(|index| arrays.get(index)) {
        Some(SharedArray { name, bytes }) if address < kernel.shared_dynamic.into() => {
            let (offset, length) = (address - u64::from(bytes.start), bytes.end - bytes.start);
            format!("shared `{}` + {offset} of {length} bytes", demangled(name))
        }
        _ => {
            let offset = address.wrapping_sub(kernel.shared_dynamic.into()).cast_signed();
            let length = grid.dynamic_shared;
            format!("dynamic shared memory + {offset} of {length} bytes")
        }
    };
    PlacedAddress { address, place }
}

/// The variable's own name in one that the compiler made of a function's and a variable's.
fn demangled(name: &str) -> &str {
    // `_ZZ6reduceE4tile`, or with `extern "C"` `_ZZ6reduceE4tile` as well.
    let own = name.rsplit_once('E').map_or(name, |(_, own)| own);
    let rest = own.trim_start_matches(|c: char| c.is_ascii_digit());
    let length = own.len() - rest.len();
    let is_own = own.get(..length).and_then(|n| n.parse().ok()) == Some(rest.len());
    if name.starts_with("_ZZ") && is_own { rest } else { name }
}
