use alloc::vec::Vec;

use super::chunks::{FOUR, row_chunks};
use super::rows::{Rows, lens, offsets_of};
use crate::matrix::{OffsetsView, tasks};

/// Rows that a thread counts at a time; fewer are not worth waking another.
const ROWS_A_PIECE: usize = 1 << 16;

/// Rows taken a few at a time, each few as slow as its longest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroups {
    /// Number of groups.
    pub groups: u64,
    /// Steps over all groups.
    pub steps: u64,
    /// Steps of the group with most.
    pub longest: u64,
}

impl RowGroups {
    const NONE: Self = Self { groups: 0, steps: 0, longest: 0 };

    /// Groups of `at_once` rows, each of which takes its entries `lanes` at a time.
    pub(super) fn of(rows: &Rows, offsets: OffsetsView<'_>, at_once: u32, lanes: u32) -> Self {
        let at_once = at_once.max(1) as usize;
        match (rows, offsets) {
            (Rows::Range { first, count }, OffsetsView::U32(v)) => {
                Self::consecutive(offsets_of(v, *first, *count), at_once, lanes)
            }
            (Rows::Range { first, count }, OffsetsView::U64(v)) => {
                Self::consecutive(offsets_of(v, *first, *count), at_once, lanes)
            }
            (Rows::List(list), _) => {
                let len = |&row: &u32| offsets.row_len(row as usize) as u64;
                let longest = |rows: &[u32]| rows.iter().map(len).max().unwrap_or(0);
                Self::with_longest(list.chunks(at_once).map(longest), lanes)
            }
        }
    }

    /// Groups of rows one after the other, by their offsets. One loop for each width of offsets:
    /// matching at every row would cost more than the row.
    fn consecutive<O: Copy + Into<u64> + Sync>(offsets: &[O], at_once: usize, lanes: u32) -> Self {
        let rows = offsets.len().saturating_sub(1);
        let step = ROWS_A_PIECE.next_multiple_of(at_once);
        let pieces = (0..rows).step_by(step).map(|first| &offsets[first..=rows.min(first + step)]);
        let counted = tasks::map(pieces.collect(), |piece: &[O]| {
            let rows = piece.len() - 1;
            let longest = (0..rows).step_by(at_once).map(|first| {
                let group = &piece[first..=rows.min(first + at_once)];
                lens(group).max().unwrap_or(0)
            });
            Self::with_longest(longest, lanes)
        });
        counted.into_iter().fold(Self::NONE, |all, piece| Self {
            groups: all.groups + piece.groups,
            steps: all.steps + piece.steps,
            longest: all.longest.max(piece.longest),
        })
    }

    /// Groups whose longest rows have so many entries.
    pub(super) fn with_longest(groups: impl Iterator<Item = u64>, lanes: u32) -> Self {
        let lanes = u64::from(lanes.max(1));
        // A division for each row would cost more than the row.
        let shift = lanes.is_power_of_two().then(|| lanes.trailing_zeros());
        groups.fold(Self::NONE, |all, entries| {
            let steps = match shift {
                Some(shift) => (entries + (lanes - 1)) >> shift,
                None => entries.div_ceil(lanes),
            };
            let longest = all.longest.max(steps);
            Self { groups: all.groups + 1, steps: all.steps + steps, longest }
        })
    }
}

/// Rows that follow one another, and runs of them, whose chunks are counted where there are many.
const RUN: usize = 256;
const RUNS: usize = 128;

/// The chunks of all rows, or of evenly spaced runs of them where there are many.
pub(super) struct ChunkRuns {
    /// Slots of each.
    chunks: Vec<u32>,
    /// Where each run ends among them.
    ends: Vec<usize>,
    are_all: bool,
}

impl ChunkRuns {
    /// Those of rows in chunks of at most `most` entries.
    pub(super) fn of(rows: &Rows, offsets: OffsetsView<'_>, most: u32) -> Self {
        let spacing = rows.len().div_ceil(RUN).div_ceil(RUNS).max(1);
        let (mut chunks, mut ends) = (Vec::new(), Vec::new());
        for first in (0..rows.len()).step_by(RUN * spacing) {
            for position in first..rows.len().min(first + RUN) {
                let entries = offsets.row_len(rows.at(position)) as u64;
                chunks.extend(row_chunks(entries, most).map(|slots| slots as u32));
            }
            ends.push(chunks.len());
        }
        Self { chunks, ends, are_all: spacing == 1 }
    }

    pub(super) fn are_all(&self) -> bool {
        self.are_all
    }

    pub(super) fn slots(&self) -> u64 {
        self.chunks.iter().map(|&slots| u64::from(slots)).sum()
    }

    /// Groups of `at_once` of a run, each of which takes its entries by fours, `lanes` of them at a
    /// time.
    pub(super) fn groups(&self, at_once: u32, lanes: u32) -> RowGroups {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let runs = starts.zip(&self.ends).map(|(start, &end)| &self.chunks[start..end]);
        let groups = runs.flat_map(|run| run.chunks(at_once as usize));
        let longest = groups.map(|group| group.iter().copied().max().unwrap_or(0) / FOUR);
        RowGroups::with_longest(longest.map(u64::from), lanes)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::matrix::generate;

    #[test]
    fn groups_are_the_same_by_range_and_by_list_and_in_pieces() {
        let many = generate::stencil5(300, 301);
        assert!(many.rows() > ROWS_A_PIECE);
        for matrix in [generate::rmat(9, 5, 1), many, generate::uniform(0, 4, 0, 1)] {
            let count = matrix.rows() as u32;
            let offsets = matrix.view().offsets();
            let wide: Vec<u64> = (0..offsets.len()).map(|i| offsets.at(i) as u64).collect();
            let (range, list) = (Rows::Range { first: 0, count }, Rows::List((0..count).collect()));
            for (at_once, lanes) in [(1, 32), (2, 16), (32, 1), (10, 3), (1, 1)] {
                let expected = RowGroups::of(&list, offsets, at_once, lanes);
                assert_eq!(RowGroups::of(&range, offsets, at_once, lanes), expected);
                let wide = OffsetsView::U64(&wide);
                assert_eq!(RowGroups::of(&range, wide, at_once, lanes), expected);
            }
        }
    }
}
