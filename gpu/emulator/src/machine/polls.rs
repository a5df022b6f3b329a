//! Warps that wait for what another thread does, by reading memory again and again.
//!
//! A warp whose strong reads give what they gave before, with nothing done in between, cannot go on
//! before one of the places that it reads changes. It sleeps until then, and what it executes in
//! vain counts against no budget: on a device, too, only time passes. Where nothing else can go on,
//! sleepers are woken to try once more, which is counted dearly; one that counts its tries comes to
//! an end, and one that does not is given up.

use super::order::Place;

/// A place that a strong access has read, and what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) place: Place,
    pub(crate) bytes: u32,
    pub(crate) value: u64,
}

/// What the strong accesses of one instruction gave to some lanes the last time.
#[derive(Debug)]
struct Poll {
    counter: u32,
    lanes: u32,
    watched: Vec<Watched>,
    /// Its number among all polls.
    number: usize,
}

/// The strong accesses of a warp since it last did something else.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    last: Vec<Poll>,
    /// Polls so far.
    count: usize,
    /// How many in a row gave nothing new.
    unchanged: usize,
    /// Something else was done since the last one.
    worked: bool,
}

/// Instructions that one loop may poll with.
const MOST: usize = 8;
/// Places that lanes may read in a poll.
const MOST_WATCHED: usize = 64;

impl Polls {
    /// Something was done that others may see, or that may come to an end.
    #[inline]
    pub(crate) fn work(&mut self) {
        self.worked = true;
    }

    /// Lanes have read these places by a strong access, which changed some if it says so. Gives
    /// whether they can only go on waiting.
    pub(crate) fn poll(
        &mut self,
        counter: u32,
        lanes: u32,
        watched: &[Watched],
        has_changed: bool,
    ) -> bool {
        if std::mem::take(&mut self.worked) || has_changed || watched.len() > MOST_WATCHED {
            self.last.clear();
            self.unchanged = 0;
        }
        if has_changed || watched.is_empty() || watched.len() > MOST_WATCHED {
            return false;
        }
        let known =
            self.last.iter_mut().find(|poll| (poll.counter, poll.lanes) == (counter, lanes));
        self.count += 1;
        match known {
            Some(poll) if poll.watched == watched => {
                poll.number = self.count;
                self.unchanged += 1;
                let waits = self.unchanged >= 2 * self.last.len();
                if waits {
                    // Those before the loop are not waited for.
                    let before = self.count - self.unchanged;
                    self.last.retain(|poll| poll.number > before);
                }
                waits
            }
            Some(poll) => {
                poll.number = self.count;
                poll.watched.clear();
                poll.watched.extend_from_slice(watched);
                self.unchanged = 0;
                false
            }
            None => {
                if self.last.len() >= MOST {
                    self.last.clear();
                }
                let (watched, number) = (watched.to_vec(), self.count);
                self.last.push(Poll { counter, lanes, watched, number });
                self.unchanged = 0;
                false
            }
        }
    }

    /// All places that it waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &Watched> {
        self.last.iter().flat_map(|poll| &poll.watched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: u64, value: u64) -> [Watched; 1] {
        [Watched { place: Place::Global(address), bytes: 4, value }]
    }

    #[test]
    fn who_reads_the_same_again_and_again_waits() {
        let mut polls = Polls::default();
        let mut poll = |value, has_changed| polls.poll(7, 1, &read(64, value), has_changed);
        assert_eq!([poll(0, false), poll(0, false), poll(0, false)], [false, false, true]);
        assert!(!poll(1, false), "something new");
        assert_eq!([poll(1, false), poll(1, false), poll(1, true)], [false, true, false]);
    }

    #[test]
    fn who_works_in_between_does_not_wait() {
        let mut polls = Polls::default();
        for _ in 0..10 {
            assert!(!polls.poll(7, 1, &read(64, 0), false));
            polls.work();
        }
    }

    #[test]
    fn what_was_read_before_the_loop_is_not_waited_for() {
        let mut polls = Polls::default();
        assert!(!polls.poll(3, 1, &read(64, 0), false));
        let waits: Vec<bool> = (0..5).map(|_| polls.poll(9, 1, &read(64, 1), false)).collect();
        assert_eq!(waits, [false, false, false, false, true]);
        assert_eq!(polls.watched().copied().collect::<Vec<_>>(), read(64, 1));
    }

    #[test]
    fn two_places_are_waited_for_together() {
        let mut polls = Polls::default();
        for round in 0..4 {
            assert!(!polls.poll(7, 1, &read(64, 0), false) || round == 3);
            assert_eq!(polls.poll(9, 1, &read(128, 0), false), round >= 2);
        }
        assert_eq!(polls.watched().count(), 2);
    }
}
