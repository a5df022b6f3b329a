//! What a launch that is traced tells of faults that were found without.

use sparserl_core::matrix::Scalar;
use sparserl_emulator::finding::{Finding, FindingKind, PlacedAddress};
use sparserl_emulator::trace::Moment;

use super::Failure;

/// Accesses of a place whose addresses are followed.
const FOLLOWED: usize = 4;

/// Whether a trace tells more of a finding.
pub(in super::super) fn is_told_more(finding: &Finding) -> bool {
    matches!(finding.kind, FindingKind::Uninitialised | FindingKind::Race)
        && finding.address.is_some()
}

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// Says of findings what the trace tells of them.
    pub(in super::super) fn tell_more(&self, findings: &mut [Finding]) {
        for finding in findings {
            let Some(address) = &finding.address else { continue };
            let more = match finding.kind {
                FindingKind::Uninitialised => self.stores_beside(address),
                FindingKind::Race => self.choice_of(address.address, finding.ptx_line),
                _ => None,
            };
            if let Some(more) = more {
                finding.detail += &format!("; {more}");
            }
        }
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
        let steps = self.trace.slice(self.kernel, &moments);
        let drawn = self.choices(&steps).into_iter();
        let drawn = drawn.filter(|step| self.trace.is_drawn(self.kernel, step));
        let lines = self.lines(drawn.map(|step| step.counter));
        (!lines.is_empty()).then(|| format!("whose turn it is, is decided at {lines}"))
    }
}
