use super::pattern::Pattern;

/// Statistics that look beyond a nonzero's own row, over the probed nonzeros.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Probes {
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
    let mut off_diagonal = 0_usize;
    let mut mirrored = 0_usize;
    let square = pattern.rows == pattern.cols;
    for &(row, col) in probes {
        below += usize::from(pattern.contains(row as usize + 1, col));
        if square && row != col {
            off_diagonal += 1;
            mirrored += usize::from(pattern.contains(col as usize, row));
        }
    }
    let n = probes.len() as f64;
    let symmetry = match (square, off_diagonal) {
        (false, _) => 0.0,
        (true, 0) => 1.0,
        (true, _) => mirrored as f64 / off_diagonal as f64,
    };
    Probes { below: below as f64 / n, symmetry }
}
