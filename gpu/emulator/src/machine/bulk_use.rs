//! What bulk copies of a kernel access.

use crate::code::{BulkCopy, BulkStore, Kernel, Op, Space};

/// What bulk copies of a kernel access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkUse {
    /// They write global memory.
    pub(crate) stores: bool,
    /// They read shared memory.
    pub(super) from_shared: bool,
    /// They read global memory, of which a reduction reads what it changes.
    pub(super) from_global: bool,
}

impl BulkUse {
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let any = |is: &dyn Fn(&Op) -> bool| kernel.code.iter().any(|at| is(&at.op));
        let reads = |space| {
            any(&|op| matches!(op, Op::CopyBulk(BulkCopy { source, .. }) if source.space == space))
        };
        let stores = any(&|op| matches!(op, Op::BulkStore(BulkStore::Issue { .. })));
        let reduces =
            any(&|op| matches!(op, Op::BulkStore(BulkStore::Issue { reduction: Some(_), .. })));
        Self {
            stores,
            from_shared: stores || reads(Space::Shared),
            from_global: reduces || reads(Space::Global),
        }
    }
}
