use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Sides of the density grids, coarse to fine.
pub const GRID_SIDES: [usize; 3] = [8, 16, 32];

/// Side of the grid that is counted; the others are sums of its cells.
pub(super) const FINE: usize = 32;

/// Where the nonzeros are, at three resolutions.
///
/// A grid of side s cuts the rows and the columns into s equal ranges. A cell's value is
/// log2(1 + s²·share) / log2(1 + s²), with `share` its share of the (sampled) nonzeros: 0 when it
/// is empty, 1 when it holds them all, whatever the size of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DensityGrids {
    cells: Vec<f32>,
}

impl DensityGrids {
    /// Number of cells of all grids together.
    pub const CELLS: usize = 8 * 8 + 16 * 16 + 32 * 32;

    /// From the counts of the finest grid, row by row.
    pub(super) fn new(fine: &[u32]) -> Self {
        let total: u64 = fine.iter().map(|&n| u64::from(n)).sum();
        let mut cells = Vec::with_capacity(Self::CELLS);
        for side in GRID_SIDES {
            let mut counts = vec![0_u64; side * side];
            let merged = FINE / side;
            for (i, &n) in fine.iter().enumerate() {
                counts[i / FINE / merged * side + i % FINE / merged] += u64::from(n);
            }
            let slots = (side * side) as f64;
            let scale = slots / total.max(1) as f64;
            let unit = 1.0 / libm::log2(1.0 + slots);
            cells
                .extend(counts.iter().map(|&n| (libm::log2(1.0 + n as f64 * scale) * unit) as f32));
        }
        Self { cells }
    }

    /// All cells: the 8×8 grid row by row, then 16×16, then 32×32. Each in [0, 1].
    #[must_use]
    pub fn cells(&self) -> &[f32] {
        &self.cells
    }

    /// The grid of one of the [`GRID_SIDES`], row by row.
    #[must_use]
    pub fn level(&self, side: usize) -> Option<&[f32]> {
        let before: usize = GRID_SIDES.iter().take_while(|&&s| s != side).map(|s| s * s).sum();
        self.cells.get(before..before + side * side).filter(|_| GRID_SIDES.contains(&side))
    }
}
