//! Contents of buffers that are larger than what they may take.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::pages::Pages;

/// Bytes that bits of one word say of whether they were written.
const SECTOR: usize = 32;
/// Of a page.
const SECTORS: usize = 16;

/// What a buffer holds whose words are not all in memory.
#[derive(Debug)]
pub(super) enum Vast {
    /// What was written.
    Written(Pages<Sector, SECTORS>),
    /// What a function of its number says of each word.
    Computed(Word),
}

/// Says what a word is.
pub(super) struct Word(pub(super) Box<dyn Fn(usize) -> u32 + Send + Sync>);

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Word")
    }
}

/// 32 bytes, and a bit for each that was written.
#[derive(Debug)]
pub(super) struct Sector {
    words: [AtomicU32; SECTOR / 4],
    defined: AtomicU32,
}

impl Default for Sector {
    fn default() -> Self {
        let words = std::array::from_fn(|_| AtomicU32::new(u32::MAX));
        Self { words, defined: AtomicU32::new(0) }
    }
}

impl Vast {
    /// Nothing was written of so many bytes.
    pub(super) fn unwritten(bytes: usize) -> Self {
        Self::Written(Pages::new(bytes.div_ceil(SECTOR)))
    }

    #[cold]
    pub(super) fn word(&self, index: usize) -> u32 {
        match self {
            Self::Computed(Word(word)) => word(index),
            Self::Written(pages) => {
                let word = pages.get(index / 8).and_then(|sector| sector.words.get(index % 8));
                word.map_or(u32::MAX, |word| word.load(Relaxed))
            }
        }
    }

    /// The place of a word, which is about to be written.
    #[cold]
    pub(super) fn place(&self, index: usize) -> Option<&AtomicU32> {
        let Self::Written(pages) = self else { return None };
        pages.touch(index / 8, || true)?.words.get(index % 8)
    }

    /// Which bytes around one were written: a bit for each of the 32.
    #[cold]
    pub(super) fn defined(&self, offset: usize) -> u32 {
        match self {
            Self::Computed(_) => u32::MAX,
            Self::Written(pages) => {
                pages.get(offset / SECTOR).map_or(0, |sector| sector.defined.load(Relaxed))
            }
        }
    }

    #[cold]
    pub(super) fn define(&self, offset: usize, bytes: u32) {
        if let Self::Written(pages) = self
            && let Some(sector) = pages.touch(offset / SECTOR, || true)
        {
            sector.defined.fetch_or(bytes, Relaxed);
        }
    }

    /// Where anything was written, and something around that.
    pub(super) fn touched(&self) -> Vec<Range<usize>> {
        let Self::Written(pages) = self else { return Vec::new() };
        let firsts = pages.firsts().map(|sector| sector * SECTOR);
        firsts.map(|first| first..first + SECTORS * SECTOR).collect()
    }
}
