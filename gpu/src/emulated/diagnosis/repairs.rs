//! Lines of the source that make a launch right when they say something else.

use std::collections::BTreeSet;

use sparserl_core::matrix::Scalar;

use super::{Failure, MOST_LINES};

/// A change of the kernel by which the launch is right.
#[derive(Clone, Debug)]
pub(in super::super) struct Repair {
    /// The instructions that are changed.
    pub(in super::super) counters: Vec<u32>,
    /// Their lines in the source.
    pub(in super::super) lines: BTreeSet<u32>,
    /// The variable and the element of it that is changed, where no instruction is.
    pub(in super::super) element: Option<(String, usize)>,
    /// What is changed to what, in words.
    pub(in super::super) change: String,
}

impl Repair {
    /// Whether it changes the same place of the source as another one, or more than that.
    pub(in super::super) fn is_like(&self, other: &Self) -> bool {
        match (&self.element, &other.element) {
            (None, None) => other.lines.is_subset(&self.lines),
            (own, others) => own == others,
        }
    }
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// What the changes are by which the launch is right, in words.
    pub(in super::super) fn repairs_in_words(&self) -> Option<String> {
        let said: Vec<String> =
            self.repairs.iter().filter_map(|of| self.repair_in_words(of)).collect();
        (!said.is_empty()).then(|| format!("it is right {}", said.join(", or ")))
    }

    fn repair_in_words(&self, repair: &Repair) -> Option<String> {
        let change = &repair.change;
        if let Some((name, element)) = &repair.element {
            let line = self.listing.as_ref().and_then(|of| of.line_of_element(name, *element));
            let at = line.map(|line| format!(" at line {line}")).unwrap_or_default();
            return Some(format!("with {change} in {name}[{element}]{at}"));
        }
        let (lines, constants) = match repair.counters.is_empty() {
            true => {
                (lines_in_words(&repair.lines)?, self.constants_at(repair.lines.iter().copied()))
            }
            false => {
                let counters = || repair.counters.iter().copied();
                (self.most_lines(counters(), MOST_LINES), self.constants_of(counters()))
            }
        };
        if lines.is_empty() {
            return None;
        }
        let constants = constants.map(|text| format!(" ({text})")).unwrap_or_default();
        Some(format!("with {change} at {lines}{constants}"))
    }
}

/// A few lines, in words.
fn lines_in_words(lines: &BTreeSet<u32>) -> Option<String> {
    let texts: Vec<String> = lines.iter().take(MOST_LINES).map(u32::to_string).collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(format!("line {one}")),
        [most @ .., last] => Some(format!("lines {} and {last}", most.join(", "))),
    }
}
