//! Accesses to memory: where they go, whether they may, and what they cost.

use super::block::Core;
use super::copies::Copy;
use super::global::Region;
use super::order::{Effect, Log, Place, Stamp, lanes_of};
use super::races::Conflict;
use super::traffic::{bank_conflicts, sectors};
use super::warp::Warp;
use crate::code::{
    Access, Address, Instruction, LOCAL_WINDOW, Op, Order, Register, SHARED_WINDOW, Space, WARP,
};
use crate::finding::{FindingKind, PlacedAddress};

/// Elements of a vector, at most.
const MOST_ELEMENTS: usize = 4;

/// An instruction's access by some lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) counter: u32,
    pub(super) warp: usize,
    /// Bytes that a lane accesses, all elements together.
    pub(super) bytes: u32,
    pub(super) order: Order,
}

/// What lanes read: by element and lane.
#[derive(Debug)]
struct Values {
    values: [[u64; WARP]; MOST_ELEMENTS],
    /// A bit for each lane.
    undefined: [u32; MOST_ELEMENTS],
}

impl<'g> Core<'g> {
    /// Whether an instruction is a strong access of device memory.
    pub(super) fn waits_for_turn(
        &self,
        warp: &Warp,
        instruction: &Instruction,
        lanes: u32,
    ) -> bool {
        let (address, order) = match &instruction.op {
            Op::Load { address, access, .. } | Op::Store { address, access, .. } => {
                (address, access.order)
            }
            Op::Atomic(atomic) => (&atomic.address, Order::Relaxed),
            _ => return false,
        };
        order != Order::Weak
            && match address.space {
                Space::Global => true,
                Space::Generic => {
                    let addresses = addresses(warp, address);
                    lanes_of(lanes).any(|lane| resolve(addresses[lane]).0 == Space::Global)
                }
                Space::Shared | Space::Local | Space::Parameter => false,
            }
    }

    /// Executes a load, a store, an atomic or a copy for some lanes.
    pub(super) fn access(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let request = |bytes, order| Request { counter, warp: warp.index, bytes, order };
        match &instruction.op {
            Op::Load { address, access, destinations } => {
                let request = request(access.bytes * destinations.len() as u32, access.order);
                self.load(warp, request, *access, address, destinations, lanes, log);
            }
            Op::Store { address, access, sources } => {
                let request = request(access.bytes * sources.len() as u32, access.order);
                self.store(warp, request, *access, address, sources, lanes, log);
            }
            Op::Atomic(atomic) => self.atomic(warp, counter, atomic, lanes, log),
            Op::CopyAsync { destination, source, bytes, source_bytes } => {
                let request = request(*bytes, Order::Weak);
                let of = [destination, source];
                self.issue_copies(warp, request, of, *source_bytes, lanes, log);
            }
            _ => {}
        }
    }

    /// The addresses of an access, by the space that they lie in, in which they are given. What they were computed from
    /// is checked.
    pub(super) fn places(
        &mut self,
        warp: &Warp,
        counter: u32,
        address: &Address,
        lanes: u32,
    ) -> ([u64; WARP], [(Space, u32); 3]) {
        if let Some(base) = address.base {
            let undefined = warp.registers.undefined(base) & lanes;
            if undefined != 0 {
                let lane = undefined.trailing_zeros() as usize;
                self.report(FindingKind::Uninitialised, counter, warp.index, lane, || {
                    (None, "the address depends on it".to_owned())
                });
            }
            let wrapped = warp.registers.wrapped(base) & lanes;
            if wrapped != 0 {
                let lane = wrapped.trailing_zeros() as usize;
                let at = addresses(warp, address)[lane];
                self.report(FindingKind::AddressOverflow, counter, warp.index, lane, || {
                    let place = self.grid.global.place(at);
                    (Some(place), "a number of 16 or 32 bits that it depends on wrapped".to_owned())
                });
            }
        }
        let mut addresses = addresses(warp, address);
        let none = (Space::Global, 0);
        if address.space != Space::Generic {
            return (addresses, [(address.space, lanes), none, none]);
        }
        let mut parts = [(Space::Global, 0), (Space::Shared, 0), (Space::Local, 0)];
        for lane in lanes_of(lanes) {
            let (space, at) = resolve(addresses[lane]);
            addresses[lane] = at;
            for part in &mut parts {
                if part.0 == space {
                    part.1 |= 1 << lane;
                }
            }
        }
        (addresses, parts)
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn load(
        &mut self,
        warp: &mut Warp,
        request: Request,
        access: Access,
        address: &Address,
        destinations: &[Register],
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let mut read = Values { values: [[0; WARP]; MOST_ELEMENTS], undefined: [0; MOST_ELEMENTS] };
        let elements = destinations.len().min(MOST_ELEMENTS);
        let (addresses, parts) = self.places(warp, request.counter, address, lanes);
        for (space, lanes) in parts {
            if lanes == 0 {
                continue;
            }
            match space {
                Space::Global | Space::Generic => {
                    self.counters.global_loads += 1;
                    self.counters.global_load_sectors += sectors(&addresses, lanes);
                    self.load_global(
                        request,
                        access.bytes,
                        elements,
                        &addresses,
                        lanes,
                        &mut read,
                        log,
                    );
                }
                Space::Shared => {
                    self.count_shared(&addresses, lanes, request.bytes);
                    self.load_shared(
                        request,
                        access.bytes,
                        elements,
                        &addresses,
                        lanes,
                        &mut read,
                        log,
                    );
                }
                Space::Local => self.load_local(
                    warp,
                    request,
                    access.bytes,
                    elements,
                    &addresses,
                    lanes,
                    &mut read,
                ),
                Space::Parameter => self.load_parameter(
                    request,
                    access.bytes,
                    elements,
                    &addresses,
                    lanes,
                    &mut read,
                ),
            }
        }
        for (element, &destination) in destinations.iter().take(elements).enumerate() {
            let values = &mut read.values[element];
            if access.signed && access.bytes < 8 {
                let shift = 64 - 8 * access.bytes;
                *values =
                    values.map(|v| (v << shift).cast_signed() >> shift).map(i64::cast_unsigned);
            }
            warp.set(destination, lanes, values);
            if read.undefined[element] != 0 {
                warp.registers.taint(destination, lanes, read.undefined[element], 0);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn load_global(
        &mut self,
        request: Request,
        bytes: u32,
        elements: usize,
        addresses: &[u64; WARP],
        lanes: u32,
        read: &mut Values,
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        let mut near = None;
        for lane in lanes_of(lanes) {
            let Some(offset) = self.within(&mut near, request, lane, addresses[lane]) else {
                continue;
            };
            let Some(region) = near else { continue };
            for element in 0..elements {
                let offset = offset + element * bytes as usize;
                read.values[element][lane] = region.buffer.read(offset, bytes);
                if !region.buffer.is_defined(offset, bytes) {
                    read.undefined[element] |= 1 << lane;
                }
            }
            if let Some(cells) = region.cells {
                let stamp = self.stamp(request, lane);
                let order = &self.order;
                let is_before = |old| order.is_before(old, request.warp, lane, log.all());
                let conflict = words_of(offset, request.bytes).find_map(|(word, mask)| {
                    let stamp = stamp.of_bytes(mask);
                    cells.access(word, |cell| cell.read(stamp, request.counter, is_before))
                });
                self.report_race(request, lane, conflict, || grid.global.place(addresses[lane]));
                if request.order != Order::Weak {
                    self.order_strongly(request, lane, Place::Global(addresses[lane]), READ, log);
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn load_shared(
        &mut self,
        request: Request,
        bytes: u32,
        elements: usize,
        addresses: &[u64; WARP],
        lanes: u32,
        read: &mut Values,
        log: &mut Log<'_>,
    ) {
        for lane in lanes_of(lanes) {
            let Some(offset) = self.within_shared(request, lane, addresses[lane]) else { continue };
            for element in 0..elements {
                let (value, is_defined) =
                    self.shared.read(offset + element * bytes as usize, bytes);
                read.values[element][lane] = value;
                read.undefined[element] |= u32::from(!is_defined) << lane;
            }
            let conflict = self.observe_shared(request, lane, offset, false, log);
            self.report_race(request, lane, conflict, || in_shared(offset as u64));
            if request.order != Order::Weak {
                self.order_strongly(request, lane, Place::Shared(offset as u64), READ, log);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn load_local(
        &mut self,
        warp: &Warp,
        request: Request,
        bytes: u32,
        elements: usize,
        addresses: &[u64; WARP],
        lanes: u32,
        read: &mut Values,
    ) {
        for lane in lanes_of(lanes) {
            let Some(offset) = self.within_local(request, lane, addresses[lane]) else { continue };
            for element in 0..elements {
                let offset = offset + element * bytes as usize;
                let word = |index: usize| warp.local.get(index).copied().unwrap_or_default();
                let (low, high) = (word(offset / 4), word(offset / 4 + 1));
                let words = u64::from(low.values[lane]) | u64::from(high.values[lane]) << 32;
                read.values[element][lane] = cut(words >> (offset % 4 * 8), bytes);
                let defined = [low.defined, high.defined].concat();
                let defined = defined.iter().skip(offset % 4).take(bytes as usize);
                if defined.fold(u32::MAX, |all, lanes| all & lanes) >> lane & 1 == 0 {
                    read.undefined[element] |= 1 << lane;
                }
            }
        }
    }

    fn load_parameter(
        &mut self,
        request: Request,
        bytes: u32,
        elements: usize,
        addresses: &[u64; WARP],
        lanes: u32,
        read: &mut Values,
    ) {
        let grid = self.grid;
        for lane in lanes_of(lanes) {
            for element in 0..elements {
                let start = addresses[lane].saturating_add(element as u64 * u64::from(bytes));
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                match grid.parameters.get(start..start.saturating_add(bytes as usize)) {
                    Some(from) => {
                        let mut value = [0; 8];
                        value.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                        read.values[element][lane] = u64::from_le_bytes(value);
                    }
                    None => self.out_of_bounds(request, lane, || PlacedAddress {
                        address: start as u64,
                        place: format!("parameters + {start} of {} bytes", grid.parameters.len()),
                    }),
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn store(
        &mut self,
        warp: &mut Warp,
        request: Request,
        access: Access,
        address: &Address,
        sources: &[Register],
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let (addresses, parts) = self.places(warp, request.counter, address, lanes);
        let elements = sources.len().min(MOST_ELEMENTS);
        let mut stored =
            Values { values: [[0; WARP]; MOST_ELEMENTS], undefined: [0; MOST_ELEMENTS] };
        for (element, &source) in sources.iter().take(elements).enumerate() {
            stored.values[element] = warp.long(source);
            stored.undefined[element] = warp.registers.undefined(source) & lanes;
        }
        for (space, lanes) in parts {
            if lanes == 0 {
                continue;
            }
            match space {
                Space::Global | Space::Generic => {
                    self.counters.global_stores += 1;
                    self.counters.global_store_sectors += sectors(&addresses, lanes);
                    self.store_global(
                        request,
                        access.bytes,
                        elements,
                        &addresses,
                        lanes,
                        &stored,
                        log,
                    );
                }
                Space::Shared => {
                    self.count_shared(&addresses, lanes, request.bytes);
                    for lane in lanes_of(lanes) {
                        let Some(offset) = self.within_shared(request, lane, addresses[lane])
                        else {
                            continue;
                        };
                        for element in 0..elements {
                            let offset = offset + element * access.bytes as usize;
                            let is_defined = stored.undefined[element] >> lane & 1 == 0;
                            let value = stored.values[element][lane];
                            self.shared.write(offset, access.bytes, value, is_defined);
                        }
                        let conflict = self.observe_shared(request, lane, offset, true, log);
                        self.report_race(request, lane, conflict, || in_shared(offset as u64));
                        if request.order != Order::Weak {
                            let place = Place::Shared(offset as u64);
                            self.order_strongly(request, lane, place, WRITE, log);
                        }
                    }
                }
                Space::Local => {
                    for lane in lanes_of(lanes) {
                        let Some(offset) = self.within_local(request, lane, addresses[lane]) else {
                            continue;
                        };
                        for element in 0..elements {
                            let offset = offset + element * access.bytes as usize;
                            let value = stored.values[element][lane];
                            let defined = stored.undefined[element] >> lane & 1 == 0;
                            write_local(warp, lane, offset, access.bytes, value, defined);
                        }
                    }
                }
                Space::Parameter => {
                    let lane = lanes.trailing_zeros() as usize;
                    self.report(
                        FindingKind::WriteToReadOnly,
                        request.counter,
                        request.warp,
                        lane,
                        || (None, "parameters are only read".to_owned()),
                    );
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    fn store_global(
        &mut self,
        request: Request,
        bytes: u32,
        elements: usize,
        addresses: &[u64; WARP],
        lanes: u32,
        stored: &Values,
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        let mut near = None;
        for lane in lanes_of(lanes) {
            let place = || grid.global.place(addresses[lane]);
            let Some(offset) = self.within(&mut near, request, lane, addresses[lane]) else {
                continue;
            };
            let Some(region) = near else { continue };
            let Some(cells) = region.cells else {
                self.report(
                    FindingKind::WriteToReadOnly,
                    request.counter,
                    request.warp,
                    lane,
                    || (Some(place()), String::new()),
                );
                continue;
            };
            for element in 0..elements {
                if stored.undefined[element] >> lane & 1 != 0 {
                    self.report(
                        FindingKind::Uninitialised,
                        request.counter,
                        request.warp,
                        lane,
                        || (Some(place()), "the value stored depends on it".to_owned()),
                    );
                }
                let offset = offset + element * bytes as usize;
                region.buffer.write(offset, bytes, stored.values[element][lane]);
            }
            let stamp = self.stamp(request, lane);
            let order = &self.order;
            let is_before = |old| order.is_before(old, request.warp, lane, log.all());
            let mut conflict = None;
            for (word, mask) in words_of(offset, request.bytes) {
                let stamp = stamp.of_bytes(mask);
                let found =
                    cells.access(word, |cell| cell.write(stamp, request.counter, is_before));
                conflict = conflict.or(found);
            }
            self.report_race(request, lane, conflict, place);
            if request.order != Order::Weak {
                self.order_strongly(request, lane, Place::Global(addresses[lane]), WRITE, log);
            }
        }
    }

    fn issue_copies(
        &mut self,
        warp: &mut Warp,
        request: Request,
        [destination, source]: [&Address; 2],
        source_bytes: Option<Register>,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let (targets, _) = self.places(warp, request.counter, destination, lanes);
        let (addresses, _) = self.places(warp, request.counter, source, lanes);
        let counts = source_bytes.map(|register| warp.word(register));
        self.counters.global_loads += 1;
        self.counters.global_load_sectors += sectors(&addresses, lanes);
        self.count_shared(&targets, lanes, request.bytes);
        let mut near = None;
        for lane in lanes_of(lanes) {
            let Some(target) = self.within_shared(request, lane, targets[lane]) else { continue };
            let count = counts.map_or(request.bytes, |counts| counts[lane].min(request.bytes));
            let mut copy = Copy {
                lane,
                destination: target,
                bytes: request.bytes as usize,
                data: [0; 16],
                defined: true,
            };
            if count > 0 {
                let part = Request { bytes: count, ..request };
                let Some(offset) = self.within(&mut near, part, lane, addresses[lane]) else {
                    continue;
                };
                let Some(region) = near else { continue };
                // However few bytes are read.
                if !addresses[lane].is_multiple_of(request.bytes.into()) {
                    let global = &self.grid.global;
                    self.misaligned(request, lane, || global.place(addresses[lane]));
                    continue;
                }
                for (byte, to) in copy.data.iter_mut().enumerate().take(count as usize) {
                    *to = region.buffer.read(offset + byte, 1) as u8;
                    copy.defined &= region.buffer.is_defined(offset + byte, 1);
                }
                if let Some(cells) = region.cells {
                    let stamp = self.stamp(part, lane);
                    let order = &self.order;
                    let is_before = |old| order.is_before(old, part.warp, lane, log.all());
                    let conflict = words_of(offset, count).find_map(|(word, mask)| {
                        let stamp = stamp.of_bytes(mask);
                        cells.access(word, |cell| cell.read(stamp, part.counter, is_before))
                    });
                    self.report_race(part, lane, conflict, || in_shared(target as u64));
                }
            }
            // Until it is waited for, nobody can tell what is there.
            for word in (0..copy.bytes).step_by(4) {
                self.shared.write(target + word, 4, 0, false);
            }
            let conflict = self.observe_shared(request, lane, target, true, log);
            self.report_race(request, lane, conflict, || in_shared(target as u64));
            warp.copies.issue(copy);
        }
    }

    /// Writes what copies have brought.
    pub(super) fn finish_copies(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        lanes: u32,
        groups: Option<u32>,
        log: &mut Log<'_>,
    ) {
        for copy in warp.copies.wait(lanes, groups) {
            let bytes = copy.bytes as u32;
            let request = Request { counter, warp: warp.index, bytes, order: Order::Weak };
            for (index, word) in copy.data.chunks(4).enumerate().take(copy.bytes / 4) {
                let value = word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
                self.shared.write(copy.destination + index * 4, 4, value, copy.defined);
            }
            let conflict = self.observe_shared(request, copy.lane, copy.destination, true, log);
            self.report_race(request, copy.lane, conflict, || in_shared(copy.destination as u64));
        }
    }

    /// Where an address lies in its buffer, which is put into `near`; reports those that lie nowhere.
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
        offset
    }

    pub(super) fn within_shared(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
    ) -> Option<usize> {
        let bytes = u64::from(request.bytes);
        let length = self.shared.len();
        if address.checked_add(bytes).is_none_or(|end| end > length as u64) {
            self.out_of_bounds(request, lane, || PlacedAddress {
                address,
                place: format!("shared memory + {address} of {length} bytes"),
            });
            return None;
        }
        if !address.is_multiple_of(bytes) {
            self.misaligned(request, lane, || in_shared(address));
            return None;
        }
        Some(address as usize)
    }

    fn within_local(&mut self, request: Request, lane: usize, address: u64) -> Option<usize> {
        let bytes = u64::from(request.bytes);
        let length = u64::from(self.grid.kernel.local_bytes);
        let place = || PlacedAddress {
            address,
            place: format!("the thread's own memory + {address} of {length} bytes"),
        };
        if address.checked_add(bytes).is_none_or(|end| end > length) {
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
    fn out_of_bounds(
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
    fn misaligned(&mut self, request: Request, lane: usize, place: impl FnOnce() -> PlacedAddress) {
        self.report(FindingKind::Misaligned, request.counter, request.warp, lane, || {
            (Some(place()), format!("an access of {} bytes", request.bytes))
        });
    }

    fn count_shared(&mut self, addresses: &[u64; WARP], lanes: u32, bytes: u32) {
        self.counters.shared_accesses += 1;
        self.counters.bank_conflicts += bank_conflicts(addresses, lanes, bytes);
    }

    #[inline]
    pub(super) fn stamp(&self, request: Request, lane: usize) -> Stamp {
        self.order.stamp(request.warp, lane, request.order != Order::Weak)
    }

    /// Remembers who accesses shared memory.
    #[inline]
    pub(super) fn observe_shared(
        &mut self,
        request: Request,
        lane: usize,
        offset: usize,
        writes: bool,
        log: &Log<'_>,
    ) -> Option<Conflict> {
        let stamp = self.stamp(request, lane);
        let order = &self.order;
        let is_before = |old| order.is_before(old, request.warp, lane, log.all());
        let mut conflict = None;
        for (word, mask) in words_of(offset, request.bytes) {
            let Some(cell) = self.shared.cell(word) else { continue };
            let stamp = stamp.of_bytes(mask);
            let found = match writes {
                true => cell.write(stamp, request.counter, is_before),
                false => cell.read(stamp, request.counter, is_before),
            };
            conflict = conflict.or(found);
        }
        conflict
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
            let [x, y, _] = grid.size;
            let block = stamp.block();
            let (bx, by, bz) = (block % x, block / x % y, block / x / y);
            let at = grid.kernel.place(instruction);
            let detail = format!(
                "{what} by block ({bx},{by},{bz}) thread ({tx},{ty},{tz}) {at}, in no order"
            );
            (Some(place()), detail)
        });
    }
}

const READ: Effect = Effect { reads: true, writes: false, acquires: false, releases: false };
const WRITE: Effect = Effect { reads: false, writes: true, acquires: false, releases: false };

/// The addresses of all lanes, in the instruction's space.
fn addresses(warp: &Warp, address: &Address) -> [u64; WARP] {
    match address.base {
        None => [address.offset.cast_unsigned(); WARP],
        // 32-bit addresses wrap around at 32 bits.
        Some(base @ Register::Word(_)) => {
            warp.word(base).map(|base| u64::from(base.wrapping_add(address.offset as u32)))
        }
        Some(base) => warp.long(base).map(|base| base.wrapping_add(address.offset.cast_unsigned())),
    }
}

/// The space of a generic address, and the address in that.
fn resolve(address: u64) -> (Space, u64) {
    if SHARED_WINDOW.contains(&address) {
        (Space::Shared, address - SHARED_WINDOW.start)
    } else if LOCAL_WINDOW.contains(&address) {
        (Space::Local, address - LOCAL_WINDOW.start)
    } else {
        (Space::Global, address)
    }
}

/// The words that an access touches, with a bit for each byte of them.
#[inline]
fn words_of(offset: usize, bytes: u32) -> impl Iterator<Item = (usize, u32)> {
    let mask = if bytes >= 4 { 0xF } else { ((1 << bytes) - 1) << (offset % 4) };
    let words = bytes.div_ceil(4) as usize;
    (offset / 4..offset / 4 + words).map(move |word| (word, mask))
}

fn write_local(warp: &mut Warp, lane: usize, offset: usize, bytes: u32, value: u64, defined: bool) {
    for byte in 0..bytes as usize {
        let (index, place) = ((offset + byte) / 4, (offset + byte) % 4);
        let Some(word) = warp.local.get_mut(index) else { return };
        let (shift, new) = (place * 8, (value >> (byte * 8)) as u32 & 0xFF);
        word.values[lane] = word.values[lane] & !(0xFF << shift) | new << shift;
        word.defined[place] = word.defined[place] & !(1 << lane) | u32::from(defined) << lane;
    }
}

/// The lower bytes of a value.
fn cut(value: u64, bytes: u32) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

pub(super) fn in_shared(offset: u64) -> PlacedAddress {
    PlacedAddress { address: offset, place: format!("shared memory + {offset}") }
}
