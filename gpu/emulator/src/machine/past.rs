//! What strong reads may give besides the last value: the one before.
//!
//! The PTX memory model orders the writes of a place, but lets a read give any that is not
//! overwritten by one that comes before the read in causality order. A relaxed or volatile read may
//! thus miss a write that another thread made long ago, as long as nothing has synchronised the
//! two. Except in the plain order, strong reads of device memory give at random the last value or
//! the one before it, where the model allows that: where the last write
//!
//! - is not ordered before the read,
//! - was observed by nobody who is, nor by anybody of the reader's block,
//! - and no sequentially consistent fences lie between the two.
//!
//! Kernels that only poll read again; those that rely on messages without fences get wrong results,
//! as do those with one fence before two strong stores, of which the second says that the first is
//! there: the fence orders neither. Atomics always see the last value.

use std::collections::HashMap;

use super::stamp::Stamp;

/// Observers that are remembered; with more, nobody misses the write.
const MOST_OBSERVERS: usize = 32;

/// The last strong write of a place; the stamps are in their full epochs.
#[derive(Debug)]
struct Write {
    before: u64,
    after: u64,
    bytes: u32,
    by: Stamp,
    time: u64,
    observers: Vec<Stamp>,
}

/// The last strong writes of places in device memory, and when blocks have fenced.
#[derive(Debug, Default)]
pub(crate) struct Past {
    writes: HashMap<u64, Write>,
    /// Of blocks, the time of the last sequentially consistent fence.
    fences: HashMap<u32, u64>,
    /// Rounds, doubled.
    pub(crate) time: u64,
}

impl Past {
    /// A block has last fenced at this time.
    pub(crate) fn fence(&mut self, block: u32, time: u64) {
        self.fences.insert(block, time);
    }

    /// A strong write has changed what a place holds, from one value to another.
    pub(crate) fn write(&mut self, address: u64, bytes: u32, [before, after]: [u64; 2], by: Stamp) {
        let (by, time, observers) = (by.in_full_epoch(), self.time, Vec::new());
        self.writes.insert(address, Write { before, after, bytes, by, time, observers });
    }

    /// The value before the last, where a strong read that finds `now` may miss the last write.
    /// `fenced` is when the reader has last fenced.
    pub(crate) fn before(
        &self,
        address: u64,
        bytes: u32,
        now: u64,
        by: Stamp,
        fenced: u64,
        is_before: impl Fn(Stamp) -> bool,
    ) -> Option<u64> {
        let write = self.writes.get(&address)?;
        let sees = |other: Stamp| other.block() == by.block() || is_before(other);
        let is_fenced = fenced > write.time
            && self.fences.get(&write.by.block()).is_some_and(|&time| time > write.time);
        let sees_it = write.by.same_thread(by)
            || is_before(write.by)
            || is_fenced
            || write.observers.len() >= MOST_OBSERVERS
            || write.observers.iter().any(|&observer| sees(observer));
        ((write.bytes, write.after) == (bytes, now) && !sees_it).then_some(write.before)
    }

    /// A strong read has given the last value.
    pub(crate) fn observe(&mut self, address: u64, by: Stamp) {
        if let Some(write) = self.writes.get_mut(&address)
            && write.observers.len() < MOST_OBSERVERS
            && !write.observers.iter().any(|observer| observer.same_thread(by))
        {
            write.observers.push(by.in_full_epoch());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(block: u32) -> Stamp {
        Stamp::new(block, 0, 2, true)
    }

    fn before(past: &Past, block: u32, fenced: u64, is_before: bool) -> Option<u64> {
        past.before(64, 4, 7, by(block), fenced, |_| is_before)
    }

    #[test]
    fn unordered_reads_may_miss_the_last_write() {
        let mut past = Past { time: 10, ..Past::default() };
        past.write(64, 4, [3, 7], by(0));
        assert_eq!(before(&past, 1, 0, false), Some(3));
        assert_eq!(before(&past, 1, 0, true), None, "ordered");
        assert_eq!(before(&past, 0, 0, false), None, "one's own");
        assert_eq!(past.before(64, 8, 7, by(1), 0, |_| false), None, "another size");
        assert_eq!(past.before(64, 4, 8, by(1), 0, |_| false), None, "a weak write since");
    }

    #[test]
    fn who_has_observed_a_write_does_not_miss_it() {
        let mut past = Past::default();
        past.write(64, 4, [3, 7], by(0));
        past.observe(64, by(1));
        assert_eq!(before(&past, 1, 0, false), None);
        assert_eq!(before(&past, 2, 0, false), Some(3));
        assert_eq!(before(&past, 2, 0, true), None, "after one who has");
    }

    #[test]
    fn fences_of_both_lie_between() {
        let mut past = Past { time: 10, ..Past::default() };
        past.write(64, 4, [3, 7], by(0));
        assert_eq!(before(&past, 1, 12, false), Some(3));
        past.fence(0, 11);
        assert_eq!(before(&past, 1, 12, false), None);
        assert_eq!(before(&past, 1, 9, false), Some(3));
    }
}
