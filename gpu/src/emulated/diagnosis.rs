//! Why a result is wrong, and by which lines of the source.
//!
//! ```text
//! wrong elements ─► the launch once more, traced ─┬─► who stored them, of which entries: entries
//!                                                 ├─► where sums and addresses begin: origins
//!                                                 ├─► which wrong formula gives them: formulas
//!                                                 └─► what earlier launches have left: state
//!                └─► the launch once more, of mutants ─► which change makes it right: repairs
//! ```
//!
//! A launch is traced only when its result was found wrong, in the same order, so that the normal
//! path costs nothing. What is said of entries is what the trace shows; a formula is said only if
//! it alone gives all of the wrong elements that are looked at.

mod entries;
mod faults;
mod formulas;
mod origins;
mod repairs;
mod state;

use std::collections::BTreeSet;
use std::ops::Range;

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::reference::{Reference, violations};
use sparserl_emulator::code::Kernel;
use sparserl_emulator::finding::{Finding, FindingKind, PlacedAddress};
use sparserl_emulator::trace::{Moment, Step, Trace};

use crate::candidate::executable::{Parameter, Prepared};
use crate::candidate::raw::Listing;

pub(super) use self::faults::is_told_more;
pub(super) use self::repairs::Repair;
pub(super) use self::state::State;

/// Wrong elements that are looked at.
const LOOKED_AT: usize = 32;
/// Of these, elements whose origin is followed: one finding each at most, those that say the same
/// left out.
const FOLLOWED: usize = 2;
/// Wrong elements whose last store is looked for.
const STORED: usize = 8;
/// Branches that are named by which a thread turned away from a part of the stores.
const MOST_TURNS: usize = 2;
/// Places in the source that a list names.
const MOST_LINES: usize = 3;

/// A launch whose result is wrong.
pub(super) struct Failure<'a, A, D: Scalar> {
    pub(super) kernel: &'a Kernel,
    /// Its source, where somebody has written it.
    pub(super) listing: Option<Listing<'a>>,
    /// Changes of the kernel by which the launch is right.
    pub(super) repairs: Vec<Repair>,
    pub(super) prepared: &'a Prepared,
    pub(super) matrix: CsrView<'a, A>,
    /// Where each row begins, and where the last one ends.
    pub(super) offsets: Vec<u64>,
    /// Columns of the dense operands.
    pub(super) width: usize,
    pub(super) alpha: D::Accumulator,
    pub(super) beta: D::Accumulator,
    pub(super) input: &'a [D],
    /// What the output held before; empty where it was never written.
    pub(super) initial: &'a [D],
    pub(super) output: &'a [D],
    pub(super) reference: &'a Reference,
    pub(super) trace: &'a Trace,
    /// Blocks and threads of a block, as x, y, z.
    pub(super) sizes: [[u32; 3]; 2],
    /// Of each parameter that is a buffer, its addresses.
    pub(super) buffers: Vec<Option<Range<u64>>>,
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// What can be said of the wrong elements, each where it was stored.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let wrong = violations(self.reference, self.output).take(LOOKED_AT);
        let wrong: Vec<usize> = wrong.collect();
        let formula = self.formula(&wrong);
        let mut findings: Vec<Finding> = Vec::new();
        // Where a change is known that makes it right, one element says enough.
        let followed = if self.repairs.is_empty() { FOLLOWED } else { 1 };
        for &element in wrong.iter().take(followed) {
            let Some(finding) = self.finding(element, formula) else { continue };
            let is_new =
                |known: &Finding| (&known.source, known.kind) != (&finding.source, finding.kind);
            if findings.iter().all(is_new) {
                findings.push(finding);
            }
        }
        findings
    }

    /// The block that has stored the first wrong element last, and the elements that it has stored
    /// last of those that are wrong.
    pub(super) fn first_wrong_block(&self) -> Option<([u32; 3], Vec<usize>)> {
        let mut first = None;
        let mut elements = Vec::new();
        for element in violations(self.reference, self.output).take(STORED) {
            let addresses = self.addresses_of(Parameter::Output, element, size_of::<D>())?;
            let Some(write) = self.trace.last_write(self.kernel, addresses) else { continue };
            let (_, block, _) = self.trace.place_of(write.moment)?;
            if *first.get_or_insert(block) == block {
                elements.push(element);
            }
        }
        let [grid, _] = self.sizes;
        Some((position(first?, grid), elements))
    }

    fn finding(&self, element: usize, formula: Option<formulas::Formula>) -> Option<Finding> {
        let addresses = self.addresses_of(Parameter::Output, element, size_of::<D>())?;
        match self.trace.last_write(self.kernel, addresses.clone()) {
            Some(write) => {
                let steps = self.trace.slice(self.kernel, &[write.moment]);
                let detail = self.why(element, &steps, formula);
                self.at(
                    FindingKind::WrongElement,
                    write.moment,
                    Some((addresses.start, element)),
                    detail,
                )
            }
            None => self.missing_element(element, addresses.start),
        }
    }

    /// The addresses of an element of the first parameter of a kind.
    fn addresses_of(&self, of: Parameter, element: usize, bytes: usize) -> Option<Range<u64>> {
        let parameters = &self.prepared.launch.parameters;
        let index = parameters.iter().position(|&parameter| parameter == of)?;
        let buffer = self.buffers.get(index)?.as_ref()?;
        let start = buffer.start + (element * bytes) as u64;
        Some(start..start + bytes as u64)
    }

    /// A finding where a thread has executed something.
    fn at(
        &self,
        kind: FindingKind,
        moment: Moment,
        address: Option<(u64, usize)>,
        detail: String,
    ) -> Option<Finding> {
        let (counter, block, thread) = self.trace.place_of(moment)?;
        let instruction = self.kernel.code.get(counter as usize);
        let [grid, block_size] = self.sizes;
        let address = address.map(|(address, element)| {
            let (row, column) = (element / self.width, element % self.width);
            let name = self.name_of(Parameter::Output);
            let place = match self.width {
                1 => format!("{name}[{row}]"),
                _ => format!("{name}[{row}][{column}]"),
            };
            PlacedAddress { address, place }
        });
        Some(Finding {
            kind,
            ptx_line: instruction.map_or(0, |instruction| instruction.ptx_line),
            source: self.kernel.location(counter as usize).cloned(),
            block: position(block, grid),
            thread: position(thread as u32, block_size),
            address,
            detail,
            count: 1,
        })
    }

    /// The name of the first parameter of a kind.
    fn name_of(&self, of: Parameter) -> &str {
        let parameters = self.prepared.launch.parameters.iter().zip(&self.prepared.names);
        parameters.into_iter().find(|(p, _)| **p == of).map_or("", |(_, name)| name)
    }

    /// An element that the launch has not stored.
    fn missing_element(&self, element: usize, address: u64) -> Option<Finding> {
        let buffer = self.addresses_of(Parameter::Output, 0, size_of_val(self.output))?;
        let stores: BTreeSet<u32> = self
            .trace
            .accesses(self.kernel, buffer.clone())
            .filter(|(_, effects)| effects.writes)
            .map(|(access, _)| access.counter)
            .collect();
        let name = self.name_of(Parameter::Output).to_owned();
        let row = element / self.width;
        let entries = self.matrix.row(row).0.len();
        let mut detail = match entries {
            0 => format!("no thread stores it: row {row} has no entries"),
            1 => format!("no thread stores it: row {row} has 1 entry"),
            _ => format!("no thread stores it: row {row} has {entries} entries"),
        };
        if let Some(repairs) = self.repairs_in_words() {
            detail += &format!("; {repairs}");
            let reader = self.reader_of_row(row);
            let at =
                reader.or_else(|| Some(self.trace.accesses(self.kernel, buffer).next()?.0.moment));
            return self.at(FindingKind::MissingElement, at?, Some((address, element)), detail);
        }
        let lines = self.lines(stores.iter().copied());
        if !lines.is_empty() {
            detail += &format!("; {name} is stored at {lines}");
        }
        // Whoever has read where the row begins should have come to a store.
        let reader = self.reader_of_row(row);
        let turn = reader.and_then(|reader| self.trace.turns_away(self.kernel, reader, &stores));
        let place = Some((address, element));
        match (turn, reader) {
            (Some(turn), _) => {
                let (counter, ..) = self.trace.place_of(turn)?;
                let line = self.lines(std::iter::once(counter));
                detail += &format!(
                    "; the thread that has read where the row begins turns away at {line}"
                );
                let decisions = self.decisions(&[turn]);
                let choices = self
                    .about_quotients(&decisions)
                    .or_else(|| self.choices_in_words(&decisions, &[]));
                detail += &choices.map(|choices| format!(": {choices}")).unwrap_or_default();
                if let Some(reader) = reader {
                    detail += &self.turns_before(turn, reader, &stores);
                }
                self.at(FindingKind::MissingElement, turn, place, detail)
            }
            (None, Some(reader)) => {
                detail += "; here a thread has read where the row begins";
                self.at(FindingKind::MissingElement, reader, place, detail)
            }
            (None, None) => {
                detail += "; no thread has read where the row begins";
                // Whoever has stored the row before it may have had to go on.
                let before = element.checked_sub(self.width).and_then(|element| {
                    let of = self.addresses_of(Parameter::Output, element, size_of::<D>())?;
                    let write = self.trace.last_write(self.kernel, of)?;
                    self.trace.branches_after(write.moment).into_iter().next()
                });
                if let Some(end) = before {
                    let line = self.lines(self.counter_of(end).into_iter());
                    detail += &format!("; who stores the row before goes on at {line}");
                    let choices = self.choices_in_words(&self.decisions(&[end]), &[]);
                    detail += &choices.map(|choices| format!(": {choices}")).unwrap_or_default();
                    return self.at(FindingKind::MissingElement, end, place, detail);
                }
                let (access, _) = self.trace.accesses(self.kernel, buffer).next()?;
                self.at(FindingKind::MissingElement, access.moment, place, detail)
            }
        }
    }

    /// Where a thread has turned away from some of the stores before it did from all.
    fn turns_before(&self, last: Moment, reader: Moment, stores: &BTreeSet<u32>) -> String {
        let own = |moment: Moment| self.counter_of(moment).and_then(|of| self.line_of(of));
        let mut turns: Vec<(u32, u32)> = Vec::new();
        for &store in stores {
            let turn = self.trace.turns_away(self.kernel, reader, &BTreeSet::from([store]));
            let Some(turn) = turn.filter(|&turn| turn < last && own(turn) != own(last)) else {
                continue;
            };
            let Some(counter) = self.counter_of(turn) else { continue };
            if turns.iter().all(|&(_, known)| self.line_of(known) != self.line_of(counter)) {
                turns.push((store, counter));
            }
        }
        let text = |&(store, turn): &(u32, u32)| {
            let [store, turn] = [store, turn].map(|counter| self.lines(std::iter::once(counter)));
            format!("; from {store} it has turned away at {turn}")
        };
        turns.iter().take(MOST_TURNS).map(text).collect()
    }

    /// Places in the source of some instructions, in words, each once.
    fn lines(&self, counters: impl Iterator<Item = u32>) -> String {
        // Where a change is known that makes it right, the rest only says what is wrong.
        self.most_lines(counters, if self.repairs.is_empty() { MOST_LINES } else { 1 })
    }

    fn most_lines(&self, counters: impl Iterator<Item = u32>, most: usize) -> String {
        let mut places: Vec<(u32, String)> = Vec::new();
        for counter in counters {
            let Some(location) = self.kernel.location(counter as usize) else { continue };
            let text = match location.called_at {
                Some(called) => format!("{} (called at line {called})", location.line),
                None => location.line.to_string(),
            };
            if !places.iter().any(|(_, known)| *known == text) {
                places.push((location.line, text));
            }
        }
        places.truncate(most);
        let texts: Vec<&str> = places.iter().map(|(_, text)| text.as_str()).collect();
        match texts.as_slice() {
            [] => String::new(),
            [one] => format!("line {one}"),
            [most @ .., last] => format!("lines {} and {last}", most.join(", ")),
        }
    }
}

/// A block of a grid or a thread of a block by its number, as x, y, z.
pub(super) fn position(number: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (x.max(1), y.max(1));
    [number % x, number / x % y, number / x / y]
}

/// The number of such a block or thread.
pub(super) fn number([x, y, z]: [u32; 3], [of_x, of_y, _]: [u32; 3]) -> u32 {
    x + of_x.max(1) * (y + of_y.max(1) * z)
}

/// Steps whose results went into a value.
fn by_value(step: &&Step) -> bool {
    step.value != 0 && !step.cuts
}
