//! Orders of rows and columns: `order[new]` is the old number.

use std::cmp::Reverse;

use sparserl_core::matrix::{CooError, Csr};
use sparserl_core::random::SplitMix64;

use super::arrays::Entries;

/// A random order (Fisher and Yates, 1938).
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<u32> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<u32> = (0..count as u32).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}

/// Orders of rows and columns by falling length; the same one if the matrix is square.
pub(super) fn by_degree(matrix: &Csr<f64>) -> (Vec<u32>, Vec<u32>) {
    let view = matrix.view();
    let falling = |count: usize, length: &dyn Fn(u32) -> usize| {
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by_key(|&at| Reverse(length(at)));
        order
    };
    let rows = falling(matrix.rows(), &|row| view.row_len(row as usize));
    if matrix.rows() == matrix.cols() {
        return (rows.clone(), rows);
    }
    let mut lengths = vec![0; matrix.cols()];
    for &col in view.columns() {
        lengths[col as usize] += 1;
    }
    (rows, falling(matrix.cols(), &|col| lengths[col as usize]))
}

/// Reverse Cuthill-McKee orders of rows and columns (Cuthill and McKee, 1969; George, 1971): of the
/// graph of A + Aᵀ, or of the bipartite graph of rows and columns if the matrix is not square.
///
/// Ties go to the lower number: libraries leave them to how they sort, which changes between
/// versions, and the same recipe must give the same matrix. Each component starts with a vertex of
/// least degree.
pub(super) fn cuthill_mckee(matrix: &Csr<f64>) -> Result<(Vec<u32>, Vec<u32>), CooError> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let square = rows == cols;
    let (vertices, first_col) = if square { (rows, 0) } else { (rows + cols, rows) };
    let mut edges = Entries::new(vertices, vertices);
    edges.extend(matrix, |row, col| (row != col + first_col).then_some((row, col + first_col)));
    edges.extend(matrix, |row, col| (row != col + first_col).then_some((col + first_col, row)));
    let graph = edges.with_ones().into_csr()?;
    let order = ordered(&graph);
    if square {
        return Ok((order.clone(), order));
    }
    let (row_order, col_order): (Vec<u32>, Vec<u32>) =
        order.into_iter().partition(|&vertex| (vertex as usize) < rows);
    Ok((row_order, col_order.into_iter().map(|vertex| vertex - rows as u32).collect()))
}

/// Reverse Cuthill-McKee of a symmetric pattern.
fn ordered(graph: &Csr<f64>) -> Vec<u32> {
    let view = graph.view();
    let key = |vertex: u32| (view.row_len(vertex as usize), vertex);
    let mut starts: Vec<u32> = (0..graph.rows() as u32).collect();
    starts.sort_unstable_by_key(|&vertex| key(vertex));
    let mut seen = vec![false; graph.rows()];
    let mut order: Vec<u32> = Vec::with_capacity(graph.rows());
    for start in starts {
        if seen[start as usize] {
            continue;
        }
        seen[start as usize] = true;
        let mut next = order.len();
        order.push(start);
        while let Some(&vertex) = order.get(next) {
            next += 1;
            let before = order.len();
            for &neighbour in view.row(vertex as usize).0 {
                if !seen[neighbour as usize] {
                    seen[neighbour as usize] = true;
                    order.push(neighbour);
                }
            }
            order[before..].sort_unstable_by_key(|&vertex| key(vertex));
        }
    }
    order.reverse();
    order
}
