//! Counts over rows that statistics and packing share, so that what is foreseen is what is stored.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::limits::MAX_DIAGONALS;

/// Entries up to the end of each row.
pub(crate) fn row_ends(lens: impl Iterator<Item = u64>) -> Vec<u64> {
    let add = |sum: &mut u64, len| {
        *sum += len;
        Some(*sum)
    };
    lens.scan(0, add).collect()
}

/// First row of each tile, and the row count at the end. `ends[r]` is the number of entries up to
/// the end of row `r`. Row `r`'s end is item `ends[r] + r` of the merged list.
pub(crate) fn tile_rows(ends: &[u64], items: u32) -> Vec<u32> {
    let total = ends.last().copied().unwrap_or(0) + ends.len() as u64;
    let tiles = total.div_ceil(u64::from(items));
    let mut row = 0;
    let mut starts: Vec<u32> = (0..tiles)
        .map(|tile| {
            let item = tile * u64::from(items);
            while ends.get(row).is_some_and(|&end| end + (row as u64) < item) {
                row += 1;
            }
            row as u32
        })
        .collect();
    starts.push(ends.len() as u32);
    starts
}

/// The diagonals of some rows, by row index and columns.
///
/// # Errors
/// The number found so far, once it exceeds [`MAX_DIAGONALS`].
pub(crate) fn diagonals<'a>(
    rows: impl Iterator<Item = (usize, &'a [u32])>,
) -> Result<BTreeSet<i64>, usize> {
    let mut found = BTreeSet::new();
    let (mut before, mut here) = (Vec::new(), Vec::new());
    for (row, columns) in rows {
        here.clear();
        here.extend(columns.iter().map(|&column| i64::from(column) - row as i64));
        // Most rows have the diagonals of the row before.
        if here != before {
            found.extend(here.iter().copied());
            if found.len() > MAX_DIAGONALS {
                return Err(found.len());
            }
            core::mem::swap(&mut before, &mut here);
        }
    }
    Ok(found)
}

/// Rows and columns of a block; both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockShape {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
}

impl BlockShape {
    /// A block of as many rows as columns.
    #[must_use]
    pub const fn square(side: u32) -> Self {
        Self { rows: side, columns: side }
    }

    /// A block of so many rows of one column.
    #[must_use]
    pub const fn column(rows: u32) -> Self {
        Self { rows, columns: 1 }
    }

    /// Slots for entries.
    #[must_use]
    pub const fn slots(self) -> u64 {
        self.rows as u64 * self.columns as u64
    }
}

/// Finds the block columns in which some rows have entries, in the same memory each time.
#[derive(Debug, Default)]
pub(crate) struct BlockColumns {
    found: Vec<u32>,
    /// Those of one row.
    row: Vec<u32>,
    merged: Vec<u32>,
}

impl BlockColumns {
    /// The block columns of some rows, in blocks of so many columns: ascending, as the columns of
    /// each row are.
    pub(crate) fn of<'a>(&mut self, rows: impl Iterator<Item = &'a [u32]>, width: u32) -> &[u32] {
        self.found.clear();
        for columns in rows {
            self.row.clear();
            self.row.extend(columns.iter().map(|column| column / width));
            self.row.dedup();
            if self.found.is_empty() {
                core::mem::swap(&mut self.found, &mut self.row);
            } else {
                self.merge();
            }
        }
        &self.found
    }

    /// Adds those of the row. Which list is ahead is anyone's guess, so nothing branches on it.
    fn merge(&mut self) {
        let Self { found, row, merged } = self;
        merged.clear();
        merged.resize(found.len() + row.len(), 0);
        let (mut f, mut r, mut count) = (0, 0, 0);
        while let (Some(&one), Some(&other)) = (found.get(f), row.get(r)) {
            let least = one.min(other);
            merged[count] = least;
            count += 1;
            f += usize::from(one == least);
            r += usize::from(other == least);
        }
        merged.truncate(count);
        merged.extend_from_slice(&found[f..]);
        merged.extend_from_slice(&row[r..]);
        core::mem::swap(found, merged);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::matrix::generate;

    #[test]
    fn block_columns_are_those_of_all_entries_each_once() {
        let far = vec![0, 1, 7, u32::MAX - 1];
        let (uniform, dense) =
            (generate::uniform(90, 70, 9, 1), generate::one_dense_row(90, 70, 2));
        let of = |matrix: &crate::matrix::Csr<f64>| -> Vec<Vec<u32>> {
            (0..90).map(|row| matrix.view().row(row).0.to_vec()).collect()
        };
        let mut blocks = BlockColumns::default();
        for rows in [of(&uniform), of(&dense), vec![vec![], far.clone(), vec![], far], vec![vec![]]]
        {
            let squares = [2, 3, 4, 6, 8].map(|side| (side, side));
            for (height, width) in squares.into_iter().chain([(2, 1), (4, 1)]) {
                for block in rows.chunks(height) {
                    let found = blocks.of(block.iter().map(Vec::as_slice), width as u32);
                    let expected: BTreeSet<u32> =
                        block.iter().flatten().map(|column| column / width as u32).collect();
                    assert!(found.iter().eq(&expected), "{block:?}, width {width}: {found:?}");
                }
            }
        }
    }
}
