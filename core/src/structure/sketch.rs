use alloc::vec;
use alloc::vec::Vec;

use crate::random::SplitMix64;

/// Buckets of a [`Sketch`].
pub(super) const BUCKETS: usize = 4096;

/// Counts by key in bounded memory: exact for at most [`BUCKETS`] distinct keys, hashed above.
///
/// Keys are consecutive integers, which Fibonacci hashing (Knuth, The Art of Computer Programming,
/// vol. 3, §6.4) spreads almost evenly, so that a bucket stands for the same number of keys
/// everywhere and uniform counts stay uniform.
pub(super) struct Sketch {
    counts: Vec<u32>,
    multiplier: u64,
    shift: u32,
}

impl Sketch {
    /// A sketch of keys `0..keys`.
    pub(super) fn new(keys: usize) -> Self {
        if keys <= BUCKETS {
            Self { counts: vec![0; keys], multiplier: 1, shift: 0 }
        } else {
            let shift = 64 - BUCKETS.trailing_zeros();
            Self { counts: vec![0; BUCKETS], multiplier: SplitMix64::STEP, shift }
        }
    }

    pub(super) fn add(&mut self, key: u64) {
        let bucket = key.wrapping_mul(self.multiplier) >> self.shift;
        if let Some(count) = self.counts.get_mut(bucket as usize) {
            *count += 1;
        }
    }

    pub(super) fn ranked(&self) -> Ranked {
        let mut counts = self.counts.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total = counts.iter().map(|&c| u64::from(c)).sum();
        Ranked { counts, total }
    }
}

/// The counts of a [`Sketch`], largest first.
pub(super) struct Ranked {
    counts: Vec<u32>,
    total: u64,
}

impl Ranked {
    pub(super) fn buckets(&self) -> usize {
        self.counts.len()
    }

    /// Share of the total in the `n` largest buckets; 0 when nothing was counted.
    pub(super) fn top_share(&self, n: usize) -> f64 {
        let top: u64 = self.counts.iter().take(n).map(|&c| u64::from(c)).sum();
        top as f64 / self.total.max(1) as f64
    }

    /// Largest count as a multiple of the mean count; 0 when nothing was counted.
    pub(super) fn peak(&self) -> f64 {
        self.top_share(1) * self.counts.len() as f64
    }

    /// Standard deviation of the counts as a multiple of their mean.
    ///
    /// A sample that holds `fraction` of what there is spreads more than the whole does; the
    /// variance that the sampling itself adds, (1 − fraction) · mean, is taken off.
    pub(super) fn variation(&self, fraction: f64) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let n = self.counts.len() as f64;
        let mean = self.total as f64 / n;
        let squares: u128 = self.counts.iter().map(|&c| u128::from(c) * u128::from(c)).sum();
        let variance = squares as f64 / n - mean * mean - (1.0 - fraction) * mean;
        libm::sqrt(variance.max(0.0)) / mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sketch = Sketch::new(5);
        for key in [0, 1, 1, 1, 4] {
            sketch.add(key);
        }
        let ranked = sketch.ranked();
        assert_eq!(ranked.buckets(), 5);
        assert!((ranked.top_share(1) - 0.6).abs() < 1e-12);
        assert!((ranked.peak() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn many_uniform_keys_stay_uniform() {
        let mut sketch = Sketch::new(1_000_000);
        for key in 0..1_000_000 {
            sketch.add(key);
        }
        let ranked = sketch.ranked();
        assert!(ranked.peak() < 1.02);
        assert!(ranked.variation(1.0) < 0.01);
    }
}
