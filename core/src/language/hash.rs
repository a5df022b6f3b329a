use alloc::collections::BTreeSet;
use core::fmt;
use core::num::NonZeroU32;

use super::grammar::expand;
use super::{LANGUAGE_VERSION, Token, Word};
use super::{Mask, Slot};
use crate::task::{Dtype, Operation, Task};

/// FNV-1a hash of the vocabulary in order; a model trained on another vocabulary has another hash.
#[must_use]
pub fn vocabulary_hash() -> u64 {
    let mut hash = Fnv::new();
    for token in Token::all() {
        hash.add(format_args!(" {token}"));
    }
    hash.0
}

/// FNV-1a hash of the language version and of what the free grammar offers at every slot, for SpMV
/// and for SpMM with enough columns for every panel.
#[must_use]
pub fn grammar_hash() -> u64 {
    // Walking the grammar takes milliseconds, and whoever reads recordings asks for each of them.
    #[cfg(feature = "std")]
    {
        static HASH: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        *HASH.get_or_init(hash_grammar)
    }
    #[cfg(not(feature = "std"))]
    hash_grammar()
}

fn hash_grammar() -> u64 {
    let mut hash = Fnv::new();
    hash.add(format_args!("{LANGUAGE_VERSION}"));
    let columns = NonZeroU32::MIN.saturating_add(127);
    for operation in [Operation::SpMV, Operation::SpMM { columns }] {
        let mask = Mask::free(Task::new(operation, Dtype::F32));
        let mut seen = BTreeSet::new();
        let mut open = alloc::vec![Slot::Block];
        while let Some(slot) = open.pop() {
            if seen.insert(slot) {
                for alternative in expand(slot, mask) {
                    hash.add(format_args!("{slot:?} {alternative:?}"));
                    open.extend(alternative.opens);
                }
            }
        }
    }
    hash.0
}

/// The grammars before this one whose programs are still read, each with the layouts whose kernels
/// are written otherwise today: their times are no longer those of then. So are those of more than
/// 128 columns from before version 5, of which there are no recordings.
const EARLIER_GRAMMARS: [(u64, &[Word]); 5] = [
    (16_793_910_445_403_676_914, &[Word::Dia, Word::Bcsr]),
    (3_892_903_314_027_462_239, &[]),
    (11_215_166_552_341_137_982, &[]),
    (492_781_657_944_743_850, &[]),
    (16_719_160_309_271_197_049, &[]),
];

/// The layouts whose kernels have changed since the grammar had this hash; `None` where programs of
/// that grammar are not understood today.
#[must_use]
pub fn layouts_changed_since(grammar: u64) -> Option<&'static [Word]> {
    if grammar == grammar_hash() {
        return Some(&[]);
    }
    let earlier = EARLIER_GRAMMARS.iter().find(|(hash, _)| *hash == grammar);
    earlier.map(|(_, layouts)| *layouts)
}

/// FNV-1a of the text written into it.
pub(crate) struct Fnv(pub(crate) u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, text: fmt::Arguments<'_>) {
        // Writing into `Fnv` cannot fail.
        let _ = fmt::Write::write_fmt(self, text);
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change here is a change of the language: raise `LANGUAGE_VERSION` once models exist.
    #[test]
    fn the_language_is_as_released() {
        assert_eq!(LANGUAGE_VERSION, 7);
        assert_eq!(vocabulary_hash(), VOCABULARY);
        assert_eq!(grammar_hash(), GRAMMAR);
    }

    const VOCABULARY: u64 = 763_274_737_119_135_983;
    const GRAMMAR: u64 = 17_023_844_833_806_248_786;
}
