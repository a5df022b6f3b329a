//! What follows from the times of a right kernel and of the library.
//!
//! Speedup = t(cuSPARSE) / t(kernel), of medians in the same state of the cache: above 1 is a win.
//! GFLOPS = 2 · nnz · N / t, N the columns of the dense operand.

use serde::Serialize;
use sparserl_core::outcome::{Baseline, CacheState, Measurement};

/// The states of the cache, the one that decides first.
pub(crate) const CACHES: [CacheState; 2] = [CacheState::Cold, CacheState::Warm];

/// What a kernel is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    /// What the library does unasked.
    Default,
    /// The quickest of the library's algorithms.
    Best,
}

impl Rival {
    pub(crate) const ALL: [Self; 2] = [Self::Default, Self::Best];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::Best => "best",
        }
    }
}

/// How fast a right kernel is, in one state of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// Median.
    pub(crate) seconds: f64,
    pub(crate) gflops: f64,
    /// Against the library's default algorithm; absent where it did not run.
    pub(crate) default: Option<Comparison>,
    /// Against its quickest algorithm; absent where none ran.
    pub(crate) best: Option<Comparison>,
}

/// A kernel beside an algorithm of the library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) algorithm: String,
    /// Its median.
    pub(crate) seconds: f64,
    pub(crate) speedup: f64,
}

impl Figures {
    /// Absent where the state of the cache was not measured. `work` is the floating-point operations
    /// of a product.
    pub(crate) fn new(
        measurement: &Measurement,
        baselines: &[Baseline],
        cache: CacheState,
        work: f64,
    ) -> Option<Self> {
        let seconds = measurement.timing.median(cache)?;
        let compare = |baseline: &Baseline| {
            let theirs = baseline.median(cache)?;
            let algorithm = baseline.algorithm.clone();
            Some(Comparison { algorithm, seconds: theirs, speedup: theirs / seconds })
        };
        let all = baselines.iter().filter_map(compare);
        Some(Self {
            seconds,
            gflops: work / seconds * 1e-9,
            default: baselines.iter().find(|b| b.is_default).and_then(compare),
            best: all.min_by(|a, b| a.seconds.total_cmp(&b.seconds)),
        })
    }

    pub(crate) fn against(&self, rival: Rival) -> Option<&Comparison> {
        match rival {
            Rival::Default => self.default.as_ref(),
            Rival::Best => self.best.as_ref(),
        }
    }
}

/// Floating-point operations of a product with `columns` dense columns.
pub(crate) fn work(nnz: usize, columns: u32) -> f64 {
    2.0 * nnz as f64 * f64::from(columns)
}

pub(crate) fn cache_name(cache: CacheState) -> &'static str {
    match cache {
        CacheState::Warm => "warm",
        CacheState::Cold => "cold",
    }
}

/// A speedup. One below 1 never rounds up to 1.
pub(crate) fn times(speedup: f64) -> String {
    match speedup {
        s if s < 1.0 && s > 0.995 => format!("{:.4}×", (s * 1e4).floor() / 1e4),
        s if s < 10.0 => format!("{s:.2}×"),
        s => format!("{s:.1}×"),
    }
}

/// Seconds in a unit that suits them.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::outcome::Timing;

    use super::*;

    fn baseline(algorithm: &str, warm: Option<f64>) -> Baseline {
        let timing = |s: f64| Timing { warm: vec![s].try_into().unwrap(), cold: None };
        Baseline {
            algorithm: algorithm.to_owned(),
            is_default: algorithm == "DEFAULT",
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: warm.map(timing).ok_or_else(|| "refused".to_owned()),
        }
    }

    #[test]
    fn figures_by_hand() {
        let timing = Timing { warm: vec![2.0].try_into().unwrap(), cold: None };
        let measurement = Measurement { checks: 1, worst_ratio: 0.0, timing };
        let of = |baselines: &[Baseline], cache| {
            Figures::new(&measurement, baselines, cache, work(1_000_000_000, 3))
        };
        let all = [baseline("DEFAULT", Some(3.0)), baseline("A", None), baseline("B", Some(1.0))];
        let warm = of(&all, CacheState::Warm).unwrap();
        assert!((warm.gflops - 3.0).abs() < 1e-12);
        assert_eq!(warm.against(Rival::Default).unwrap().speedup, 1.5);
        let best = warm.against(Rival::Best).unwrap();
        assert_eq!((best.algorithm.as_str(), best.speedup), ("B", 0.5));
        assert_eq!(of(&all, CacheState::Cold), None, "it was not measured");

        let none = of(&[baseline("DEFAULT", None)], CacheState::Warm).unwrap();
        assert_eq!((none.default, none.best), (None, None));
    }

    #[test]
    fn a_loss_never_looks_like_a_win() {
        assert_eq!(times(0.99999), "0.9999×");
        assert_eq!(times(0.994), "0.99×");
        assert_eq!(times(1.0), "1.00×");
        assert_eq!(times(12.345), "12.3×");
    }
}
