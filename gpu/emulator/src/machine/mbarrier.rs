//! `mbarrier`: barriers in shared memory, at which asynchronous copies arrive as threads do.
//!
//! A phase ends when as many have arrived as it counts and all bytes that are expected have come.
//! Copies come when somebody asks whether the phase has ended: until then a device need not have
//! brought them either. With a seed they come in any order, and not at the first question. What a
//! phase did not wait for is still under way when it has ended.

use super::core::Core;
use super::lanes::lanes_of;
use super::order::{Effect, Log, Place};
use super::phases::{State, UnderWay};
use super::request::Request;
use super::touch::in_shared;
use super::warp::Warp;
use crate::code::{MBarrier, MBarrierAction, Order, Phase, Register, Scope, Space, WARP};
use crate::finding::FindingKind;

/// Bytes of an mbarrier.
const BYTES: u32 = 8;
/// Questions in a phase, at most, whose answer is that it has not ended, whatever has come.
const MOST_DENIALS: u8 = 2;

const READ: Effect = Effect {
    reads: true,
    writes: false,
    acquires: false,
    releases: false,
    scope: Scope::Block,
    names_scope: true,
};
const READ_WRITE: Effect = Effect { writes: true, ..READ };

impl Core<'_> {
    /// Executes an instruction on an mbarrier, lane by lane.
    pub(super) fn mbarrier(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        at: &MBarrier,
        lanes: u32,
        log: &mut Log<'_>,
    ) {
        let (addresses, parts) = self.places(warp, counter, &at.address, lanes);
        let request = Request {
            counter,
            warp: warp.index,
            bytes: BYTES,
            order: at.order,
            // Without one, to whoever reaches it.
            scope: at.scope.unwrap_or(Scope::Device),
            read_only_path: false,
            early: 0,
        };
        let (mut states, mut complete) = ([0_u64; WARP], [0_u64; WARP]);
        for lane in lanes_of(lanes) {
            let address = addresses[lane];
            let is_of = |of: Space| {
                parts.iter().any(|&(space, lanes)| space == of && lanes >> lane & 1 != 0)
            };
            let came = if is_of(Space::Shared) {
                self.at_mbarrier(warp, request, lane, (at, address), log)
            } else if is_of(Space::Cluster) {
                let Some(visit) = self.visit(request, lane, address, log) else { continue };
                let came = self.at_mbarrier(warp, request, lane, (at, visit.address), log);
                self.leave(&visit, log);
                came
            } else {
                self.out_of_bounds(request, lane, || self.grid.global.place(address));
                continue;
            };
            (states[lane], complete[lane]) = came.unwrap_or_default();
        }
        match at.action {
            MBarrierAction::Arrive { state: Some(state), .. } => warp.set(state, lanes, &states),
            MBarrierAction::Test { is_complete, .. } => warp.set(is_complete, lanes, &complete),
            _ => {}
        }
    }

    /// Executes it for a lane. Gives the state before an arrival, and whether the phase that is
    /// asked for has ended.
    fn at_mbarrier(
        &mut self,
        warp: &Warp,
        request: Request,
        lane: usize,
        (at, address): (&MBarrier, u64),
        log: &mut Log<'_>,
    ) -> Option<(u64, u64)> {
        let Request { counter, .. } = request;
        let word = |register: Register| warp.word(register)[lane];
        let offset = self.within_shared(request, lane, address)?;
        if let MBarrierAction::Initialise { count } = at.action {
            let weak = Request { order: Order::Weak, ..request };
            let expected = word(count);
            let state = State {
                expected,
                pending: expected,
                bytes: 0,
                phase: 0,
                denials: 0,
                denied: None,
                under_way: Vec::new(),
                expected_at: None,
                initialised: self.order.stamp(warp.index, lane, false),
                initialised_at: counter,
                is_fenced: false,
            };
            self.shared.write(offset, BYTES, state.bits(), true);
            self.mbarriers.insert(address, state);
            self.touch_mbarrier(weak, lane, offset, true);
            return None;
        }
        if !self.mbarriers.contains_key(&address) {
            let grid = self.grid;
            self.report(FindingKind::Uninitialised, counter, warp.index, lane, || {
                let place = in_shared(grid, address);
                (Some(place), "there is no mbarrier that was initialised".to_owned())
            });
            return None;
        }
        let writes = !matches!(at.action, MBarrierAction::Test { .. });
        self.touch_mbarrier(request, lane, offset, writes);
        match at.action {
            MBarrierAction::Initialise { .. } => {}
            MBarrierAction::Invalidate => drop(self.mbarriers.remove(&address)),
            MBarrierAction::Expect { bytes } => {
                self.change(address, |state| state.expect(word(bytes), counter));
            }
            MBarrierAction::Complete { bytes } => {
                // What an asynchronous store brings is there for who waits for its bytes.
                if at.order == Order::Release {
                    let place = Place::Shared(address);
                    self.order_strongly(request, lane, place, READ_WRITE, log);
                }
                self.change(address, |state| {
                    state.bytes -= i64::from(word(bytes));
                    state.turn();
                });
            }
            MBarrierAction::Arrive { count, bytes, drops, completes, .. } => {
                let before = self.mbarriers.get(&address).map_or(0, State::bits);
                let count = count.map_or(1, word);
                self.change(address, |state| {
                    if let Some(bytes) = bytes {
                        state.expect(word(bytes), counter);
                    }
                });
                if drops {
                    self.change(address, |state| {
                        state.expected = state.expected.saturating_sub(count);
                    });
                }
                self.arrive_at(request, lane, address, (count, completes), log);
                return Some((before, 0));
            }
            MBarrierAction::ArriveBehindCopies { is_counted } => {
                let arrival = UnderWay::Arrival { warp: warp.index, lane };
                self.change(address, |state| {
                    state.pending += u32::from(!is_counted);
                    state.under_way.push(arrival);
                });
            }
            MBarrierAction::Test { phase, .. } => {
                let has_ended = |now: u32| match phase {
                    Phase::OfParity(parity) => now % 2 != word(parity) % 2,
                    Phase::OfState(of) => now != (warp.long(of)[lane] >> 32) as u32,
                };
                if !has_ended(self.mbarriers.get(&address)?.phase) && !self.denies(warp, address) {
                    self.land(counter, (warp.index, lane), address, log);
                }
                let now = self.mbarriers.get(&address)?.phase;
                let has_ended = has_ended(now);
                if has_ended {
                    self.waited_at.insert(warp.index, counter);
                }
                self.watch(Place::Shared(address), BYTES, now.into());
                if has_ended {
                    let effect = Effect { names_scope: at.scope.is_some(), ..READ };
                    self.order_strongly(request, lane, Place::Shared(address), effect, log);
                }
                return Some((0, has_ended.into()));
            }
        }
        None
    }

    /// What an mbarrier lacks that a warp asks again and again, in words.
    pub(super) fn lacks(&self, warp: &Warp) -> Option<String> {
        warp.polls.watched().find_map(|watched| {
            let Place::Shared(address) = watched.place else { return None };
            let state = self.mbarriers.get(&address)?;
            let State { phase, pending, bytes, initialised_at, .. } = state;
            let initialised = self.grid.kernel.place(*initialised_at);
            // Of bytes that do not come, who counted them may be wrong.
            let expected = state.expected_at.filter(|_| *bytes != 0);
            let expected = expected.map(|at| self.grid.kernel.place(at));
            let expected = expected.map(|at| format!(", and bytes were expected last {at}"));
            let expected = expected.unwrap_or_default();
            let place = in_shared(self.grid, address).place;
            Some(format!(
                "it asks an mbarrier ({place}) of which {phase} phases have ended, and whose present \
                 one waits for {pending} arrivals and {bytes} bytes; it was initialised {initialised}{expected}"
            ))
        })
    }

    /// Changes an mbarrier.
    fn change(&mut self, address: u64, change: impl FnOnce(&mut State)) {
        self.has_changed = true;
        if let Some(state) = self.mbarriers.get_mut(&address) {
            change(state);
            self.shared.write(address as usize, BYTES, state.bits(), true);
        }
    }

    /// A thread arrives so many times, which may end the phase or not.
    fn arrive_at(
        &mut self,
        request: Request,
        lane: usize,
        address: u64,
        (count, completes): (u32, bool),
        log: &mut Log<'_>,
    ) {
        let grid = self.grid;
        let pending = self.mbarriers.get(&address).map_or(0, |state| state.pending);
        if count > pending || !completes && count == pending {
            let kind = FindingKind::TooManyArrivals;
            self.report(kind, request.counter, request.warp, lane, || {
                let detail = format!("{count} where the phase counts {pending} more");
                (Some(in_shared(grid, address)), detail)
            });
        }
        self.order_strongly(request, lane, Place::Shared(address), READ_WRITE, log);
        self.change(address, |state| {
            state.pending = state.pending.saturating_sub(count);
            state.turn();
        });
    }

    /// Whether a question is answered before anything comes, as it may be: a test does not wait,
    /// and a wait has its time limit.
    fn denies(&mut self, warp: &Warp, address: u64) -> bool {
        let Some(state) = self.mbarriers.get_mut(&address) else { return false };
        let Some(random) = &mut self.random else { return false };
        // All lanes that ask together are told the same.
        let question = (warp.index, warp.executed);
        if state.denied == Some(question) {
            return true;
        }
        let denies =
            state.denials < MOST_DENIALS && !state.under_way.is_empty() && random.u8(..) < 192;
        state.denials += u8::from(denies);
        state.denied = denies.then_some(question);
        // Who asks again is told more.
        self.has_changed |= denies;
        denies
    }

    /// What is under way to an mbarrier comes, until its phase ends. What threads of other blocks
    /// have sent is written as if by the one that asks.
    fn land(&mut self, counter: u32, asks: (usize, usize), address: u64, log: &mut Log<'_>) {
        let grid = self.grid;
        let Some(state) = self.mbarriers.get_mut(&address) else { return };
        let now = state.phase;
        let mut under_way = std::mem::take(&mut state.under_way);
        if let Some(random) = &mut self.random {
            random.shuffle(&mut under_way);
        }
        let mut under_way = under_way.into_iter();
        while self.mbarriers.get(&address).is_some_and(|state| state.phase == now) {
            let Some(coming) = under_way.next() else { break };
            let warp = match coming {
                UnderWay::Copy { warp, .. } => warp.unwrap_or(asks.0),
                UnderWay::Arrival { warp, .. } => warp,
            };
            let request = Request {
                counter,
                warp,
                bytes: BYTES,
                order: Order::Release,
                scope: Scope::Device,
                read_only_path: false,
                early: 0,
            };
            match coming {
                UnderWay::Copy { warp: issuer, mut copy, phase } => {
                    if issuer.is_none() {
                        copy.lane = asks.1;
                    }
                    if phase != now {
                        let kind = FindingKind::TooManyArrivals;
                        self.report(kind, counter, warp, copy.lane, || {
                            let issued = grid.kernel.place(copy.counter);
                            let detail = format!(
                                "bytes come of a copy of an earlier phase, issued {issued}, which \
                                 did not expect them"
                            );
                            (Some(in_shared(grid, address)), detail)
                        });
                    }
                    self.end_copy(warp, counter, &copy);
                    self.order_strongly(
                        request,
                        copy.lane,
                        Place::Shared(address),
                        READ_WRITE,
                        log,
                    );
                    self.change(address, |state| {
                        state.bytes -= copy.bytes as i64;
                        state.turn();
                    });
                }
                UnderWay::Arrival { lane, .. } => {
                    self.finish_copies(warp, counter, 1 << lane, None);
                    self.arrive_at(request, lane, address, (1, true), log);
                }
            }
        }
        if let Some(state) = self.mbarriers.get_mut(&address) {
            state.under_way.splice(..0, under_way);
        }
    }

    /// Remembers who accesses an mbarrier.
    fn touch_mbarrier(&mut self, request: Request, lane: usize, offset: usize, writes: bool) {
        let grid = self.grid;
        let conflict = self.observe_shared(request, lane, offset, writes);
        self.report_race(request, lane, conflict, || in_shared(grid, offset as u64));
    }
}
