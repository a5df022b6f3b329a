//! Stores.

use super::access::{MOST_ELEMENTS, Values};
use super::core::Core;
use super::lanes::lanes_of;
use super::load::cut;
use super::order::{Effect, Log, Place};
use super::request::{Request, Use};
use super::touch::in_shared;
use super::traffic::sectors;
use super::warp::Warp;
use crate::code::{Access, Address, Order, Register, Scope, Space, WARP};
use crate::finding::FindingKind;

const WRITE: Effect = Effect {
    reads: false,
    writes: true,
    acquires: false,
    releases: false,
    scope: Scope::Device,
    names_scope: true,
};

impl Core<'_> {
    #[expect(clippy::too_many_arguments, reason = "an instruction's fields, and whose it is")]
    pub(super) fn store(
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
        let mut stored = Values::default();
        for (element, &source) in sources.iter().take(elements).enumerate() {
            stored.values[element] = warp.long(source);
            stored.undefined[element] = warp.registers.undefined(source) & lanes;
            stored.read_by[element] = warp.registers.read_by(source);
        }
        for (space, lanes) in parts {
            if lanes == 0 {
                continue;
            }
            self.record_access(request.warp, request.counter, space, &addresses, lanes);
            self.record_cuts(request.warp, request.counter, access.bytes, &stored, lanes);
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
                    self.store_shared(request, access.bytes, &addresses, lanes, &stored, log);
                }
                Space::Cluster => {
                    for lane in lanes_of(lanes) {
                        let at = addresses[lane];
                        let Some(visit) = self.visit(request, lane, at, log) else { continue };
                        let addresses = [visit.address; WARP];
                        let bytes = access.bytes;
                        self.store_shared(request, bytes, &addresses, 1 << lane, &stored, log);
                        self.leave(&visit, log);
                    }
                }
                Space::Local => {
                    for lane in lanes_of(lanes) {
                        let Some(offset) =
                            self.within_local(&warp.calls, request, lane, addresses[lane])
                        else {
                            continue;
                        };
                        for element in 0..elements {
                            let offset = offset + element * access.bytes as usize;
                            let value = stored.values[element][lane];
                            let defined = stored.undefined[element] >> lane & 1 == 0;
                            if !defined {
                                let thread = Some(warp.index * WARP + lane);
                                self.store_undefined(thread, offset, stored.read_by[element]);
                            }
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

    fn store_shared(
        &mut self,
        request: Request,
        bytes: u32,
        addresses: &[u64; WARP],
        lanes: u32,
        stored: &Values,
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        let elements = (request.bytes / bytes) as usize;
        for lane in lanes_of(lanes) {
            let Some(offset) = self.within_shared(request, lane, addresses[lane]) else {
                continue;
            };
            self.has_changed = true;
            let conflict = self.observe_shared(request, lane, offset, true);
            let is_same_value = conflict.is_some()
                && (0..elements).all(|element| {
                    let value = cut(stored.values[element][lane], bytes);
                    let offset = offset + element * bytes as usize;
                    self.shared.read(offset, bytes) == (value, true)
                });
            for element in 0..elements {
                let offset = offset + element * bytes as usize;
                let is_defined = stored.undefined[element] >> lane & 1 == 0;
                if !is_defined {
                    self.store_undefined(None, offset, stored.read_by[element]);
                }
                let value = stored.values[element][lane];
                self.shared.write(offset, bytes, value, is_defined);
            }
            self.needs_fence(offset, request.bytes);
            self.report_race_of_write(request, lane, conflict, is_same_value, || {
                in_shared(grid, offset as u64)
            });
            if request.order != Order::Weak {
                let place = Place::Shared(offset as u64);
                self.order_strongly(request, lane, place, WRITE, log);
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
            let conflict = self.observe_global(request, lane, cells, offset, true);
            let is_same_value = conflict.is_some()
                && (0..elements).all(|element| {
                    let offset = offset + element * bytes as usize;
                    region.buffer.read(offset, bytes) == cut(stored.values[element][lane], bytes)
                });
            for element in 0..elements {
                if stored.undefined[element] >> lane & 1 != 0 {
                    let Request { counter, warp, .. } = request;
                    let at = Use { counter, warp, lane, what: "the value stored" };
                    self.report_undefined(at, stored.read_by[element], || Some(place()));
                }
                let value = cut(stored.values[element][lane], bytes);
                if request.order != Order::Weak {
                    let address = addresses[lane] + u64::from(bytes) * element as u64;
                    let before = region.buffer.read(offset + element * bytes as usize, bytes);
                    self.remember_write(request, lane, address, bytes, [before, value], log);
                }
                let offset = offset + element * bytes as usize;
                region.buffer.write(offset, bytes, value);
            }
            self.has_changed = true;
            self.report_race_of_write(request, lane, conflict, is_same_value, place);
            if request.order != Order::Weak {
                self.order_strongly(request, lane, Place::Global(addresses[lane]), WRITE, log);
            }
        }
    }
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
