use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::derivation::Derivation;
use super::grammar::{Alternative, LayoutSet, Slot, expand};
use super::mask::Mask;
use super::tree::Program;

/// Counts the programs under a mask, and samples them evenly.
#[derive(Debug)]
pub struct Space<'f, L> {
    mask: Mask<'f, L>,
    counts: BTreeMap<Slot<L>, u128>,
}

impl<'f, L: LayoutSet> Space<'f, L> {
    /// The space of programs under a mask.
    #[must_use]
    pub fn new(mask: Mask<'f, L>) -> Self {
        Self { mask, counts: BTreeMap::new() }
    }

    /// Number of programs; saturates at 2¹²⁸ − 1.
    pub fn count(&mut self) -> u128 {
        self.completions(Slot::Block)
    }

    fn completions(&mut self, slot: Slot<L>) -> u128 {
        if let Some(&count) = self.counts.get(&slot) {
            return count;
        }
        let alternatives = expand(slot, self.mask);
        let count = alternatives
            .iter()
            .fold(0u128, |sum, alternative| sum.saturating_add(self.weight(alternative)));
        self.counts.insert(slot, count);
        count
    }

    fn weight(&mut self, alternative: &Alternative<L>) -> u128 {
        alternative
            .opens
            .iter()
            .fold(1u128, |product, &slot| product.saturating_mul(self.completions(slot)))
    }

    /// A program drawn evenly from the space, from a source of random 64-bit numbers.
    pub fn sample(&mut self, mut random: impl FnMut() -> u64) -> Program<L> {
        let mut derivation = Derivation::start(self.mask);
        loop {
            let alternatives = derivation.legal();
            let weights: Vec<u128> = alternatives.iter().map(|a| self.weight(a)).collect();
            let total = weights.iter().fold(0u128, |sum, &w| sum.saturating_add(w));
            // 128 random bits against at most 2^128 programs: the bias is below one in 2^64 for
            // every space that fits in 64 bits.
            let wide = (u128::from(random()) << 64) | u128::from(random());
            let mut ticket = wide % total.max(1);
            let chosen = alternatives.iter().zip(&weights).find(|&(_, &weight)| {
                let hit = ticket < weight;
                ticket = ticket.saturating_sub(weight);
                hit
            });
            if let Some((alternative, _)) = chosen {
                derivation.take(alternative);
            }
            if derivation.is_complete() || chosen.is_none() {
                break;
            }
        }
        match derivation.finish() {
            Ok(program) => program,
            Err(error) => unreachable!("every slot has an alternative: {error}"),
        }
    }
}
