//! Which sizes a file may claim for the entries that it has.

use thiserror::Error;

/// Rows or columns that a matrix may have, however few entries are in it.
const ALWAYS: u64 = 1 << 24;
/// Rows or columns that it may have for each entry.
const PER_ENTRY: u64 = 64;

/// So many rows or columns are empty that the sizes are surely wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{rows} × {cols} is absurdly large for {entries} entries (limit: 2^24 + 64 per entry); \
     correct the sizes or drop empty rows and columns"
)]
pub struct Absurd {
    /// Rows promised.
    pub rows: u64,
    /// Columns promised.
    pub cols: u64,
    /// Entries promised, or found.
    pub entries: u64,
}

/// Keeps a file of a few bytes from asking for gigabytes of row offsets.
pub(super) fn check(rows: u64, cols: u64, entries: u64) -> Result<(), Absurd> {
    let limit = PER_ENTRY.saturating_mul(entries).saturating_add(ALWAYS);
    if rows.max(cols) > limit { Err(Absurd { rows, cols, entries }) } else { Ok(()) }
}
