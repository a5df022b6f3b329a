//! Ratios in a few numbers.

use serde::Serialize;

/// How the ratios of some matrices against one rival spread, in one state of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Matrices that have a ratio.
    pub(crate) matrices: usize,
    pub(crate) geomean: f64,
    pub(crate) least: f64,
    /// How many are below 1.
    pub(crate) losses: usize,
}

impl Spread {
    /// Of ratios above 0; absent where there is none.
    pub(crate) fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let ratios: Vec<f64> = ratios.into_iter().collect();
        let least = ratios.iter().copied().min_by(f64::total_cmp)?;
        let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        Some(Self {
            matrices: ratios.len(),
            geomean: (logs / ratios.len() as f64).exp(),
            least,
            losses: ratios.iter().filter(|&&ratio| ratio < 1.0).count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_1() {
        let spread = Spread::of([4.0, 0.25, 1.0]).unwrap();
        assert!((spread.geomean - 1.0).abs() < 1e-12);
        assert_eq!((spread.matrices, spread.least, spread.losses), (3, 0.25, 1));
        assert_eq!(Spread::of([]), None);
    }
}
