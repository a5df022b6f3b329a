//! Backwards: what a value was computed from.

use std::collections::HashMap;

use super::{Event, Moment, NOBODY, Trace, What, extent, operands};
use crate::code::{AtomicOperation, Kernel, Op, Register, Space, WARP};

/// An event that a value depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of the event.
    pub event: usize,
    /// Number of the instruction.
    pub counter: u32,
    /// Lanes whose results went into the value.
    pub value: u32,
    /// Lanes whose results said where to read, or whether.
    pub choice: u32,
    /// Elements of a vector that it depends on, a bit for each.
    pub elements: u32,
    /// Whether numbers were cut off or wrapped in the lanes.
    pub cuts: bool,
}

/// Lanes of a register, or bytes of memory, by how the value depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lanes {
    value: u32,
    choice: u32,
}

impl Lanes {
    fn at(self, lanes: u32) -> Self {
        Self { value: self.value & lanes, choice: self.choice & lanes }
    }

    fn any(self) -> u32 {
        self.value | self.choice
    }

    fn add(&mut self, more: Self) {
        self.value |= more.value;
        self.choice |= more.choice;
    }

    fn without(self, lanes: u32) -> Self {
        self.at(!lanes)
    }

    /// Whatever it is, it only chooses.
    fn as_choice(self) -> Self {
        Self { value: 0, choice: self.any() }
    }

    /// All lanes of `lanes`, if any of these is.
    fn spread(self, lanes: u32) -> Self {
        let of = |some: u32| if some == 0 { 0 } else { lanes };
        Self { value: of(self.value), choice: of(self.choice) }
    }
}

/// Depends by value, and by choice.
const VALUE: u8 = 1;
const CHOICE: u8 = 2;

/// What is still to be found.
#[derive(Default)]
struct Wanted {
    registers: HashMap<(u32, u16), HashMap<Register, Lanes>>,
    memory: HashMap<u64, u8>,
}

impl Trace {
    /// All that what some events store, or bring into registers, was computed from, the events
    /// among it, last first.
    #[must_use]
    pub fn slice(&self, kernel: &Kernel, from: &[Moment]) -> Vec<Step> {
        let operands = operands(kernel);
        let mut wanted = Wanted::default();
        let mut steps = Vec::new();
        let mut starts: Vec<Moment> = from.to_vec();
        starts.sort_unstable();
        let last = starts.last().map_or(0, |moment| moment.event + 1);
        for (number, event) in self.events.iter().enumerate().take(last).rev() {
            let mut begins = 0_u32;
            while let Some(start) = starts.pop_if(|start| start.event == number) {
                begins |= 1 << start.lane;
            }
            let Some(instruction) = kernel.code.get(event.counter as usize) else { continue };
            let Some((reads, writes)) = operands.get(event.counter as usize) else { continue };
            let key = (event.block, event.warp);
            if event.what == What::Cuts {
                // It comes after what it is about, so that this is not wanted any more only later.
                let of = wanted.registers.get(&key);
                let hit = writes.iter().filter_map(|register| of?.get(register)).fold(
                    Lanes::default(),
                    |mut all, &lanes| {
                        all.add(lanes);
                        all
                    },
                );
                let hit = match &instruction.op {
                    Op::Store { .. } => self.stored(&wanted, kernel, event, number),
                    _ => hit.at(event.lanes),
                };
                if hit.any() != 0 {
                    let Lanes { value, choice } = hit;
                    let (event, counter) = (number, event.counter);
                    steps.push(Step { event, counter, value, choice, elements: 0, cuts: true });
                }
                continue;
            }
            let mut hit = Lanes { value: begins, choice: 0 };
            let mut elements = if begins == 0 { 0 } else { u32::MAX };
            if let Some(of_warp) = wanted.registers.get_mut(&key) {
                for (element, register) in writes.iter().enumerate() {
                    if let Some(lanes) = of_warp.get_mut(register) {
                        let found = lanes.at(event.lanes);
                        hit.add(found);
                        elements |= u32::from(found.any() != 0) << element;
                        *lanes = lanes.without(event.lanes);
                    }
                }
            }
            let want = |wanted: &mut Wanted, registers: &[Register], lanes: Lanes| {
                if lanes.any() == 0 {
                    return;
                }
                let of_warp = wanted.registers.entry(key).or_default();
                for &register in registers {
                    of_warp.entry(register).or_default().add(lanes);
                }
            };
            match event.what {
                What::Accesses => {
                    let stored =
                        self.access_back(&mut wanted, kernel, event, (hit, elements), begins != 0);
                    hit.add(stored);
                    match &instruction.op {
                        Op::Load { address, .. } => {
                            want(&mut wanted, address.base.as_slice(), hit.as_choice());
                        }
                        Op::Store { address, sources, .. } => {
                            want(&mut wanted, sources, hit);
                            want(&mut wanted, address.base.as_slice(), hit.as_choice());
                        }
                        Op::Atomic(atomic) => {
                            want(&mut wanted, &atomic.operands, hit);
                            want(&mut wanted, atomic.replacement.as_slice(), hit);
                            want(&mut wanted, atomic.address.base.as_slice(), hit.as_choice());
                        }
                        _ => {}
                    }
                }
                What::Shuffles => {
                    let Op::Shuffle { source, lane: chosen, .. } = &instruction.op else {
                        continue;
                    };
                    let mut given = Lanes::default();
                    for lane in (0..WARP).filter(|lane| hit.any() >> lane & 1 != 0) {
                        let from = match self.place(event, lane) {
                            Some(from) if from != NOBODY => 1_u32 << from,
                            _ => continue,
                        };
                        if hit.value >> lane & 1 != 0 {
                            given.value |= from;
                        }
                        if hit.choice >> lane & 1 != 0 {
                            given.choice |= from;
                        }
                    }
                    want(&mut wanted, std::slice::from_ref(source), given);
                    want(&mut wanted, std::slice::from_ref(chosen), hit.as_choice());
                }
                What::Combines => {
                    let all = hit.spread(event.lanes);
                    let all = match instruction.op {
                        Op::Vote { .. } | Op::Match { .. } => all.as_choice(),
                        _ => all,
                    };
                    want(&mut wanted, reads, all);
                }
                What::Copies => {
                    hit.add(self.copy_back(&mut wanted, event));
                }
                What::Computes => {
                    let values: Vec<_> =
                        reads.iter().copied().filter(|register| !is_predicate(*register)).collect();
                    let choices: Vec<_> =
                        reads.iter().copied().filter(|register| is_predicate(*register)).collect();
                    want(&mut wanted, &values, hit);
                    want(&mut wanted, &choices, hit.as_choice());
                }
                What::Branches | What::Cuts => {}
            }
            if hit.any() != 0 {
                if let Some(guard) = instruction.guard {
                    let guard = Register::Predicate(guard.predicate);
                    want(&mut wanted, std::slice::from_ref(&guard), hit.as_choice());
                }
                // Parameters are the same for all.
                if matches!(&instruction.op, Op::Load { address, .. } if address.space == Space::Parameter)
                {
                    continue;
                }
                let Lanes { value, choice } = hit;
                let (event, counter) = (number, event.counter);
                steps.push(Step { event, counter, value, choice, elements, cuts: false });
            }
        }
        steps
    }

    /// The predicates of a branch of a thread, and what these were computed from.
    #[must_use]
    pub fn slice_of_branch(&self, kernel: &Kernel, moment: Moment) -> Vec<Step> {
        let Some(branch) = self.events.get(moment.event) else { return Vec::new() };
        let guard = kernel.code.get(branch.counter as usize).and_then(|at| at.guard);
        let Some(guard) = guard else { return Vec::new() };
        self.slice_of_register(kernel, moment, Register::Predicate(guard.predicate))
    }

    /// What the address was computed from that a thread has accessed.
    #[must_use]
    pub fn slice_of_address(&self, kernel: &Kernel, access: Moment) -> Vec<Step> {
        let Some(event) = self.events.get(access.event) else { return Vec::new() };
        let address = match kernel.code.get(event.counter as usize).map(|at| &at.op) {
            Some(Op::Load { address, .. } | Op::Store { address, .. }) => address,
            Some(Op::Atomic(atomic)) => &atomic.address,
            _ => return Vec::new(),
        };
        address.base.map_or_else(Vec::new, |base| self.slice_of_register(kernel, access, base))
    }

    /// What a register was computed from that a thread held before a moment.
    fn slice_of_register(&self, kernel: &Kernel, moment: Moment, register: Register) -> Vec<Step> {
        let Some(end) = self.events.get(moment.event) else { return Vec::new() };
        let is_writer = |event: &Event| {
            event.is_of_thread(end, moment.lane)
                && event.what != What::Cuts
                && kernel
                    .code
                    .get(event.counter as usize)
                    .is_some_and(|at| at.op.written().contains(&register))
        };
        let before = self.events.get(..moment.event).unwrap_or_default();
        let Some(writer) = before.iter().rposition(is_writer) else { return Vec::new() };
        self.slice(kernel, &[Moment { event: writer, lane: moment.lane }])
    }

    /// Lanes of a store whose memory is wanted.
    fn stored(&self, wanted: &Wanted, kernel: &Kernel, cut: &Event, number: usize) -> Lanes {
        let mut lanes = Lanes::default();
        // The store itself is the event before or after it.
        let near = [number.wrapping_sub(1), number + 1];
        let same = |&at: &usize| {
            self.events.get(at).filter(|event| {
                event.counter == cut.counter
                    && event.what == What::Accesses
                    && (event.block, event.warp) == (cut.block, cut.warp)
            })
        };
        let Some(store) = near.iter().find_map(same) else { return lanes };
        let Some((bytes, ..)) = kernel.code.get(cut.counter as usize).and_then(|at| extent(&at.op))
        else {
            return lanes;
        };
        for lane in cut.lane_numbers() {
            let Some(place) = self.place(store, lane) else { continue };
            for byte in place..place.saturating_add(bytes.into()) {
                let how = wanted.memory.get(&byte).copied().unwrap_or(0);
                lanes.value |= u32::from(how & VALUE != 0) << lane;
                lanes.choice |= u32::from(how & CHOICE != 0) << lane;
            }
        }
        lanes
    }

    /// Wants the memory that an access reads for lanes whose result is wanted, and gives the lanes
    /// that write wanted memory.
    fn access_back(
        &self,
        wanted: &mut Wanted,
        kernel: &Kernel,
        event: &Event,
        (hit, elements): (Lanes, u32),
        begins: bool,
    ) -> Lanes {
        let mut lanes = Lanes::default();
        let Some(op) = kernel.code.get(event.counter as usize).map(|at| &at.op) else {
            return lanes;
        };
        let Some((bytes, element, effects)) = extent(op) else { return lanes };
        let replaces = match op {
            Op::Atomic(atomic) => atomic.operation == AtomicOperation::Exchange,
            _ => true,
        };
        let is_parameter =
            matches!(op, Op::Load { address, .. } if address.space == Space::Parameter);
        if is_parameter {
            return lanes;
        }
        for lane in event.lane_numbers().rev() {
            let Some(place) = self.place(event, lane) else { continue };
            let range = place..place.saturating_add(bytes.into());
            if effects.writes {
                for byte in range.clone() {
                    let Some(&how) = wanted.memory.get(&byte) else { continue };
                    if replaces {
                        wanted.memory.remove(&byte);
                    }
                    lanes.value |= u32::from(how & VALUE != 0) << lane;
                    lanes.choice |= u32::from(how & CHOICE != 0) << lane;
                }
            }
            let by_value = u8::from(hit.value >> lane & 1 != 0) * VALUE;
            let how = by_value | (u8::from(hit.choice >> lane & 1 != 0) * CHOICE);
            // An atomic from which a slice begins changes what was there.
            if effects.reads && how != 0 && !(begins && replaces && effects.writes) {
                let is_read =
                    |byte: &u64| elements >> ((byte - place) / u64::from(element)) & 1 != 0;
                for byte in range.filter(is_read) {
                    *wanted.memory.entry(byte).or_default() |= how;
                }
            }
        }
        lanes
    }

    /// Wants the source of a copy whose destination is wanted.
    fn copy_back(&self, wanted: &mut Wanted, event: &Event) -> Lanes {
        let Some([to, from, bytes]) = self.copied(event) else { return Lanes::default() };
        let mut all = 0;
        for byte in 0..bytes {
            if let Some(how) = wanted.memory.remove(&(to + byte)) {
                *wanted.memory.entry(from + byte).or_default() |= how;
                all |= how;
            }
        }
        let of = |how: u8| if all & how != 0 { event.lanes } else { 0 };
        Lanes { value: of(VALUE), choice: of(CHOICE) }
    }
}

fn is_predicate(register: Register) -> bool {
    matches!(register, Register::Predicate(_))
}
