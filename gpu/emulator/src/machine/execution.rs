//! A warp's turn: its groups of lanes execute instructions until none can go on.

use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::lanes::lanes_of;
use super::late::LATE;
use super::looks::Held;
use super::order::Log;
use super::request::Use;
use super::warp::{Group, PATIENCE, Warp};
use crate::code::{Instruction, LoadMatrix, Op, Order, Register, StoreMatrix, WARP};
use crate::finding::FindingKind;

/// Instructions that a strong access of device memory counts as, for the budget and where others
/// wait: it takes a round.
const STRONG_COST: u32 = 20;
/// Instructions that one counts as, for the budget, that is executed or not by what nobody knows:
/// of a loop that ends so not much more is learnt.
const UNDEFINED_COST: u64 = 1_000;
/// Instructions that a loop is followed for, of which a round may have half as many.
const STEPS_OF_A_LOOP: u32 = 1 << 17;

impl Core<'_> {
    /// Runs a warp for about so many instructions, or until none of its lanes can go on.
    pub(super) fn run(&mut self, warp: &mut Warp, slice: u64) {
        let grid = self.grid;
        let end = warp.executed.saturating_add(slice);
        let mut log = Log::Parallel;
        while warp.executed < end && !self.is_stuck {
            let serial = self
                .serial
                .filter(|serial| warp.executed < serial.until)
                .map(|serial| serial.order);
            let Some(group) = warp.pick(self.random.as_mut(), serial) else { return };
            let left = u32::try_from(end - warp.executed).unwrap_or(u32::MAX);
            let most = if group.lanes == warp.ready { left } else { left.min(PATIENCE) };
            let before = warp.executed;
            let counter = self.run_group(warp, group, most, &mut log);
            let given_up =
                grid.spend(warp.executed - before).map(|why| (FindingKind::GivenUp, why));
            let is_over = warp.spent() > grid.options.budget;
            let over = if is_over { Some(self.over_budget(warp)) } else { given_up };
            if let Some((kind, why)) = over {
                let lane = group.lanes.trailing_zeros() as usize;
                self.report(kind, counter, warp.index, lane, || (None, why));
                self.is_stuck = true;
                grid.is_over.store(true, Relaxed);
            }
            warp.keeps_waiting(group.lanes, (warp.executed - before) as u32);
            if !self.arrivals.is_empty() || warp.dozes {
                return;
            }
        }
    }

    /// What a warp does that has used up its budget.
    fn over_budget(&mut self, warp: &mut Warp) -> (FindingKind, String) {
        let most = self.grid.options.budget;
        let lacks = self.lacks(warp).map_or(String::new(), |what| format!("; {what}"));
        if warp.has_waited_in_vain(most) {
            return (FindingKind::Endless, format!("what it waits for does not come{lacks}"));
        }
        if self.goes_round(warp) {
            let why = "it goes round in a loop in which nothing changes".to_owned();
            return (FindingKind::Endless, why);
        }
        let why = format!("the warp has used up its {most} instructions{lacks}");
        (FindingKind::OverBudget, why)
    }

    /// Whether a warp is in a loop that never ends: all that it holds comes again, and it has only
    /// read and computed since.
    fn goes_round(&mut self, warp: &mut Warp) -> bool {
        let grid = self.grid;
        let mut log = Log::Parallel;
        let mut then: Option<Held> = None;
        for step in 0..STEPS_OF_A_LOOP {
            let Some(group) = warp.pick(None, None) else { return false };
            let instruction = grid.kernel.code.get(group.counter as usize);
            let changes_nothing = instruction.is_some_and(|instruction| match &instruction.op {
                Op::Compute(_) | Op::Branch { .. } | Op::Nothing => true,
                Op::Load { access, .. } => access.order == Order::Weak,
                _ => false,
            });
            // Other lanes may change what these wait for.
            if group.lanes != warp.ready || !changes_nothing {
                return false;
            }
            if then.as_ref().is_some_and(|held| held.is_of(warp)) {
                return true;
            }
            if u32::is_power_of_two(step) {
                then = Some(Held::of(warp));
            }
            self.run_group(warp, group, 1, &mut log);
        }
        false
    }

    /// Runs a group until it splits, waits, meets other lanes, or has executed so many
    /// instructions. Gives the last program counter.
    fn run_group(&mut self, warp: &mut Warp, group: Group, most: u32, log: &mut Log<'_>) -> u32 {
        let kernel = self.grid.kernel;
        let is_traced = self.grid.trace.is_some();
        let Group { lanes: group, mut counter, until } = group;
        let threads = u64::from(group.count_ones());
        let first_lane = group.trailing_zeros() as usize;
        for _ in 0..most {
            let Some(instruction) = kernel.code.get(counter as usize) else {
                self.report(FindingKind::Trap, counter, warp.index, first_lane, || {
                    (None, "a jump to nowhere".to_owned())
                });
                self.is_stuck = true;
                return counter;
            };
            warp.executed += 1;
            self.counters.warp_instructions += 1;
            self.counters.instructions += threads;
            let lanes = self.guarded(warp, counter, instruction, group);
            if let Some(way) =
                self.grid.ways.place(counter).and_then(|place| warp.ways.get_mut(place))
            {
                way.came |= group;
                way.acted |= lanes;
            }
            if is_traced
                && matches!(instruction.op, Op::Branch { .. })
                && instruction.guard.is_some()
            {
                self.record(warp.index, counter, |trace, who| trace.branch(who, group, lanes));
            }
            let next = match &instruction.op {
                Op::Compute(compute) => {
                    compute.execute(&mut warp.registers, lanes);
                    if is_traced {
                        self.record_compute(warp, counter, compute, lanes);
                    }
                    Some(counter + 1)
                }
                Op::Branch { target } if lanes == group => Some(*target),
                Op::Branch { .. } if lanes == 0 => Some(counter + 1),
                Op::Branch { target } => {
                    self.counters.divergent_branches += 1;
                    warp.jump(lanes, *target);
                    warp.jump(group & !lanes, counter + 1);
                    None
                }
                Op::Nothing => Some(counter + 1),
                Op::WaitForGrids => {
                    warp.early &= !lanes;
                    Some(counter + 1)
                }
                _ if lanes == 0 => Some(counter + 1),
                _ => self.step(warp, counter, instruction, lanes, group, log),
            };
            match next {
                Some(next) => counter = next,
                None => return counter,
            }
            if counter >= until {
                break;
            }
        }
        warp.jump(group, counter);
        counter
    }

    /// The lanes of a group for which an instruction takes effect.
    #[inline]
    fn guarded(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        group: u32,
    ) -> u32 {
        let Some(guard) = instruction.guard else { return group };
        let register = Register::Predicate(guard.predicate);
        let undefined = warp.registers.undefined(register) & group;
        if undefined != 0 {
            let (warp_index, lane) = (warp.index, undefined.trailing_zeros() as usize);
            let at = Use { counter, warp: warp_index, lane, what: "what is done next" };
            self.report_undefined(at, warp.registers.read_by(register), || None);
            warp.charged += UNDEFINED_COST;
        }
        let value = warp.predicate(register);
        group & if guard.expected { value } else { !value }
    }

    /// Executes an instruction that is neither arithmetic nor a plain branch, for at least one
    /// lane. Gives the group's next program counter, or none when the lanes no longer go on
    /// together.
    fn step(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        lanes: u32,
        group: u32,
        log: &mut Log<'_>,
    ) -> Option<u32> {
        let next = counter + 1;
        if warp.late.is_some() && !self.waits_for_turn(warp, instruction, lanes) {
            warp.jump(group, counter);
            warp.strong = Some((lanes, LATE));
            return None;
        }
        match &instruction.op {
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic(_)
            | Op::CopyAsync { .. }
            | Op::CopyBulk(_)
            | Op::BulkStore(_)
            | Op::MBarrier(_) => {
                if self.waits_for_turn(warp, instruction, lanes) {
                    warp.jump(group, next);
                    warp.keeps_waiting(group, STRONG_COST);
                    warp.charged += u64::from(STRONG_COST);
                    warp.strong = Some((lanes, counter));
                    return None;
                }
                if !instruction.op.is_strong() {
                    warp.polls.work();
                    self.access(warp, counter, instruction, lanes, log);
                    return Some(next);
                }
                self.watched.clear();
                self.has_changed = false;
                self.access(warp, counter, instruction, lanes, log);
                if warp.poll(counter, lanes, &self.watched, self.has_changed) {
                    warp.dozes = true;
                    warp.jump(group, next);
                    return None;
                }
            }
            Op::CopyAsyncCommit => {
                if let Some(copies) = self.copies.get_mut(warp.index) {
                    copies.commit(lanes);
                }
            }
            Op::CopyAsyncWait { groups } => {
                self.finish_copies(warp.index, counter, lanes, *groups);
            }
            Op::Fence { scope, sequential } => {
                self.order.fence(warp.index, lanes, *scope, *sequential);
            }
            Op::ActiveMask { destination } => {
                warp.set(*destination, lanes, &[u64::from(lanes); WARP]);
            }
            Op::Clock { destination } => {
                let now = warp.executed;
                warp.set(*destination, lanes, &[now; WARP]);
            }
            Op::BranchIndexed { index, targets } => {
                let indices = warp.word(*index);
                warp.jump(group, next);
                for lane in lanes_of(lanes) {
                    match targets.get(indices[lane] as usize) {
                        Some(&target) => warp.jump(1 << lane, target),
                        None => self.report(FindingKind::Trap, counter, warp.index, lane, || {
                            (None, format!("no branch target {}", indices[lane]))
                        }),
                    }
                }
                return None;
            }
            Op::Call(call) => {
                self.call(warp, counter, call, lanes, group);
                return None;
            }
            Op::Return => {
                self.go_back(warp, lanes, group, counter);
                return None;
            }
            Op::Exit => {
                warp.jump(group, next);
                self.end_bulk_stores(warp.index, lanes);
                warp.alive &= !lanes;
                warp.ready &= !lanes;
                self.complete_collected(warp);
                return None;
            }
            Op::Trap => {
                let lane = lanes.trailing_zeros() as usize;
                self.report(FindingKind::Trap, counter, warp.index, lane, || (None, String::new()));
                self.is_stuck = true;
                return None;
            }
            Op::Barrier { .. } => {
                warp.polls.work();
                warp.jump(group, next);
                self.arrive(warp, counter, instruction, lanes);
                return None;
            }
            Op::ClusterArrive { releases, aligned } => {
                warp.polls.work();
                self.arrive_at_cluster(warp, counter, lanes, *releases, *aligned);
            }
            Op::ClusterWait => {
                warp.polls.work();
                warp.jump(group, next);
                self.wait_for_cluster(warp, counter, lanes);
                return None;
            }
            Op::Shuffle { members, .. }
            | Op::Vote { members, .. }
            | Op::Match { members, .. }
            | Op::Reduce { members, .. }
            | Op::Elect { members, .. }
            | Op::LoadMatrix(LoadMatrix { members, .. })
            | Op::StoreMatrix(StoreMatrix { members, .. })
            | Op::WarpBarrier { members } => {
                return self.collect(warp, counter, instruction, *members, lanes, group);
            }
            Op::Mma(mma) => {
                return self.collect(warp, counter, instruction, mma.members, lanes, group);
            }
            Op::Compute(_) | Op::Branch { .. } | Op::WaitForGrids | Op::Nothing => {}
        }
        Some(next)
    }
}
