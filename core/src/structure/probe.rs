//! What a policy sees around single nonzeros.
//!
//! Blocks are counted here and in [`MatrixStats::blocks`](super::MatrixStats::blocks), by two
//! estimators on purpose. That one takes whole rows of blocks, of a set of rows, for sides that are
//! no powers of two either, and stops at a glance where padding rules blocks out: it is exact where
//! a layout stores them, and coarse elsewhere. A feature has to be as precise for all matrices, so
//! it weighs blocks by nonzeros of the sample that the scan has drawn anyway. One in place of the
//! other would move `block_2`, `block_4` and `block_8`, which models are trained on.

use super::pattern::Pattern;

/// Statistics that look beyond a nonzero's own row, over the probed nonzeros.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Probes {
    /// Share of the slots of the nonempty aligned 2×2, 4×4 and 8×8 blocks that hold a nonzero.
    pub(super) block_fill: [f64; 3],
    /// Share of nonzeros with another just below, in the same column of the next row.
    pub(super) below: f64,
    /// Share of off-diagonal nonzeros (r, c) with a nonzero at (c, r); 0 unless square.
    pub(super) symmetry: f64,
}

/// Looks around each of the nonzeros at `probes` (row, column).
pub(super) fn look_around(pattern: &Pattern<'_>, probes: &[(u32, u32)]) -> Probes {
    if probes.is_empty() {
        return Probes::default();
    }
    let mut below = 0_usize;
    let mut block_share = [0.0; 3];
    let mut off_diagonal = 0_usize;
    let mut mirrored = 0_usize;
    let square = pattern.rows == pattern.cols;
    for &(row, col) in probes {
        below += usize::from(pattern.contains(row as usize + 1, col));
        for (share, count) in block_share.iter_mut().zip(block_counts(pattern, row, col)) {
            *share += 1.0 / f64::from(count);
        }
        if square && row != col {
            off_diagonal += 1;
            mirrored += usize::from(pattern.contains(col as usize, row));
        }
    }
    let n = probes.len() as f64;
    // The mean over nonzeros of 1 / (nonzeros of its block) is blocks / nnz, without bias.
    let [two, four, eight] = block_share.map(|share| n / share);
    let symmetry = match (square, off_diagonal) {
        (false, _) => 0.0,
        (true, 0) => 1.0,
        (true, _) => mirrored as f64 / off_diagonal as f64,
    };
    Probes { block_fill: [two / 4.0, four / 16.0, eight / 64.0], below: below as f64 / n, symmetry }
}

/// Nonzeros in the aligned 2×2, 4×4 and 8×8 blocks around a nonzero.
fn block_counts(pattern: &Pattern<'_>, row: u32, col: u32) -> [u32; 3] {
    let (first_row, first_col) = (row & !7, col & !7);
    // Bit 8r + c is slot (r, c) of the 8×8 block.
    let mut filled = 0_u64;
    for r in 0..8 {
        let columns = pattern.row((first_row + r) as usize);
        let from = columns.partition_point(|&c| c < first_col);
        for c in columns[from..].iter().map_while(|&c| (c - first_col < 8).then_some(c & 7)) {
            filled |= 1 << (8 * r + c);
        }
    }
    let corner =
        |mask: u64, side: u32| mask << (8 * (row & 7 & !(side - 1)) + (col & 7 & !(side - 1)));
    let two = filled & corner(0x0303, 2);
    let four = filled & corner(0x0F0F_0F0F, 4);
    [two.count_ones(), four.count_ones(), filled.count_ones()]
}
