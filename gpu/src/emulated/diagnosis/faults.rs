//! What a launch that is traced tells of faults that were found without.

use std::collections::BTreeSet;

use sparserl_core::matrix::Scalar;
use sparserl_emulator::finding::{Finding, FindingKind, PlacedAddress};
use sparserl_emulator::trace::Moment;

use super::{Failure, number};

/// Accesses of a place whose addresses are followed.
const FOLLOWED: usize = 4;

/// Accesses whose addresses are told of.
const TOLD: usize = 2;

/// Whether a trace tells more of a finding.
pub(in super::super) fn is_told_more(finding: &Finding) -> bool {
    let kinds = [FindingKind::OutOfBounds, FindingKind::Uninitialised, FindingKind::Race];
    kinds.contains(&finding.kind) && finding.address.is_some()
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// Says of findings what the trace tells of them.
    pub(in super::super) fn tell_more(&self, findings: &mut [Finding]) {
        let mut known = BTreeSet::new();
        for finding in findings {
            let Some(address) = &finding.address else { continue };
            let more = match finding.kind {
                // Accesses of several arrays by one number are told of once.
                FindingKind::OutOfBounds if known.len() < TOLD => self
                    .origin_of(finding, address.address)
                    .filter(|more| known.insert(more.clone())),
                FindingKind::Uninitialised => self.stores_beside(address),
                FindingKind::Race => self
                    .choice_of(address.address, finding.ptx_line)
                    .or_else(|| self.constants_beside(finding)),
                _ => None,
            };
            if let Some(more) = more {
                finding.detail += &format!("; {more}");
            }
        }
    }

    /// Where the address of an access comes from.
    fn origin_of(&self, finding: &Finding, address: u64) -> Option<String> {
        let [grid, block_size] = self.sizes;
        let of = (number(finding.block, grid), number(finding.thread, block_size) as usize);
        let access = self.trace.access_by(self.kernel, finding.ptx_line, of, address)?;
        self.about_address(access)
    }

    /// Where other elements of an array in shared memory are stored.
    fn stores_beside(&self, address: &PlacedAddress) -> Option<String> {
        let PlacedAddress { address, place } = address;
        let at = u32::try_from(*address).ok()?;
        if !place.contains("shared") {
            return None;
        }
        let mut arrays = self.kernel.shared_arrays.iter().map(|array| array.bytes.clone());
        let dynamic = self.kernel.shared_dynamic..u32::MAX;
        let array = arrays.find(|bytes| bytes.contains(&at)).unwrap_or(dynamic);
        let stores = self.trace.stores_in_shared(self.kernel, array);
        let lines = self.lines(stores.into_iter());
        (!lines.is_empty()).then(|| format!("other elements of it are stored at {lines}"))
    }

    /// Where constants are defined that the line of a finding names, or that which has called it.
    fn constants_beside(&self, finding: &Finding) -> Option<String> {
        let place = finding.source.as_ref()?;
        self.constants_at(std::iter::once(place.line).chain(place.called_at))
    }

    /// By what it is decided that threads access some place of device memory.
    fn choice_of(&self, address: u64, ptx_line: u32) -> Option<String> {
        let is_at = |counter: u32| {
            self.kernel.code.get(counter as usize).is_some_and(|at| at.ptx_line == ptx_line)
        };
        let accesses = self.trace.accesses(self.kernel, address..address + 1);
        let moments: Vec<Moment> = accesses
            .filter(|(access, effects)| effects.writes || is_at(access.counter))
            .map(|(access, _)| access.moment)
            .take(FOLLOWED)
            .collect();
        let lines = self.drawn(&moments);
        if !lines.is_empty() {
            return Some(format!("whose turn it is, is decided at {lines}"));
        }
        // Threads that meet at one instruction take one place for their own.
        let [first, second, ..] = *moments else { return None };
        let is_one = self.counter_of(first) == self.counter_of(second);
        is_one.then(|| self.about_address(first)).flatten()
    }

    /// The lines that draw what some accesses depend on.
    fn drawn(&self, accesses: &[Moment]) -> String {
        let steps = self.trace.slice(self.kernel, accesses);
        let drawn = self.choices(&steps).into_iter();
        let drawn = drawn.filter(|step| self.trace.is_drawn(self.kernel, step));
        self.lines(drawn.map(|step| step.counter))
    }
}
