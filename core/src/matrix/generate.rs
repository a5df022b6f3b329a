//! Matrices of well-known families: the same for the same arguments on every machine.
//!
//! For tests, examples and training. Sizes beyond 2³² − 1 rows or columns are cut to that.

use alloc::{collections::BTreeSet, vec, vec::Vec};

use super::{Csr, Offsets};

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
    let mut random = SplitMix64::new(seed);
    by_rows(rows, rows, |at, row| {
        let band = at.saturating_sub(half_width)..at.saturating_add(half_width + 1).min(rows);
        row.extend(band.map(|col| (col, random.value())));
    })
}

/// `per_row` entries in every row (fewer if there are fewer columns), evenly spread at random.
#[must_use]
pub fn uniform(rows: usize, cols: usize, per_row: usize, seed: u64) -> Csr<f64> {
    let mut random = SplitMix64::new(seed);
    by_rows(rows, cols, |_, row| {
        let columns = random.distinct(per_row, cols);
        row.extend(columns.into_iter().map(|col| (col, random.value())));
    })
}

/// A power-law graph with 2^`scale` vertices and at most `edge_factor` edges a vertex, every value
/// 1: the recursive matrix (R-MAT) with Graph500's parameters 0.57, 0.19, 0.19, 0.05, repeated
/// edges merged. `scale` is cut to 31.
#[must_use]
pub fn rmat(scale: u32, edge_factor: usize, seed: u64) -> Csr<f64> {
    let scale = scale.min(31);
    let vertices = 1_usize << scale;
    let mut random = SplitMix64::new(seed);
    let mut edges: Vec<_> = (0..vertices.saturating_mul(edge_factor))
        .map(|_| {
            let (mut row, mut col) = (0, 0);
            for _ in 0..scale {
                let (down, right) = match random.below(100) {
                    0..57 => (0, 0),
                    57..76 => (0, 1),
                    76..95 => (1, 0),
                    _ => (1, 1),
                };
                row = 2 * row + down;
                col = 2 * col + right;
            }
            (row, col)
        })
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let mut edges = edges.into_iter().peekable();
    by_rows(vertices, vertices, |at, row| {
        while let Some((_, col)) = edges.next_if(|&(from, _)| from == at) {
            row.push((col, 1.0));
        }
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
    let mut random = SplitMix64::new(seed);
    let positions: BTreeSet<_> = match rows.min(cols) {
        0 => BTreeSet::new(),
        _ => (0..entries).map(|_| (random.below(rows), random.below(cols))).collect(),
    };
    let mut positions = positions.into_iter().peekable();
    by_rows(rows, cols, |at, row| {
        while let Some((_, col)) = positions.next_if(|&(row, _)| row == at) {
            row.push((col, random.value()));
        }
    })
}

/// One full row, the middle one, and one entry in every other row.
#[must_use]
pub fn one_dense_row(rows: usize, cols: usize, seed: u64) -> Csr<f64> {
    let mut random = SplitMix64::new(seed);
    by_rows(rows, cols, |at, row| match at == rows / 2 {
        true => row.extend((0..cols).map(|col| (col, random.value()))),
        false if cols > 0 => row.push((random.below(cols), random.value())),
        false => {}
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
                let mut random = SplitMix64::new(random.next() ^ at as u64);
                let columns = first..(first + block).min(cols);
                row.extend(columns.map(|col| (col, random.value())));
            }
        }
    })
}

/// Builds a matrix row by row; `fill` pushes (column, value) with increasing columns.
fn by_rows(
    rows: usize,
    cols: usize,
    mut fill: impl FnMut(usize, &mut Vec<(usize, f64)>),
) -> Csr<f64> {
    let rows = rows.min(u32::MAX as usize);
    let cols = cols.min(u32::MAX as usize);
    let mut offsets = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut row = Vec::new();
    for at in 0..rows {
        fill(at, &mut row);
        for (col, value) in row.drain(..).take_while(|&(col, _)| col < cols) {
            columns.push(col as u32);
            values.push(value);
        }
        offsets.push(columns.len() as u64);
    }
    Csr::from_valid(rows, cols, Offsets::U64(offsets).narrowed(), columns, values)
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly distributed below `end`, which is not 0, up to a bias of `end` / 2⁶⁴.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A multiple of 2⁻⁵² in (−1, 1), not 0: every entry of a generated matrix counts.
    fn value(&mut self) -> f64 {
        let bits = (self.next() >> 11) | 1;
        bits as f64 * f64::EPSILON - 1.0
    }

    /// `count` different numbers below `end` (all of them if there are fewer), in order: Floyd's
    /// algorithm (Bentley, "Programming pearls", 1987).
    fn distinct(&mut self, count: usize, end: usize) -> BTreeSet<usize> {
        let mut chosen = BTreeSet::new();
        for last in end - count.min(end)..end {
            let number = self.below(last + 1);
            chosen.insert(if chosen.contains(&number) { last } else { number });
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::market::{Field, Symmetry, write_as};

    fn is_symmetric(matrix: &Csr<f64>) -> bool {
        let mut text = alloc::string::String::new();
        write_as(matrix.view(), Field::Real, Symmetry::Symmetric, &mut text).is_ok()
    }

    #[test]
    fn stencils_have_their_textbook_counts_and_are_symmetric() {
        let plane = stencil5(7, 5);
        assert_eq!((plane.rows(), plane.nnz()), (35, 5 * 35 - 2 * 7 - 2 * 5));
        assert!(is_symmetric(&plane));
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
    fn seeds_decide_and_nothing_else() {
        assert_eq!(uniform(50, 50, 5, 1), uniform(50, 50, 5, 1));
        assert_ne!(uniform(50, 50, 5, 1), uniform(50, 50, 5, 2));
        // From the reference implementation of splitmix64 with seed 1234567.
        assert_eq!(SplitMix64::new(1_234_567).next(), 6_457_827_717_110_365_317);
    }

    #[test]
    fn empty_sizes_are_fine() {
        for matrix in [
            stencil5(0, 4),
            stencil27(2, 0, 2),
            banded(0, 3, 1),
            uniform(3, 0, 2, 1),
            fem_blocks(3, 0, 1),
            hyper_sparse(3, 0, 5, 1),
            one_dense_row(3, 0, 1),
            block_pruned(0, 3, 0, 50, 1),
        ] {
            assert_eq!(matrix.nnz(), 0);
        }
    }
}
