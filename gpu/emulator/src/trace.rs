//! What a launch executed, in order, and where values come from and go to by that.
//!
//! A [`Trace`] is recorded by [`run_traced`](crate::machine::run_traced): an event for each
//! instruction of a warp, without values, but with the places of memory that were accessed. That
//! is enough to follow a value backwards to all that it was computed from (a dynamic slice, after
//! Korel and Laski, 1988), and forwards to the last that was computed from it.
//!
//! Values that pass through the parameters of functions that are not inlined, through tiles of
//! matrices or through the reduction of a barrier are not followed.

mod backward;
mod forward;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::code::{Constant, Kernel, Op, Register, SHARED_BITS, ShuffleMode, Space, WARP};

pub use self::backward::Step;

/// Events that are recorded at most: a launch that has more is not traced.
const MOST_EVENTS: usize = 1 << 23;

/// Marks places of shared memory, which no device address is.
const SHARED: u64 = 1 << 63;
/// Marks places of threads' own memory.
const LOCAL: u64 = 1 << 62;

/// What a launch executed.
#[derive(Debug, Default)]
pub struct Trace {
    events: Vec<Event>,
    /// What events refer to.
    places: Vec<u64>,
    is_full: bool,
}

/// An instruction, executed by some lanes of a warp.
#[derive(Clone, Copy, Debug)]
struct Event {
    what: What,
    warp: u16,
    block: u32,
    counter: u32,
    lanes: u32,
    /// Where its places begin, or what else there is to say.
    extra: u32,
}

impl Event {
    /// Numbers of its lanes.
    fn lane_numbers(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let lanes = self.lanes;
        (0..WARP).filter(move |lane| lanes >> lane & 1 != 0)
    }

    /// Whether the thread that is a lane of another event has executed it, too.
    fn is_of_thread(&self, other: &Self, lane: usize) -> bool {
        self.block == other.block && self.warp == other.warp && self.lanes >> lane & 1 != 0
    }
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It computes, lane by lane.
    Computes,
    /// A branch that has a guard; `extra` are the lanes that jump.
    Branches,
    /// It accesses memory; of each lane there is a place.
    Accesses,
    /// A shuffle; of each lane there is the lane that it reads, [`NOBODY`] for none.
    Shuffles,
    /// It combines what all of the lanes hold.
    Combines,
    /// A copy has come: the places are its destination, its source and its bytes.
    Copies,
    /// A number was cut off, or has wrapped, in these lanes.
    Cuts,
}

/// No lane.
const NOBODY: u64 = u64::MAX;

/// A lane of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Number of the event: later ones have larger numbers.
    pub event: usize,
    /// The lane.
    pub lane: usize,
}

/// Who accessed memory where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessEvent {
    /// When.
    pub moment: Moment,
    /// Number of the instruction.
    pub counter: u32,
    /// The place of its first byte: of device memory the address.
    pub place: u64,
    /// Bytes of all its elements.
    pub bytes: u32,
    /// Bytes of one.
    pub element: u32,
}

impl AccessEvent {
    /// Whether any of its bytes is at one of these places.
    fn overlaps(&self, places: &Range<u64>) -> bool {
        let end = self.place.saturating_add(self.bytes.into());
        self.place < places.end && end > places.start
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
}

/// The place of an address in a block's shared memory.
pub(crate) fn shared_place(cluster: u32, rank: u32, address: u64) -> u64 {
    SHARED | u64::from(cluster) << (SHARED_BITS + 4) | u64::from(rank) << SHARED_BITS | address
}

/// The place of an address in a thread's own memory.
pub(crate) fn local_place(block: u32, thread: usize, address: u64) -> u64 {
    let address = address & ((1 << 28) - 1);
    LOCAL | u64::from(block & 0xFF_FFFF) << 38 | (thread as u64 & 0x3FF) << 28 | address
}

impl Trace {
    /// Whether the launch had more events than are recorded, so that nothing can be told.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    fn add(&mut self, what: What, who: Who, lanes: u32, extra: u32) {
        if self.events.len() >= MOST_EVENTS || self.places.len() >= 4 * MOST_EVENTS {
            self.is_full = true;
            return;
        }
        let Who { block, warp, counter } = who;
        let warp = warp as u16;
        self.events.push(Event { what, warp, block, counter, lanes, extra });
    }

    fn add_places(&mut self, what: What, who: Who, lanes: u32, places: &[u64; WARP]) {
        let first = self.places.len() as u32;
        self.add(what, who, lanes, first);
        if !self.is_full {
            let of_lanes = places.iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 != 0);
            self.places.extend(of_lanes.map(|(_, place)| place));
        }
    }

    pub(crate) fn compute(&mut self, who: Who, lanes: u32) {
        self.add(What::Computes, who, lanes, 0);
    }

    pub(crate) fn branch(&mut self, who: Who, lanes: u32, jumping: u32) {
        self.add(What::Branches, who, lanes, jumping);
    }

    pub(crate) fn access(&mut self, who: Who, lanes: u32, places: &[u64; WARP]) {
        self.add_places(What::Accesses, who, lanes, places);
    }

    pub(crate) fn shuffle(&mut self, who: Who, lanes: u32, sources: &[Option<u32>; WARP]) {
        let sources = sources.map(|source| source.map_or(NOBODY, u64::from));
        self.add_places(What::Shuffles, who, lanes, &sources);
    }

    pub(crate) fn combine(&mut self, who: Who, lanes: u32) {
        self.add(What::Combines, who, lanes, 0);
    }

    pub(crate) fn copy(&mut self, who: Who, lane: usize, [to, from]: [u64; 2], bytes: u32) {
        let first = self.places.len() as u32;
        self.add(What::Copies, who, 1 << lane, first);
        if !self.is_full {
            self.places.extend([to, from, bytes.into()]);
        }
    }

    pub(crate) fn cut(&mut self, who: Who, lanes: u32) {
        if lanes != 0 {
            self.add(What::Cuts, who, lanes, 0);
        }
    }

    /// Number of the instruction of an event, and its block's number and the thread's in it.
    #[must_use]
    pub fn place_of(&self, moment: Moment) -> Option<(u32, u32, usize)> {
        let event = self.events.get(moment.event)?;
        Some((event.counter, event.block, usize::from(event.warp) * WARP + moment.lane))
    }

    /// The place of a lane of an event that has one for each.
    fn place(&self, event: &Event, lane: usize) -> Option<u64> {
        let before = event.lanes & ((1 << lane) - 1);
        let index = event.extra as usize + before.count_ones() as usize;
        self.places.get(index).copied()
    }

    /// Destination, source and bytes of a copy.
    fn copied(&self, event: &Event) -> Option<[u64; 3]> {
        let first = event.extra as usize;
        self.places.get(first..first + 3)?.try_into().ok()
    }

    /// All accesses of device memory by loads, stores, atomics and copies that begin in a range of
    /// addresses, in order, with what each does.
    pub fn accesses<'t>(
        &'t self,
        kernel: &'t Kernel,
        addresses: Range<u64>,
    ) -> impl Iterator<Item = (AccessEvent, Effects)> + 't {
        let all = (0..self.events.len()).flat_map(move |number| self.accesses_of(kernel, number));
        all.filter(move |(access, _)| access.overlaps(&addresses))
    }

    /// The accesses of memory by an event.
    fn accesses_of(&self, kernel: &Kernel, number: usize) -> Vec<(AccessEvent, Effects)> {
        let Some(event) = self.events.get(number) else { return Vec::new() };
        let counter = event.counter;
        match event.what {
            What::Accesses => {
                let Some((bytes, element, effects)) = kernel
                    .code
                    .get(counter as usize)
                    .and_then(|instruction| extent(&instruction.op))
                else {
                    return Vec::new();
                };
                let of = |lane: usize| {
                    let (place, moment) =
                        (self.place(event, lane)?, Moment { event: number, lane });
                    Some((AccessEvent { moment, counter, place, bytes, element }, effects))
                };
                event.lane_numbers().filter_map(of).collect()
            }
            What::Copies => {
                let Some([to, from, bytes]) = self.copied(event) else { return Vec::new() };
                let lane = event.lanes.trailing_zeros() as usize;
                let moment = Moment { event: number, lane };
                let of = |place, reads| {
                    let access =
                        AccessEvent { moment, counter, place, bytes: bytes as u32, element: 4 };
                    (access, Effects { reads, writes: !reads })
                };
                vec![of(from, true), of(to, false)]
            }
            _ => Vec::new(),
        }
    }

    /// The last write of any of some bytes of device memory.
    #[must_use]
    pub fn last_write(&self, kernel: &Kernel, addresses: Range<u64>) -> Option<AccessEvent> {
        (0..self.events.len()).rev().find_map(|number| {
            let of = self.accesses_of(kernel, number).into_iter().rev();
            of.filter(|(_, effects)| effects.writes)
                .map(|(access, _)| access)
                .find(|access| access.overlaps(&addresses))
        })
    }

    /// The branches with a guard that a thread has executed after a moment and before the same
    /// instruction again.
    #[must_use]
    pub fn branches_after(&self, moment: Moment) -> Vec<Moment> {
        let Some(start) = self.events.get(moment.event) else { return Vec::new() };
        let own = |(_, event): &(usize, &Event)| event.is_of_thread(start, moment.lane);
        let after = self.events.iter().enumerate().skip(moment.event + 1).filter(own);
        let until_again = after.take_while(|(_, event)| event.counter != start.counter);
        let branches = until_again.filter(|(_, event)| event.what == What::Branches);
        branches.map(|(event, _)| Moment { event, lane: moment.lane }).collect()
    }

    /// The last branches with a guard that a thread has executed before a moment, one of each
    /// instruction, last first.
    #[must_use]
    pub fn branches_before(&self, moment: Moment, most: usize) -> Vec<Moment> {
        let Some(end) = self.events.get(moment.event) else { return Vec::new() };
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for (number, event) in self.events.iter().enumerate().take(moment.event).rev() {
            let is_own = event.is_of_thread(end, moment.lane);
            if is_own && event.what == What::Branches && !seen.contains(&event.counter) {
                seen.push(event.counter);
                found.push(Moment { event: number, lane: moment.lane });
                if found.len() == most {
                    break;
                }
            }
        }
        found
    }

    /// The branch at which a thread has left, after a moment, all ways to some instructions that do
    /// not lead through the one of that moment again.
    #[must_use]
    pub fn turns_away(
        &self,
        kernel: &Kernel,
        moment: Moment,
        to: &BTreeSet<u32>,
    ) -> Option<Moment> {
        let avoided = self.events.get(moment.event)?.counter;
        self.branches_after(moment).into_iter().find(|branch| {
            let Some(event) = self.events.get(branch.event) else { return false };
            let jumps = event.extra >> branch.lane & 1 != 0;
            let next = match kernel.code.get(event.counter as usize).map(|at| &at.op) {
                Some(Op::Branch { target }) if jumps => *target,
                _ => event.counter + 1,
            };
            !reaches(kernel, next, to, avoided)
        })
    }

    /// Whether a step does no more than move or convert numbers.
    #[must_use]
    pub fn only_moves(&self, kernel: &Kernel, step: &Step) -> bool {
        match kernel.code.get(step.counter as usize).map(|at| &at.op) {
            Some(Op::Compute(compute)) => compute.is_move(),
            _ => false,
        }
    }

    /// Whether a step computes a number, and does not only move, convert, read or store it.
    #[must_use]
    pub fn makes_number(&self, kernel: &Kernel, step: &Step) -> bool {
        let op = kernel.code.get(step.counter as usize).map(|at| &at.op);
        matches!(op, Some(Op::Compute(compute)) if !compute.is_move())
    }

    /// Whether a step takes nothing but numbers of the code: what it brings begins there.
    #[must_use]
    pub fn begins(&self, kernel: &Kernel, step: &Step) -> bool {
        let Some(op) = kernel.code.get(step.counter as usize).map(|at| &at.op) else {
            return false;
        };
        let sources = match op {
            Op::Compute(compute) if compute.is_move() => op.read(),
            Op::Store { sources, .. } => sources.to_vec(),
            _ => return false,
        };
        let is_number = |register: &Register| {
            let is_it = |(of, constant): &(Register, Constant)| {
                of == register && matches!(constant, Constant::Bits(_))
            };
            kernel.constants.iter().any(is_it)
        };
        !sources.is_empty() && sources.iter().all(is_number)
    }

    /// The first access of an address by a thread of a block at an instruction in a line of the
    /// PTX text.
    #[must_use]
    pub fn access_by(
        &self,
        kernel: &Kernel,
        ptx_line: u32,
        (block, thread): (u32, usize),
        address: u64,
    ) -> Option<Moment> {
        let lane = thread % WARP;
        let is_it = |event: &Event| {
            let place = || self.place(event, lane);
            event.what == What::Accesses
                && (event.block, usize::from(event.warp)) == (block, thread / WARP)
                && event.lanes >> lane & 1 != 0
                && kernel.code.get(event.counter as usize).is_some_and(|at| at.ptx_line == ptx_line)
                && place().is_some_and(|place| match place & SHARED {
                    0 => place == address,
                    _ => place & ((1 << SHARED_BITS) - 1) == address,
                })
        };
        let event = self.events.iter().position(is_it)?;
        Some(Moment { event, lane })
    }

    /// Whether a step passes on numbers of other lanes.
    #[must_use]
    pub fn is_passed_on(&self, kernel: &Kernel, step: &Step) -> bool {
        let op = kernel.code.get(step.counter as usize).map(|at| &at.op);
        matches!(op, Some(Op::Shuffle { .. } | Op::Reduce { .. } | Op::Match { .. }))
    }

    /// Whether a step draws a number that another thread may change meanwhile.
    #[must_use]
    pub fn is_drawn(&self, kernel: &Kernel, step: &Step) -> bool {
        matches!(kernel.code.get(step.counter as usize).map(|at| &at.op), Some(Op::Atomic(_)))
    }

    /// Whether a step gives some lane its own number, where a shuffle should have moved one from
    /// another.
    #[must_use]
    pub fn gives_back(&self, kernel: &Kernel, step: &Step) -> bool {
        let op = kernel.code.get(step.counter as usize).map(|at| &at.op);
        let moves = matches!(op, Some(Op::Shuffle { mode, .. }) if *mode != ShuffleMode::Index);
        let is_own = |lane: usize| {
            let event = self.events.get(step.event);
            event.and_then(|event| self.place(event, lane)) == Some(lane as u64)
        };
        moves && (0..WARP).any(|lane| step.value >> lane & 1 != 0 && is_own(lane))
    }

    /// The instructions that have stored in some bytes of shared memory, of whatever block.
    #[must_use]
    pub fn stores_in_shared(&self, kernel: &Kernel, bytes: Range<u32>) -> BTreeSet<u32> {
        let is_store = |event: &&Event| {
            event.what == What::Accesses
                && kernel
                    .code
                    .get(event.counter as usize)
                    .and_then(|at| extent(&at.op))
                    .is_some_and(|(.., effects)| effects.writes)
        };
        let lies_there = |event: &&Event| {
            event.lane_numbers().filter_map(|lane| self.place(event, lane)).any(|place| {
                let address = place & ((1 << SHARED_BITS) - 1);
                place & SHARED != 0 && bytes.contains(&(address as u32))
            })
        };
        let stores = self.events.iter().filter(is_store).filter(lies_there);
        stores.map(|event| event.counter).collect()
    }

    /// The places of memory that a step has read, with the lanes, and bytes of each.
    pub fn reads<'t>(
        &'t self,
        kernel: &'t Kernel,
        step: &'t Step,
    ) -> impl Iterator<Item = (Moment, u64, u32)> + 't {
        let accesses = self.accesses_of(kernel, step.event).into_iter();
        let reads = accesses.filter(|(access, effects)| {
            effects.reads && (step.value | step.choice) >> access.moment.lane & 1 != 0
        });
        reads.flat_map(move |(access, _)| {
            let elements = access.bytes / access.element.max(1);
            let is_copy = self.events.get(step.event).is_some_and(|e| e.what == What::Copies);
            let is_read = move |element: &u32| is_copy || step.elements >> element & 1 != 0;
            (0..elements).filter(is_read).map(move |element| {
                let place = access.place + u64::from(element * access.element);
                (access.moment, place, access.element)
            })
        })
    }
}

/// Whether instructions can be reached from another one without passing one that is avoided.
fn reaches(kernel: &Kernel, from: u32, to: &BTreeSet<u32>, avoided: u32) -> bool {
    let mut seen = vec![false; kernel.code.len()];
    let mut open = vec![from];
    while let Some(number) = open.pop() {
        if number == avoided || seen.get(number as usize).copied().unwrap_or(true) {
            continue;
        }
        if let Some(seen) = seen.get_mut(number as usize) {
            *seen = true;
        }
        if to.contains(&number) {
            return true;
        }
        let Some(instruction) = kernel.code.get(number as usize) else { continue };
        let goes_on = instruction.guard.is_some();
        match &instruction.op {
            Op::Branch { target } => {
                open.push(*target);
                if goes_on {
                    open.push(number + 1);
                }
            }
            Op::BranchIndexed { targets, .. } => {
                open.extend(targets.iter());
                open.push(number + 1);
            }
            Op::Exit | Op::Trap | Op::Return if !goes_on => {}
            _ => open.push(number + 1),
        }
    }
    false
}

/// Who executes what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) block: u32,
    pub(crate) warp: usize,
    pub(crate) counter: u32,
}

/// Bytes of an access of memory, and of an element of it, with what it does.
fn extent(op: &Op) -> Option<(u32, u32, Effects)> {
    Some(match op {
        Op::Load { access, destinations, .. } => {
            let bytes = access.bytes * destinations.len() as u32;
            (bytes, access.bytes, Effects { reads: true, writes: false })
        }
        Op::Store { access, sources, .. } => {
            let bytes = access.bytes * sources.len() as u32;
            (bytes, access.bytes, Effects { reads: false, writes: true })
        }
        Op::Atomic(atomic) => {
            (atomic.bytes(), atomic.ty.bytes(), Effects { reads: true, writes: true })
        }
        _ => return None,
    })
}

/// What instructions read and write, by their numbers.
fn operands(kernel: &Kernel) -> Vec<(Vec<Register>, Vec<Register>)> {
    kernel.code.iter().map(|at| (at.op.read(), at.op.written())).collect()
}

/// The instructions among some steps that compute with a parameter of the kernel, by its number.
#[must_use]
pub fn uses_of_parameter(kernel: &Kernel, steps: &[Step], parameter: usize) -> Vec<u32> {
    let Some(bytes) = kernel.parameters.get(parameter).map(|parameter| &parameter.bytes) else {
        return Vec::new();
    };
    let loads = kernel.code.iter().filter_map(|at| match &at.op {
        Op::Load { address, destinations, .. } if address.space == Space::Parameter => {
            let is_it = address.base.is_none() && address.offset == i64::from(bytes.start);
            is_it.then(|| destinations.first().copied()).flatten()
        }
        _ => None,
    });
    let loaded: Vec<Register> = loads.collect();
    let uses = |step: &&Step| {
        kernel
            .code
            .get(step.counter as usize)
            .is_some_and(|at| at.op.read().iter().any(|register| loaded.contains(register)))
    };
    let mut of: Vec<u32> = steps.iter().filter(uses).map(|step| step.counter).collect();
    of.sort_unstable();
    of.dedup();
    of
}

/// Whether an instruction makes an integer of a floating-point number.
#[must_use]
pub fn makes_integer(kernel: &Kernel, counter: u32) -> bool {
    let op = kernel.code.get(counter as usize).map(|at| &at.op);
    matches!(op, Some(Op::Compute(compute)) if compute.makes_integer())
}

/// Whether an instruction divides whole numbers, which rounds.
#[must_use]
pub fn divides(kernel: &Kernel, counter: u32) -> bool {
    let op = kernel.code.get(counter as usize).map(|at| &at.op);
    matches!(op, Some(Op::Compute(compute)) if compute.divides())
}

/// Whether an instruction multiplies floating-point numbers.
#[must_use]
pub fn multiplies(kernel: &Kernel, counter: u32) -> bool {
    let op = kernel.code.get(counter as usize).map(|at| &at.op);
    matches!(op, Some(Op::Compute(compute)) if compute.multiplies())
}

/// Whether an instruction rounds a number to a narrower type, and to which.
#[must_use]
pub fn rounds_to(kernel: &Kernel, counter: u32) -> Option<&str> {
    match &kernel.code.get(counter as usize)?.op {
        Op::Compute(compute) => compute.rounds_to(),
        _ => None,
    }
}
