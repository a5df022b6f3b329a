use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
pub(super) struct SplitMix64(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Up to as many numbers are kept in order in an array, which is then faster than a tree.
const FEW: usize = 512;

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator after it has given `numbers` numbers: it counts, so rows can begin anywhere.
    pub(super) fn after(seed: u64, numbers: u64) -> Self {
        Self(seed.wrapping_add(STEP.wrapping_mul(numbers)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly distributed below `end`, which is not 0, up to a bias of `end` / 2⁶⁴.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A multiple of 2⁻⁵² in (−1, 1), not 0: every entry of a generated matrix counts.
    pub(super) fn value(&mut self) -> f64 {
        let bits = (self.next() >> 11) | 1;
        bits as f64 * f64::EPSILON - 1.0
    }

    /// Pushes `count` different numbers below `end` (all of them if there are fewer), in order, each
    /// with a 0, into the empty `chosen`: Floyd's algorithm (Bentley, "Programming pearls", 1987).
    pub(super) fn distinct(&mut self, count: usize, end: usize, chosen: &mut Vec<(usize, f64)>) {
        let lasts = end - count.min(end)..end;
        if lasts.len() > FEW {
            let mut tree = BTreeSet::new();
            for last in lasts {
                let number = self.below(last + 1);
                tree.insert(if tree.contains(&number) { last } else { number });
            }
            chosen.extend(tree.into_iter().map(|number| (number, 0.0)));
            return;
        }
        for last in lasts {
            let number = self.below(last + 1);
            match chosen.binary_search_by_key(&number, |&(other, _)| other) {
                // Larger than all before it.
                Ok(_) => chosen.push((last, 0.0)),
                Err(at) => chosen.insert(at, (number, 0.0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        let second = random.next();
        assert_eq!(SplitMix64::after(1_234_567, 1).next(), second);
    }

    #[test]
    fn few_and_many_distinct_numbers_are_in_order() {
        for (count, end) in [(0, 5), (5, 5), (9, 5), (7, 100), (FEW, 600), (FEW + 1, 600)] {
            let mut chosen = Vec::new();
            SplitMix64::new(1).distinct(count, end, &mut chosen);
            assert_eq!(chosen.len(), count.min(end));
            assert!(chosen.is_sorted_by(|a, b| a.0 < b.0));
            assert!(chosen.iter().all(|&(number, _)| number < end));
        }
    }
}
