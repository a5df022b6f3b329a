//! Matrices of well-known families: the same for the same arguments on every machine.
//!
//! For tests, examples, benchmarks and training. Sizes beyond 2³² − 1 rows or columns are cut to
//! that. Rows are made in the current rayon pool under `std`; the matrix does not depend on the
//! threads.

mod featured;
mod graphs;
mod layers;
mod programs;
mod random;
mod rows;

use alloc::vec::Vec;

use super::{Csr, CsrError, Offsets, OffsetsView};
use crate::random::SplitMix64;
pub use featured::{Features, featured};
pub use graphs::{MOST_PINS, communities, mesh, netlist, road, web};
pub use layers::{atoms, bipartite, clauses, pruned_layer, radix_layer};
pub use programs::{bordered_blocks, circuit, diagonals, linear_program, saddle_point};
use rows::{by_rows, sort};

/// A matrix of the same pattern whose values are drawn at random: magnitudes in [0.5, 1.5), so that
/// each entry counts, of either sign, and so many different ones that neither a constant nor a
/// dictionary holds them.
///
/// # Errors
/// Never for a matrix in memory; the arrays are checked as those of every matrix.
pub fn with_random_values(matrix: &Csr<f64>, seed: u64) -> Result<Csr<f64>, CsrError> {
    let mut random = SplitMix64::new(seed);
    let mut value = || {
        let drawn = random.value();
        drawn + libm::copysign(0.5, drawn)
    };
    let values = (0..matrix.nnz()).map(|_| value()).collect();
    let view = matrix.view();
    let offsets = match view.offsets() {
        OffsetsView::U32(offsets) => Offsets::U32(offsets.to_vec()),
        OffsetsView::U64(offsets) => Offsets::U64(offsets.to_vec()),
    };
    Csr::new(matrix.rows(), matrix.cols(), offsets, view.columns().to_vec(), values)
}

/// The five-point Laplacian of an `nx` × `ny` grid: symmetric, 4 on the diagonal, −1 beside it.
#[must_use]
pub fn stencil5(nx: usize, ny: usize) -> Csr<f64> {
    let points = nx.saturating_mul(ny);
    by_rows(points, points, |point, row| {
        let (x, y) = (point % nx, point / nx);
        row.extend((y > 0).then(|| (point - nx, -1.0)));
        row.extend((x > 0).then(|| (point - 1, -1.0)));
        row.push((point, 4.0));
        row.extend((x + 1 < nx).then_some((point + 1, -1.0)));
        row.extend((y + 1 < ny).then_some((point + nx, -1.0)));
    })
}

/// The seven-point Laplacian of an `nx` × `ny` × `nz` grid: symmetric, 6 on the diagonal, −1 beside
/// it.
#[must_use]
pub fn stencil7(nx: usize, ny: usize, nz: usize) -> Csr<f64> {
    let plane = nx.saturating_mul(ny);
    let points = plane.saturating_mul(nz);
    by_rows(points, points, |point, row| {
        let (x, y, z) = (point % nx, point / nx % ny, point / plane);
        row.extend((z > 0).then(|| (point - plane, -1.0)));
        row.extend((y > 0).then(|| (point - nx, -1.0)));
        row.extend((x > 0).then(|| (point - 1, -1.0)));
        row.push((point, 6.0));
        row.extend((x + 1 < nx).then_some((point + 1, -1.0)));
        row.extend((y + 1 < ny).then_some((point + nx, -1.0)));
        row.extend((z + 1 < nz).then_some((point + plane, -1.0)));
    })
}

/// The 27-point stencil of an `nx` × `ny` × `nz` grid: symmetric, 26 on the diagonal, −1 elsewhere.
#[must_use]
pub fn stencil27(nx: usize, ny: usize, nz: usize) -> Csr<f64> {
    let points = nx.saturating_mul(ny).saturating_mul(nz);
    let around = |at: usize, end: usize| at.saturating_sub(1)..(at + 2).min(end);
    by_rows(points, points, |point, row| {
        let (x, y, z) = (point % nx, point / nx % ny, point / nx / ny);
        for other_z in around(z, nz) {
            for other_y in around(y, ny) {
                for other_x in around(x, nx) {
                    let other = (other_z * ny + other_y) * nx + other_x;
                    row.push((other, if other == point { 26.0 } else { -1.0 }));
                }
            }
        }
    })
}

/// A square matrix with every entry of at most `half_width` columns beside the diagonal.
#[must_use]
pub fn banded(rows: usize, half_width: usize, seed: u64) -> Csr<f64> {
    let rows = rows.min(u32::MAX as usize);
    let start = |at: usize| at.saturating_sub(half_width);
    let end = |at: usize| at.saturating_add(half_width).saturating_add(1).min(rows);
    // Entries above a row: the ends less the starts of the rows above, each a sum of a few runs.
    let above = |at: usize| {
        let whole = rows.saturating_sub(half_width.saturating_add(1)).min(at) as u64;
        let ends =
            whole * half_width as u64 + whole * (whole + 1) / 2 + (at as u64 - whole) * rows as u64;
        let late = at.saturating_sub(half_width.saturating_add(1)) as u64;
        ends - late * (late + 1) / 2
    };
    by_rows(rows, rows, |at, row| {
        let mut random = SplitMix64::after(seed, above(at));
        row.extend((start(at)..end(at)).map(|col| (col, random.value())));
    })
}

/// `per_row` entries in every row (fewer if there are fewer columns), evenly spread at random.
#[must_use]
pub fn uniform(rows: usize, cols: usize, per_row: usize, seed: u64) -> Csr<f64> {
    let numbers_per_row = 2 * per_row.min(cols) as u64;
    by_rows(rows, cols, |at, row| {
        let mut random = SplitMix64::after(seed, numbers_per_row.saturating_mul(at as u64));
        random.distinct(per_row, cols, row);
        for (_, value) in row {
            *value = random.value();
        }
    })
}

/// A power-law graph with 2^`scale` vertices and at most `edge_factor` edges a vertex, every value
/// 1: the recursive matrix (R-MAT) with Graph500's parameters 0.57, 0.19, 0.19, 0.05, repeated
/// edges merged. `scale` is cut to 31.
#[must_use]
pub fn rmat(scale: u32, edge_factor: usize, seed: u64) -> Csr<f64> {
    rmat_with(scale, edge_factor, [57, 19, 19], seed)
}

/// [`rmat`] with other probabilities, in percent, of the upper left, upper right and lower left
/// quarter; the lower right one has what is left of 100.
#[must_use]
pub fn rmat_with(scale: u32, edge_factor: usize, percent: [u8; 3], seed: u64) -> Csr<f64> {
    let scale = scale.min(31);
    let [upper_left, upper_right, lower_left] = percent.map(usize::from);
    let (upper, left) = (upper_left + upper_right, upper_left + upper_right + lower_left);
    let vertices = 1_usize << scale;
    let edges = positions(vertices.saturating_mul(edge_factor), u64::from(scale), seed, |random| {
        let (mut row, mut col) = (0, 0);
        for _ in 0..scale {
            let (down, right) = match random.below(100) {
                drawn if drawn < upper_left => (0, 0),
                drawn if drawn < upper => (0, 1),
                drawn if drawn < left => (1, 0),
                _ => (1, 1),
            };
            row = 2 * row + down;
            col = 2 * col + right;
        }
        (row, col)
    });
    by_rows(vertices, vertices, |at, row| {
        row.extend(of_row(&edges, at).map(|(_, col)| (col, 1.0)));
    })
}

/// The pattern of a finite-element mesh with `dof` unknowns a node: `nodes` nodes in a square grid,
/// each coupled to its eight neighbours by dense `dof` × `dof` blocks. Symmetric and diagonally
/// dominant.
#[must_use]
pub fn fem_blocks(nodes: usize, dof: usize, seed: u64) -> Csr<f64> {
    let side = nodes.isqrt().max(1);
    let rows = nodes.saturating_mul(dof);
    by_rows(rows, rows, |at, row| {
        let node = at / dof;
        let (x, y) = (node % side, node / side);
        for other_y in y.saturating_sub(1)..y + 2 {
            for other_x in x.saturating_sub(1)..(x + 2).min(side) {
                let other = other_y * side + other_x;
                if other >= nodes {
                    continue;
                }
                row.extend((other * dof..(other + 1) * dof).map(|col| {
                    // The value depends on the unordered pair, so the matrix is symmetric.
                    let (low, high) = (at.min(col) as u64, at.max(col) as u64);
                    let value = SplitMix64::new(seed ^ (low << 32 | high)).value();
                    (col, if at == col { 9.0 * dof as f64 + value } else { value })
                }));
            }
        }
    })
}

/// `entries` entries (fewer where they coincide) in a matrix so large that most rows are empty.
#[must_use]
pub fn hyper_sparse(rows: usize, cols: usize, entries: usize, seed: u64) -> Csr<f64> {
    let (rows, cols) = (rows.min(u32::MAX as usize), cols.min(u32::MAX as usize));
    let entries = if rows.min(cols) == 0 { 0 } else { entries };
    let positions = positions(entries, 2, seed, |random| (random.below(rows), random.below(cols)));
    by_rows(rows, cols, |at, row| {
        row.extend(of_row(&positions, at).map(|(index, col)| {
            let numbers_before = 2 * entries as u64 + index as u64;
            (col, SplitMix64::after(seed, numbers_before).value())
        }));
    })
}

/// One full row, the middle one, and one entry in every other row.
#[must_use]
pub fn one_dense_row(rows: usize, cols: usize, seed: u64) -> Csr<f64> {
    let middle = rows / 2;
    by_rows(rows, cols, |at, row| {
        let numbers_before = match at.checked_sub(middle + 1) {
            None => 2 * at,
            Some(below) => 2 * middle + cols + 2 * below,
        };
        let mut random = SplitMix64::after(seed, numbers_before as u64);
        match at == middle {
            true => row.extend((0..cols).map(|col| (col, random.value()))),
            false if cols > 0 => row.push((random.below(cols), random.value())),
            false => {}
        }
    })
}

/// Dense `block` × `block` blocks: each block of the grid is kept with a probability of
/// `percent` in 100, as block-wise pruning of a layer leaves it.
#[must_use]
pub fn block_pruned(rows: usize, cols: usize, block: usize, percent: usize, seed: u64) -> Csr<f64> {
    let block = block.max(1);
    by_rows(rows, cols, |at, row| {
        for first in (0..cols).step_by(block) {
            let mut random = SplitMix64::new(seed ^ ((at / block) as u64) << 32 ^ first as u64);
            if random.below(100) < percent {
                let mut random = SplitMix64::new(random.bits() ^ at as u64);
                let columns = first..(first + block).min(cols);
                row.extend(columns.map(|col| (col, random.value())));
            }
        }
    })
}

/// `count` drawn positions in order, equal ones merged, each as `row << 32 | column`. `draw` takes
/// `numbers` random numbers for each.
fn positions(
    count: usize,
    numbers: u64,
    seed: u64,
    draw: impl Fn(&mut SplitMix64) -> (usize, usize) + Send + Sync,
) -> Vec<u64> {
    let mut positions = rows::concatenate(count, |range, positions| {
        let mut random = SplitMix64::after(seed, numbers.saturating_mul(range.start as u64));
        positions.extend(range.map(|_| {
            let (row, col) = draw(&mut random);
            (row as u64) << 32 | col as u64
        }));
    });
    sort(&mut positions);
    positions.dedup();
    positions
}

/// Positions and those with row and column exchanged, in order, equal ones merged.
fn mirrored(mut positions: Vec<u64>) -> Vec<u64> {
    for at in 0..positions.len() {
        positions.push(positions[at].rotate_left(32));
    }
    sort(&mut positions);
    positions.dedup();
    positions
}

/// Another number below `end` for each one below it: neighbours come far apart.
struct Scatter {
    /// Coprime to the end, so that multiples visit all numbers.
    step: u64,
    end: u64,
}

impl Scatter {
    fn new(end: usize) -> Self {
        let end = (end as u64).max(1);
        let common = |mut a: u64, mut b: u64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let step = (SplitMix64::STEP % end..).find(|&step| common(step, end) == 1).unwrap_or(1);
        Self { step, end }
    }

    fn of(&self, number: usize) -> usize {
        (u128::from(self.step) * number as u128 % u128::from(self.end)) as usize
    }
}

/// `count` ≤ `end` different numbers below `end` in order: one at random of each of as many ranges.
fn evenly(end: usize, count: usize, mut random: SplitMix64) -> impl Iterator<Item = usize> {
    let start = move |range: usize| (range as u128 * end as u128 / count as u128) as usize;
    (0..count).map(move |range| start(range) + random.below(start(range + 1) - start(range)))
}

/// The entries of a row among sorted positions: their index among all, and their column.
fn of_row(positions: &[u64], row: usize) -> impl Iterator<Item = (usize, usize)> {
    let start = positions.partition_point(|&position| position >> 32 < row as u64);
    let rest = positions.get(start..).unwrap_or_default().iter().zip(start..);
    rest.take_while(move |&(&position, _)| position >> 32 == row as u64)
        .map(|(&position, index)| (index, position as u32 as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::market::{Field, Symmetry, write_as};

    /// Of the matrices below, as the first version made them, one row after the other.
    const HASHES: [u64; 27] = [
        0xa0f5_924c_cdec_7021,
        0xc786_649f_6752_83c2,
        0x8228_a2e6_c3ee_c3df,
        0xc6e1_94a6_f6ae_e0c2,
        0x6c28_f575_904c_a658,
        0x881c_b267_f6b5_8a75,
        0x15c8_49c2_f90c_17d7,
        0xb9fc_3b9b_bfdf_69f6,
        0xb2b4_8527_d9ed_3bfd,
        0xd7ba_a4ba_3e04_23d1,
        0x3009_9709_12e8_4c3c,
        0xa9a0_c706_cc61_e71c,
        0xf198_412f_04f2_2b7d,
        0x5579_daff_edaa_dccd,
        0x66cc_48d2_a4f1_ef9b,
        0x082b_f330_430a_9318,
        0x03c4_5879_e485_f479,
        0x93a8_4bf8_f1f3_6d54,
        0xa27b_7503_158e_3621,
        0x43b1_09ee_57ed_12b2,
        0x74f6_3aed_a5f6_37d9,
        0x3c38_47f3_c85f_0750,
        0x29ba_5def_1083_6c6a,
        0x5717_72c8_5fa9_2bcd,
        0x6db2_06ce_a774_ef50,
        0x31d2_a262_a8e3_e69f,
        0x203e_0e32_396d_1a2e,
    ];

    const FEATURES: Features = Features {
        rows: 400,
        cols: 500,
        mean: 9.0,
        variation: 0.7,
        skew: 9.0,
        bandwidth: 0.4,
        neighbours: 0.8,
        similarity: 0.6,
        block: 1,
        fill: 1.0,
    };

    fn is_symmetric(matrix: &Csr<f64>) -> bool {
        let mut text = alloc::string::String::new();
        write_as(matrix.view(), Field::Real, Symmetry::Symmetric, &mut text).is_ok()
    }

    #[test]
    fn stencils_have_their_textbook_counts_and_are_symmetric() {
        let plane = stencil5(7, 5);
        assert_eq!((plane.rows(), plane.nnz()), (35, 5 * 35 - 2 * 7 - 2 * 5));
        assert!(is_symmetric(&plane));
        let seven = stencil7(4, 3, 5);
        assert_eq!((seven.rows(), seven.nnz()), (60, 7 * 60 - 2 * (12 + 15 + 20)));
        assert!(is_symmetric(&seven));
        assert!(stencil7(3, 3, 1).view().columns() == stencil5(3, 3).view().columns());
        let space = stencil27(4, 3, 5);
        assert_eq!((space.rows(), space.nnz()), (60, (3 * 4 - 2) * (3 * 3 - 2) * (3 * 5 - 2)));
        assert!(is_symmetric(&space));
    }

    #[test]
    fn random_families_have_the_entries_asked_for() {
        assert_eq!(banded(10, 2, 1).nnz(), 50 - 6);
        assert_eq!(uniform(100, 30, 7, 1).nnz(), 700);
        assert_eq!(uniform(4, 3, 7, 1).nnz(), 12);
        assert_eq!(one_dense_row(9, 50, 1).nnz(), 58);
        assert!(hyper_sparse(100_000, 1000, 50, 1).nnz() <= 50);
        assert_eq!(rmat(8, 8, 1).rows(), 256);
        assert_eq!(block_pruned(8, 8, 4, 100, 1).nnz(), 64);
        assert!(is_symmetric(&fem_blocks(17, 3, 1)));
    }

    #[test]
    fn graphs_and_systems_are_symmetric_and_as_large_as_asked() {
        let road_map = road(30, 20, 60, 1);
        assert!(road_map.rows() == 600 && (600..1800).contains(&road_map.nnz()));
        let plane = mesh(40, 30, 1, 1.3, 1);
        assert!(plane.rows() == 1200 && (4..8).contains(&(plane.nnz() / 1200)), "{}", plane.nnz());
        let space = mesh(9, 8, 7, 1.3, 1);
        assert!(space.rows() == 504 && (6..12).contains(&(space.nnz() / 504)), "{}", space.nnz());
        let social = communities(1000, 6000, 80, 70, 1);
        assert!(social.rows() == 1000 && (6000..=12_000).contains(&social.nnz()));
        let kkt = saddle_point(300, 100, 2, 4, 1);
        let of_h = 5 * 300 - 6;
        assert!(kkt.rows() == 400 && (of_h + 700..=of_h + 800).contains(&kkt.nnz()));
        assert!((300..400).all(|row| kkt.view().row(row).0.iter().all(|&col| col < 300)));
        let arrow = bordered_blocks(10, 20, 3, 30, 1);
        assert!(arrow.rows() == 203 && (1300..2600).contains(&arrow.nnz()), "{}", arrow.nnz());
        let board = circuit(1000, 3000, 2, 50, 1);
        assert!((8000..9000).contains(&board.nnz()), "{}", board.nnz());
        let long = (0..1000).filter(|&row| board.view().row_len(row) > 400).count();
        assert_eq!(long, 2);
        let orbitals = atoms(4, 3, 3, 1.0, 1);
        assert!(orbitals.rows() >= 36 && orbitals.nnz() > 2 * orbitals.rows());
        for matrix in [&road_map, &plane, &space, &social, &kkt, &arrow, &board, &orbitals] {
            assert!(is_symmetric(matrix));
        }
    }

    #[test]
    fn tables_and_layers_have_the_shape_asked_for() {
        let pages = web(2000, 8000, 1);
        assert!((5000..=8000).contains(&pages.nnz()), "{}", pages.nnz());
        let nets = netlist(500, 800, 4.0, 1);
        assert!((3..6).contains(&(nets.nnz() / 500)), "{}", nets.nnz());
        let constraints = linear_program(100, 900, 4, 3, 50, 1);
        let long: Vec<_> =
            (0..100).map(|row| constraints.view().row_len(row)).filter(|&len| len > 200).collect();
        assert_eq!(long, [450, 450, 450]);
        assert!((4000..=4950).contains(&constraints.nnz()), "{}", constraints.nnz());
        let choices = bipartite(300, 200, 5000, 1.0, 3.0, 1);
        let mut counts = alloc::vec![0; 200];
        for &col in choices.view().columns() {
            counts[col as usize] += 1;
        }
        counts.sort_unstable();
        let frequent: usize = counts[150..].iter().sum();
        assert!(2 * frequent > choices.nnz(), "{frequent} of {}", choices.nnz());
        let formula = clauses(400, 300, 3, 1);
        assert!((0..400).all(|row| (1..=3).contains(&formula.view().row_len(row))));
        let even = pruned_layer(200, 300, 0.2, 0.0, 0.0, 1);
        let skewed = pruned_layer(200, 300, 0.2, 0.8, 0.4, 1);
        for layer in [&even, &skewed] {
            assert!((9000..15_000).contains(&layer.nnz()), "{}", layer.nnz());
        }
        let longest = |layer: &Csr<f64>| (0..200).map(|row| layer.view().row_len(row)).max();
        assert!(longest(&skewed) > longest(&even).map(|longest| 2 * longest));
        let radix = radix_layer(64, 8, 8, 1);
        assert!((0..64).all(|row| radix.view().row_len(row) == 8));
        assert_eq!(radix.view().row(1).0, [1, 9, 17, 25, 33, 41, 49, 57]);
        let spread = diagonals(1000, 7, 50, 1);
        assert!((1000..=4000).contains(&spread.nnz()) && spread.view().row_len(500) <= 7);
    }

    #[test]
    fn seeds_decide_and_nothing_else() {
        assert_eq!(uniform(50, 50, 5, 1), uniform(50, 50, 5, 1));
        assert_ne!(uniform(50, 50, 5, 1), uniform(50, 50, 5, 2));
    }

    /// FNV-1a of offsets, columns and values.
    fn hash(matrix: &Csr<f64>) -> u64 {
        let view = matrix.view();
        let offsets = (0..=view.rows()).map(|row| view.offsets().at(row) as u64);
        let columns = view.columns().iter().map(|&col| u64::from(col));
        let values = view.values().iter().map(|value| value.to_bits());
        offsets.chain(columns).chain(values).fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    #[test]
    fn matrices_stay_what_they_were() {
        let hashes = [
            banded(500, 3, 1),
            banded(9, 20, 2),
            uniform(300, 400, 7, 3),
            uniform(3, 900, 500, 3),
            rmat(9, 8, 4),
            fem_blocks(60, 3, 5),
            hyper_sparse(100_000, 5000, 700, 6),
            one_dense_row(333, 77, 7),
            block_pruned(100, 90, 4, 30, 8),
            rmat_with(9, 8, [40, 25, 15], 9),
            featured(&FEATURES, 10),
            featured(&Features { block: 3, fill: 0.6, ..FEATURES }, 11),
            road(30, 20, 60, 12),
            mesh(8, 7, 6, 1.2, 13),
            communities(500, 3000, 60, 70, 14),
            web(1000, 3000, 15),
            netlist(300, 400, 3.5, 16),
            linear_program(90, 500, 3, 2, 40, 17),
            saddle_point(200, 90, 2, 3, 18),
            bordered_blocks(8, 15, 3, 30, 19),
            circuit(400, 1000, 2, 40, 20),
            diagonals(500, 6, 70, 21),
            pruned_layer(100, 90, 0.2, 0.5, 0.3, 22),
            radix_layer(64, 8, 8, 23),
            bipartite(300, 200, 2000, 2.0, 3.0, 24),
            clauses(300, 200, 3, 25),
            atoms(4, 3, 2, 1.5, 26),
        ]
        .map(|matrix| hash(&matrix));
        assert_eq!(hashes, HASHES);
    }

    #[test]
    fn empty_sizes_are_fine() {
        for matrix in [
            stencil5(0, 4),
            stencil7(2, 0, 2),
            stencil27(2, 0, 2),
            banded(0, 3, 1),
            uniform(3, 0, 2, 1),
            fem_blocks(3, 0, 1),
            hyper_sparse(3, 0, 5, 1),
            one_dense_row(3, 0, 1),
            block_pruned(0, 3, 0, 50, 1),
            road(0, 3, 50, 1),
            mesh(3, 0, 1, 1.0, 1),
            communities(0, 5, 0, 50, 1),
            web(0, 5, 1),
            netlist(3, 0, 3.0, 1),
            linear_program(0, 3, 2, 1, 50, 1),
            linear_program(3, 0, 2, 1, 50, 1),
            saddle_point(0, 3, 1, 2, 1),
            bordered_blocks(3, 0, 0, 50, 1),
            circuit(0, 3, 2, 50, 1),
            diagonals(0, 3, 50, 1),
            pruned_layer(3, 0, 0.5, 0.1, 0.1, 1),
            radix_layer(0, 3, 1, 1),
            bipartite(0, 3, 5, 1.0, 1.0, 1),
            clauses(3, 0, 3, 1),
            atoms(0, 3, 3, 1.0, 1),
        ] {
            assert_eq!(matrix.nnz(), 0);
        }
    }

    #[test]
    fn random_values_are_away_from_0_and_all_different() {
        let matrix = with_random_values(&stencil5(40, 40), 7).unwrap();
        let again = with_random_values(&stencil5(40, 40), 7).unwrap();
        assert_eq!(matrix, again);
        assert_ne!(matrix, with_random_values(&stencil5(40, 40), 8).unwrap());
        let single = matrix.cast::<f32>().unwrap();
        assert_eq!(single.view().columns(), stencil5(40, 40).view().columns());
        let values = single.view().values();
        assert!(values.iter().all(|value| (0.5..=1.5).contains(&value.abs())));
        assert!(values.iter().any(|&value| value < 0.0) && values.iter().any(|&value| value > 0.0));
        let mut bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        assert!(bits.len() > values.len() - 10, "{} of {}", bits.len(), values.len());
    }
}
