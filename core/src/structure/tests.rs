use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use proptest::prelude::*;

use super::chunks::row_chunks;
use super::*;
use crate::matrix::{Csr, Offsets};

/// A pattern as its shape and positions, from which matrices are made.
#[derive(Clone, Debug)]
struct Positions {
    rows: usize,
    cols: usize,
    at: BTreeSet<(usize, usize)>,
}

impl Positions {
    fn new(rows: usize, cols: usize, at: impl IntoIterator<Item = (usize, usize)>) -> Self {
        Self { rows, cols, at: at.into_iter().collect() }
    }

    fn csr(&self) -> Csr<f32> {
        let mut offsets = vec![0_u32; self.rows + 1];
        for &(row, _) in &self.at {
            offsets[row + 1] += 1;
        }
        for row in 0..self.rows {
            offsets[row + 1] += offsets[row];
        }
        let columns: Vec<u32> = self.at.iter().map(|&(_, col)| col as u32).collect();
        let values = vec![1.0; columns.len()];
        Csr::new(self.rows, self.cols, Offsets::U32(offsets), columns, values).unwrap()
    }

    fn features(&self) -> Features {
        Features::new(self.csr().view())
    }

    fn embedding(&self) -> StructureEmbedding {
        StructureEmbedding::new(self.csr().view(), &EmbeddingConfig::default())
    }

    /// `k` copies along the diagonal.
    fn repeated(&self, k: usize) -> Self {
        let copies = (0..k).flat_map(|i| {
            self.at.iter().map(move |&(r, c)| (r + i * self.rows, c + i * self.cols))
        });
        Self::new(k * self.rows, k * self.cols, copies)
    }

    /// Every position becomes a dense k × k block.
    fn refined(&self, k: usize) -> Self {
        let fine = self
            .at
            .iter()
            .flat_map(|&(r, c)| (0..k * k).map(move |i| (k * r + i / k, k * c + i % k)));
        Self::new(k * self.rows, k * self.cols, fine)
    }

    fn permuted(&self, order: &[usize]) -> Self {
        Self::new(self.rows, self.cols, self.at.iter().map(|&(r, c)| (order[r], c)))
    }
}

fn stencil(side: usize) -> Positions {
    let at = (0..side * side).flat_map(|i| {
        let (y, x) = (i / side, i % side);
        [
            (y > 0).then(|| i - side),
            (x > 0).then(|| i - 1),
            Some(i),
            (x + 1 < side).then_some(i + 1),
            (y + 1 < side).then_some(i + side),
        ]
        .into_iter()
        .flatten()
        .map(move |col| (i, col))
    });
    Positions::new(side * side, side * side, at)
}

fn arrow(n: usize) -> Positions {
    Positions::new(n, n, (0..n).flat_map(|i| [(0, i), (i, 0), (i, i)]))
}

/// Wide, with empty rows, a dense row and a block.
fn wide() -> Positions {
    let block = (4..8).flat_map(|r| (8..12).map(move |c| (r, c)));
    Positions::new(9, 40, block.chain((0..40).map(|c| (2, c))).chain([(0, 39)]))
}

fn positions(rows: usize, cols: usize, most: usize) -> impl Strategy<Value = Positions> {
    prop::collection::btree_set((0..rows, 0..cols), 1..most).prop_map(move |at| Positions {
        rows,
        cols,
        at,
    })
}

fn small() -> impl Strategy<Value = Positions> {
    (1_usize..40, 1_usize..40).prop_flat_map(|(rows, cols)| positions(rows, cols, 120))
}

fn describe(embedding: &StructureEmbedding) -> String {
    let mut out = format!(
        "version {}, {} tokens of {}\n",
        embedding.version, embedding.n_tokens, embedding.d
    );
    for (name, value) in Features::NAMES.iter().zip(embedding.features.to_array()) {
        writeln!(out, "{name}: {value:.6}").unwrap();
    }
    writeln!(out, "grid 8:").unwrap();
    for row in embedding.grids.level(8).unwrap().chunks(8) {
        let cells: Vec<String> = row.iter().map(|v| format!("{v:.6}")).collect();
        writeln!(out, "  {}", cells.join(" ")).unwrap();
    }
    for (i, token) in embedding.tokens.chunks(embedding.d).enumerate().step_by(7) {
        let ends: Vec<String> = token.iter().step_by(16).map(|v| format!("{v:.6}")).collect();
        writeln!(out, "token {i}: {}", ends.join(" ")).unwrap();
    }
    out
}

#[test]
fn golden_stencil() {
    insta::assert_snapshot!(describe(&stencil(6).embedding()));
}

#[test]
fn golden_arrow() {
    insta::assert_snapshot!(describe(&arrow(200).embedding()));
}

#[test]
fn golden_wide() {
    insta::assert_snapshot!(describe(&wide().embedding()));
}

fn assert_bounded(embedding: &StructureEmbedding) {
    for (name, value) in Features::NAMES.iter().zip(embedding.features.to_array()) {
        assert!(value.is_finite() && (-8.0..=8.0).contains(&value), "{name}: {value}");
    }
    assert_eq!(embedding.grids.cells().len(), DensityGrids::CELLS);
    assert!(embedding.grids.cells().iter().all(|v| (0.0..=1.0).contains(v)));
    assert_eq!(embedding.tokens.len(), embedding.n_tokens * embedding.d);
    assert!(embedding.tokens.iter().all(|v| (-1.0..=1.0).contains(v)));
}

#[test]
fn degenerate_matrices_work() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (5, 5), (1, 4_294_967_295)] {
        let embedding = Positions::new(rows, cols, []).embedding();
        assert_bounded(&embedding);
        assert_eq!(embedding.n_tokens, 0);
    }
    for at in [(0, 0), (0, 4_294_967_294)] {
        let embedding = Positions::new(1, 4_294_967_295, [at]).embedding();
        assert_bounded(&embedding);
        assert_eq!(embedding.n_tokens, 1);
    }
}

#[test]
fn wide_offsets_change_nothing() {
    let narrow = stencil(20).csr();
    let view = narrow.view();
    let offsets = (0..=view.rows()).map(|i| view.offsets().at(i) as u64).collect();
    let wide = Csr::new(
        view.rows(),
        view.cols(),
        Offsets::U64(offsets),
        view.columns().to_vec(),
        view.values().to_vec(),
    )
    .unwrap();
    let config = EmbeddingConfig::default();
    assert_eq!(
        StructureEmbedding::new(wide.view(), &config),
        StructureEmbedding::new(view, &config)
    );
}

#[test]
fn tokens_follow_the_formula() {
    let matrix = Positions::new(10, 4, [(7, 3)]).csr();
    let config = EmbeddingConfig { max_tokens: 4, frequencies: 3, ..Default::default() };
    let embed =
        |scaling| StructureEmbedding::new(matrix.view(), &EmbeddingConfig { scaling, ..config });
    let d = 6.0;
    for (scaling, indices) in [
        (IndexScaling::Scaled, [7.0 * 1024.0 / 10.0, 3.0 * 1024.0 / 4.0]),
        (IndexScaling::Raw, [7.0, 3.0]),
    ] {
        let token = embed(scaling).tokens;
        assert_eq!(token.len(), 12);
        for (half, i) in token.chunks(6).zip(indices) {
            for j in 0..3 {
                let angle: f64 = i / f64::powf(10_000.0, 2.0 * j as f64 / d);
                assert!((f64::from(half[2 * j]) - angle.sin()).abs() < 1e-6);
                assert!((f64::from(half[2 * j + 1]) - angle.cos()).abs() < 1e-6);
            }
        }
    }
    let max_min = embed(IndexScaling::MaxMin);
    assert_eq!(max_min.d, 2);
    assert!((max_min.tokens[0] - 7.0 / 9.0).abs() < 1e-6);
    assert!((max_min.tokens[1] - 1.0).abs() < 1e-6);
}

#[test]
fn tokens_cover_rows_and_nonzeros() {
    // One row holds almost everything; the rows below must be seen all the same.
    let heavy =
        Positions::new(1000, 5000, (0..5000).map(|c| (0, c)).chain((1..1000).map(|r| (r, r))));
    let config = EmbeddingConfig { scaling: IndexScaling::MaxMin, ..Default::default() };
    let embedding = StructureEmbedding::new(heavy.csr().view(), &config);
    assert!((224..=256).contains(&embedding.n_tokens));
    let below = embedding.tokens.chunks(2).filter(|t| t[0] > 0.0).count();
    assert!((128..192).contains(&below), "{below}");
}

#[test]
fn features_of_a_known_structure() {
    let f = wide().features();
    assert_eq!(f.empty_rows, 3.0 / 9.0);
    assert_eq!(f.row_max, (libm::log2(41.0) / 8.0) as f32);
    // Nonzeros above a nonzero: three rows of the block.
    assert_eq!(f.adjacent_below, 12.0 / 57.0);
    // The dense row crosses ten aligned 4×4 blocks, and the block is one.
    assert_eq!(f.block_4, (57.0 / (11.0 * 16.0)) as f32);
    assert_eq!(f.symmetry, 0.0);
    assert_eq!(arrow(50).features().symmetry, 1.0);
    assert_eq!(Positions::new(4, 4, [(0, 1), (1, 0), (2, 3)]).features().symmetry, 2.0 / 3.0);
    assert_eq!(Positions::new(4, 4, [(0, 0), (3, 3)]).features().symmetry, 1.0);
}

#[test]
fn sampled_features_are_close_to_the_truth() {
    let side = 300;
    let f = stencil(side).features();
    let nnz = (5 * side * side - 4 * side) as f32;
    assert!(nnz > 3.0 * SAMPLE_LIMIT as f32);
    assert!((f.diagonal_1 - (side * side) as f32 / nnz).abs() < 0.005, "{}", f.diagonal_1);
    assert!(f.diagonal_8 > 0.999);
    assert!((f.adjacent_left - 0.4).abs() < 0.01, "{}", f.adjacent_left);
    assert!((f.adjacent_below - 0.4).abs() < 0.03, "{}", f.adjacent_below);
    assert_eq!(f.symmetry, 1.0);
    assert!(f.column_variation < 0.02, "{}", f.column_variation);
    assert!(f.column_peak < 0.25, "{}", f.column_peak);
}

#[test]
fn a_growing_stencil_looks_the_same() {
    let (small, large) = (stencil(64), stencil(128));
    let (f, g) = (small.features(), large.features());
    // The band is as wide as a side of the square, which doubles.
    let grows = ["rows", "cols", "nonzeros", "sparsity", "band_mean", "band_max", "gap"];
    for ((name, a), b) in Features::NAMES.iter().zip(f.to_array()).zip(g.to_array()) {
        let bound = if grows.contains(name) { 0.26 } else { 0.06 };
        assert!((a - b).abs() <= bound, "{name}: {a} became {b}");
    }
    let (a, b) = (small.embedding().grids, large.embedding().grids);
    for (x, y) in a.cells().iter().zip(b.cells()) {
        assert!((x - y).abs() < 0.12, "{x} became {y}");
    }
}

/// Features that do not move when rows are permuted; see [`Features`].
fn fixed_when_permuted(name: &str) -> bool {
    let sizes = ["rows", "cols", "nonzeros", "aspect", "sparsity", "empty_rows"];
    sizes.contains(&name)
        || name.starts_with("row_")
        || name.starts_with("column_")
        || ["adjacent_left", "gap"].contains(&name)
}

proptest! {
    #[test]
    fn everything_is_bounded_and_repeatable(matrix in small()) {
        let embedding = matrix.embedding();
        assert_bounded(&embedding);
        prop_assert_eq!(embedding.n_tokens, matrix.at.len().min(256));
        prop_assert_eq!(embedding, matrix.embedding());
    }

    #[test]
    fn repeating_moves_features_as_documented(
        (matrix, k) in prop_oneof![
            ((1_usize..4).prop_flat_map(|n| positions(32 * n, 200, 300)), 2_usize..5),
            (positions(800, 800, 300), Just(2)),
        ]
    ) {
        let (f, g) = (matrix.features(), matrix.repeated(k).features());
        let shift = (libm::log2(k as f64) / 8.0) as f32;
        for ((name, a), b) in Features::NAMES.iter().zip(f.to_array()).zip(g.to_array()) {
            let change = b - a;
            match *name {
                "rows" | "cols" | "nonzeros" | "sparsity" => {
                    prop_assert!((0.0..=shift + 1e-5).contains(&change), "{} by {}", name, change);
                }
                "band_mean_share" | "band_max_share" => {
                    prop_assert!((b * k as f32 - a).abs() < 1e-5, "{}: {} became {}", name, a, b);
                }
                "diagonal_1" | "diagonal_8" | "diagonal_64" if matrix.rows != matrix.cols => {
                    prop_assert!((-1.0..=1e-5).contains(&change), "{} by {}", name, change);
                }
                _ => prop_assert!(change.abs() < 1e-5, "{}: {} became {}", name, a, b),
            }
        }
    }

    #[test]
    fn refining_keeps_the_grids(matrix in positions(64, 96, 200), k in 2_usize..4) {
        let (a, b) = (matrix.embedding().grids, matrix.refined(k).embedding().grids);
        for (x, y) in a.cells().iter().zip(b.cells()) {
            prop_assert!((x - y).abs() < 1e-6);
        }
    }

    #[test]
    fn permuting_rows_changes_only_what_it_should(
        (matrix, order) in small().prop_flat_map(|m| {
            let order: Vec<usize> = (0..m.rows).collect();
            (Just(m), Just(order).prop_shuffle())
        })
    ) {
        let (f, g) = (matrix.features(), matrix.permuted(&order).features());
        for ((name, a), b) in Features::NAMES.iter().zip(f.to_array()).zip(g.to_array()) {
            if fixed_when_permuted(name) {
                prop_assert_eq!(a.to_bits(), b.to_bits(), "{}", name);
            }
        }
    }

    #[test]
    fn spy_cells_hold_every_nonzero(matrix in small(), width in 0_usize..50, height in 0_usize..50) {
        let grid = SpyGrid::new(matrix.csr().view(), width, height);
        let counted: u64 = grid.counts().iter().sum();
        if width * height > 0 {
            prop_assert_eq!(counted, matrix.at.len() as u64);
            prop_assert_eq!(grid.width(), width.min(matrix.cols));
            prop_assert_eq!(grid.height(), height.min(matrix.rows));
        } else {
            prop_assert!(grid.counts().is_empty());
        }
    }

    #[test]
    fn groups_slices_and_spans_are_those_of_a_plain_count(
        (rows, tall) in (2_usize..90, 1_usize..30),
        matrix in positions(2200, 400, 2500),
        window in prop::option::of(prop::sample::select(vec![32_u32, 256])),
        (at_once, lanes, most) in (0_u32..6, 0_u32..6, prop::sample::select(vec![32_u32, 128])),
        height in prop::sample::select(vec![1_u32, 2, 4, 6, 8, 12, 16, 32]),
    ) {
        // Rows of every length, and wide gaps between columns of some.
        let entry = |&(row, col): &(usize, usize)| (row % (rows * tall), col * 300);
        let matrix = Positions::new(rows * tall, 120_000, matrix.at.iter().map(entry));
        let csr = matrix.csr();
        let stats = MatrixStats::new(csr.view());
        let order = window.map_or(Order::Keep, |window| Order::Sort { window });
        let ordered: Vec<usize> = stats.ordered(RowSetId::ALL, order).iter().collect();
        let lens: Vec<u64> = ordered.iter().map(|&row| csr.view().row_len(row) as u64).collect();
        let (at_once, lanes) = (1 << at_once, 1 << lanes);
        let grouped = |longest: &[u64]| RowGroups {
            groups: longest.len() as u64,
            steps: longest.iter().map(|entries| entries.div_ceil(u64::from(lanes))).sum(),
            longest: longest.iter().copied().max().unwrap_or(0).div_ceil(lanes.into()),
        };
        let longest = |of: &[u64], together: u32| -> Vec<u64> {
            of.chunks(together as usize).filter_map(|some| some.iter().copied().max()).collect()
        };
        let found = stats.row_groups(RowSetId::ALL, order, at_once, lanes);
        prop_assert_eq!(found, grouped(&longest(&lens, at_once)));
        let slots = longest(&lens, height).iter().sum::<u64>() * u64::from(height);
        prop_assert_eq!(stats.slice_slots(RowSetId::ALL, order, height), slots);
        // Runs of 256 rows are taken apart.
        let of_run = |run: &[u64]| -> Vec<u64> {
            let fours = run.iter().flat_map(|&entries| row_chunks(entries, most));
            longest(&fours.map(|slots| slots / 4).collect::<Vec<_>>(), at_once)
        };
        let steps = grouped(&lens.chunks(256).flat_map(of_run).collect::<Vec<_>>()).steps;
        let found = stats.chunk_groups(RowSetId::ALL, order, most, at_once, lanes);
        prop_assert_eq!(found.steps, steps);
        let spans = ordered.chunks(height as usize).map(|rows| {
            let columns = || rows.iter().flat_map(|&row| csr.view().row(row).0);
            columns().max().zip(columns().min()).map_or(0, |(last, first)| u64::from(last - first))
        });
        let (widest, coded) = (spans.max().unwrap_or(0), u64::from(u16::MAX));
        let found = stats.span(RowSetId::ALL, order, height, 1);
        prop_assert!(found == widest || found > coded && found < widest, "{found}, {widest}");
        let of_tiles = stats.tile_span(RowSetId::ALL, order, 64);
        let of_rows = stats.span(RowSetId::ALL, order, 1, 1);
        prop_assert!(of_tiles >= of_rows || of_tiles > coded, "{of_tiles}, {of_rows}");
    }
}

#[test]
fn groups_of_many_rows_are_counted_in_pieces_and_chunks_of_some() {
    let matrix = crate::matrix::generate::rmat(17, 3, 1);
    let stats = MatrixStats::new(matrix.view());
    let (lens, offsets) = (|row| matrix.view().row_len(row), matrix.view().offsets());
    for order in [Order::Keep, Order::Sort { window: 2048 }] {
        let rows = stats.ordered(RowSetId::ALL, order);
        for height in [1, 4, 8, 32] {
            let plain = RowGroups::of(&rows, offsets, height, 2);
            assert_eq!(stats.row_groups(RowSetId::ALL, order, height, 2), plain, "{height}");
            let ordered: Vec<usize> = rows.iter().map(lens).collect();
            let widths = ordered.chunks(height as usize).filter_map(|rows| rows.iter().max());
            let slots = widths.sum::<usize>() as u64 * u64::from(height);
            assert_eq!(stats.slice_slots(RowSetId::ALL, order, height), slots, "{height}");
        }
    }
    // Runs of rows that lie anywhere stand for all of a matrix whose rows are alike throughout.
    let alike = crate::matrix::generate::uniform(100_000, 5_000, 40, 1);
    let stats = MatrixStats::new(alike.view());
    let lens = (0..alike.rows()).map(|row| alike.view().row_len(row) as u64);
    let chunks: Vec<u64> = lens.flat_map(|entries| row_chunks(entries, 32)).collect();
    let slowest = chunks.chunks(8).filter_map(|group| group.iter().max());
    let steps: u64 = slowest.map(|slots| (slots / 4).div_ceil(4)).sum();
    let found = stats.chunk_groups(RowSetId::ALL, Order::Keep, 32, 8, 4);
    assert!(found.steps.abs_diff(steps) < steps / 100, "{} for {steps}", found.steps);
    assert_eq!(found.groups, chunks.len().div_ceil(8) as u64);
}

#[test]
fn a_spy_grid_as_large_as_the_matrix_is_the_matrix() {
    let matrix = Positions::new(2, 3, [(0, 2), (1, 0)]);
    let grid = SpyGrid::new(matrix.csr().view(), 10, 10);
    assert_eq!(grid.counts(), [0, 0, 1, 1, 0, 0]);
    assert_eq!(grid.max(), 1);
}
