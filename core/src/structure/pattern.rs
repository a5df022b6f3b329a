use crate::matrix::{CsrView, OffsetsView, Scalar};
use crate::random::SplitMix64;

/// The nonzero pattern of a CSR matrix, without its values or their type.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'a> {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) offsets: OffsetsView<'a>,
    pub(super) columns: &'a [u32],
}

impl<'a> Pattern<'a> {
    pub(super) fn new<T: Scalar>(matrix: CsrView<'a, T>) -> Self {
        Self {
            rows: matrix.rows(),
            cols: matrix.cols(),
            offsets: matrix.offsets(),
            columns: matrix.columns(),
        }
    }

    pub(super) fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// Columns of a row; none when the row does not exist.
    pub(super) fn row(&self, row: usize) -> &'a [u32] {
        if row >= self.rows {
            return &[];
        }
        &self.columns[self.offsets.at(row)..self.offsets.at(row + 1)]
    }

    pub(super) fn contains(&self, row: usize, col: u32) -> bool {
        self.row(row).binary_search(&col).is_ok()
    }

    /// The row that holds the nonzero at a position of the entry arrays.
    pub(super) fn row_of(&self, position: usize) -> usize {
        let after = match self.offsets {
            OffsetsView::U32(v) => v.partition_point(|&o| o as usize <= position),
            OffsetsView::U64(v) => v.partition_point(|&o| o as usize <= position),
        };
        after.saturating_sub(1)
    }
}

/// A stratified sample of `0..total`: the range is cut into equal strata and one position is taken
/// from each, at a place that a hash of the stratum's number decides.
///
/// Plain striding would alias with regular structures: with every fifth nonzero of a five-point
/// stencil, one diagonal would stand for all.
#[derive(Clone, Copy)]
pub(super) struct Strata {
    total: u64,
    count: u64,
}

impl Strata {
    /// At most `limit` strata; every position is taken when `total` is no larger.
    pub(super) fn new(total: usize, limit: usize) -> Self {
        Self { total: total as u64, count: total.min(limit) as u64 }
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// The position taken from a stratum; `usize::MAX`, beyond every position, past the last one.
    pub(super) fn position(&self, stratum: usize) -> usize {
        let k = stratum as u64;
        if k >= self.count {
            return usize::MAX;
        }
        let start = self.start(k);
        let width = self.start(k + 1) - start;
        (start + within(k, width)) as usize
    }

    fn start(&self, k: u64) -> u64 {
        // At most SAMPLE_LIMIT · nnz, so below 2⁶⁴ for any matrix that fits in memory.
        k * self.total / self.count
    }
}

/// A pseudo-random number below `width` that depends on `seed` only; 0 when `width` is 0.
pub(super) fn within(seed: u64, width: u64) -> u64 {
    let high = SplitMix64::after(0, seed).bits() >> 32;
    if width >> 32 == 0 { (high * width) >> 32 } else { high % width }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn strata_take_one_position_each_in_order() {
        for (total, limit) in [(0, 4), (3, 8), (8, 8), (9, 8), (1_000_003, 4096)] {
            let strata = Strata::new(total, limit);
            let taken: Vec<usize> = (0..strata.len()).map(|k| strata.position(k)).collect();
            assert_eq!(taken.len(), total.min(limit));
            assert!(taken.is_sorted_by(|a, b| a < b));
            assert!(taken.iter().all(|&p| p < total));
            assert_eq!(strata.position(strata.len()), usize::MAX);
        }
    }

    #[test]
    fn strata_do_not_alias_with_a_period() {
        let strata = Strata::new(5_000_000, 100_000);
        let mut hits = [0_usize; 5];
        for k in 0..strata.len() {
            hits[strata.position(k) % 5] += 1;
        }
        assert!(hits.iter().all(|h| h.abs_diff(20_000) < 600), "{hits:?}");
    }
}
