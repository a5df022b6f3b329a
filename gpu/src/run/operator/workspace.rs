//! How a kernel's workspace lies in memory of the caller's.

use sparserl_core::layout::{ArrayRole, Packed};

/// What `cudaMalloc` aligns memory to, and arrays within a workspace are.
pub const WORKSPACE_ALIGNMENT: u64 = 256;

/// The arrays of a kernel's workspace one behind the other: counters first, which have to be zero
/// when a launch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceLayout {
    /// Of each array, in the order of the kernel's arguments, bytes from the beginning.
    pub(super) offsets: Vec<u64>,
    /// Bytes from the beginning that have to be zero.
    pub(super) counters: u64,
    /// Bytes of it all.
    pub bytes: u64,
}

impl WorkspaceLayout {
    /// The workspace of the kernel of a packed matrix.
    #[must_use]
    pub fn new(packed: &Packed) -> Self {
        Self::of(packed.arguments().map(|(_, array)| (array.role, array.data.bytes().len() as u64)))
    }

    /// Of arrays with these roles and bytes; those that hold the matrix are left out.
    fn of(arrays: impl Iterator<Item = (ArrayRole, u64)>) -> Self {
        let arrays: Vec<_> = arrays.filter(|(role, _)| role.is_workspace()).collect();
        let mut layout = Self { offsets: vec![0; arrays.len()], ..Self::default() };
        for wanted in [ArrayRole::Counters, ArrayRole::PartialSums] {
            for (offset, (role, bytes)) in layout.offsets.iter_mut().zip(&arrays) {
                if *role == wanted {
                    *offset = layout.bytes;
                    layout.bytes += bytes.next_multiple_of(WORKSPACE_ALIGNMENT);
                }
            }
            if wanted == ArrayRole::Counters {
                layout.counters = layout.bytes;
            }
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_lie_before_sums_and_nothing_overlaps() {
        use ArrayRole::{Counters, Matrix, PartialSums};
        let arrays =
            [(Matrix, 9), (PartialSums, 300), (Counters, 4), (Matrix, 7), (PartialSums, 8)];
        let layout = WorkspaceLayout::of(arrays.into_iter());
        assert_eq!(layout.offsets, [256, 0, 768]);
        assert_eq!((layout.counters, layout.bytes), (256, 1024));
        let none = WorkspaceLayout::of([(Matrix, 9)].into_iter());
        assert_eq!(none, WorkspaceLayout::default());
    }
}
