//! The findings of a block.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::code::Kernel;
use crate::finding::{Finding, FindingKind, PlacedAddress};

/// One finding for each instruction and kind.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    first: BTreeMap<(usize, FindingKind), Finding>,
}

/// Who did it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Culprit {
    pub(crate) instruction: usize,
    pub(crate) block: [u32; 3],
    pub(crate) thread: [u32; 3],
}

impl Findings {
    /// Adds a finding. What it says is asked for the first time only.
    #[cold]
    pub(crate) fn add(
        &mut self,
        kind: FindingKind,
        culprit: Culprit,
        kernel: &Kernel,
        describe: impl FnOnce() -> (Option<PlacedAddress>, String),
    ) {
        match self.first.entry((culprit.instruction, kind)) {
            Entry::Occupied(mut known) => known.get_mut().count += 1,
            Entry::Vacant(vacant) => {
                let (address, detail) = describe();
                let instruction = kernel.code.get(culprit.instruction);
                let source = kernel.location(culprit.instruction);
                vacant.insert(Finding {
                    kind,
                    ptx_line: instruction.map_or(0, |instruction| instruction.ptx_line),
                    source: source.cloned(),
                    block: culprit.block,
                    thread: culprit.thread,
                    address,
                    detail,
                    count: 1,
                });
            }
        }
    }

    /// Adds those of another block, which ran later.
    pub(crate) fn extend(&mut self, later: Self) {
        for (key, finding) in later.first {
            match self.first.entry(key) {
                Entry::Occupied(mut known) => known.get_mut().count += finding.count,
                Entry::Vacant(vacant) => drop(vacant.insert(finding)),
            }
        }
    }

    /// Whether any is more than a remark.
    pub(crate) fn has_fault(&self) -> bool {
        self.first.values().any(|finding| !finding.kind.is_remark())
    }

    /// Whether any is more than a remark or an address that wraps.
    pub(crate) fn has_more_than_wraps(&self) -> bool {
        let is_wrap = |kind: FindingKind| kind == FindingKind::AddressOverflow;
        let mut kinds = self.first.values().map(|finding| finding.kind);
        kinds.any(|kind| !kind.is_remark() && !is_wrap(kind))
    }

    /// All, in the order of the code.
    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.first.into_values().collect()
    }
}
