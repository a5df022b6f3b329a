//! A warp: 32 lanes, each with its own program counter.

use std::ops::Range;

use fastrand::Rng;

use super::activations::Calls;
use super::lanes::{lanes_of, position};
use super::polls::{Polls, Watched};
use super::shared::noise;
use super::ways::Way;
use crate::code::{Constant, Register, WARP};
use crate::compute::Registers;

/// Instructions that ready lanes wait for others that are behind them.
pub(crate) const PATIENCE: u32 = 2_000;

/// Lanes of a warp run one after the other, each until it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serial {
    pub(crate) order: SerialOrder,
    /// Instructions of the warp after which they no longer do.
    pub(crate) until: u64,
}

/// Which lane is first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SerialOrder {
    FirstLaneFirst,
    /// As nobody expects who adds up in place what other lanes add to.
    LastLaneFirst,
}

/// The state of a warp.
#[derive(Debug)]
pub(crate) struct Warp {
    /// Number within the block.
    pub(crate) index: usize,
    pub(crate) registers: Registers,
    /// Of each lane, the number of its next instruction.
    pub(crate) counters: [u32; WARP],
    /// Lanes that there are: all but in the last warp of a block.
    pub(crate) existing: u32,
    /// Lanes that have not ended.
    pub(crate) alive: u32,
    /// Lanes that can go on.
    pub(crate) ready: u32,
    /// Lanes that have yet to wait for the kernels before this one, where it begins before they
    /// end.
    pub(crate) early: u32,
    /// Lanes that wait at a warp-wide operation.
    pub(crate) collected: u32,
    /// Of each of those, the lanes that it waits for.
    pub(crate) members: [u32; WARP],
    /// Lanes that wait at a barrier.
    pub(crate) at_barrier: u32,
    /// Lanes that wait at the barrier of the cluster.
    pub(crate) at_cluster: u32,
    /// The lanes of a strong access of device memory that waits for its turn, and its instruction.
    pub(crate) strong: Option<(u32, u32)>,
    /// An atomic that was held back.
    pub(crate) late: Option<Box<Late>>,
    /// Instructions executed.
    pub(crate) executed: u64,
    /// Instructions that count against its budget besides.
    pub(crate) charged: u64,
    /// Those of them that tries in vain count as.
    in_vain: u64,
    /// Instructions executed that read global memory.
    pub(crate) loads: u64,
    /// Lanes' own memory.
    pub(crate) local: Vec<LocalWord>,
    /// Which ways the lanes have gone since all were together last.
    pub(crate) ways: Vec<Way>,
    pub(crate) calls: Calls,
    pub(crate) polls: Polls,
    /// It waits for its turn, but can only go on when what it polls has changed.
    pub(crate) is_asleep: bool,
    /// The same of shared memory, until another warp of the block has run.
    pub(crate) dozes: bool,
    /// Instructions executed in vain, which count against no budget.
    pub(crate) excused: u64,
    /// How many were executed and charged at its last strong access.
    mark: u64,
    /// How long other ready lanes have waited while groups furthest behind ran, in instructions.
    waited: u32,
    /// The program counter of the last group that ran because it had waited.
    aged: u32,
}

/// A word of each lane's own memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LocalWord {
    pub(crate) values: [u32; WARP],
    /// By byte: lanes in which it was written.
    pub(crate) defined: [u32; 4],
}

impl LocalWord {
    /// Those of a warp with these numbers, none of them written.
    fn noise(warp: usize, words: Range<u32>) -> Vec<Self> {
        let word = |number: u32| {
            let of = |lane: usize| noise((warp * WARP + lane) as u32 ^ number << 10);
            Self { values: std::array::from_fn(of), defined: [0; 4] }
        };
        words.map(word).collect()
    }
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) lanes: u32,
    pub(crate) counter: u32,
    /// The least program counter of other ready lanes that is above.
    pub(crate) until: u32,
}

impl Warp {
    /// The warp of that number, of so many threads, at the first instruction.
    pub(crate) fn new(
        index: usize,
        threads: usize,
        registers: Registers,
        local_bytes: u32,
    ) -> Self {
        let lanes = u32::MAX >> (WARP - threads.clamp(1, WARP));
        Self {
            index,
            registers,
            counters: [0; WARP],
            existing: lanes,
            alive: lanes,
            ready: lanes,
            early: 0,
            collected: 0,
            members: [0; WARP],
            at_barrier: 0,
            at_cluster: 0,
            strong: None,
            late: None,
            executed: 0,
            charged: 0,
            in_vain: 0,
            loads: 0,
            local: LocalWord::noise(index, 0..local_bytes.div_ceil(4)),
            ways: Vec::new(),
            calls: Calls::default(),
            polls: Polls::default(),
            is_asleep: false,
            dozes: false,
            excused: 0,
            mark: 0,
            waited: 0,
            aged: 0,
        }
    }

    /// The next lanes to run: those furthest behind, or with `random` any that are ready; if
    /// `serial`, one lane that is.
    pub(crate) fn pick(
        &mut self,
        random: Option<&mut Rng>,
        serial: Option<SerialOrder>,
    ) -> Option<Group> {
        if self.strong.is_some() {
            return None;
        }
        let of = |lanes: u32| lanes_of(lanes).map(|lane| self.counters[lane]);
        // Those that have called a function are behind those that have returned from it.
        let mut ready = self.calls.deepest(self.ready);
        let least = of(ready).min()?;
        let mut counter = least;
        let mut chosen = u32::MAX;
        if self.waited >= PATIENCE {
            self.waited = 0;
            let last = self.aged;
            ready = self.ready;
            counter = of(ready).filter(|&other| other > last).min().unwrap_or(least);
            self.aged = counter;
        } else if let Some(serial) = serial {
            let lane = match serial {
                SerialOrder::FirstLaneFirst => ready.trailing_zeros(),
                SerialOrder::LastLaneFirst => ready.ilog2(),
            };
            let (lanes, counter) = (1 << lane, self.counters[lane as usize]);
            return Some(Group { lanes, counter, until: u32::MAX });
        } else if let Some(random) = random {
            if random.u8(..) < 64 {
                let place = random.usize(..ready.count_ones() as usize);
                counter = of(ready).nth(place).unwrap_or(least);
            }
            // Nothing promises that lanes at the same instruction execute it together.
            if random.u8(..) < 16 {
                let here = lanes_of(ready).filter(|&lane| self.counters[lane] == counter);
                let here = here.fold(0, |mask, lane| mask | 1_u32 << lane);
                let some = here & random.u32(..);
                chosen = if some == 0 { here } else { some };
            }
        }
        let mut lanes = 0;
        let mut until = u32::MAX;
        for lane in lanes_of(ready) {
            let other = self.counters[lane];
            if other == counter && chosen >> lane & 1 != 0 {
                lanes |= 1 << lane;
            } else if other == counter {
                until = until.min(counter + 1);
            } else if other > counter {
                until = until.min(other);
            }
        }
        Some(Group { lanes, counter, until })
    }

    /// Lets lanes go on that have waited at a barrier.
    pub(crate) fn go_on(&mut self, lanes: u32) {
        self.at_barrier &= !lanes;
        self.ready |= lanes & self.alive;
    }

    /// Makes the lanes' own memory so many words long.
    pub(crate) fn grow_local(&mut self, words: usize) {
        let more = self.local.len() as u32..words as u32;
        self.local.extend(LocalWord::noise(self.index, more));
    }

    /// Counts so many instructions of a group against it, if other lanes are ready: those have
    /// their turn in the end, even if they are ahead of it for ever.
    #[inline]
    pub(crate) fn keeps_waiting(&mut self, group: u32, instructions: u32) {
        if group != self.ready {
            self.waited = self.waited.saturating_add(instructions);
        }
    }

    /// What counts against its budget.
    #[inline]
    pub(crate) fn spent(&self) -> u64 {
        (self.executed + self.charged).saturating_sub(self.excused)
    }

    /// Whether the most of its budget went into tries in vain.
    pub(crate) fn has_waited_in_vain(&self, budget: u64) -> bool {
        self.in_vain > budget / 2
    }

    /// Counts a try in vain after all.
    pub(crate) fn charge_try(&mut self, charge: u64) {
        self.charged += charge;
        self.in_vain += charge;
        self.mark += charge;
    }

    /// Some lanes have made a strong access. Gives whether they can only go on waiting, in which
    /// case others of the warp have their turn.
    pub(crate) fn poll(
        &mut self,
        counter: u32,
        lanes: u32,
        watched: &[Watched],
        has_changed: bool,
    ) -> bool {
        let waits = self.polls.poll(counter, lanes, watched, has_changed);
        let now = self.executed + self.charged;
        if waits {
            self.excused += now - self.mark;
            if lanes != self.ready {
                self.waited = PATIENCE;
            }
        }
        self.mark = now;
        waits && lanes == self.ready
    }

    /// Sets the program counter of some lanes.
    #[inline]
    pub(crate) fn jump(&mut self, lanes: u32, counter: u32) {
        for lane in lanes_of(lanes) {
            self.counters[lane] = counter;
        }
    }

    /// A predicate, a bit for each lane.
    #[inline]
    pub(crate) fn predicate(&self, register: Register) -> u32 {
        match register {
            Register::Predicate(index) => {
                self.registers.predicates.get(usize::from(index)).copied().unwrap_or(0)
            }
            Register::Word(_) | Register::Long(_) => 0,
        }
    }

    /// A 32-bit register; the lower half of a 64-bit one.
    #[inline]
    pub(crate) fn word(&self, register: Register) -> [u32; WARP] {
        match register {
            Register::Word(index) => {
                self.registers.words.get(usize::from(index)).copied().unwrap_or([0; WARP])
            }
            Register::Predicate(_) | Register::Long(_) => {
                self.long(register).map(|value| value as u32)
            }
        }
    }

    /// A register of any bank, extended by zeros.
    #[inline]
    pub(crate) fn long(&self, register: Register) -> [u64; WARP] {
        match register {
            Register::Long(index) => {
                self.registers.longs.get(usize::from(index)).copied().unwrap_or([0; WARP])
            }
            Register::Word(_) => self.word(register).map(u64::from),
            Register::Predicate(_) => {
                let bits = self.predicate(register);
                std::array::from_fn(|lane| u64::from(bits >> lane & 1))
            }
        }
    }

    /// Sets some lanes of a register; a value's upper bits are cut off.
    #[inline]
    pub(crate) fn set(&mut self, register: Register, lanes: u32, values: &[u64; WARP]) {
        match register {
            Register::Word(index) => {
                if let Some(to) = self.registers.words.get_mut(usize::from(index)) {
                    for lane in 0..WARP {
                        let keep = (lanes >> lane & 1).wrapping_sub(1);
                        to[lane] = to[lane] & keep | values[lane] as u32 & !keep;
                    }
                }
            }
            Register::Long(index) => {
                if let Some(to) = self.registers.longs.get_mut(usize::from(index)) {
                    for lane in 0..WARP {
                        let keep = u64::from(lanes >> lane & 1).wrapping_sub(1);
                        to[lane] = to[lane] & keep | values[lane] & !keep;
                    }
                }
            }
            Register::Predicate(index) => {
                let bits =
                    (0..WARP).fold(0, |bits, lane| bits | u32::from(values[lane] != 0) << lane);
                if let Some(to) = self.registers.predicates.get_mut(usize::from(index)) {
                    *to = *to & !lanes | bits & lanes;
                }
            }
        }
        self.registers.clear(register, lanes);
    }

    /// A register's values, with what is undefined of them.
    pub(crate) fn copy(&self, register: Register) -> Copied {
        let undefined = self.registers.undefined(register);
        let read_by = self.registers.read_by(register);
        Copied { values: self.long(register), undefined, read_by }
    }

    /// Sets some lanes of a register to values that were copied.
    pub(crate) fn paste(&mut self, to: Register, copied: &Copied, lanes: u32) {
        self.set(to, lanes, &copied.values);
        if copied.undefined & lanes != 0 {
            self.registers.taint(to, lanes, copied.undefined, copied.read_by);
        }
    }

    /// Sets some lanes of a register to those of another one.
    pub(crate) fn assign(&mut self, to: Register, from: Register, lanes: u32) {
        let copied = self.copy(from);
        self.paste(to, &copied, lanes);
    }

    /// Sets a register that stays as it is.
    pub(crate) fn set_constant(&mut self, register: Register, constant: Constant, facts: &Facts) {
        let of_thread = |lane: usize| position((self.index * WARP + lane) as u32, facts.block_size);
        let pick = |of: [u32; 3], dimension: u8| {
            u64::from(of.get(usize::from(dimension)).copied().unwrap_or(0))
        };
        let values: [u64; WARP] = std::array::from_fn(|lane| match constant {
            Constant::Bits(bits) => bits,
            Constant::Thread(dimension) => pick(of_thread(lane), dimension),
            Constant::BlockSize(dimension) => pick(facts.block_size, dimension),
            Constant::Block(dimension) => pick(facts.block, dimension),
            Constant::GridSize(dimension) => pick(facts.grid_size, dimension),
            Constant::ClusterBlock(dimension) => {
                pick(std::array::from_fn(|i| facts.block[i] % facts.cluster[i]), dimension)
            }
            Constant::ClusterRank => facts.cluster_rank.into(),
            Constant::Cluster(dimension) => {
                pick(std::array::from_fn(|i| facts.block[i] / facts.cluster[i]), dimension)
            }
            Constant::Clusters(dimension) => {
                pick(std::array::from_fn(|i| facts.grid_size[i] / facts.cluster[i]), dimension)
            }
            Constant::Lane => lane as u64,
            Constant::Warp => self.index as u64,
            Constant::Warps => facts.block_size.iter().product::<u32>().div_ceil(32).into(),
            Constant::LanesEqual => 1 << lane,
            Constant::LanesUpTo => (2 << lane) - 1,
            Constant::LanesBelow => (1 << lane) - 1,
            Constant::LanesFrom => u64::from(u32::MAX << lane),
            Constant::LanesAbove => u64::from(u32::MAX << lane << 1),
            Constant::Multiprocessor => facts.multiprocessor.into(),
            Constant::DynamicShared => facts.dynamic_shared.into(),
            Constant::TotalShared => facts.total_shared.into(),
        });
        self.set(register, u32::MAX, &values);
    }
}

/// What a register held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    values: [u64; WARP],
    /// Lanes in which it is undefined.
    undefined: u32,
    /// The instruction that read it so.
    read_by: Option<u32>,
}

/// What special registers tell of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) grid_size: [u32; 3],
    pub(crate) block_size: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
    pub(crate) cluster_rank: u32,
    /// Where the block runs.
    pub(crate) multiprocessor: u32,
    pub(crate) dynamic_shared: u32,
    pub(crate) total_shared: u32,
}

/// An atomic that was held back.
#[derive(Debug)]
pub(crate) struct Late {
    pub(super) counter: u32,
    pub(super) lanes: u32,
    /// What it reads, as it was.
    pub(super) operands: Vec<(Register, Copied)>,
    pub(super) addresses: [u64; WARP],
    pub(super) bytes: u64,
    /// Whether an access has overtaken it.
    pub(super) is_overtaken: bool,
}
