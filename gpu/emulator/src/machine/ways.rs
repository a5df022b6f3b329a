//! Which ways the lanes of a warp have gone, to see who went past a warp-wide operation.
//!
//! A mask may name lanes that have ended: most have nothing left to do, as those without a row, or
//! whose loop is over. A lane that has gone another way than those that it is named by, has stored
//! something there and ended is one that they should have waited for, if only it came. It has gone
//! past them where it stored by a decision that has nothing to do with whether the operation is
//! executed (a *control dependence*, after Ferrante, Ottenstein and Warren, 1987), and which none
//! of those that take part in it has come to since all were together last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::code::{Instruction, Kernel, Op, Space};

/// Of a kernel: the instructions at which ways part, or that store something.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    /// By instruction, its place among them; [`NOWHERE`] for all others. Empty where nobody asks.
    places: Vec<u32>,
    /// Their numbers.
    noted: Vec<u32>,
    control: OnceLock<Control>,
    /// What is to be looked at for a store and an operation: places.
    between: Mutex<Between>,
}

type Between = BTreeMap<(u32, u32), Arc<[usize]>>;

const NOWHERE: u32 = u32::MAX;

/// Lanes that have come to an instruction, and those for which it took effect, since all lanes of a
/// warp were together last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub(crate) came: u32,
    pub(crate) acted: u32,
}

impl Ways {
    /// Those of a kernel. One without operations that combine what lanes hold has none, and neither
    /// has one that calls functions, whose ways are not followed.
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let has = |is: fn(&Op) -> bool| kernel.code.iter().any(|at| is(&at.op));
        if !has(combines) || has(|op| matches!(op, Op::Call(_))) {
            return Self::default();
        }
        let mut ways = Self { places: vec![NOWHERE; kernel.code.len()], ..Self::default() };
        for ((number, at), place) in (0..).zip(&kernel.code).zip(&mut ways.places) {
            if parts(at) || stores(&at.op) {
                *place = ways.noted.len() as u32;
                ways.noted.push(number);
            }
        }
        ways
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.noted.len()
    }

    /// The place of an instruction among them.
    #[inline]
    pub(crate) fn place(&self, counter: u32) -> Option<usize> {
        self.places.get(counter as usize).filter(|&&place| place != NOWHERE).map(|&p| p as usize)
    }

    /// A lane of `ended` that has gone past an operation which `lanes` take part in, and where it
    /// stored something.
    pub(crate) fn gone_past(
        &self,
        kernel: &Kernel,
        gone: &[Way],
        counter: u32,
        (ended, lanes): (u32, u32),
    ) -> Option<(usize, u32)> {
        for (way, &store) in gone.iter().zip(&self.noted) {
            let past = way.acted & ended;
            let is_store = || kernel.code.get(store as usize).is_some_and(|at| stores(&at.op));
            if past == 0 || !is_store() {
                continue;
            }
            let decisions = self.between(kernel, store, counter);
            let has_come = |&place: &usize| gone.get(place).is_some_and(|w| w.came & lanes != 0);
            if !decisions.is_empty() && !decisions.iter().any(has_come) {
                return Some((past.trailing_zeros() as usize, store));
            }
        }
        None
    }

    /// The places of a store and of what decides about it, but not about an operation; none where
    /// that is not known.
    fn between(&self, kernel: &Kernel, store: u32, operation: u32) -> Arc<[usize]> {
        let mut known = self.between.lock().unwrap_or_else(PoisonError::into_inner);
        let places = known.entry((store, operation)).or_insert_with(|| {
            let control = self.control.get_or_init(|| Control::of(kernel));
            let (Some(of_store), Some(of_operation)) =
                (control.all_of(store), control.all_of(operation))
            else {
                return [].into();
            };
            let numbers = of_store.difference(&of_operation).copied().chain([store]);
            numbers.filter_map(|number| self.place(number)).collect()
        });
        Arc::clone(places)
    }
}

/// Whether an operation combines what lanes hold.
pub(crate) fn combines(op: &Op) -> bool {
    matches!(op, Op::Shuffle { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Reduce { .. })
}

/// Whether it stores where others may look.
fn stores(op: &Op) -> bool {
    match op {
        Op::Store { address, .. } => address.space != Space::Local,
        Op::Atomic(_) => true,
        _ => false,
    }
}

/// Whether there are several ways on.
fn parts(at: &Instruction) -> bool {
    match at.op {
        Op::Branch { .. } | Op::Exit | Op::Trap | Op::Return => at.guard.is_some(),
        Op::BranchIndexed { .. } => true,
        _ => false,
    }
}

/// Where the ways on from an instruction lead; `end` is that of all.
fn next(number: u32, at: &Instruction, end: u32) -> Vec<u32> {
    let mut next = match &at.op {
        Op::Branch { target } => vec![*target],
        Op::BranchIndexed { targets, .. } => targets.to_vec(),
        Op::Exit | Op::Trap | Op::Return => vec![end],
        _ => return vec![(number + 1).min(end)],
    };
    if at.guard.is_some() {
        next.push(number + 1);
    }
    next.iter_mut().for_each(|next| *next = (*next).min(end));
    next
}

/// What decides about which instructions are executed.
#[derive(Debug)]
struct Control {
    /// By instruction, the branches that decide about it directly.
    by: Vec<Vec<u32>>,
    /// By instruction, the first that is executed after it on every way to the end; [`NOWHERE`]
    /// where there is no such way.
    after: Vec<u32>,
}

impl Control {
    fn of(kernel: &Kernel) -> Self {
        let end = kernel.code.len() as u32;
        let next: Vec<Vec<u32>> =
            (0..).zip(&kernel.code).map(|(number, at)| next(number, at, end)).collect();
        let after = all_after(&next);
        let mut by = vec![Vec::new(); kernel.code.len()];
        for (branch, ways) in (0..).zip(&next).filter(|(_, ways)| ways.len() > 1) {
            let joined = after.get(branch as usize).copied().unwrap_or(NOWHERE);
            for &way in ways {
                let mut at = way;
                while at != joined && at < end {
                    match by.get_mut(at as usize) {
                        Some(by) if by.last() != Some(&branch) => by.push(branch),
                        _ => {}
                    }
                    at = after.get(at as usize).copied().unwrap_or(NOWHERE);
                }
            }
        }
        Self { by, after }
    }

    /// The branches that decide about an instruction, directly or not.
    fn all_of(&self, instruction: u32) -> Option<BTreeSet<u32>> {
        if self.after.get(instruction as usize).is_none_or(|&after| after == NOWHERE) {
            return None;
        }
        let (mut all, mut open) = (BTreeSet::new(), vec![instruction]);
        while let Some(number) = open.pop() {
            let by = self.by.get(number as usize).into_iter().flatten();
            open.extend(by.filter(|&&branch| all.insert(branch)));
        }
        Some(all)
    }
}

/// By instruction, the first that is executed after it on every way to the end: its immediate
/// post-dominator, after Cooper, Harvey and Kennedy, 2001.
fn all_after(next: &[Vec<u32>]) -> Vec<u32> {
    let end = next.len();
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); end + 1];
    for (number, ways) in (0..).zip(next) {
        for &way in ways {
            if let Some(before) = before.get_mut(way as usize) {
                before.push(number);
            }
        }
    }
    // In the order in which a walk from the end backwards leaves them.
    let mut order = vec![NOWHERE; end + 1];
    let (mut seen, mut left) = (vec![false; end + 1], Vec::new());
    let mut open = vec![(end as u32, 0)];
    seen[end] = true;
    while let Some((number, done)) = open.last_mut() {
        match before.get(*number as usize).and_then(|before| before.get(*done)) {
            Some(&other) => {
                *done += 1;
                let is_new =
                    seen.get_mut(other as usize).map(|seen| !std::mem::replace(seen, true));
                open.extend((is_new == Some(true)).then_some((other, 0)));
            }
            None => {
                if let Some(order) = order.get_mut(*number as usize) {
                    *order = left.len() as u32;
                }
                left.push(*number);
                open.pop();
            }
        }
    }
    let mut after = vec![NOWHERE; end + 1];
    after[end] = end as u32;
    let order_of = |number: u32| order.get(number as usize).copied().unwrap_or(0);
    let mut changes = true;
    while changes {
        changes = false;
        for &number in left.iter().rev().skip(1) {
            let mut joined = NOWHERE;
            for &way in next.get(number as usize).into_iter().flatten() {
                if after.get(way as usize).is_none_or(|&after| after == NOWHERE) {
                    continue;
                }
                let (mut one, mut other) = (way, joined);
                if joined == NOWHERE {
                    joined = way;
                    continue;
                }
                while one != other {
                    let behind =
                        if order_of(one) < order_of(other) { &mut one } else { &mut other };
                    *behind = after.get(*behind as usize).copied().unwrap_or(end as u32);
                }
                joined = one;
            }
            if let Some(known) = after.get_mut(number as usize).filter(|known| **known != joined) {
                *known = joined;
                changes = true;
            }
        }
    }
    after.truncate(end);
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_decide_until_their_ways_join() {
        // 0: a loop's head, which 4 leads back to; 1 branches to 3, past 2; 5 is behind the loop.
        let next = [vec![5, 1], vec![3, 2], vec![3], vec![4], vec![0], vec![6]];
        assert_eq!(all_after(&next), [5, 3, 3, 4, 0, 6]);
        // Who never ends comes to nothing.
        assert_eq!(all_after(&[vec![0, 2], vec![1], vec![3]]), [2, NOWHERE, 3]);
    }
}
