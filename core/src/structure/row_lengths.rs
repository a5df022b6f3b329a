use alloc::vec;
use alloc::vec::Vec;

use crate::matrix::{CsrView, Scalar};

/// Lengths below this have a bin each.
const EXACT: usize = 256;
/// Bins of an octave above [`EXACT`], as a power of two: a quantile there is off by at most 3 %.
const SUB_BITS: u32 = 4;
const FIRST_OCTAVE: u32 = EXACT.trailing_zeros();
const BINS: usize = EXACT + ((64 - FIRST_OCTAVE as usize) << SUB_BITS);

/// The distribution of row lengths, in a histogram of fixed size.
///
/// All sums are integers, so that the order of the rows does not matter, not even in the last bit.
#[derive(Clone, Debug)]
pub struct RowLengths {
    bins: Vec<u64>,
    rows: u64,
    longest: u64,
    /// Sums of the first three powers of the lengths that have no bin of their own.
    long_powers: [u128; 3],
}

/// Moments of the row lengths, in entries; all 0 without rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation over all rows, not estimated from a sample of them.
    pub deviation: f64,
    /// The third standardised moment; 0 where lengths hardly differ.
    pub skewness: f64,
}

impl RowLengths {
    /// Counts the rows of a matrix.
    #[must_use]
    pub fn of<T: Scalar>(matrix: CsrView<'_, T>) -> Self {
        let mut lengths = Self::new();
        (0..matrix.rows()).for_each(|row| lengths.add(matrix.row_len(row)));
        lengths.finish()
    }

    pub(super) fn new() -> Self {
        Self { bins: vec![0; BINS], rows: 0, longest: 0, long_powers: [0; 3] }
    }

    #[inline]
    pub(super) fn add(&mut self, length: usize) {
        if length < EXACT {
            self.bins[length] += 1;
        } else {
            self.add_long(length as u64);
        }
    }

    #[cold]
    fn add_long(&mut self, length: u64) {
        let octave = 63 - length.leading_zeros();
        let sub = (length >> (octave - SUB_BITS)) & ((1 << SUB_BITS) - 1);
        let bin = EXACT + ((octave - FIRST_OCTAVE) << SUB_BITS) as usize + sub as usize;
        self.bins[bin] += 1;
        self.longest = self.longest.max(length);
        let wide = u128::from(length);
        for (power, sum) in
            [wide, wide * wide, wide * wide * wide].iter().zip(&mut self.long_powers)
        {
            *sum += power;
        }
    }

    /// Ends counting.
    pub(super) fn finish(mut self) -> Self {
        self.rows = self.bins.iter().sum();
        if self.longest == 0 {
            self.longest = self.bins[..EXACT].iter().rposition(|&n| n > 0).unwrap_or(0) as u64;
        }
        self
    }

    /// Entries of the longest row; 0 without rows.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Rows without entries.
    #[must_use]
    pub fn empty(&self) -> u64 {
        self.bins[0]
    }

    /// Share of rows without nonzeros; 0 when there are no rows.
    pub(super) fn empty_share(&self) -> f64 {
        self.empty() as f64 / self.rows.max(1) as f64
    }

    /// The smallest length that at least a share `q` of the rows does not exceed (nearest rank).
    pub(super) fn quantile(&self, q: f64) -> f64 {
        let rank = (libm::ceil(q * self.rows as f64) as u64).max(1);
        let mut below = 0;
        for (bin, &count) in self.bins.iter().enumerate() {
            below += count;
            if below >= rank {
                return middle(bin).min(self.longest as f64);
            }
        }
        0.0
    }

    /// Mean, standard deviation and skewness.
    #[must_use]
    pub fn moments(&self) -> Moments {
        if self.rows == 0 {
            return Moments { mean: 0.0, deviation: 0.0, skewness: 0.0 };
        }
        let [mut sum, mut squares, cubes] = self.long_powers;
        let (long_sum, long_squares) = (sum as f64, squares as f64);
        for (length, &count) in (0_u128..).zip(&self.bins[..EXACT]) {
            sum += length * u128::from(count);
            squares += length * length * u128::from(count);
        }
        // n Σl² − (Σl)² in integers: equal lengths have deviation 0, not rounding noise.
        let rows = u128::from(self.rows);
        let n = self.rows as f64;
        let mean = sum as f64 / n;
        let deviation = libm::sqrt((rows * squares - sum * sum) as f64) / n;
        // Below this the third moment of long rows drowns in rounding.
        if deviation <= 1e-4 * mean {
            return Moments { mean, deviation, skewness: 0.0 };
        }
        let long_rows: u64 = self.bins[EXACT..].iter().sum();
        let mut third = cubes as f64 - 3.0 * mean * long_squares + 3.0 * mean * mean * long_sum
            - mean * mean * mean * long_rows as f64;
        for (length, &count) in self.bins[..EXACT].iter().enumerate() {
            let d = length as f64 - mean;
            third += d * d * d * count as f64;
        }
        Moments { mean, deviation, skewness: third / (n * deviation * deviation * deviation) }
    }
}

/// The length that stands for a bin.
fn middle(bin: usize) -> f64 {
    if bin < EXACT {
        return bin as f64;
    }
    let octave = FIRST_OCTAVE + ((bin - EXACT) >> SUB_BITS) as u32;
    let sub = (bin - EXACT) & ((1 << SUB_BITS) - 1);
    let width = libm::exp2(f64::from(octave) - f64::from(SUB_BITS));
    ((1 << SUB_BITS) + sub) as f64 * width + 0.5 * (width - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(lengths: &[usize]) -> RowLengths {
        let mut counted = RowLengths::new();
        for &length in lengths {
            counted.add(length);
        }
        counted.finish()
    }

    #[test]
    fn moments_of_short_and_long_rows() {
        // By hand: mean 250, deviations −250, −50, 50, 250.
        let m = count(&[0, 200, 300, 500]).moments();
        assert_eq!(m.mean, 250.0);
        assert!((m.deviation - libm::sqrt(32_500.0)).abs() < 1e-9);
        assert!(m.skewness.abs() < 1e-12);
        let skewed = count(&[1, 1, 1, 1, 1000]).moments();
        assert!((skewed.skewness - 1.5).abs() < 1e-9, "{skewed:?}");
    }

    #[test]
    fn equal_lengths_do_not_deviate() {
        for length in [0, 7, 255, 256, 1_000_003] {
            let m = count(&[length; 9]).moments();
            assert_eq!((m.mean, m.deviation, m.skewness), (length as f64, 0.0, 0.0));
        }
    }

    #[test]
    fn quantiles_are_exact_when_short_and_close_when_long() {
        let short = count(&[3, 1, 2, 4]);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| short.quantile(q)),
            [1.0, 1.0, 2.0, 3.0, 4.0]
        );
        for length in [256, 257, 1000, 65_535, 4_000_000_000] {
            let q = count(&[length, length, 4_000_000_000]).quantile(0.5);
            assert!((q / length as f64 - 1.0).abs() <= 0.032, "{length}: {q}");
        }
    }

    #[test]
    fn nothing_counted() {
        let none = count(&[]);
        assert_eq!((none.longest(), none.empty_share(), none.quantile(0.5)), (0, 0.0, 0.0));
    }
}
