use alloc::vec;
use alloc::vec::Vec;

use super::grid::FINE;
use super::pattern::{Pattern, Strata};
use super::row_lengths::RowLengths;
use super::sketch::Sketch;
use crate::matrix::OffsetsView;

/// Nonzeros that the statistics of single nonzeros and the density grids are taken on, at most.
pub const SAMPLE_LIMIT: usize = 1 << 17;

/// Nonzeros around which other rows are searched (block fill, symmetry), at most.
pub const PROBE_LIMIT: usize = 1 << 12;

/// What one pass over a pattern counts.
pub(super) struct Scan {
    pub(super) lengths: RowLengths,
    /// Largest distance of a nonzero from the scaled diagonal, in columns.
    pub(super) band_max: u64,
    /// Sum over the sample of the distances from the scaled diagonal.
    pub(super) band_sum: u64,
    /// Sampled nonzeros.
    pub(super) sampled: usize,
    /// Sampled nonzeros that are not the first of their row.
    pub(super) gaps: u64,
    /// Sum over those of ⌊log2(distance to the nonzero before)⌋.
    pub(super) gap_log_sum: u64,
    /// How many of those have distance 1.
    pub(super) adjacent: u64,
    pub(super) columns: Sketch,
    pub(super) diagonals: Sketch,
    /// Sampled nonzeros by cell of the finest grid, row by row.
    pub(super) grid: Vec<u32>,
    /// Row and column of the probed nonzeros.
    pub(super) probes: Vec<(u32, u32)>,
}

impl Scan {
    pub(super) fn of(pattern: &Pattern<'_>) -> Self {
        // One loop for each width of offsets: matching at every row would cost more than the row.
        match pattern.offsets {
            OffsetsView::U32(offsets) => Self::run(pattern, offsets, |o| o as usize),
            OffsetsView::U64(offsets) => Self::run(pattern, offsets, |o| o as usize),
        }
    }

    fn run<O: Copy>(pattern: &Pattern<'_>, offsets: &[O], index: impl Fn(O) -> usize) -> Self {
        let columns = pattern.columns;
        let mut sampler = Sampler::new(pattern);
        let mut lengths = RowLengths::new();
        let mut band_max = 0;
        // The scaled diagonal: column row · cols / rows, in 32.32 fixed point.
        let step = ((pattern.cols as u64) << 32) / pattern.rows.max(1) as u64;
        // Truncating the step loses less than a 2⁻³² of a column at every row. Starting that much
        // ahead keeps whole columns whole.
        let mut diagonal = pattern.rows as u64;
        let mut start = 0;
        for (row, &offset) in offsets.get(1..).unwrap_or_default().iter().enumerate() {
            let end = index(offset);
            lengths.add(end - start);
            // Columns increase, so the first and the last are the farthest from the diagonal.
            if let [first, .., last] | [first @ last] = columns[start..end] {
                let at = diagonal >> 32;
                band_max =
                    band_max.max(u64::from(first).abs_diff(at)).max(u64::from(last).abs_diff(at));
            }
            if sampler.next < end {
                sampler.take_row(row, start, end, diagonal >> 32);
            }
            diagonal = diagonal.wrapping_add(step);
            start = end;
        }
        sampler.into_scan(lengths.finish(), band_max)
    }
}

/// Collects the sampled nonzeros during the pass.
struct Sampler<'a> {
    columns: &'a [u32],
    rows: u64,
    cols: u64,
    strata: Strata,
    taken: usize,
    /// Position of the next nonzero to take.
    next: usize,
    probe_strata: Strata,
    /// Number of the next sampled nonzero to probe.
    next_probe: usize,
    band_sum: u64,
    gaps: u64,
    gap_log_sum: u64,
    adjacent: u64,
    popularity: Sketch,
    diagonals: Sketch,
    grid: Vec<u32>,
    probes: Vec<(u32, u32)>,
}

impl<'a> Sampler<'a> {
    fn new(pattern: &Pattern<'a>) -> Self {
        let strata = Strata::new(pattern.nnz(), SAMPLE_LIMIT);
        let probe_strata = Strata::new(strata.len(), PROBE_LIMIT);
        Self {
            columns: pattern.columns,
            rows: pattern.rows as u64,
            cols: pattern.cols as u64,
            strata,
            taken: 0,
            next: strata.position(0),
            probe_strata,
            next_probe: probe_strata.position(0),
            band_sum: 0,
            gaps: 0,
            gap_log_sum: 0,
            adjacent: 0,
            popularity: Sketch::new(pattern.cols),
            diagonals: Sketch::new((pattern.rows + pattern.cols).saturating_sub(1)),
            grid: vec![0; FINE * FINE],
            probes: Vec::with_capacity(probe_strata.len()),
        }
    }

    /// Takes the sampled nonzeros among positions `start..end`, which are those of `row`.
    fn take_row(&mut self, row: usize, start: usize, end: usize, diagonal: u64) {
        let fine = FINE as u64;
        let grid_row = (row as u64 * fine / self.rows * fine) as usize;
        let diagonal_base = self.rows - 1 - row as u64;
        while self.next < end {
            let position = self.next;
            let col = self.columns[position];
            let wide = u64::from(col);
            self.band_sum += wide.abs_diff(diagonal);
            self.popularity.add(wide);
            self.diagonals.add(wide + diagonal_base);
            self.grid[grid_row + (wide * fine / self.cols) as usize] += 1;
            if position > start {
                let gap = col - self.columns[position - 1];
                self.gaps += 1;
                self.gap_log_sum += u64::from(gap.ilog2());
                self.adjacent += u64::from(gap == 1);
            }
            if self.taken == self.next_probe {
                self.probes.push((row as u32, col));
                self.next_probe = self.probe_strata.position(self.probes.len());
            }
            self.taken += 1;
            self.next = self.strata.position(self.taken);
        }
    }

    fn into_scan(self, lengths: RowLengths, band_max: u64) -> Scan {
        Scan {
            lengths,
            band_max,
            band_sum: self.band_sum,
            sampled: self.taken,
            gaps: self.gaps,
            gap_log_sum: self.gap_log_sum,
            adjacent: self.adjacent,
            columns: self.popularity,
            diagonals: self.diagonals,
            grid: self.grid,
            probes: self.probes,
        }
    }
}
