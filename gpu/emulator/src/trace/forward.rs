//! Forwards: what was computed from a value.

use std::collections::{HashMap, HashSet};

use super::{Moment, NOBODY, Trace, What, extent, operands};
use crate::code::{Kernel, Op, Register, Space};

impl Trace {
    /// What was computed from what an event brought, by value: the last event of each instruction
    /// that took part, in order.
    #[must_use]
    pub fn carriers(&self, kernel: &Kernel, from: Moment) -> Vec<Moment> {
        let operands = operands(kernel);
        let mut held: HashMap<(u32, u16), HashMap<Register, u32>> = HashMap::new();
        let mut memory: HashSet<u64> = HashSet::new();
        let mut last: HashMap<u32, Moment> = HashMap::new();
        for (number, event) in self.events.iter().enumerate().skip(from.event) {
            let counter = event.counter;
            let (Some((reads, writes)), Some(op)) = (
                operands.get(counter as usize),
                kernel.code.get(counter as usize).map(|at| &at.op),
            ) else {
                continue;
            };
            let begins = number == from.event;
            let key = (event.block, event.warp);
            let of = |registers: &[Register]| {
                let of_warp = held.get(&key);
                let lanes = registers.iter().filter_map(|register| of_warp?.get(register));
                lanes.fold(0, |all, lanes| all | lanes)
            };
            let mut hit = if begins { 1 << from.lane } else { 0 };
            match (event.what, op) {
                (What::Computes, _) => hit |= of(reads) & event.lanes,
                (What::Combines, _) if of(reads) & event.lanes != 0 => hit |= event.lanes,
                (What::Shuffles, Op::Shuffle { source, .. }) => {
                    let given = of(std::slice::from_ref(source));
                    for lane in event.lane_numbers() {
                        if let Some(from) = self.place(event, lane).filter(|&from| from != NOBODY) {
                            hit |= (given >> from & 1) << lane;
                        }
                    }
                }
                (What::Accesses, _) => {
                    let Some((bytes, _, effects)) = extent(op) else { continue };
                    let sources = match op {
                        Op::Store { sources, .. } => of(sources),
                        Op::Atomic(atomic) => of(&atomic.operands),
                        Op::Load { address, .. } if address.space == Space::Parameter => continue,
                        _ => 0,
                    };
                    for lane in event.lane_numbers() {
                        let Some(place) = self.place(event, lane) else { continue };
                        let mut range = place..place.saturating_add(bytes.into());
                        let is_given = sources >> lane & 1 != 0;
                        let was_there = range.clone().any(|byte| memory.contains(&byte));
                        if effects.reads && was_there || is_given {
                            hit |= 1 << lane;
                        }
                        if is_given {
                            memory.extend(range);
                        } else if effects.writes && !effects.reads {
                            range.all(|byte| memory.remove(&byte) | true);
                        }
                    }
                }
                (What::Copies, _) => {
                    if let Some([to, source, bytes]) = self.copied(event) {
                        let is_given =
                            begins || (0..bytes).any(|at| memory.contains(&(source + at)));
                        for byte in 0..bytes {
                            match is_given {
                                true => _ = memory.insert(to + byte),
                                false => _ = memory.remove(&(to + byte)),
                            }
                        }
                        if is_given {
                            hit |= event.lanes;
                        }
                    }
                }
                _ => {}
            }
            if hit == 0 && held.is_empty() {
                continue;
            }
            let of_warp = held.entry(key).or_default();
            // What is decided by a value is none of it.
            for &register in writes.iter().filter(|r| !matches!(r, Register::Predicate(_))) {
                let lanes = of_warp.entry(register).or_default();
                *lanes = *lanes & !event.lanes | hit;
            }
            if hit != 0 {
                let lane = hit.trailing_zeros() as usize;
                last.insert(counter, Moment { event: number, lane });
            }
        }
        let mut last: Vec<_> = last.into_values().collect();
        last.sort_unstable();
        last
    }
}
