use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::probe::{Probes, look_around};
use super::scan::Scan;
use super::sketch::BUCKETS;

/// Declares the features once, so that fields, names and array cannot disagree.
macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Global features of a sparse matrix's structure.
        ///
        /// Every feature is finite. Sizes and counts x appear as log2(1 + x) / 8, written lg(x)
        /// below: in [0, 4] up to 2³² and below 8 always. Shares are in [0, 1].
        ///
        /// `row_…`, `…_rows` and sizes are exact. `band_max_…` are exact too. The rest is exact up
        /// to [`SAMPLE_LIMIT`](super::SAMPLE_LIMIT) nonzeros ([`PROBE_LIMIT`](super::PROBE_LIMIT)
        /// for `block_…`, `adjacent_below` and `symmetry`) and estimated from a sample above.
        /// `slice_padding` is what [`slice_slots`](super::MatrixStats::slice_slots) counts for
        /// layouts of slices.
        ///
        /// # How they move when a matrix grows
        ///
        /// Repeating a matrix k times along the diagonal
        /// - shifts `rows`, `cols`, `nonzeros` and `sparsity` by at most log2(k) / 8;
        /// - divides `band_mean_share` and `band_max_share` by k;
        /// - lowers `diagonal_…` unless the matrix is square, since the copies are then not on the
        ///   same diagonals;
        /// - leaves the others as they are, to rounding, as long as every column and diagonal has a
        ///   bucket of its own (4096 of each), the rows are a multiple of 32 for `slice_padding`,
        ///   rows and columns of 8 for `block_…`, and the columns of 100 for `column_top`.
        ///
        /// Permuting the rows of a matrix that is described exactly leaves the features of sizes,
        /// row lengths (but for `slice_padding`), columns, `adjacent_left` and `gap` as they are,
        /// to the last bit; it may change all others.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Features {
            $($(#[doc = $doc])+ pub $name: f32,)+
        }

        impl Features {
            /// Names of the features, in the order of [`to_array`](Self::to_array).
            pub const NAMES: [&str; Self::COUNT] = [$(stringify!($name)),+];
            /// Number of features.
            pub const COUNT: usize = [$(stringify!($name)),+].len();

            /// The features in declaration order.
            #[must_use]
            pub fn to_array(&self) -> [f32; Self::COUNT] {
                [$(self.$name),+]
            }
        }
    };
}

features! {
    /// lg(rows).
    rows,
    /// lg(columns).
    cols,
    /// lg(nonzeros).
    nonzeros,
    /// log2(rows / columns) / 8, in [−4, 4]; 0 when either is 0.
    aspect,
    /// −log2(nonzeros / (rows · columns)) / 8: 0 when full, at most 8, which also stands for no
    /// nonzeros at all.
    sparsity,
    /// Share of rows without nonzeros.
    empty_rows,
    /// lg of the mean row length.
    row_mean,
    /// lg of the standard deviation of the row lengths.
    row_deviation,
    /// lg(standard deviation / mean) of the row lengths.
    row_variation,
    /// Skewness s of the row lengths, as sign(s) · lg(|s|).
    row_skewness,
    /// lg of the longest row.
    row_max,
    /// lg(longest row / mean row length).
    row_imbalance,
    /// lg of the shortest row.
    row_min,
    /// lg of the row length that 10 % of the rows do not exceed.
    row_q10,
    /// lg of the first quartile of the row lengths.
    row_q25,
    /// lg of the median row length.
    row_median,
    /// lg of the third quartile of the row lengths.
    row_q75,
    /// lg of the row length that 90 % of the rows do not exceed.
    row_q90,
    /// lg of the row length that 99 % of the rows do not exceed.
    row_q99,
    /// log2(slots / nonzeros) / 8 when each slice of 32 rows is padded to its longest, and the last
    /// one to 32 rows: in [0, 0.625].
    slice_padding,
    /// lg of the mean distance from the scaled diagonal (column row · columns / rows), in columns.
    band_mean,
    /// The same as a share of the columns.
    band_mean_share,
    /// lg of the largest distance from the scaled diagonal, in columns.
    band_max,
    /// The same as a share of the columns.
    band_max_share,
    /// Share of nonzeros on the densest diagonal.
    diagonal_1,
    /// Share of nonzeros on the 8 densest diagonals.
    diagonal_8,
    /// Share of nonzeros on the 64 densest diagonals.
    diagonal_64,
    /// Filled share of the nonempty aligned 2×2 blocks, at least 1/4.
    block_2,
    /// Filled share of the nonempty aligned 4×4 blocks, at least 1/16.
    block_4,
    /// Filled share of the nonempty aligned 8×8 blocks, at least 1/64.
    block_8,
    /// Share of nonzeros whose left neighbour in the row is in the column just before.
    adjacent_left,
    /// Share of nonzeros with a nonzero just below.
    adjacent_below,
    /// Mean ⌊log2⌋ of the distance to the nonzero before in the row, over 8.
    gap,
    /// lg(most popular column's nonzeros / mean over columns), hashed above 4096 columns.
    column_peak,
    /// lg(standard deviation / mean) of the nonzeros by column, hashed above 4096 columns.
    column_variation,
    /// Share of nonzeros in the most popular 1 % of the columns, hashed above 4096 columns.
    column_top,
    /// Share of off-diagonal nonzeros (r, c) with a nonzero at (c, r): 1 when there are none, 0 for
    /// a rectangular matrix.
    symmetry,
}

/// −log2 of the density of a matrix without nonzeros, and the largest reported: 2⁻⁶⁴ is below the
/// density of any other matrix of 32-bit indices.
const SPARSEST: f64 = 64.0;

impl Features {
    /// Those of a pattern, of which `slots` are stored in slices of 32 rows.
    pub(super) fn of(pattern: &Pattern<'_>, scan: &Scan, slots: u64) -> Self {
        let (rows, cols, nnz) = (pattern.rows as f64, pattern.cols as f64, pattern.nnz() as f64);
        let probes = look_around(pattern, &scan.probes);
        let popularity = Popularity::of(scan, nnz);
        let diagonals = scan.diagonals.ranked();
        let lengths = &scan.lengths;
        let moments = lengths.moments();
        let sampled = scan.sampled.max(1) as f64;
        let gaps = scan.gaps.max(1) as f64;
        let band_mean = scan.band_sum as f64 / sampled;
        let quantile = |q| lg(lengths.quantile(q));
        let Probes { block_fill: [block_2, block_4, block_8], below, symmetry } = probes;
        Self {
            rows: lg(rows),
            cols: lg(cols),
            nonzeros: lg(nnz),
            aspect: eighth_log(ratio(rows, cols)),
            sparsity: if nnz == 0.0 {
                SPARSEST as f32 / 8.0
            } else {
                eighth_log(rows * cols / nnz)
            },
            empty_rows: lengths.empty_share() as f32,
            row_mean: lg(moments.mean),
            row_deviation: lg(moments.deviation),
            row_variation: lg(ratio(moments.deviation, moments.mean)),
            row_skewness: lg(moments.skewness.abs()).copysign(moments.skewness as f32),
            row_max: lg(lengths.longest() as f64),
            row_imbalance: lg(ratio(lengths.longest() as f64, moments.mean)),
            row_min: quantile(0.0),
            row_q10: quantile(0.1),
            row_q25: quantile(0.25),
            row_median: quantile(0.5),
            row_q75: quantile(0.75),
            row_q90: quantile(0.9),
            row_q99: quantile(0.99),
            slice_padding: eighth_log(ratio(slots as f64, nnz)),
            band_mean: lg(band_mean),
            band_mean_share: ratio(band_mean, cols) as f32,
            band_max: lg(scan.band_max as f64),
            band_max_share: ratio(scan.band_max as f64, cols) as f32,
            diagonal_1: diagonals.top_share(1) as f32,
            diagonal_8: diagonals.top_share(8) as f32,
            diagonal_64: diagonals.top_share(64) as f32,
            block_2: block_2 as f32,
            block_4: block_4 as f32,
            block_8: block_8 as f32,
            adjacent_left: (scan.adjacent as f64 / sampled) as f32,
            adjacent_below: below as f32,
            gap: (scan.gap_log_sum as f64 / gaps / 8.0) as f32,
            column_peak: lg(popularity.peak),
            column_variation: lg(popularity.variation),
            column_top: popularity.top as f32,
            symmetry: symmetry as f32,
        }
    }
}

/// How unevenly the columns are used.
struct Popularity {
    peak: f64,
    variation: f64,
    top: f64,
}

impl Popularity {
    fn of(scan: &Scan, nnz: f64) -> Self {
        let ranked = scan.columns.ranked();
        let hundredth = ranked.buckets().div_ceil(100);
        Self {
            peak: ranked.peak(),
            variation: ranked.variation(ratio(scan.sampled as f64, nnz)),
            top: ranked.top_share(hundredth),
        }
    }
}

/// log2(1 + x) / 8 of a count or ratio that may span decades.
fn lg(x: f64) -> f32 {
    (libm::log2(1.0 + x) / 8.0) as f32
}

/// log2(x) / 8; 0 when x is 0.
fn eighth_log(x: f64) -> f32 {
    if x > 0.0 { (libm::log2(x) / 8.0) as f32 } else { 0.0 }
}

/// a / b; 0 when b is 0.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

const _: () = assert!(BUCKETS == 4096, "the documentation of the column features says 4096");
