//! Who touched a word last, and whether that is a race.
//!
//! Of each word are kept its last weak and its last strong write, and two reads since: the first
//! one, and the last one by another warp (or by another thread, if there is none). A write that
//! races with any of a word's reads by another warp is thus found whichever warp wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::stamp::Stamp;
use crate::memory::pages::Pages;

/// Slots of a cell.
const SLOTS: usize = 4;
const WEAK_WRITE: usize = 0;
const STRONG_WRITE: usize = 1;
const FIRST_READ: usize = 2;
const OTHER_READ: usize = 3;

/// The accesses of a word that are remembered, with the number of the instruction of each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    stamps: [Stamp; SLOTS],
    instructions: [u32; SLOTS],
}

/// An earlier access that races with the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) is_write: bool,
    pub(crate) stamp: Stamp,
    pub(crate) instruction: u32,
}

impl Cell {
    /// A strong write that is not ordered before a strong read, which may thus as well not see it.
    pub(crate) fn unordered(
        &self,
        stamp: Stamp,
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let (old, instruction) = (self.stamps[STRONG_WRITE], self.instructions[STRONG_WRITE]);
        let is_unordered = old.is_somebody()
            && old.bytes() & stamp.bytes() != 0
            && !old.same_thread(stamp)
            && !is_before(old.in_full_epoch());
        is_unordered.then_some(Conflict { is_write: true, stamp: old, instruction })
    }

    /// Whether it was written, as far as is remembered.
    pub(crate) fn written(&self, bytes: u32) -> Option<Conflict> {
        [WEAK_WRITE, STRONG_WRITE].into_iter().find_map(|slot| {
            let (stamp, instruction) = (self.stamps[slot], self.instructions[slot]);
            let is_written = stamp.is_somebody() && stamp.bytes() & bytes != 0;
            is_written.then_some(Conflict { is_write: true, stamp, instruction })
        })
    }

    /// The accesses that are remembered, with their instructions.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (Stamp, u32)> {
        let all = self.stamps.into_iter().zip(self.instructions);
        all.filter(|(stamp, _)| stamp.is_somebody())
    }

    /// The writes that are remembered, with their instructions.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Stamp, u32)> {
        let all = self.stamps.into_iter().zip(self.instructions).take(FIRST_READ);
        all.filter(|(stamp, _)| stamp.is_somebody())
    }

    /// A write that was under way has come: it is no more than a write of now.
    pub(crate) fn land(
        &mut self,
        stamp: Stamp,
        instruction: u32,
        sizes: &[u8],
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let slot = if stamp.is_strong() { STRONG_WRITE } else { WEAK_WRITE };
        let old = self.stamps[slot];
        if old.is_under_way() {
            if stamp.is_strong() && !old.same_thread(stamp) {
                // That of another thread still hides this one.
                return None;
            }
            self.stamps[slot] = Stamp::default();
        }
        self.write(stamp, instruction, sizes, is_before)
    }

    /// [`write`](Self::write) or [`read`](Self::read); `sizes` are those of the elements that
    /// instructions access.
    #[inline]
    pub(crate) fn touch(
        &mut self,
        writes: bool,
        stamp: Stamp,
        instruction: u32,
        sizes: &[u8],
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        match writes {
            true => self.write(stamp, instruction, sizes, is_before),
            false => self.read(stamp, instruction, sizes, is_before),
        }
    }

    /// Remembers a read, and tells which write it races with. `is_before` says whether an earlier
    /// access is ordered before this one.
    #[inline]
    fn read(
        &mut self,
        stamp: Stamp,
        instruction: u32,
        sizes: &[u8],
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let weak = self.conflict(WEAK_WRITE, stamp, instruction, sizes, &is_before);
        let conflict =
            weak.or_else(|| self.conflict(STRONG_WRITE, stamp, instruction, sizes, &is_before));
        let [_, _, first, other] = self.stamps;
        // A read that says less must not take the place of one that says more.
        let covers = |old: Stamp| {
            stamp.bytes() & old.bytes() == old.bytes() && (old.is_strong() || !stamp.is_strong())
        };
        let stale = |old: Stamp| {
            !old.is_somebody() || covers(old) && (old.same_thread(stamp) || is_before(old))
        };
        let slot = if first == stamp || other == stamp {
            return conflict;
        } else if stale(first) {
            FIRST_READ
        } else if stale(other) || !first.same_warp(stamp) || first.same_warp(other) {
            OTHER_READ
        } else {
            return conflict;
        };
        self.stamps[slot] = stamp;
        self.instructions[slot] = instruction;
        conflict
    }

    /// Remembers a write, and tells which access it races with.
    #[inline]
    fn write(
        &mut self,
        stamp: Stamp,
        instruction: u32,
        sizes: &[u8],
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let conflict =
            (0..SLOTS).find_map(|slot| self.conflict(slot, stamp, instruction, sizes, &is_before));
        if stamp.is_strong() {
            // It races with weak accesses only, and so forgets none of them.
            self.stamps[STRONG_WRITE] = stamp;
            self.instructions[STRONG_WRITE] = instruction;
        } else {
            // Accesses of other bytes of the word are forgotten, which may miss a race but never
            // invents one.
            self.stamps = [stamp, Stamp::default(), Stamp::default(), Stamp::default()];
            self.instructions[WEAK_WRITE] = instruction;
        }
        conflict
    }

    #[inline]
    fn conflict(
        &self,
        slot: usize,
        stamp: Stamp,
        instruction: u32,
        sizes: &[u8],
        is_before: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        let old = self.stamps[slot];
        // Elements that overlap without being the same are not strong to each other.
        let size = |instruction: u32| sizes.get(instruction as usize);
        let is_same_size = |other| size(other) == size(instruction);
        let races = old.is_somebody()
            && old.bytes() & stamp.bytes() != 0
            && !(old.is_atomic_to(stamp) && is_same_size(self.instructions[slot]))
            && (!old.same_thread(stamp) || old.is_under_way())
            && !is_before(old);
        let (is_write, instruction) = (slot < FIRST_READ, self.instructions[slot]);
        races.then_some(Conflict { is_write, stamp: old, instruction })
    }
}

/// Cells of a page.
const PAGE: usize = 32;
/// Pages that a launch may touch of buffers that are vast: 384 MB, and as much again for what lies
/// there.
const MOST_PAGES: usize = 1 << 18;

type SharedCell = ([AtomicU64; SLOTS], [AtomicU32; SLOTS]);

/// The cells of a buffer that blocks on several host threads work on.
#[derive(Debug)]
pub(crate) struct SharedCells {
    cells: Vec<SharedCell>,
    /// In their place, where a buffer is vast.
    pages: Option<(Pages<SharedCell, PAGE>, Option<Room>)>,
}

/// How many more pages of cells there may be.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(MOST_PAGES)))
    }
}

impl Room {
    /// Whether there is none, so that races may be missed.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Whether half of it is taken.
    pub(crate) fn is_half_full(&self) -> bool {
        self.0.load(Relaxed) <= MOST_PAGES / 2
    }

    fn take(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |pages| pages.checked_sub(1)).is_ok()
    }
}

impl SharedCells {
    pub(crate) fn new(words: usize) -> Self {
        Self { cells: (0..words).map(|_| Default::default()).collect(), pages: None }
    }

    /// Those of a vast buffer: there when they are touched, as long as there is room.
    pub(crate) fn vast(words: usize, room: Room) -> Self {
        Self { cells: Vec::new(), pages: Some((Pages::new(words), Some(room))) }
    }

    /// Those of an array of which launches may touch little: there when they are touched.
    pub(crate) fn on_demand(words: usize) -> Self {
        Self { cells: Vec::new(), pages: Some((Pages::new(words), None)) }
    }

    #[cold]
    fn in_page(&self, word: usize) -> Option<&SharedCell> {
        let (pages, room) = self.pages.as_ref()?;
        pages.touch(word, || room.as_ref().is_none_or(Room::take))
    }

    /// Applies an access to the cell of a word.
    #[inline]
    pub(crate) fn access(
        &self,
        word: usize,
        apply: impl Fn(&mut Cell) -> Option<Conflict>,
    ) -> Option<Conflict> {
        let (stamps, instructions) = self.cells.get(word).or_else(|| self.in_page(word))?;
        let mut old = Cell {
            stamps: std::array::from_fn(|slot| Stamp(stamps[slot].load(Relaxed))),
            instructions: std::array::from_fn(|slot| instructions[slot].load(Relaxed)),
        };
        let mut new = old;
        let conflict = apply(&mut new);
        let mut meanwhile = false;
        for slot in 0..SLOTS {
            if new.stamps[slot] == old.stamps[slot] {
                // The same thread again, elsewhere in the code.
                if new.instructions[slot] != old.instructions[slot] {
                    instructions[slot].store(new.instructions[slot], Relaxed);
                }
            } else {
                instructions[slot].store(new.instructions[slot], Relaxed);
                let found = Stamp(stamps[slot].swap(new.stamps[slot].0, Relaxed));
                meanwhile |= found != old.stamps[slot];
                old.stamps[slot] = found;
            }
        }
        // Another block was here between the load and the store: with that one it may race as well.
        if meanwhile { conflict.or_else(|| apply(&mut old)) } else { conflict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(thread: u32) -> Stamp {
        Stamp::new(0, thread, 1, false).of_bytes(0xF)
    }

    const NEVER: fn(Stamp) -> bool = |_| false;
    const ALWAYS: fn(Stamp) -> bool = |_| true;

    #[test]
    fn unordered_accesses_race_if_one_writes() {
        let mut cell = Cell::default();
        assert_eq!(cell.read(by(0), 1, &[], NEVER), None);
        assert_eq!(cell.read(by(1), 2, &[], NEVER), None);
        let conflict = cell.write(by(1), 3, &[], NEVER).unwrap();
        assert_eq!((conflict.is_write, conflict.stamp, conflict.instruction), (false, by(0), 1));
        let conflict = cell.read(by(2), 4, &[], NEVER).unwrap();
        assert_eq!((conflict.is_write, conflict.stamp, conflict.instruction), (true, by(1), 3));
        assert_eq!(cell.read(by(1), 5, &[], NEVER), None, "one's own write");
        assert_eq!(cell.read(by(3), 5, &[], ALWAYS), None, "ordered");
    }

    #[test]
    fn a_reader_of_another_warp_is_remembered() {
        let mut cell = Cell::default();
        for thread in [0, 1, 40, 2, 3] {
            cell.read(by(thread), thread, &[], NEVER);
        }
        let others = |stamp: Stamp| stamp.same_warp(by(0));
        assert_eq!(cell.write(by(5), 9, &[], others).unwrap().stamp, by(40));
    }

    #[test]
    fn strong_accesses_race_with_weak_ones_only() {
        let strong = |thread| Stamp::new(0, thread, 1, true).of_bytes(0xF);
        let mut cell = Cell::default();
        assert_eq!(cell.write(strong(0), 1, &[], NEVER), None);
        assert_eq!(cell.write(strong(1), 1, &[], NEVER), None);
        assert!(cell.write(by(2), 1, &[], NEVER).is_some());
        let mut cells = Cell::default();
        cells.write(Stamp::new(0, 0, 1, false).of_bytes(0b0011), 1, &[], NEVER);
        assert_eq!(cells.write(Stamp::new(0, 1, 1, false).of_bytes(0b1100), 1, &[], NEVER), None);
    }

    #[test]
    fn what_is_under_way_comes_before_nothing() {
        let mut cell = Cell::default();
        assert_eq!(cell.write(by(0).under_way(), 1, &[], NEVER), None);
        assert!(cell.read(by(0), 2, &[], NEVER).is_some(), "not even in its own thread");
        assert!(cell.read(by(1), 2, &[], NEVER).is_some());
        let mut cell = Cell::default();
        cell.write(by(0).under_way(), 1, &[], NEVER);
        assert_eq!(cell.land(by(0), 1, &[], NEVER), None);
        assert_eq!(cell.read(by(0), 2, &[], NEVER), None);
        assert!(!by(0).is_under_way() && !Stamp::new(0, 0, u32::MAX, false).is_under_way());
    }

    #[test]
    fn strong_accesses_of_other_sizes_race() {
        let strong = |thread| Stamp::new(0, thread, 1, true).of_bytes(0xF);
        let sizes = [4, 8, 4];
        let mut cell = Cell::default();
        assert_eq!(cell.write(strong(0), 0, &sizes, NEVER), None);
        assert_eq!(cell.read(strong(1), 2, &sizes, NEVER), None);
        assert!(cell.read(strong(2), 1, &sizes, NEVER).is_some());
    }

    #[test]
    fn cells_of_a_buffer_behave_alike() {
        behaves_alike(&SharedCells::new(2));
        behaves_alike(&SharedCells::vast(1 << 33, Room::default()));
    }

    #[test]
    fn cells_of_a_vast_buffer_have_so_much_room() {
        let room = Room(Arc::new(AtomicUsize::new(2)));
        let cells = SharedCells::vast(1 << 33, room.clone());
        let is_seen = |word: usize| {
            cells.access(word, |cell| cell.write(by(0), 7, &[], NEVER));
            cells.access(word, |cell| cell.read(by(1), 8, &[], NEVER)).is_some()
        };
        assert!(is_seen(1 << 32) && is_seen((1 << 32) + 1) && !room.is_full());
        assert!(is_seen(5) && room.is_full() && is_seen(6));
        assert!(!is_seen(1 << 20));
    }

    fn behaves_alike(cells: &SharedCells) {
        assert_eq!(cells.access(1, |cell| cell.write(by(0), 7, &[], NEVER)), None);
        let conflict = cells.access(1, |cell| cell.read(by(1), 8, &[], NEVER)).unwrap();
        assert_eq!((conflict.stamp, conflict.instruction), (by(0), 7));
        assert_eq!(cells.access(0, |cell| cell.read(by(1), 8, &[], NEVER)), None);
    }
}
