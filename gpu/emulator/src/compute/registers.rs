//! A warp's registers, with what is known of their values.

use std::ops::Range;

/// Threads of a warp.
pub const WARP: usize = 32;

/// A register of one of three banks. 8- and 16-bit registers live in the 32-bit bank, their upper
/// bits zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// A predicate: a bit for each lane.
    Predicate(u16),
    /// 32 bits for each lane.
    Word(u16),
    /// 64 bits for each lane.
    Long(u16),
}

/// How many registers of each bank a warp has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterCounts {
    /// Predicates.
    pub predicates: usize,
    /// 32-bit registers.
    pub words: usize,
    /// 64-bit registers.
    pub longs: usize,
}

/// The registers of a warp, with what is known of their values.
///
/// A value is *undefined* where it comes from memory that was never written, and *wrapped* where it
/// comes from a 16- or 32-bit sum, difference, product or shift whose result fits neither as signed
/// nor as unsigned, or not as what it is widened as.
#[derive(Clone, Debug)]
pub struct Registers {
    /// A bit for each lane.
    pub predicates: Vec<u32>,
    /// 32 bits for each lane.
    pub words: Vec<[u32; WARP]>,
    /// 64 bits for each lane.
    pub longs: Vec<[u64; WARP]>,
    /// The carry flag of `.cc`: a bit for each lane.
    pub(super) carry: u32,
    /// Lanes in which it is undefined.
    pub(super) carry_undefined: u32,
    /// Whether any register was ever undefined or wrapped; without it the marks are all empty.
    pub(super) tainted: bool,
    /// By bank: predicates, words, longs.
    marks: [Vec<Marks>; 3],
}

/// What is known of a register's value: a bit for each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) undefined: u32,
    pub(super) wrapped: u32,
    pub(super) pending: Pending,
    /// The instruction that read the memory that was never written, for any of the lanes.
    pub(super) read_by: Option<u32>,
}

/// Lanes whose value does not fit as signed, and those in which it does not fit as unsigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) signed: u32,
    pub(super) unsigned: u32,
}

impl Registers {
    /// All zero.
    #[must_use]
    pub fn new(counts: RegisterCounts) -> Self {
        let marks = |count| vec![Marks::default(); count];
        Self {
            predicates: vec![0; counts.predicates],
            words: vec![[0; WARP]; counts.words],
            longs: vec![[0; WARP]; counts.longs],
            carry: 0,
            carry_undefined: 0,
            tainted: false,
            marks: [marks(counts.predicates), marks(counts.words), marks(counts.longs)],
        }
    }

    /// Makes them as new.
    pub(crate) fn reset(&mut self) {
        self.predicates.fill(0);
        self.words.fill([0; WARP]);
        self.longs.fill([0; WARP]);
        if self.tainted {
            self.marks.iter_mut().for_each(|bank| bank.fill(Marks::default()));
        }
        (self.carry, self.carry_undefined, self.tainted) = (0, 0, false);
    }

    /// Lanes in which a register is undefined.
    #[inline]
    #[must_use]
    pub fn undefined(&self, register: Register) -> u32 {
        self.marks(register).undefined
    }

    /// Lanes in which a register is wrapped.
    #[inline]
    #[must_use]
    pub fn wrapped(&self, register: Register) -> u32 {
        self.marks(register).wrapped
    }

    /// Number of the instruction where a register's undefined lanes come from: the one that read
    /// what nobody had written.
    #[must_use]
    pub fn read_by(&self, register: Register) -> Option<u32> {
        self.marks(register).read_by
    }

    /// Says in which of the `lanes`, whose value was just set, it is undefined, and by which
    /// instruction it was read so.
    #[inline]
    pub fn taint(&mut self, register: Register, lanes: u32, undefined: u32, read_by: Option<u32>) {
        self.set_marks(register, lanes, Marks { undefined, read_by, ..Marks::default() });
    }

    /// Says that the value of some lanes, which was just set, is what it seems.
    #[inline]
    pub fn clear(&mut self, register: Register, lanes: u32) {
        self.set_marks(register, lanes, Marks::default());
    }

    #[inline]
    pub(super) fn set_marks(&mut self, register: Register, lanes: u32, new: Marks) {
        let Pending { signed, unsigned } = new.pending;
        self.tainted |= (new.undefined | new.wrapped | signed | unsigned) & lanes != 0;
        if self.tainted {
            let (bank, number) = place(register);
            if let Some(marks) = self.marks[bank].get_mut(number) {
                let set = |mask: &mut u32, new: u32| *mask = *mask & !lanes | new & lanes;
                set(&mut marks.undefined, new.undefined);
                set(&mut marks.wrapped, new.wrapped);
                set(&mut marks.pending.signed, signed);
                set(&mut marks.pending.unsigned, unsigned);
                if new.undefined & lanes != 0 {
                    marks.read_by = new.read_by;
                } else if marks.undefined == 0 {
                    marks.read_by = None;
                }
            }
        }
    }

    #[inline]
    pub(super) fn marks(&self, register: Register) -> Marks {
        if !self.tainted {
            return Marks::default();
        }
        let (bank, number) = place(register);
        self.marks[bank].get(number).copied().unwrap_or_default()
    }
}

/// Some registers as they were, with what was known of them.
#[derive(Debug)]
pub(crate) struct Saved {
    from: RegisterCounts,
    predicates: Vec<u32>,
    words: Vec<[u32; WARP]>,
    longs: Vec<[u64; WARP]>,
    /// Empty where nothing was known.
    marks: [Vec<Marks>; 3],
}

impl Registers {
    /// A copy of the registers from so many of each bank to so many.
    pub(crate) fn save(&self, range: &Range<RegisterCounts>) -> Saved {
        fn part<T: Clone>(of: &[T], range: Range<usize>) -> Vec<T> {
            of.get(range).unwrap_or_default().to_vec()
        }
        let Range { start: from, end } = range;
        let ranges =
            [from.predicates..end.predicates, from.words..end.words, from.longs..end.longs];
        let [predicates, words, longs] = ranges.clone();
        let mut marks = [const { Vec::new() }; 3];
        if self.tainted {
            for ((to, of), range) in marks.iter_mut().zip(&self.marks).zip(ranges) {
                *to = part(of, range);
            }
        }
        Saved {
            from: *from,
            predicates: part(&self.predicates, predicates),
            words: part(&self.words, words),
            longs: part(&self.longs, longs),
            marks,
        }
    }

    /// Sets some lanes to what was saved.
    pub(crate) fn restore(&mut self, saved: &Saved, lanes: u32) {
        let Saved { from, predicates, words, longs, marks } = saved;
        for (to, was) in self.predicates.iter_mut().skip(from.predicates).zip(predicates) {
            *to = *to & !lanes | was & lanes;
        }
        let is_meant = |lane: usize| lanes >> lane & 1 != 0;
        for (to, was) in self.words.iter_mut().skip(from.words).zip(words) {
            (0..WARP).filter(|&lane| is_meant(lane)).for_each(|lane| to[lane] = was[lane]);
        }
        for (to, was) in self.longs.iter_mut().skip(from.longs).zip(longs) {
            (0..WARP).filter(|&lane| is_meant(lane)).for_each(|lane| to[lane] = was[lane]);
        }
        if !self.tainted {
            return;
        }
        let [of_predicates, of_words, of_longs] = marks;
        let mut known = |number: usize, bank: fn(u16) -> Register, marks: Option<&Marks>| {
            let register = bank(number as u16);
            self.set_marks(register, lanes, marks.copied().unwrap_or_default());
        };
        for index in 0..predicates.len() {
            known(from.predicates + index, Register::Predicate, of_predicates.get(index));
        }
        for index in 0..words.len() {
            known(from.words + index, Register::Word, of_words.get(index));
        }
        for index in 0..longs.len() {
            known(from.longs + index, Register::Long, of_longs.get(index));
        }
    }
}

fn place(register: Register) -> (usize, usize) {
    match register {
        Register::Predicate(number) => (0, usize::from(number)),
        Register::Word(number) => (1, usize::from(number)),
        Register::Long(number) => (2, usize::from(number)),
    }
}
