//! Layers of networks, tables of users and things, clauses, and atoms.

use alloc::vec::Vec;

use super::random::{mixed, normal, pair_value, skewed};
use super::rows::by_rows;
use super::{Scatter, of_row, positions};
use crate::matrix::Csr;

/// A layer pruned weight by weight: a share `kept` of the positions has an entry. The shares of
/// rows and columns vary log-normally, with these standard deviations of the logarithm, as
/// magnitudes of weights do; with 0 the layer is pruned evenly.
#[must_use]
pub fn pruned_layer(
    rows: usize,
    cols: usize,
    kept: f64,
    row_deviation: f64,
    col_deviation: f64,
    seed: u64,
) -> Csr<f64> {
    let factor = |deviation: f64, seed: u64, at: usize| {
        // Of mean 1.
        libm::exp(deviation * (normal(&mut mixed(seed, at as u64, 0)) - deviation / 2.0))
    };
    let cols = cols.min(u32::MAX as usize);
    let columns: Vec<f64> = (0..cols).map(|col| factor(col_deviation, seed ^ 1, col)).collect();
    by_rows(rows, cols, |at, row| {
        let share = kept * factor(row_deviation, seed ^ 2, at);
        let mut random = mixed(seed, at as u64, 0);
        for (col, factor) in columns.iter().enumerate() {
            if random.uniform() < share * factor {
                row.push((col, random.value()));
            }
        }
    })
}

/// A layer of a RadiX-Net (Kepner and Robinett, 2019): each of `neurons` rows has `radix` entries,
/// `stride` columns apart and around the end.
#[must_use]
pub fn radix_layer(neurons: usize, radix: usize, stride: usize, seed: u64) -> Csr<f64> {
    let neurons = neurons.min(u32::MAX as usize);
    by_rows(neurons, neurons, |at, row| {
        let column = |step: usize| (at as u128 + step as u128 * stride as u128) % neurons as u128;
        let mut columns: Vec<usize> =
            (0..radix.min(neurons)).map(|step| column(step) as usize).collect();
        columns.sort_unstable();
        columns.dedup();
        row.extend(columns.into_iter().map(|col| (col, pair_value(seed, at, col))));
    })
}

/// Users and what they chose: `entries` entries drawn, equal ones merged, most of few rows and of
/// few columns, which are anywhere. Skews are powers of an even number in [0, 1): 1 is even, with 3
/// half of the entries are in an eighth of the rows or columns.
#[must_use]
pub fn bipartite(
    rows: usize,
    cols: usize,
    entries: usize,
    row_skew: f64,
    col_skew: f64,
    seed: u64,
) -> Csr<f64> {
    let (rows, cols) = (rows.min(u32::MAX as usize), cols.min(u32::MAX as usize));
    let entries = if rows.min(cols) == 0 { 0 } else { entries };
    let (scatter_rows, scatter_cols) = (Scatter::new(rows), Scatter::new(cols));
    let drawn = positions(entries, 2, seed, |random| {
        let row = scatter_rows.of(skewed(random, rows, row_skew));
        (row, scatter_cols.of(skewed(random, cols, col_skew)))
    });
    by_rows(rows, cols, |at, row| {
        row.extend(of_row(&drawn, at).map(|(index, col)| (col, pair_value(seed, index, col))));
    })
}

/// Clauses of a formula: rows of 2 to `longest` entries, each at a column near that of the row
/// before or, one in eight, at one of few frequent ones.
#[must_use]
pub fn clauses(rows: usize, cols: usize, longest: usize, seed: u64) -> Csr<f64> {
    let scatter = Scatter::new(cols);
    let near = (cols / 200).max(16).min(cols.max(1));
    by_rows(rows, cols, |at, row| {
        if cols == 0 {
            return;
        }
        let mut random = mixed(seed, at as u64, 0);
        let first = (at as u128 * cols as u128 / rows as u128) as usize;
        let length = 2 + random.below(longest.saturating_sub(1).max(1));
        let mut columns = Vec::new();
        for _ in 0..length {
            columns.push(match random.below(8) {
                0 => scatter.of(skewed(&mut random, cols, 4.0)),
                _ => (first + random.below(near)) % cols,
            });
        }
        columns.sort_unstable();
        columns.dedup();
        row.extend(columns.into_iter().map(|col| (col, random.value())));
    })
}

/// Basis functions of molecules: atoms in each cell of an `nx` × `ny` × `nz` grid have 1, 5, 9 or
/// 14 functions each, and those of two atoms not farther than `reach` cells are coupled by a dense
/// block. Symmetric.
#[must_use]
pub fn atoms(nx: usize, ny: usize, nz: usize, reach: f64, seed: u64) -> Csr<f64> {
    let atoms = nx.saturating_mul(ny).saturating_mul(nz).min(u32::MAX as usize);
    let reach = if reach.is_finite() { reach.clamp(0.0, 1e6) } else { 0.0 };
    // Hydrogen is most frequent.
    let functions = |atom: usize| [1, 1, 5, 9, 14][mixed(seed, atom as u64, 0).below(5)];
    let mut starts = Vec::with_capacity(atoms + 1);
    let mut owners = Vec::new();
    starts.push(0);
    for atom in 0..atoms {
        owners.extend(core::iter::repeat_n(atom, functions(atom)));
        starts.push(owners.len());
    }
    let place = |atom: usize| [atom % nx, atom / nx % ny, atom / nx / ny].map(|at| at as f64);
    let cells = libm::ceil(reach) as usize;
    let around = |at: f64, end: usize| {
        (at as usize).saturating_sub(cells)..(at as usize + cells + 1).min(end)
    };
    by_rows(owners.len(), owners.len(), |at, row| {
        let [x, y, z] = place(owners[at]);
        for other_z in around(z, nz) {
            for other_y in around(y, ny) {
                for other_x in around(x, nx) {
                    let [dx, dy, dz] = [x - other_x as f64, y - other_y as f64, z - other_z as f64];
                    let other = (other_z * ny + other_y) * nx + other_x;
                    if dx * dx + dy * dy + dz * dz <= reach * reach && other < atoms {
                        let columns = starts[other]..starts[other + 1];
                        row.extend(columns.map(|col| (col, pair_value(seed, at, col))));
                    }
                }
            }
        }
    })
}
