//! Barriers of a block: `bar.sync`, `bar.arrive`, `bar.red`.

use std::collections::BTreeMap;

use super::arrivals::Arrival;
use super::block::Block;
use super::core::Core;
use super::lanes::lanes_of;
use super::warp::Warp;
use crate::code::{BarrierOperation, Instruction, Op, WARP};
use crate::finding::FindingKind;

/// Barriers that a block has.
const COUNT: u32 = 16;

impl Core<'_> {
    /// Lanes execute a barrier instruction; they have been sent past it, and wait if it says so.
    pub(crate) fn arrive(&mut self, warp: &mut Warp, counter: u32, at: &Instruction, lanes: u32) {
        let Op::Barrier { waits, barrier, threads, reduction, aligned } = &at.op else { return };
        let lane = lanes.trailing_zeros() as usize;
        let barrier = warp.word(*barrier)[lane];
        if barrier >= COUNT {
            self.report(FindingKind::Trap, counter, warp.index, lane, || {
                (None, format!("no barrier {barrier}: there are {COUNT}"))
            });
            self.is_stuck = true;
            return;
        }
        let threads = threads.map(|register| warp.word(register)[lane]);
        let holds = reduction.map_or(0, |reduction| {
            let value = warp.predicate(reduction.source);
            lanes & if reduction.negated { !value } else { value }
        });
        let is_undefined = reduction
            .is_some_and(|reduction| warp.registers.undefined(reduction.source) & lanes != 0);
        let read_by = reduction.and_then(|reduction| warp.registers.read_by(reduction.source));
        // Whoever only arrives waits as well until its warp has come, which arrives once (PTX ISA,
        // `bar`).
        let waits_for_lanes = !waits && lanes != warp.alive;
        if *waits || waits_for_lanes {
            warp.at_barrier |= lanes;
            warp.ready &= !lanes;
        }
        self.counters.barrier_waits += u64::from(*waits);
        let epoch = self.order.arrive(warp.index);
        self.arrivals.push(Arrival {
            barrier,
            warp: warp.index,
            epoch,
            lanes,
            counter,
            waits: *waits,
            waits_for_lanes,
            threads,
            aligned: *aligned,
            reduction: *reduction,
            holds,
            is_undefined,
            read_by,
        });
    }
}

impl Block<'_> {
    /// Opens the barriers that all have come to.
    pub(crate) fn open_barriers(&mut self) {
        for arrival in std::mem::take(&mut self.core.arrivals) {
            let arrived = self.barriers.arrived.entry(arrival.barrier).or_default();
            let elsewhere = arrived
                .iter()
                .find(|other| other.warp == arrival.warp && other.counter != arrival.counter);
            if let Some(other) = elsewhere.filter(|other| other.aligned && arrival.aligned) {
                let lane = arrival.lanes.trailing_zeros() as usize;
                let place = self.core.grid.kernel.place(other.counter);
                self.core.report(
                    FindingKind::DivergentBarrier,
                    arrival.counter,
                    arrival.warp,
                    lane,
                    || (None, format!("other lanes of the warp are at the barrier {place}")),
                );
            }
            arrived.push(arrival);
        }
        self.let_whole_warps_go_on();
        let alive: u32 = self.warps.iter().map(|warp| warp.alive.count_ones()).sum();
        let warps = &self.warps;
        let is_complete = |arrivals: &Vec<Arrival>| {
            let of = |arrival: &Arrival| match warps.get(arrival.warp) {
                // A thread that arrived and went on may have ended since.
                Some(warp) if arrival.waits => arrival.lanes & warp.alive,
                _ => arrival.lanes,
            };
            match arrivals.first().and_then(|arrival| arrival.threads) {
                // Counted by warps, whichever of their threads there are.
                Some(threads) => {
                    let mut warps = BTreeMap::new();
                    for arrival in arrivals {
                        *warps.entry(arrival.warp).or_insert(0) |= arrival.lanes;
                    }
                    let is_whole = |(warp, lanes): &(&usize, &u32)| {
                        self.warps.get(**warp).is_none_or(|warp| warp.alive & !**lanes == 0)
                    };
                    warps.iter().filter(is_whole).count() * WARP >= threads as usize
                }
                None => {
                    let count: u32 = arrivals.iter().map(|a| of(a).count_ones()).sum();
                    count > 0 && count >= alive
                }
            }
        };
        let complete: Vec<u32> = self
            .barriers
            .arrived
            .iter()
            .filter(|(_, arrivals)| is_complete(arrivals))
            .map(|(&barrier, _)| barrier)
            .collect();
        for barrier in complete {
            if let Some(arrivals) = self.barriers.arrived.remove(&barrier) {
                self.open(&arrivals, alive);
            }
        }
    }

    /// Lets lanes go on that have only arrived, once the rest of their warp has.
    fn let_whole_warps_go_on(&mut self) {
        for arrivals in self.barriers.arrived.values_mut() {
            for index in 0..arrivals.len() {
                let arrival = arrivals[index];
                if !arrival.waits_for_lanes {
                    continue;
                }
                let own = arrivals.iter().filter(|other| other.warp == arrival.warp);
                let come = own.fold(0, |lanes, other| lanes | other.lanes);
                if let Some(warp) = self.warps.get_mut(arrival.warp)
                    && warp.alive & !come == 0
                {
                    warp.go_on(arrival.lanes);
                    arrivals[index].waits_for_lanes = false;
                }
            }
        }
    }

    fn open(&mut self, arrivals: &[Arrival], alive: u32) {
        let ended = self.core.grid.threads as u32 - alive;
        if let Some(first) = arrivals.first()
            && ended > 0
            && first.aligned
            && first.threads.is_none()
        {
            let lane = first.lanes.trailing_zeros() as usize;
            self.core.report(
                FindingKind::DivergentBarrier,
                first.counter,
                first.warp,
                lane,
                || (None, format!("{ended} threads of the block have ended without it")),
            );
        }
        // Of a warp that came in parts the last is meant.
        let warps_of = |waits: bool| -> Vec<(usize, u32)> {
            let mut warps = BTreeMap::new();
            for arrival in arrivals.iter().filter(|arrival| arrival.waits || !waits) {
                warps.insert(arrival.warp, arrival.epoch);
            }
            warps.into_iter().collect()
        };
        self.core.order.open_barrier(&warps_of(false), &warps_of(true));
        let count: u32 = arrivals.iter().map(|arrival| arrival.holds.count_ones()).sum();
        let threads: u32 = arrivals.iter().map(|arrival| arrival.lanes.count_ones()).sum();
        let is_undefined = arrivals.iter().any(|arrival| arrival.is_undefined);
        let read_by = arrivals.iter().find_map(|arrival| arrival.read_by);
        for arrival in arrivals.iter().filter(|arrival| arrival.waits || arrival.waits_for_lanes) {
            let Some(warp) = self.warps.get_mut(arrival.warp) else { continue };
            warp.go_on(arrival.lanes);
            if let Some(reduction) = arrival.reduction {
                let result = match reduction.operation {
                    BarrierOperation::Count => count,
                    BarrierOperation::And => (count == threads).into(),
                    BarrierOperation::Or => (count > 0).into(),
                };
                warp.set(reduction.destination, arrival.lanes, &[result.into(); WARP]);
                if is_undefined {
                    let lanes = arrival.lanes;
                    warp.registers.taint(reduction.destination, lanes, lanes, read_by);
                }
            }
        }
    }

    /// Nothing can go on: says what the threads wait for.
    pub(crate) fn report_deadlock(&mut self) {
        self.core.is_stuck = true;
        let mut missing = Vec::new();
        for warp in &self.warps {
            for lane in lanes_of(warp.collected) {
                let counter = warp.counters[lane];
                let same = |other: &usize| warp.counters[*other] == counter;
                let here = lanes_of(warp.collected).filter(same).fold(0, |mask, l| mask | 1 << l);
                missing.push((counter, warp.index, lane, warp.members[lane] & warp.alive & !here));
            }
        }
        for &(counter, warp, lane, lanes) in &missing {
            self.core.report(FindingKind::MissingLanes, counter, warp, lane, || {
                (None, format!("lanes {lanes:#010x} are named but never come"))
            });
        }
        if !missing.is_empty() {
            return;
        }
        for arrivals in self.barriers.arrived.values() {
            let count: u32 = arrivals.iter().map(|arrival| arrival.lanes.count_ones()).sum();
            for arrival in arrivals {
                let all = self.core.grid.threads as u32;
                let lane = arrival.lanes.trailing_zeros() as usize;
                let apart = self.warps.get(arrival.warp).is_some_and(|warp| {
                    // Lanes of the same warp wait at another barrier.
                    let same = arrivals.iter().filter(|other| other.warp == arrival.warp);
                    let here = same.fold(0, |mask, other| mask | other.lanes);
                    warp.at_barrier & !here != 0
                });
                let kind = match apart && arrival.aligned {
                    true => FindingKind::DivergentBarrier,
                    false => FindingKind::Deadlock,
                };
                let expected = arrival.threads.unwrap_or(all);
                self.core.report(kind, arrival.counter, arrival.warp, lane, || {
                    (
                        None,
                        format!(
                            "{count} of {expected} threads come to barrier {}",
                            arrival.barrier
                        ),
                    )
                });
            }
        }
    }
}
