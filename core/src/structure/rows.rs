use alloc::vec::Vec;

use crate::matrix::OffsetsView;

/// How a split divides rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SplitRule {
    /// Rows of at most `threshold` entries, and the longer ones.
    Length {
        /// Entries of the longest row on the low side.
        threshold: u32,
    },
    /// The leading rows that hold `eighths`/8 of the entries, and the rest.
    Nonzeros {
        /// Share of the low side, 1–7.
        eighths: u32,
    },
}

/// Order of a part's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Matrix order.
    Keep,
    /// By falling length within windows of rows (the σ of SELL-C-σ).
    Sort {
        /// Rows of a window.
        window: u32,
    },
}

/// Names a set of rows that [`MatrixStats`](super::MatrixStats) knows: what a chain of splits
/// leaves. It means something only to the statistics that gave it; others know no rows under it, or
/// another set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowSetId(pub(super) u32);

impl RowSetId {
    /// All rows of the matrix.
    pub const ALL: Self = Self(0);
    /// No rows. No set that a split leaves has this name: there are fewer.
    pub(super) const NOTHING: Self = Self(u32::MAX);
}

/// Rows of a matrix by their index, in the order in which a kernel walks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// `count` rows from `first`.
    Range {
        /// First row.
        first: u32,
        /// Number of rows.
        count: u32,
    },
    /// The listed rows.
    List(Vec<u32>),
}

impl Rows {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range { count, .. } => *count as usize,
            Self::List(rows) => rows.len(),
        }
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a position; panics when `position` is out of range, like a slice.
    #[must_use]
    pub fn at(&self, position: usize) -> usize {
        match self {
            Self::Range { first, count } => {
                assert!(position < *count as usize, "position {position} of {count} rows");
                *first as usize + position
            }
            Self::List(rows) => rows[position] as usize,
        }
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|position| self.at(position))
    }

    /// Entries of these rows.
    #[must_use]
    pub fn nnz(&self, offsets: OffsetsView<'_>) -> usize {
        match self {
            Self::Range { first, count } => {
                let first = *first as usize;
                offsets.at(first + *count as usize) - offsets.at(first)
            }
            Self::List(rows) => rows.iter().map(|&row| offsets.row_len(row as usize)).sum(),
        }
    }

    /// All rows of a matrix with so many.
    pub(crate) fn all(rows: usize) -> Self {
        Self::Range { first: 0, count: rows as u32 }
    }

    /// A list that turns out to be consecutive becomes a range.
    fn from_list(rows: Vec<u32>) -> Self {
        match rows.first() {
            Some(&first) if rows.iter().zip(first..).all(|(&row, expected)| row == expected) => {
                Self::Range { first, count: rows.len() as u32 }
            }
            Some(_) => Self::List(rows),
            None => Self::Range { first: 0, count: 0 },
        }
    }

    /// The two sides of a split: which rows the first sub-program gets, and which the second.
    #[must_use]
    pub fn split(&self, rule: SplitRule, offsets: OffsetsView<'_>) -> (Self, Self) {
        let len = |row: usize| offsets.row_len(row);
        // Lists that grow are copied, and most rows are short.
        let (mut low, mut high) = (Vec::with_capacity(self.len()), Vec::new());
        let mut put = |row: usize, is_low: bool| {
            if is_low { &mut low } else { &mut high }.push(row as u32);
        };
        match rule {
            SplitRule::Length { threshold } => {
                self.iter().for_each(|row| put(row, len(row) <= threshold as usize));
            }
            SplitRule::Nonzeros { eighths } => {
                let total: u128 = self.iter().map(|row| len(row) as u128).sum();
                let mut before = 0u128;
                for row in self.iter() {
                    put(row, before * 8 < total * u128::from(eighths));
                    before += len(row) as u128;
                }
            }
        }
        low.shrink_to_fit();
        (Self::from_list(low), Self::from_list(high))
    }

    /// The rows in the order that a part stores them.
    #[must_use]
    pub fn ordered(&self, order: Order, offsets: OffsetsView<'_>) -> Self {
        match order {
            Order::Keep => self.clone(),
            Order::Sort { window } => {
                let mut rows: Vec<u32> = self.iter().map(|row| row as u32).collect();
                for chunk in rows.chunks_mut(window.max(1) as usize) {
                    // Stable: rows of equal length keep their locality in x.
                    chunk.sort_by_key(|&row| core::cmp::Reverse(offsets.row_len(row as usize)));
                }
                Self::from_list(rows)
            }
        }
    }
}

/// A set of rows with the sums that the grammar asks for.
#[derive(Clone, Debug)]
pub struct RowSet {
    /// The rows, in matrix order.
    pub rows: Rows,
    /// Entries in these rows.
    pub nnz: usize,
    /// Entries in the shortest row; 0 when there are no rows.
    pub shortest: usize,
    /// Entries in the longest row; 0 when there are no rows.
    pub longest: usize,
}

impl RowSet {
    /// No rows.
    pub(super) const EMPTY: Self =
        Self { rows: Rows::Range { first: 0, count: 0 }, nnz: 0, shortest: 0, longest: 0 };

    pub(super) fn new(rows: Rows, offsets: OffsetsView<'_>) -> Self {
        let extremes = match &rows {
            Rows::Range { first, count } => extremes((*first, *count), offsets),
            Rows::List(list) => {
                let len = |&row: &u32| offsets.row_len(row as usize);
                let lens = || list.iter().map(len);
                lens().min().zip(lens().max())
            }
        };
        let (shortest, longest) = extremes.unwrap_or((0, 0));
        Self { nnz: rows.nnz(offsets), shortest, longest, rows }
    }
}

/// Entries of the shortest and of the longest of rows one after the other, if there are any.
fn extremes((first, count): (u32, u32), offsets: OffsetsView<'_>) -> Option<(usize, usize)> {
    fn of<O: Copy + Into<u64>>(offsets: &[O]) -> Option<(usize, usize)> {
        let shortest = lens(offsets).min()?;
        Some((shortest as usize, lens(offsets).max()? as usize))
    }
    match offsets {
        OffsetsView::U32(v) => of(offsets_of(v, first, count)),
        OffsetsView::U64(v) => of(offsets_of(v, first, count)),
    }
}

/// The offsets of `count` rows, and their end.
pub(super) fn offsets_of<O>(offsets: &[O], first: u32, count: u32) -> &[O] {
    let first = first as usize;
    &offsets[first..=first + count as usize]
}

/// Row lengths.
pub(super) fn lens<O: Copy + Into<u64>>(offsets: &[O]) -> impl Iterator<Item = u64> + '_ {
    offsets.windows(2).map(|bounds| bounds[1].into() - bounds[0].into())
}
