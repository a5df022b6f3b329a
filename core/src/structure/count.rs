//! Counts over rows that statistics and packing share, so that what is foreseen is what is stored.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::MAX_DIAGONALS;

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

/// The block columns in which some rows have entries, ascending; `found` is overwritten.
pub(crate) fn block_columns<'a>(
    rows: impl Iterator<Item = &'a [u32]>,
    side: u32,
    found: &mut Vec<u32>,
) {
    found.clear();
    found.extend(rows.flatten().map(|&column| column / side));
    found.sort_unstable();
    found.dedup();
}
