//! The shared memory of a block.

use std::collections::{BTreeSet, HashMap};

use super::groups::Awaited;
use super::races::Cell;

/// Its words, which of their bytes were written, and who touched them.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    bytes: usize,
    words: Vec<u32>,
    /// Four bits for each word.
    defined: Vec<u8>,
    cells: Vec<Cell>,
    /// Copies under way to each word, by its offset.
    pub(super) awaited: HashMap<usize, Awaited>,
    /// Words that were written since the last fence between that and bulk copies that read them.
    pub(super) unfenced: BTreeSet<usize>,
}

impl SharedMemory {
    /// Nothing in it is defined: it holds noise, another for each seed.
    pub(crate) fn new(bytes: u32, seed: u32) -> Self {
        let words = bytes.div_ceil(4) as usize;
        Self {
            bytes: bytes as usize,
            words: (0..words as u32).map(|word| noise(word ^ seed)).collect(),
            defined: vec![0; words],
            cells: vec![Cell::default(); words],
            awaited: HashMap::new(),
            unfenced: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// An element of 1, 2, 4 or 8 bytes at a multiple of its size, and whether it is defined.
    #[inline]
    pub(crate) fn read(&self, offset: usize, bytes: u32) -> (u64, bool) {
        let word = |index: usize| u64::from(self.words.get(index).copied().unwrap_or(0));
        let defined = |index: usize| self.defined.get(index).copied().unwrap_or(0);
        let index = offset / 4;
        match bytes {
            8 => {
                let value = word(index) | word(index + 1) << 32;
                (value, defined(index) & defined(index + 1) == 0xF)
            }
            4 => (word(index), defined(index) == 0xF),
            _ => {
                let (bits, mask) = if bytes == 2 { (0xFFFF, 0b11) } else { (0xFF, 1) };
                let value = word(index) >> (offset % 4 * 8) & bits;
                (value, defined(index) >> (offset % 4) & mask == mask)
            }
        }
    }

    /// Writes an element, defined or not.
    #[inline]
    pub(crate) fn write(&mut self, offset: usize, bytes: u32, value: u64, defined: bool) {
        let halves = [(value as u32), (value >> 32) as u32];
        for (part, value) in halves.into_iter().enumerate().take(if bytes == 8 { 2 } else { 1 }) {
            let (bits, bytes_mask) = match bytes {
                1 => (0xFF, 1),
                2 => (0xFFFF, 0b11),
                _ => (u32::MAX, 0xF),
            };
            let (shift, index) = (offset % 4, offset / 4 + part);
            if let (Some(word), Some(flags)) =
                (self.words.get_mut(index), self.defined.get_mut(index))
            {
                *word = *word & !(bits << (shift * 8)) | (value & bits) << (shift * 8);
                let mask: u8 = bytes_mask << shift;
                *flags = if defined { *flags | mask } else { *flags & !mask };
            }
        }
    }

    #[inline]
    pub(crate) fn cell(&mut self, word: usize) -> Option<&mut Cell> {
        self.cells.get_mut(word)
    }
}

/// What memory holds that nobody has written: as a float, no number.
pub(crate) fn noise(seed: u32) -> u32 {
    0x7FC0_0000 | seed.wrapping_mul(0x9E37_79B9) >> 10 | seed << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_size_are_kept() {
        let mut shared = SharedMemory::new(20, 0);
        for (offset, bytes, value) in
            [(0, 8, 0x1122_3344_5566_7788), (8, 4, 0xDEAD_BEEF), (14, 2, 0xABCD), (19, 1, 0x7F)]
        {
            assert!(!shared.read(offset, bytes).1);
            shared.write(offset, bytes, value, true);
            assert_eq!(shared.read(offset, bytes), (value, true));
        }
        assert!(!shared.read(12, 4).1);
        shared.write(4, 4, 7, false);
        assert_eq!(shared.read(4, 4), (7, false));
        assert_eq!(shared.read(0, 4), (0x5566_7788, true));
    }
}
