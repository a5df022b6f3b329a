//! Where numbers come from that say what is accessed, and the lines of the source around those that
//! are named.

use sparserl_core::matrix::Scalar;
use sparserl_emulator::trace::{Moment, Step, divides};

use super::{Failure, by_value};

/// Lines by which an address comes that are named.
const OF_ADDRESS: usize = 3;
/// Lines of a list whose constants are named, and constants of these.
const WITH_CONSTANTS: usize = 2;
const CONSTANTS: usize = 2;

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// By which lines the address comes that a thread has accessed: those that cut a number off, or
    /// else those that compute it, the last first, or else those that read it.
    pub(super) fn about_address(&self, access: Moment) -> Option<String> {
        let own = self.counter_of(access).and_then(|counter| self.line_of(counter));
        let slice = self.trace.slice_of_address(self.kernel, access);
        let lines_of = |is_it: &dyn Fn(&Step) -> bool| {
            let steps =
                slice.iter().filter(|step: &&Step| step.value != 0).filter(|step| is_it(step));
            self.distinct_lines(steps.map(|step| step.counter), own)
        };
        let cuts = lines_of(&|step| step.cuts);
        if !cuts.is_empty() {
            let lines = self.lines(cuts.into_iter());
            return Some(format!("a number that its address depends on is cut off at {lines}"));
        }
        let mut by = lines_of(&|step| self.trace.makes_number(self.kernel, step));
        if by.is_empty() {
            by = lines_of(&|step| self.trace.reads(self.kernel, step).next().is_some());
        }
        let constants = self.constants_of(by.iter().copied().chain(self.counter_of(access)));
        let lines = self.lines(by.into_iter());
        match (lines.is_empty(), constants) {
            (true, constants) => constants,
            (false, None) => Some(format!("its address is computed at {lines}")),
            (false, Some(constants)) => {
                Some(format!("its address is computed at {lines}; {constants}"))
            }
        }
    }

    /// The first few instructions that are in different lines, none of them in one.
    fn distinct_lines(&self, counters: impl Iterator<Item = u32>, but: Option<u32>) -> Vec<u32> {
        let mut known: Vec<u32> = but.into_iter().collect();
        let mut found = Vec::new();
        for counter in counters {
            let Some(line) = self.line_of(counter).filter(|line| !known.contains(line)) else {
                continue;
            };
            known.push(line);
            found.push(counter);
            if found.len() == OF_ADDRESS {
                break;
            }
        }
        found
    }

    pub(super) fn line_of(&self, counter: u32) -> Option<u32> {
        self.kernel.location(counter as usize).map(|location| location.line)
    }

    /// Where constants are defined that the lines of some instructions name.
    pub(super) fn constants_of(&self, counters: impl Iterator<Item = u32>) -> Option<String> {
        self.constants_at(counters.filter_map(|counter| self.line_of(counter)))
    }

    /// Where constants are defined that the first few of some lines name.
    pub(super) fn constants_at(&self, all: impl Iterator<Item = u32>) -> Option<String> {
        let listing = self.listing.as_ref()?;
        let mut lines: Vec<u32> = Vec::new();
        for line in all {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.truncate(WITH_CONSTANTS);
        let mut constants: Vec<(&str, u32)> = Vec::new();
        for constant in lines.iter().flat_map(|&line| listing.constants_at(line)) {
            if !constants.contains(&constant) && !lines.contains(&constant.1) {
                constants.push(constant);
            }
        }
        constants.truncate(CONSTANTS);
        let defined = |&(name, line): &(&str, u32)| format!("{name} is defined at line {line}");
        let defined: Vec<String> = constants.iter().map(defined).collect();
        (!defined.is_empty()).then(|| defined.join(", "))
    }

    /// The loop that the last of some instructions is in, with the constants of its head: what is
    /// unrolled has no instruction of its own.
    pub(super) fn loop_in_words(&self, last_first: impl Iterator<Item = u32>) -> Option<String> {
        let listing = self.listing.as_ref()?;
        let mut lines = last_first.filter_map(|counter| self.line_of(counter));
        let head = lines.find_map(|line| listing.loop_around(line))?;
        let constants = self.constants_at(std::iter::once(head));
        let constants = constants.map(|constants| format!(" ({constants})")).unwrap_or_default();
        Some(format!("the loop there begins at line {head}{constants}"))
    }

    /// Where a sum begins, with a number of the code.
    pub(super) fn about_begin(&self, steps: &[Step]) -> Option<String> {
        if !self.repairs.is_empty() {
            return None;
        }
        let begins = steps.iter().rev().filter(by_value);
        let begins = begins.filter(|step| self.trace.begins(self.kernel, step));
        let begins = self.distinct_lines(begins.map(|step| step.counter), None);
        // Of what a loop is entered with compilers name the loop's line, or one before it.
        let line = |&counter: &u32| {
            let line = self.line_of(counter)?;
            Some(self.listing.as_ref().and_then(|of| of.zero_near(line)).unwrap_or(line))
        };
        let mut lines: Vec<u32> = begins.iter().filter_map(line).collect();
        lines.dedup();
        match *lines.as_slice() {
            [] => None,
            [line] => Some(format!("its sum begins at line {line}")),
            [first, second, ..] => Some(format!("its sum begins at lines {first} and {second}")),
        }
    }

    /// Quotients that are rounded in what decides.
    pub(super) fn about_quotients(&self, decisions: &[Step]) -> Option<String> {
        let quotients = decisions.iter().map(|step| step.counter);
        let lines = self.lines(quotients.filter(|&counter| divides(self.kernel, counter)));
        (!lines.is_empty())
            .then(|| format!("a quotient that this depends on is rounded at {lines}"))
    }
}
