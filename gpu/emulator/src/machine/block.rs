//! A block: warps in turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use fastrand::Rng;

use super::arrivals::Barriers;
use super::core::Core;
use super::findings::Findings;
use super::grid::Grid;
use super::groups::Groups;
use super::late::LATE;
use super::membership::Membership;
use super::order::{BlockOrder, Log, Place, Releases};
use super::phases::MBarriers;
use super::polls::Watched;
use super::sent::Sent;
use super::shared::SharedMemory;
use super::warp::{Facts, Serial, SerialOrder, Warp};
use super::ways::Way;
use crate::code::{MULTIPROCESSORS, Op, WARP};
use crate::counters::Counters;

/// Instructions of a warp before another has its turn, without a seed.
const PLAIN_SLICE: u64 = 20_000;
/// The most with a seed.
const RANDOM_SLICE: u64 = 200;
/// The most where a launch is given up at its first fault.
const SLICE_UNTIL_FAULT: u64 = 500;
/// Instructions after which a warp may never end: the first of a block that has executed so many
/// has longer turns, so that not all of them use up a budget before one is known to.
const LONG: u64 = 500_000;
/// Instructions of such a turn.
const LONG_SLICE: u64 = 1_000_000;

/// Rounds that a block stays behind others at once, where turns are taken at random.
const LONGEST_PAUSE: u32 = 24;
/// Blocks of whose warps the lanes may run one after the other at first, and for how many
/// instructions of a warp. As many lanes, as many instructions: the first blocks get as far as to
/// what follows a loop.
const SERIAL: [(u32, u64); 2] = [(8, 20_000), (64, 2_000)];

/// Looks in a row, while others could go on: who makes more does so to tell of a fault.
pub(super) const LOOKS: u32 = 5_000;
/// Blocks, the first ones, of which a warp may look at shared memory for so long.
const PATIENT_BLOCKS: u32 = 8;

/// A block of threads.
#[derive(Debug)]
pub(crate) struct Block<'g> {
    pub(crate) warps: Vec<Warp>,
    pub(crate) barriers: Barriers,
    pub(crate) core: Core<'g>,
    /// The warp whose turn it was last.
    turn: usize,
    /// Rounds that it stays behind others.
    pause: u32,
    /// Rounds in which it does not run, either.
    rest: u32,
    /// Whether a warp that polls shared memory is still to look at it for long.
    is_patient: bool,
    /// Whether its last turn was a store, or an atomic of some, after which others may get ahead of
    /// what follows it.
    has_stored: bool,
}

impl<'g> Block<'g> {
    pub(crate) fn new(grid: &'g Grid<'g>, index: u32) -> Self {
        let position = grid.block(index);
        let kernel = grid.kernel;
        let total_shared = kernel.shared_bytes + grid.dynamic_shared;
        let facts = Facts {
            grid_size: grid.size,
            block_size: grid.block_size,
            block: position,
            cluster: grid.cluster,
            cluster_rank: grid.rank(position),
            // Another one in each order that is tried.
            multiprocessor: ((u64::from(index) + grid.options.seed * 7) % MULTIPROCESSORS as u64)
                as u32,
            dynamic_shared: grid.dynamic_shared,
            total_shared,
        };
        let warp = |index: usize| {
            let threads = (grid.threads - index * WARP).min(WARP);
            let mut warp = Warp::new(index, threads, grid.registers(), kernel.local_bytes);
            warp.early = if grid.begins_early { u32::MAX } else { 0 };
            warp.ways = vec![Way::default(); grid.ways.len()];
            for &(register, constant) in &kernel.constants {
                warp.set_constant(register, constant, &facts);
            }
            for &(register, read_by) in &kernel.undefined {
                warp.registers.taint(register, u32::MAX, u32::MAX, Some(read_by));
            }
            warp
        };
        let seed = grid.options.seed;
        let mut random = (seed != 0).then(|| Rng::with_seed(seed ^ u64::from(index) << 32));
        // Some are behind from the start, so that others meet what they have not done yet.
        let pause = random.as_mut().map_or(0, |random| match random.u8(..) {
            0..64 => random.u32(1..=LONGEST_PAUSE),
            _ => 0,
        });
        let until = SERIAL.into_iter().find(|&(blocks, _)| index < blocks).map(|(_, until)| until);
        let order = random.as_mut().and_then(|random| match random.u8(..) {
            0..64 => Some(SerialOrder::FirstLaneFirst),
            64..128 => Some(SerialOrder::LastLaneFirst),
            _ => None,
        });
        let is_patient = seed != 0 && is_patient(index, seed);
        let serial = order.zip(until).map(|(order, until)| Serial { order, until });
        Self {
            warps: (0..grid.warps()).map(warp).collect(),
            barriers: Barriers::default(),
            core: Core {
                grid,
                number: index,
                position,
                membership: Membership::new(grid.rank(position), grid.warps()),
                shared: SharedMemory::new(kernel.shared_dynamic + grid.dynamic_shared, index),
                order: BlockOrder::new(
                    (index, grid.cluster_of(position)),
                    grid.blocks(),
                    grid.warps(),
                    [grid.has_near, grid.has_clusters()],
                ),
                counters: Counters::default(),
                findings: Findings::default(),
                copies: (0..grid.warps()).map(|_| Groups::default()).collect(),
                waited_at: BTreeMap::new(),
                sent: (0..grid.warps()).map(|_| Sent::default()).collect(),
                mbarriers: MBarriers::new(),
                read_absent: BTreeSet::new(),
                undefined_reads: BTreeMap::new(),
                undefined_stored: BTreeMap::new(),
                random,
                serial,
                watched: Vec::new(),
                has_changed: false,
                arrivals: Vec::new(),
                is_stuck: false,
            },
            turn: 0,
            pause,
            rest: 0,
            is_patient,
            has_stored: false,
        }
    }

    /// Runs until it has ended or until every warp waits.
    pub(crate) fn run(&mut self, time: u64) {
        if self.rest > 0 {
            return;
        }
        self.core.order.time = time;
        self.warps.iter_mut().for_each(|warp| warp.dozes = false);
        while !self.core.is_stuck {
            // A launch that does not end is not run to the end of every block's budget.
            if self.core.grid.is_over.load(Relaxed) {
                self.core.is_stuck = true;
                return;
            }
            if self.core.grid.options.until_fault && self.has_more_than_wraps() {
                self.core.grid.is_over.store(true, Relaxed);
            }
            let Some(next) = self.next_warp() else { break };
            let goes_on_long = |warp: &Warp| warp.spent() >= LONG && is_ready(warp);
            let is_first_long = self.warps.get(next).is_some_and(goes_on_long)
                && !self.warps.iter().take(next).any(goes_on_long);
            let slice = match &mut self.core.random {
                None if self.core.grid.options.until_fault => SLICE_UNTIL_FAULT,
                _ if is_first_long => LONG_SLICE,
                Some(random) => random.u64(1..=RANDOM_SLICE),
                None => PLAIN_SLICE,
            };
            if let Some(warp) = self.warps.get_mut(next) {
                self.core.run(warp, slice);
                if warp.dozes && std::mem::take(&mut self.is_patient) {
                    self.core.doze_on(warp);
                }
                if !warp.dozes {
                    self.warps.iter_mut().for_each(|warp| warp.dozes = false);
                }
            }
            self.open_barriers();
        }
        let waits = |warp: &Warp| warp.strong.is_some() || warp.dozes || warp.at_cluster != 0;
        let waits = self.warps.iter().any(waits);
        if !self.core.is_stuck && !waits && !self.has_ended() {
            self.report_deadlock();
        }
    }

    fn next_warp(&mut self) -> Option<usize> {
        let count = self.warps.len();
        let start = match &mut self.core.random {
            Some(random) => random.usize(..count.max(1)),
            // One after the other, each for a slice.
            None => self.turn,
        };
        let turns = (0..count).map(|step| (start + step) % count);
        let next = turns.into_iter().find(|&index| self.warps.get(index).is_some_and(is_ready))?;
        // A warp that has used up its slice gives way to the next.
        self.turn = (next + 1) % count.max(1);
        Some(next)
    }

    /// Executes the strong accesses of device memory that its warps wait for, except for those of
    /// sleepers for whom nothing has changed. Gives whether any warp got further.
    pub(crate) fn access_strongly(&mut self, releases: &mut Releases) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return true;
        }
        self.core.order.tell_fence(&mut releases.past);
        let core = &self.core;
        let can_go =
            |warp: &Warp| warp.strong.is_some() && (!warp.is_asleep || core.has_news(warp));
        if !self.warps.iter().any(can_go) {
            return false;
        }
        // Nothing promises that blocks are equally fast.
        if self.pause == 0
            && let Some(random) = &mut self.core.random
            && random.u8(..) < if std::mem::take(&mut self.has_stored) { 192 } else { 16 }
        {
            self.pause = random.u32(1..=LONGEST_PAUSE);
        }
        if self.pause > 0 {
            self.pause -= 1;
            return true;
        }
        let mut gets_further = false;
        for index in 0..self.warps.len() {
            let Some(warp) = self.warps.get(index) else { continue };
            if !warp.is_asleep || self.core.has_news(warp) {
                let counter = warp.strong.map(|(_, counter)| counter);
                gets_further |= self.access_of(index, releases);
                let is_asleep = self.warps.get(index).is_some_and(|warp| warp.is_asleep);
                if is_asleep && counter.is_some_and(|counter| self.core.tries_patience(counter)) {
                    self.look_on(index, releases, LOOKS);
                }
            }
        }
        gets_further
    }

    /// Lets every warp try again that can only wait, for so many instructions of its budget:
    /// nothing else can go on. Gives whether any does.
    pub(crate) fn wake(&mut self, releases: &mut Releases, charge: u64) -> bool {
        let mut any = false;
        for index in 0..self.warps.len() {
            let waits = self.warps.get(index).is_some_and(|warp| warp.is_asleep || warp.dozes);
            if waits && self.looks_at_last(index, releases) {
                any = true;
                continue;
            }
            if let Some(warp) = self.warps.get_mut(index).filter(|_| waits) {
                warp.charge_try(charge);
            }
            any |= self.access_of(index, releases);
        }
        any
    }

    /// Executes the strong access that a warp waits for; gives whether there is one.
    pub(super) fn access_of(&mut self, index: usize, releases: &mut Releases) -> bool {
        let code = &self.core.grid.kernel.code;
        let Some(warp) = self.warps.get_mut(index) else { return false };
        let Some((lanes, counter)) = warp.strong.take() else { return false };
        if counter == LATE {
            self.core.execute_late(warp, releases);
            return true;
        }
        if let Some(instruction) = code.get(counter as usize) {
            if self.core.overtakes(warp, counter, instruction, lanes) {
                // Others may get to know of the access before what it has overtaken.
                let random = self.core.random.as_mut();
                self.rest = random.map_or(0, |random| random.u32(..LONGEST_PAUSE));
            } else {
                self.core.execute_late(warp, releases);
            }
            if self.core.hold_back(warp, counter, instruction, lanes) {
                warp.polls.work();
                warp.is_asleep = false;
                warp.jump(lanes, counter + 1);
                return true;
            }
            self.core.watched.clear();
            self.core.has_changed = false;
            if let Some(random) = &mut self.core.random {
                // Others may see what is stored or drawn, and go on by it, before the next fence.
                match &instruction.op {
                    Op::Store { .. } => {
                        self.has_stored = true;
                        self.rest = if random.bool() { 0 } else { random.u32(..LONGEST_PAUSE) };
                    }
                    Op::Atomic(atomic) if !atomic.destinations.is_empty() => {
                        self.has_stored |= random.bool();
                    }
                    _ => {}
                }
            }
            if !instruction.op.is_strong() {
                warp.polls.work();
            }
            self.core.access(warp, counter, instruction, lanes, &mut Log::Turn(releases));
            warp.jump(lanes, counter + 1);
            warp.is_asleep = warp.poll(counter, lanes, &self.core.watched, self.core.has_changed);
        }
        true
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.warps.iter().all(|warp| warp.alive == 0)
    }

    pub(crate) fn has_fault(&self) -> bool {
        self.core.findings.has_fault()
    }

    pub(crate) fn has_more_than_wraps(&self) -> bool {
        self.core.findings.has_more_than_wraps()
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.core.is_stuck
    }

    pub(crate) fn into_results(self) -> (Findings, Counters) {
        let mut counters = self.core.counters;
        counters.warps = self.warps.len() as u64;
        for warp in &self.warps {
            counters.longest_warp = counters.longest_warp.max(warp.executed);
            counters.longest_warp_loads = counters.longest_warp_loads.max(warp.loads);
        }
        self.core.grid.take_registers(self.warps.into_iter().map(|warp| warp.registers));
        (self.core.findings, counters)
    }
}

/// Whether a warp of a block that polls shared memory is let look for long: in half of the first
/// ones. Nothing is drawn for that, so that turns are as they would be without.
fn is_patient(block: u32, seed: u64) -> bool {
    block < PATIENT_BLOCKS && (u64::from(block) + seed).is_multiple_of(2)
}

/// Whether some of its lanes can go on, and nothing else has to come first.
fn is_ready(warp: &Warp) -> bool {
    warp.ready != 0 && warp.strong.is_none() && !warp.dozes
}

impl Core<'_> {
    /// Whether a place that a warp waits for holds something else than when it last looked.
    fn has_news(&self, warp: &Warp) -> bool {
        warp.polls.watched().any(|&Watched { place, bytes, value }| {
            let now = match place {
                Place::Shared(offset) => self.shared.read(offset as usize, bytes).0,
                Place::Global(address) => {
                    let region = self.grid.global.near(address);
                    let read = region.and_then(|region| {
                        let offset = region.buffer.offset(address, bytes.into())?;
                        Some(region.buffer.read(offset, bytes))
                    });
                    read.unwrap_or_default()
                }
            };
            now != value
        })
    }
}
