//! Chunks of rows, which statistics and packing share, so that what is foreseen is what is stored.

/// Entries that a thread takes at once: a chunk begins at a multiple of so many.
pub(crate) const FOUR: u32 = 4;

/// Rows cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// Number of chunks.
    pub chunks: u64,
    /// Their slots, empty ones included.
    pub slots: u64,
    /// Chunks of rows that have several.
    pub shares: u64,
}

impl Chunks {
    /// Of rows with so many entries each, in chunks of at most `most`.
    pub(crate) fn of(row_lens: impl Iterator<Item = u64>, most: u32) -> Self {
        let mut found = Self::default();
        for entries in row_lens {
            let chunks = row_chunk_count(entries, most);
            found.chunks += chunks;
            found.slots += entries.next_multiple_of(FOUR.into());
            found.shares += if chunks > 1 { chunks } else { 0 };
        }
        found
    }
}

/// Slots of each chunk of a row of so many entries: as few chunks as hold at most `most` each, all
/// equally long up to four entries. A row without entries has one chunk without slots.
pub(crate) fn row_chunks(entries: u64, most: u32) -> impl Iterator<Item = u64> + Clone {
    let fours = entries.div_ceil(FOUR.into());
    let chunks = row_chunk_count(entries, most);
    // Most rows have one, and a division would cost more than the rest.
    let (each, longer) = if chunks == 1 { (fours, 0) } else { (fours / chunks, fours % chunks) };
    (0..chunks).map(move |chunk| (each + u64::from(chunk < longer)) * u64::from(FOUR))
}

/// Chunks of a row of so many entries, at least 1.
pub(crate) fn row_chunk_count(entries: u64, most: u32) -> u64 {
    let most = u64::from(most);
    if entries <= most { 1 } else { entries.div_ceil(most) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn chunks_are_even_and_hold_the_row() {
        let chunks = |entries, most| row_chunks(entries, most).collect::<Vec<_>>();
        assert_eq!(chunks(0, 32), [0]);
        assert_eq!(chunks(5, 32), [8]);
        assert_eq!(chunks(32, 32), [32]);
        assert_eq!(chunks(33, 32), [20, 16]);
        assert_eq!(chunks(65, 32), [24, 24, 20]);
        for (entries, most) in [(1, 32), (127, 64), (1000, 128), (17_685, 256)] {
            let slots: u64 = row_chunks(entries, most).sum();
            assert_eq!(slots, entries.next_multiple_of(4));
            assert!(row_chunks(entries, most).all(|chunk| chunk <= u64::from(most)));
        }
    }
}
