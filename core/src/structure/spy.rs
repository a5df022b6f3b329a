use alloc::vec;
use alloc::vec::Vec;

use crate::matrix::{CsrView, Scalar};

/// The data of a spy plot: a matrix downsampled to a grid of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpyGrid {
    width: usize,
    height: usize,
    counts: Vec<u64>,
}

impl SpyGrid {
    /// Counts the nonzeros in at most `max_width` × `max_height` equal cells, in one pass.
    ///
    /// A dimension no larger than its limit keeps one cell for each index. The result is empty
    /// when a limit or a dimension of the matrix is 0.
    #[must_use]
    pub fn new<T: Scalar>(matrix: CsrView<'_, T>, max_width: usize, max_height: usize) -> Self {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (width, height) = (cols.min(max_width), rows.min(max_height));
        let mut counts = vec![0; width * height];
        if counts.is_empty() {
            return Self { width: 0, height: 0, counts };
        }
        for row in 0..rows {
            let first_cell = cell(row, height, rows) * width;
            let (columns, _) = matrix.row(row);
            for &col in columns {
                counts[first_cell + cell(col as usize, width, cols)] += 1;
            }
        }
        Self { width, height, counts }
    }

    /// Cells across.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Cells down.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Nonzeros in each cell, row by row from the top.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The largest count; 0 when the grid is empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

/// The cell of an index when `count` indices share `cells` cells.
fn cell(index: usize, cells: usize, count: usize) -> usize {
    // Both are below 2³², so the product fits.
    (index as u64 * cells as u64 / count as u64) as usize
}
