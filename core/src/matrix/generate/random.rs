use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::random::SplitMix64;

/// Up to as many numbers are kept in order in an array, which is then faster than a tree.
const FEW: usize = 512;

impl SplitMix64 {
    /// A multiple of 2⁻⁵² in (−1, 1), not 0: every entry of a generated matrix counts.
    pub(super) fn value(&mut self) -> f64 {
        let bits = (self.bits() >> 11) | 1;
        bits as f64 * f64::EPSILON - 1.0
    }

    /// Pushes `count` different numbers below `end` (all of them if there are fewer), in order,
    /// each with a 0, into the empty `chosen`: Floyd's algorithm (Bentley, "Programming pearls",
    /// 1987).
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

/// A generator of its own for each pair of numbers: what is drawn for one row or edge does not
/// depend on the others.
pub(super) fn mixed(seed: u64, first: u64, second: u64) -> SplitMix64 {
    let first = SplitMix64::new(seed ^ first.wrapping_mul(SplitMix64::STEP)).bits();
    SplitMix64::new(SplitMix64::new(first.wrapping_add(second)).bits())
}

/// The value of both entries of a symmetric pair.
pub(super) fn pair_value(seed: u64, at: usize, other: usize) -> f64 {
    mixed(seed, at.min(other) as u64, at.max(other) as u64).value()
}

/// Below `end`, which is not 0, small numbers more often: an even number in [0, 1) to this power.
pub(super) fn skewed(random: &mut SplitMix64, end: usize, power: f64) -> usize {
    ((libm::pow(random.uniform(), power) * end as f64) as usize).min(end - 1)
}

/// Of mean 0 and variance 1 (Box and Muller, 1958).
pub(super) fn normal(random: &mut SplitMix64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.uniform()));
    radius * libm::cos(core::f64::consts::TAU * random.uniform())
}

#[cfg(test)]
mod tests {
    use super::*;

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
