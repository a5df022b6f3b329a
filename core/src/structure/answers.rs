//! What was computed of a matrix, apart from the matrix, which is borrowed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::chunks::Chunks;
use super::count::BlockShape;
use super::features::Features;
use super::groups::{ChunkRuns, RowGroups};
use super::pattern::Pattern;
use super::rows::{Order, RowSet, RowSetId, Rows, SplitRule};
use super::scan::Scan;
use super::values::Table;
use crate::memo::{Memo, Once, Shared};

/// What [`MatrixStats`](super::MatrixStats) have computed of a matrix. It outlives them, so that
/// others of the same matrix need not compute it again.
pub struct Answers {
    /// Rows, columns and entries.
    size: [usize; 3],
    pub(super) values: Once<Option<Table>>,
    pub(super) scan: Once<Scan>,
    pub(super) features: Once<Features>,
    /// First and last column of each row; (1, 0) when it is empty.
    pub(super) ends: Once<Vec<(u32, u32)>>,
    pub(super) splits: Shared<Splits>,
    pub(super) ordered: Memo<(RowSetId, Order), Arc<Rows>>,
    pub(super) spans: Memo<(RowSetId, Order, u32, u32), u64>,
    pub(super) tile_spans: Memo<(RowSetId, Order, u32), u64>,
    pub(super) longest_rows: Memo<(RowSetId, Order, u32), Arc<Vec<usize>>>,
    pub(super) slice_slots: Memo<(RowSetId, Order, u32), u64>,
    pub(super) diagonals: Memo<RowSetId, Option<usize>>,
    pub(super) blocks: Memo<(RowSetId, BlockShape), u64>,
    pub(super) row_groups: Memo<(RowSetId, Order, u32, u32), RowGroups>,
    pub(super) chunks: Memo<(RowSetId, u32), Chunks>,
    pub(super) chunk_runs: Memo<(RowSetId, Order, u32), Arc<ChunkRuns>>,
    pub(super) chunk_groups: Memo<(RowSetId, Order, u32, u32, u32), RowGroups>,
}

/// The sets of rows by their ids, and the sides of the splits that led to them.
pub(super) struct Splits {
    pub(super) sets: Vec<Arc<RowSet>>,
    pub(super) sides: BTreeMap<(RowSetId, SplitRule), (RowSetId, RowSetId)>,
}

impl Answers {
    /// Nothing computed yet.
    pub(super) fn none(pattern: Pattern<'_>) -> Self {
        let all = Rows::Range { first: 0, count: pattern.rows as u32 };
        let all = Arc::new(RowSet::new(all, pattern.offsets));
        let splits = Splits { sets: alloc::vec![all], sides: BTreeMap::new() };
        Self {
            size: size(pattern),
            values: Once::new(),
            scan: Once::new(),
            features: Once::new(),
            ends: Once::new(),
            splits: Shared::new(splits),
            ordered: Memo::default(),
            spans: Memo::default(),
            tile_spans: Memo::default(),
            longest_rows: Memo::default(),
            slice_slots: Memo::default(),
            diagonals: Memo::default(),
            blocks: Memo::default(),
            row_groups: Memo::default(),
            chunks: Memo::default(),
            chunk_runs: Memo::default(),
            chunk_groups: Memo::default(),
        }
    }

    /// Whether they are of a matrix of this size.
    pub(super) fn are_of(&self, pattern: Pattern<'_>) -> bool {
        self.size == size(pattern)
    }
}

fn size(pattern: Pattern<'_>) -> [usize; 3] {
    [pattern.rows, pattern.cols, pattern.nnz()]
}
