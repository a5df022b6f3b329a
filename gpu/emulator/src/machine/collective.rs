//! Warp-wide operations: shuffles, votes, matches, reductions, `bar.warp.sync`.

use super::core::Core;
use super::lanes::lanes_of;
use super::request::Use;
use super::warp::Warp;
use super::ways::{Way, combines};
use crate::code::{Instruction, Op, Register, ShuffleMode, VoteMode, WARP};
use crate::finding::FindingKind;

impl Core<'_> {
    /// Lanes come to a warp-wide operation that names its `members`. It is executed when all of
    /// those have come that have not ended. Gives the group's next program counter if it goes on as
    /// it is.
    pub(crate) fn collect(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        instruction: &Instruction,
        members: Register,
        lanes: u32,
        group: u32,
    ) -> Option<u32> {
        let named = warp.word(members);
        let unknown = warp.registers.undefined(members) & lanes;
        if unknown != 0 {
            let lane = unknown.trailing_zeros() as usize;
            let at = Use { counter, warp: warp.index, lane, what: "the set of lanes" };
            self.report_undefined(at, warp.registers.read_by(members), || None);
        }
        let first = named[lanes.trailing_zeros() as usize % WARP];
        let agree = lanes_of(lanes).all(|lane| named[lane] == first);
        if agree && first & warp.alive == lanes {
            self.execute_collective(warp, counter, instruction, lanes, first);
            return Some(counter + 1);
        }
        for lane in lanes_of(lanes) {
            if named[lane] >> lane & 1 == 0 {
                self.report(FindingKind::MissingLanes, counter, warp.index, lane, || {
                    (
                        None,
                        format!("the mask {:#010x} lacks the lane that executes it", named[lane]),
                    )
                });
            }
            warp.members[lane] = named[lane] | 1 << lane;
        }
        warp.jump(group & !lanes, counter + 1);
        warp.jump(lanes, counter);
        warp.collected |= lanes;
        warp.ready &= !lanes;
        self.complete_collected(warp);
        None
    }

    /// Executes the warp-wide operations that need not wait any longer.
    pub(crate) fn complete_collected(&mut self, warp: &mut Warp) {
        let code = &self.grid.kernel.code;
        let mut left = warp.collected;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let (counter, members) = (warp.counters[lane], warp.members[lane]);
            let here = lanes_of(warp.collected).filter(|&other| {
                let other = warp.counters[other];
                other == counter || meet(code.get(counter as usize), code.get(other as usize))
            });
            let here = here.fold(0, |mask, lane| mask | 1 << lane);
            let same = lanes_of(here).filter(|&other| {
                // A lane that its own mask lacks joins those of that mask.
                warp.members[other] & !(1 << other) == members & !(1 << other)
                    || warp.members[other] == members
            });
            let same = same.fold(0, |mask, lane| mask | 1 << lane);
            left &= !(same | 1 << lane);
            if members & warp.alive & !same != 0 {
                continue;
            }
            self.execute_met(warp, same, members);
            warp.collected &= !same;
            warp.ready |= same;
            for lane in lanes_of(same) {
                warp.counters[lane] += 1;
            }
        }
    }

    /// Executes a warp-wide operation for lanes that may have met in different instructions of one
    /// kind, each of which reads and writes registers of its own.
    fn execute_met(&mut self, warp: &mut Warp, lanes: u32, members: u32) {
        let code = &self.grid.kernel.code;
        let mut left = lanes;
        let mut parts = Vec::new();
        while left != 0 {
            let counter = warp.counters[left.trailing_zeros() as usize];
            let here = lanes_of(left).filter(|&lane| warp.counters[lane] == counter);
            let here = here.fold(0, |mask, lane| mask | 1 << lane);
            left &= !here;
            parts.extend(code.get(counter as usize).map(|at| (counter, at, here)));
        }
        if let [(counter, at, _)] = parts[..] {
            self.execute_collective(warp, counter, at, lanes, members);
            return;
        }
        // Every part's sources are put where the first one has its own, as all take part in one
        // operation; what that gives is then handed to each part's destinations.
        let Some(&(counter, first, _)) = parts.first() else { return };
        let reads = first.op.read();
        let saved: Vec<_> = registers_of(first).map(|register| warp.copy(register)).collect();
        for (_, at, here) in parts.iter().skip(1) {
            for (&to, from) in reads.iter().zip(at.op.read()) {
                warp.assign(to, from, *here);
            }
        }
        self.execute_collective(warp, counter, first, lanes, members);
        let results: Vec<_> =
            first.op.written().into_iter().map(|register| warp.copy(register)).collect();
        // Lanes of other parts get back what they had in the first part's registers.
        let others = lanes & !parts.first().map_or(0, |part| part.2);
        for (register, old) in registers_of(first).zip(&saved) {
            warp.paste(register, old, others);
        }
        for (_, at, here) in parts.iter().skip(1) {
            for (to, result) in at.op.written().into_iter().zip(&results) {
                warp.paste(to, result, *here);
            }
        }
    }

    fn execute_collective(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        at: &Instruction,
        lanes: u32,
        members: u32,
    ) {
        // Votes, matches, reductions and barriers wait for the named lanes that have not ended, and
        // do without the others, as the PTX manual says of each; of tiles of matrices it says
        // nothing.
        let ended = members & warp.existing & !lanes;
        let is_of_tiles = matches!(at.op, Op::Mma(_) | Op::LoadMatrix(_) | Op::StoreMatrix(_));
        if ended != 0 && is_of_tiles {
            let lane = lanes.trailing_zeros() as usize;
            self.report(FindingKind::MissingLanes, counter, warp.index, lane, || {
                (None, format!("lanes {ended:#010x} are named and have ended"))
            });
        }
        if ended != 0 && combines(&at.op) {
            self.report_gone_past(warp, counter, (ended, lanes));
        }
        if lanes == warp.alive && !warp.ways.is_empty() {
            warp.ways.fill(Way::default());
        }
        if !matches!(at.op, Op::Shuffle { .. }) {
            self.record(warp.index, counter, |trace, who| trace.combine(who, lanes));
        }
        match &at.op {
            Op::Shuffle { mode, destination, in_range, source, lane, clamp, members } => {
                let operands =
                    Operands { mode: *mode, lane: *lane, clamp: *clamp, members: *members };
                self.shuffle(
                    warp,
                    counter,
                    &operands,
                    *source,
                    [Some(*destination), *in_range],
                    lanes,
                );
            }
            Op::Vote { mode, destination, source, negated, .. } => {
                let value = warp.predicate(*source);
                let holds = lanes & if *negated { !value } else { value };
                let undefined = warp.registers.undefined(*source) & lanes;
                let read_by = warp.registers.read_by(*source);
                let result = match mode {
                    VoteMode::All => (holds == lanes).into(),
                    VoteMode::Any => (holds != 0).into(),
                    VoteMode::Uniform => (holds == lanes || holds == 0).into(),
                    VoteMode::Ballot => holds,
                };
                warp.set(*destination, lanes, &[result.into(); WARP]);
                if undefined != 0 {
                    warp.registers.taint(*destination, lanes, lanes, read_by);
                }
            }
            Op::Match { all, destination, is_equal, source, .. } => {
                let values = warp.long(*source);
                let equal_to = |value: u64| {
                    let equal = lanes_of(lanes).filter(|&lane| values[lane] == value);
                    equal.fold(0_u32, |mask, lane| mask | 1 << lane)
                };
                let undefined = warp.registers.undefined(*source) & lanes;
                let read_by = warp.registers.read_by(*source);
                let masks = values.map(|value| {
                    let equal = equal_to(value);
                    if *all && equal != lanes { 0 } else { equal }
                });
                warp.set(*destination, lanes, &masks.map(u64::from));
                if let Some(is_equal) = is_equal {
                    warp.set(*is_equal, lanes, &masks.map(|mask| u64::from(mask == lanes)));
                }
                // One value that nobody knows makes what is equal to it unknown to all.
                if undefined != 0 {
                    warp.registers.taint(*destination, lanes, lanes, read_by);
                    if let Some(is_equal) = is_equal {
                        warp.registers.taint(*is_equal, lanes, lanes, read_by);
                    }
                }
            }
            Op::Reduce { operation, destination, source, signed, .. } => {
                let values = warp.word(*source);
                let undefined = warp.registers.undefined(*source) & lanes;
                let read_by = warp.registers.read_by(*source);
                let values = lanes_of(lanes).map(|lane| values[lane]);
                let reduced =
                    values.reduce(|a, b| super::atomic::combine_words(*operation, *signed, a, b));
                warp.set(*destination, lanes, &[reduced.unwrap_or(0).into(); WARP]);
                if undefined != 0 {
                    warp.registers.taint(*destination, lanes, lanes, read_by);
                }
            }
            Op::Elect { destination, is_elected, .. } => {
                let elected = lanes.trailing_zeros();
                if let Some(destination) = destination {
                    warp.set(*destination, lanes, &[elected.into(); WARP]);
                }
                let is = std::array::from_fn(|lane| u64::from(lane as u32 == elected));
                warp.set(*is_elected, lanes, &is);
            }
            Op::Mma(mma) => self.mma(warp, counter, mma, lanes),
            Op::LoadMatrix(load) => self.load_matrix(warp, counter, load, lanes),
            Op::StoreMatrix(store) => self.store_matrix(warp, counter, store, lanes),
            // Lanes that have ended do not take part.
            Op::WarpBarrier { .. } => self.order.warp_barrier(warp.index, lanes, warp.existing),
            _ => {}
        }
    }

    /// Lanes that have ended are named by others, which do without them. One that has gone another
    /// way and done something there would have been waited for.
    fn report_gone_past(&mut self, warp: &Warp, counter: u32, (ended, lanes): (u32, u32)) {
        let kernel = self.grid.kernel;
        let past = self.grid.ways.gone_past(kernel, &warp.ways, counter, (ended, lanes));
        let Some((lane, store)) = past else { return };
        self.report(FindingKind::MissingLanes, counter, warp.index, lane, || {
            let stored = kernel.place(store);
            (
                None,
                format!("lane {lane} is named, but went another way: it stored {stored} and ended"),
            )
        });
    }

    /// `shfl.sync`, after the PTX manual, 9.7.9.6.
    fn shuffle(
        &mut self,
        warp: &mut Warp,
        counter: u32,
        operands: &Operands,
        source: Register,
        [destination, in_range]: [Option<Register>; 2],
        lanes: u32,
    ) {
        let values = warp.long(source);
        let (wanted, clamps) = (warp.word(operands.lane), warp.word(operands.clamp));
        let named = warp.word(operands.members);
        let undefined = warp.registers.undefined(source);
        // Where nobody knows which lane is read, nobody knows what is read.
        let elsewhere =
            warp.registers.undefined(operands.lane) | warp.registers.undefined(operands.clamp);
        let read_by = [source, operands.lane, operands.clamp]
            .into_iter()
            .find_map(|register| warp.registers.read_by(register));
        let (mut result, mut is_undefined, mut within) = ([0; WARP], 0, [0; WARP]);
        let mut absent = 0_u32;
        let mut sources = [None; WARP];
        for lane in lanes_of(lanes) {
            let (from, is_within) = operands.mode.source(lane as u32, wanted[lane], clamps[lane]);
            within[lane] = u64::from(is_within);
            if elsewhere >> lane & 1 != 0 {
                is_undefined |= 1 << lane;
                continue;
            }
            if lanes >> from & 1 == 0 {
                // Of a lane that its own mask lacks that is told already.
                if named[lane] >> lane & 1 == 0 {
                    continue;
                }
                // Nobody needs to look at what it would have given.
                absent |= 1 << lane;
                continue;
            }
            result[lane] = values[from as usize];
            sources[lane] = Some(from);
            is_undefined |= (undefined >> from & 1) << lane;
        }
        self.record(warp.index, counter, |trace, who| trace.shuffle(who, lanes, &sources));
        if let Some(destination) = destination {
            warp.set(destination, lanes, &result);
            if is_undefined | absent != 0 {
                let read_by = if is_undefined == 0 { Some(counter) } else { read_by };
                if absent != 0 {
                    self.read_absent.insert(counter);
                }
                warp.registers.taint(destination, lanes, is_undefined | absent, read_by);
            }
        }
        if let Some(in_range) = in_range {
            warp.set(in_range, lanes, &within);
            if elsewhere & lanes != 0 {
                warp.registers.taint(in_range, lanes, elsewhere & lanes, read_by);
            }
        }
    }
}

/// Whether lanes at these instructions take part in one operation, if they name the same lanes:
/// where the instructions have the same qualifiers.
fn meet(one: Option<&Instruction>, other: Option<&Instruction>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let is_like = match (&one.op, &other.op) {
        (Op::Shuffle { mode, .. }, Op::Shuffle { mode: other, .. }) => mode == other,
        (Op::Vote { mode, negated, .. }, Op::Vote { mode: other, negated: other_negated, .. }) => {
            mode == other && negated == other_negated
        }
        (Op::Match { all, .. }, Op::Match { all: other, .. }) => all == other,
        (
            Op::Reduce { operation, signed, .. },
            Op::Reduce { operation: other, signed: other_signed, .. },
        ) => operation == other && signed == other_signed,
        (Op::WarpBarrier { .. }, Op::WarpBarrier { .. }) => true,
        _ => false,
    };
    // Registers correspond where there are as many of each kind.
    let count = |at: &Instruction| (at.op.written().len(), registers_of(at).count());
    is_like && count(one) == count(other)
}

/// All registers of an instruction.
fn registers_of(at: &Instruction) -> impl Iterator<Item = Register> + use<> {
    let mut all = Vec::new();
    at.op.registers(&mut |register, _| all.push(register));
    all.into_iter()
}

/// Which lane a shuffle reads.
struct Operands {
    mode: ShuffleMode,
    lane: Register,
    clamp: Register,
    members: Register,
}

impl ShuffleMode {
    /// The lane that `lane` reads, and whether that was within its segment; itself if it was not.
    fn source(self, lane: u32, wanted: u32, clamp: u32) -> (u32, bool) {
        let (wanted, clamp, segment) = (wanted & 31, clamp & 31, clamp >> 8 & 31);
        let most = lane & segment | clamp & !segment;
        let least = lane & segment;
        let (from, is_within) = match self {
            Self::Up => {
                let from = lane.cast_signed() - wanted.cast_signed();
                (from, from >= most.cast_signed())
            }
            Self::Down => {
                let from = lane + wanted;
                (from.cast_signed(), from <= most)
            }
            Self::Butterfly => {
                let from = lane ^ wanted;
                (from.cast_signed(), from <= most)
            }
            Self::Index => {
                let from = least | wanted & !segment;
                (from.cast_signed(), from <= most)
            }
        };
        if is_within { (from.cast_unsigned() & 31, true) } else { (lane, false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(mode: ShuffleMode, wanted: u32, clamp: u32) -> Vec<u32> {
        (0..32).map(|lane| mode.source(lane, wanted, clamp).0).collect()
    }

    #[test]
    fn shuffles_read_the_lanes_that_the_manual_says() {
        // As `__shfl_*_sync` passes them for the widths 32 and 8.
        let up = sources(ShuffleMode::Up, 3, 0);
        assert_eq!(up[..5], [0, 1, 2, 0, 1]);
        let down = sources(ShuffleMode::Down, 4, 0x1F);
        assert_eq!(down[26..], [30, 31, 28, 29, 30, 31]);
        let down_8 = sources(ShuffleMode::Down, 4, 0x181F);
        assert_eq!(down_8[..10], [4, 5, 6, 7, 4, 5, 6, 7, 12, 13]);
        let up_8 = sources(ShuffleMode::Up, 1, 0x1800);
        assert_eq!(up_8[6..11], [5, 6, 8, 8, 9]);
        let butterfly = sources(ShuffleMode::Butterfly, 16, 0x1F);
        assert_eq!(butterfly[..2], [16, 17]);
        let index_8 = sources(ShuffleMode::Index, 2, 0x181F);
        assert_eq!(index_8[..10], [2, 2, 2, 2, 2, 2, 2, 2, 10, 10]);
        assert!(!ShuffleMode::Up.source(2, 3, 0).1);
    }
}
