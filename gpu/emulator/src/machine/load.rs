//! Loads.

use super::access::{MOST_ELEMENTS, Values};
use super::core::Core;
use super::lanes::lanes_of;
use super::order::{Effect, Log, Place};
use super::request::Request;
use super::touch::in_shared;
use super::traffic::sectors;
use super::warp::Warp;
use crate::code::{Access, Address, Order, Register, Scope, Space, WARP};
use crate::finding::PlacedAddress;

const READ: Effect = Effect {
    reads: true,
    writes: false,
    acquires: false,
    releases: false,
    scope: Scope::Device,
    names_scope: true,
};

impl Core<'_> {
    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        request: Request,
        access: Access,
        address: &Address,
        destinations: &[Register],
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let mut read = Values::default();
        let elements = destinations.len().min(MOST_ELEMENTS);
        let (addresses, parts) = self.places(warp, request.counter, address, lanes);
        for (space, lanes) in parts {
            if lanes == 0 {
                continue;
            }
            self.record_access(request.warp, request.counter, space, &addresses, lanes);
            match space {
                Space::Global | Space::Generic => {
                    self.counters.global_loads += 1;
                    warp.loads += 1;
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
                Space::Cluster => {
                    for lane in lanes_of(lanes) {
                        let at = addresses[lane];
                        let Some(visit) = self.visit(request, lane, at, log) else { continue };
                        let addresses = [visit.address; WARP];
                        self.load_shared(
                            request,
                            access.bytes,
                            elements,
                            &addresses,
                            1 << lane,
                            &mut read,
                            log,
                        );
                        self.leave(&visit, log);
                    }
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
            let undefined = read.undefined[element];
            if undefined != 0 {
                let read_by = read.read_by[element].unwrap_or_else(|| {
                    self.remember_undefined(
                        request.counter,
                        request.warp,
                        undefined,
                        (&addresses, &parts),
                    );
                    request.counter
                });
                warp.registers.taint(destination, lanes, undefined, Some(read_by));
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
                let conflict = match request.read_only_path {
                    true => self.observe_read_only(request, cells, offset),
                    false => self.observe_global(request, lane, cells, offset, false),
                };
                self.report_race(request, lane, conflict, || grid.global.place(addresses[lane]));
                if request.order != Order::Weak {
                    let unordered = self.unordered_global(request, lane, cells, offset);
                    self.remark(request, lane, unordered, || grid.global.place(addresses[lane]));
                    for element in 0..elements {
                        let address = addresses[lane] + u64::from(bytes) * element as u64;
                        let value = &mut read.values[element][lane];
                        *value = self.maybe_older(request, lane, address, bytes, *value, log);
                        self.watch(Place::Global(address), bytes, read.values[element][lane]);
                    }
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
        let grid = self.grid;
        for lane in lanes_of(lanes) {
            let Some(offset) = self.within_shared(request, lane, addresses[lane]) else { continue };
            for element in 0..elements {
                let (value, is_defined) =
                    self.shared.read(offset + element * bytes as usize, bytes);
                read.values[element][lane] = value;
                if !is_defined {
                    read.undefined[element] |= 1 << lane;
                    let since = self.undefined_since(None, offset + element * bytes as usize);
                    read.read_by[element] = read.read_by[element].or(since);
                }
            }
            let conflict = self.observe_shared(request, lane, offset, false);
            self.report_race(request, lane, conflict, || in_shared(grid, offset as u64));
            if request.order != Order::Weak {
                let unordered = self.unordered_shared(request, lane, offset);
                self.remark(request, lane, unordered, || in_shared(grid, offset as u64));
                for element in 0..elements {
                    let at = offset as u64 + u64::from(bytes) * element as u64;
                    self.watch(Place::Shared(at), bytes, read.values[element][lane]);
                }
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
            let Some(offset) = self.within_local(&warp.calls, request, lane, addresses[lane])
            else {
                continue;
            };
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
                    let since = self.undefined_since(Some(warp.index * WARP + lane), offset);
                    read.read_by[element] = read.read_by[element].or(since);
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
}

/// The lower bytes of a value.
pub(super) fn cut(value: u64, bytes: u32) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}
