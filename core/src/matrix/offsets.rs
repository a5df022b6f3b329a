use alloc::vec::Vec;

use super::Elements;

/// Row offsets of an owned CSR matrix; `U64` only when nnz does not fit in 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// nnz < 2³².
    U32(Vec<u32>),
    /// nnz ≥ 2³².
    U64(Vec<u64>),
}

impl Offsets {
    /// Borrows the offsets.
    #[must_use]
    pub fn view(&self) -> OffsetsView<'_> {
        match self {
            Self::U32(v) => OffsetsView::U32(v),
            Self::U64(v) => OffsetsView::U64(v),
        }
    }

    /// The same offsets in 32 bits if the last one fits.
    pub(super) fn narrowed(self) -> Self {
        match self {
            Self::U64(v) if v.last().is_none_or(|&last| u32::try_from(last).is_ok()) => {
                Self::U32(v.into_iter().map(|offset| offset as u32).collect())
            }
            other => other,
        }
    }
}

/// Row offsets that a matrix and what is made of it hold together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeptOffsets {
    U32(Elements<u32>),
    U64(Elements<u64>),
}

impl KeptOffsets {
    pub(super) fn view(&self) -> OffsetsView<'_> {
        match self {
            Self::U32(v) => OffsetsView::U32(v),
            Self::U64(v) => OffsetsView::U64(v),
        }
    }
}

impl From<Offsets> for KeptOffsets {
    fn from(offsets: Offsets) -> Self {
        match offsets {
            Offsets::U32(v) => Self::U32(v.into()),
            Offsets::U64(v) => Self::U64(v.into()),
        }
    }
}

/// Borrowed row offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetsView<'a> {
    /// 32-bit offsets.
    U32(&'a [u32]),
    /// 64-bit offsets.
    U64(&'a [u64]),
}

impl OffsetsView<'_> {
    /// Number of offsets: rows + 1.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
        }
    }

    /// True when there is no offset at all, which no valid matrix has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they begin at 0 and never decrease.
    pub(super) fn are_in_order(&self) -> bool {
        match self {
            Self::U32(v) => v.first() == Some(&0) && v.is_sorted(),
            Self::U64(v) => v.first() == Some(&0) && v.is_sorted(),
        }
    }

    /// How many of the first `rows`, whose offsets are in order, end at a position or before it.
    pub(super) fn rows_until(&self, rows: usize, position: usize) -> usize {
        match self {
            Self::U32(v) => v[1..=rows].partition_point(|&end| end as usize <= position),
            Self::U64(v) => v[1..=rows].partition_point(|&end| end <= position as u64),
        }
    }

    /// Number of entries of a row; panics as [`at`](Self::at) does.
    pub(crate) fn row_len(&self, row: usize) -> usize {
        self.at(row + 1) - self.at(row)
    }

    /// Offset `i`; panics when `i` is out of range, like a slice.
    #[must_use]
    pub fn at(&self, i: usize) -> usize {
        match self {
            Self::U32(v) => v[i] as usize,
            // Where usize has 32 bits no array is that long: saturating fails every range check.
            Self::U64(v) => usize::try_from(v[i]).unwrap_or(usize::MAX),
        }
    }
}
