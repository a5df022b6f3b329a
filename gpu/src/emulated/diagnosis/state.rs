//! What a launch reads that earlier launches have left.

use std::collections::BTreeSet;
use std::ops::Range;

use sparserl_core::matrix::Scalar;
use sparserl_emulator::finding::{Finding, FindingKind, PlacedAddress};
use sparserl_emulator::trace::{AccessEvent, Trace};

use super::Failure;

/// Variables that are told of.
const MOST: usize = 3;

/// Memory that launches share, as it was when the one that fails began.
pub(in super::super) struct State {
    /// Its name, and where it lies.
    pub(in super::super) name: String,
    pub(in super::super) addresses: Range<u64>,
    /// What it held, and what it holds before the first launch.
    pub(in super::super) left: Vec<u8>,
    pub(in super::super) fresh: Vec<u8>,
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// Where the launch reads what launches before it have left; `first` is the trace of a first
    /// launch, which tells who stored it.
    pub(in super::super) fn state_findings(&self, states: &[State], first: &Trace) -> Vec<Finding> {
        let mut findings = Vec::new();
        for state in states {
            let is_left = |offset: usize| state.left.get(offset) != state.fresh.get(offset);
            let offset = |place: u64| place.checked_sub(state.addresses.start).map(|o| o as usize);
            let mut written: BTreeSet<u64> = BTreeSet::new();
            let mut reading: Vec<AccessEvent> = Vec::new();
            // What an atomic adds to is left by an earlier launch as well.
            for (access, effects) in self.trace.accesses(self.kernel, state.addresses.clone()) {
                let bytes = access.place..access.place + u64::from(access.bytes);
                let reads_left = effects.reads
                    && bytes.clone().any(|place| {
                        !written.contains(&place) && offset(place).is_some_and(is_left)
                    });
                if reads_left && reading.iter().all(|known| known.counter != access.counter) {
                    reading.push(access);
                }
                if effects.writes && !effects.reads {
                    written.extend(bytes);
                }
            }
            let Some(access) = reading.first() else { continue };
            let bytes = access.place..access.place + u64::from(access.bytes);
            let writer = first.last_write(self.kernel, bytes);
            let stored = self.lines(writer.map(|writer| writer.counter).into_iter());
            let stored = if stored.is_empty() { stored } else { format!(", stored at {stored}") };
            let more = self.lines(reading.iter().skip(1).map(|access| access.counter));
            let more = if more.is_empty() { more } else { format!("; read at {more}, too") };
            let name = &state.name;
            let mut detail = format!("reads what an earlier launch left in {name}{stored}{more}");
            // Who sets others back, and not this, has forgotten it there.
            let back = self.lines(states.iter().filter_map(|of| self.set_back_by(of, first)));
            if !back.is_empty() {
                detail += &format!("; other state is set back at {back}");
            }
            let place = PlacedAddress {
                address: access.place,
                place: format!("{name} + {}", access.place - state.addresses.start),
            };
            let finding = self.at(FindingKind::KeptState, access.moment, None, detail);
            findings.extend(finding.map(|f| Finding { address: Some(place), ..f }));
        }
        findings.truncate(MOST);
        findings
    }

    /// The instruction that has stored last in memory that a launch has changed and leaves as it
    /// was.
    fn set_back_by(&self, state: &State, launch: &Trace) -> Option<u32> {
        let is_set_back = state.left == state.fresh;
        let last = is_set_back.then(|| launch.last_write(self.kernel, state.addresses.clone()));
        last.flatten().map(|write| write.counter)
    }
}
