//! Threads that give up waiting.
//!
//! Nothing promises that who waits for another thread looks for it less often than any number of
//! times before that one gets any further. A kernel that waits for so many looks, or for a time,
//! has to be right without what it has waited for. Where turns are taken at random, a warp that
//! polls in vain is now and then let look for thousands of times while nobody else does anything,
//! and go on for a while if it stops waiting. Where nothing else can go on, some are let look for
//! longer, as they would on a device.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::block::{Block, LOOKS};
use super::core::Core;
use super::order::Releases;
use super::warp::Warp;
use crate::code::WARP;
use crate::compute::Registers;

/// As [`LOOKS`], where nobody else can go on.
const LOOKS_OF_THE_LAST: u32 = 20_000;
/// How often warps of a launch may do the latter, and so many times as much as each that does so in
/// vain counts: whether one has stopped waiting is not always clear.
const MOST_AT_LAST: u32 = 64;
const IN_VAIN: u32 = 16;
/// Instructions that a look takes, more or less: so many times as many are executed at most.
const INSTRUCTIONS_OF_A_LOOK: u64 = 20;
/// Instructions in a row, at most, before it is known whether the warp still waits.
const SLICE: u64 = 500;
/// Strong accesses of one that has stopped waiting, before others go on.
const ALONE: u32 = 16;

impl Block<'_> {
    /// Lets a warp that polls look again, for so many times at most, before anybody else does
    /// anything; one that stops waiting goes on for a while. Gives whether any does.
    pub(super) fn look_on(&mut self, index: usize, releases: &mut Releases, looks: u32) -> bool {
        let (mut awake, mut patience) = (0, Patience::new(looks));
        loop {
            let Some(warp) = self.warps.get_mut(index) else { return false };
            if patience.ends(warp) {
                return awake > 0;
            }
            if warp.strong.is_none() {
                warp.dozes = false;
                self.core.run(warp, SLICE);
                self.open_barriers();
            }
            let Some(warp) = self.warps.get(index) else { return false };
            let polls_shared = warp.strong.is_none();
            if polls_shared && !warp.dozes || self.core.is_stuck {
                // Some of its lanes may still poll.
                return warp.ready == 0;
            }
            if !polls_shared {
                self.access_of(index, releases);
            }
            let waits = self.warps.get(index).is_some_and(|warp| warp.is_asleep || warp.dozes);
            awake = if waits { 0 } else { awake + 1 };
            if awake > ALONE {
                return true;
            }
        }
    }

    /// Where nothing else can go on: lets a warp that polls look for longer, as it would on a
    /// device. Gives whether it has stopped waiting.
    pub(super) fn looks_at_last(&mut self, index: usize, releases: &mut Releases) -> bool {
        let looked = &self.core.grid.looked_at_last;
        if looked.load(Relaxed) >= MOST_AT_LAST {
            return false;
        }
        let goes_on = self.look_on(index, releases, LOOKS_OF_THE_LAST);
        let looked = &self.core.grid.looked_at_last;
        looked.fetch_add(if goes_on { 1 } else { IN_VAIN }, Relaxed);
        goes_on
    }
}

impl Core<'_> {
    /// The same of a warp that polls shared memory, while others could go on.
    pub(super) fn doze_on(&mut self, warp: &mut Warp) {
        let mut patience = Patience::new(LOOKS);
        while warp.dozes && !self.is_stuck && !patience.ends(warp) {
            warp.dozes = false;
            self.run(warp, SLICE);
        }
    }

    /// Whether a warp that polls at an instruction is the one that is let look for long there: one
    /// of a third of all blocks.
    pub(super) fn tries_patience(&self, counter: u32) -> bool {
        let grid = self.grid;
        let chosen = u64::from(self.order.block()) + u64::from(counter) + grid.options.seed;
        self.random.is_some()
            && chosen.is_multiple_of(3)
            && grid.looked_at.lock().unwrap_or_else(PoisonError::into_inner).insert(counter)
    }
}

/// How long a warp is let look. Where nothing changes by which it could tell how often it has
/// looked, it does so for ever, which a few looks show.
#[derive(Debug)]
struct Patience {
    most: u32,
    looks: u32,
    /// Instructions that the warp may have executed.
    until: Option<u64>,
    /// What was held at a look, and which look that was.
    then: Option<(u32, Held)>,
}

/// Looks of one round of a loop, at most.
const LOOKS_OF_A_ROUND: u32 = 4;

impl Patience {
    fn new(most: u32) -> Self {
        Self { most, looks: 0, until: None, then: None }
    }

    /// Counts another look.
    fn ends(&mut self, warp: &Warp) -> bool {
        let most = u64::from(self.most) * INSTRUCTIONS_OF_A_LOOK;
        let until = *self.until.get_or_insert(warp.executed + most);
        if self.looks >= self.most || warp.executed > until {
            return true;
        }
        self.looks += 1;
        // Later again, for those that wait longer from look to look until they do no more.
        if self.looks >= LOOKS_OF_A_ROUND && self.looks.is_power_of_two() {
            self.then = Some((self.looks, Held::of(warp)));
            return false;
        }
        match &self.then {
            Some((at, held)) if self.looks - at <= LOOKS_OF_A_ROUND => held.is_of(warp),
            _ => false,
        }
    }
}

/// What a warp has in its registers, and where its lanes are.
#[derive(Debug)]
pub(super) struct Held {
    counters: [u32; WARP],
    predicates: Vec<u32>,
    words: Vec<[u32; WARP]>,
    longs: Vec<[u64; WARP]>,
}

impl Held {
    pub(super) fn of(warp: &Warp) -> Self {
        let Registers { predicates, words, longs, .. } = &warp.registers;
        Self {
            counters: warp.counters,
            predicates: predicates.clone(),
            words: words.clone(),
            longs: longs.clone(),
        }
    }

    /// Whether a warp holds the same again.
    pub(super) fn is_of(&self, warp: &Warp) -> bool {
        let Registers { predicates, words, longs, .. } = &warp.registers;
        self.counters == warp.counters
            && self.predicates == *predicates
            && self.words == *words
            && self.longs == *longs
    }
}
