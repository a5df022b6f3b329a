//! Sizes of matrices.

use serde::{Deserialize, Serialize};

/// What a matrix has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Entries.
    pub nnz: u64,
}

impl Size {
    /// A recipe makes at most so many rows, and columns, for each entry of its largest number.
    pub const LINES_PER_ENTRY: u64 = 4;

    /// The least `largest_nnz` with which a recipe may make this.
    pub(super) fn limit(self) -> u64 {
        self.nnz.max(self.rows.max(self.cols).div_ceil(Self::LINES_PER_ENTRY))
    }
}
