//! What follows from the times of a right kernel and of the library.
//!
//! With t the median seconds of a product, nnz the entries of A and N the columns of B:
//!
//! - ratio = t(cuSPARSE) / t(ours): above 1 is a win. `DEFAULT` is the algorithm that cuSPARSE takes
//!   unasked, *best* the quickest of all that ran, in the same state of the cache.
//! - GFLOPS = 2 · nnz · N / t.
//! - moved bytes = arrays of the packed matrix + dense operands, each element once; GB/s = moved / t.
//! - floor = moved bytes / bandwidth of a copy, and its share = floor / t. With a warm cache the share
//!   may exceed 1.
//! - break-even calls n solve pack + n · t(ours) = analysis + n · t(cuSPARSE), so n = (pack −
//!   analysis) / (t(cuSPARSE) − t(ours)), at least 0; there is none where ours is not faster. `pack` is
//!   the packing on the host; search, compilation and copies to the device are not in it.
//!
//! Of several right kernels the *fastest* is taken: by cold times where any has them, else by warm ones.
//! Cold and warm times are never compared.

mod chosen;

use serde::{Deserialize, Serialize};
use sparserl_core::outcome::{Baseline, CacheState, Measurement, Outcome};
use sparserl_core::task::Operation;

pub(crate) use chosen::{Chosen, choose};

/// The states of the cache, the one that decides first.
pub(crate) const CACHES: [CacheState; 2] = [CacheState::Cold, CacheState::Warm];

pub(crate) fn cache_name(cache: CacheState) -> &'static str {
    match cache {
        CacheState::Warm => "warm",
        CacheState::Cold => "cold",
    }
}

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Median.
    pub(crate) seconds: f64,
    pub(crate) gflops: f64,
    /// Absent where it is not known what is moved.
    pub(crate) bytes_per_second: Option<f64>,
    /// Absent without a bandwidth too.
    pub(crate) floor_share: Option<f64>,
    /// Against the default algorithm; absent where it did not run.
    pub(crate) default: Option<Comparison>,
    /// Against the quickest algorithm; absent where none ran.
    pub(crate) best: Option<Comparison>,
}

/// A kernel beside an algorithm of the library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The algorithm's name.
    pub(crate) algorithm: String,
    /// Its median.
    pub(crate) seconds: f64,
    /// Its time over ours.
    pub(crate) ratio: f64,
    /// Products after which packing has paid; absent where ours is not faster, or nothing was packed.
    pub(crate) break_even_calls: Option<f64>,
}

/// What figures are made of, besides times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Floating-point operations of a product.
    flops: f64,
    packing: Option<Packing>,
}

/// What is known of a kernel for a packed matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    /// Of the arrays of the packed matrix, workspace excluded.
    pub(crate) packed_bytes: u64,
    /// Of the dense operands, each element once.
    pub(crate) dense_bytes: u64,
    /// To pack the matrix on the host.
    pub(crate) seconds: f64,
    /// Bytes a second, read and written, of a device-to-device copy in the same run.
    pub(crate) copy_bandwidth: Option<f64>,
}

impl Work {
    /// Of a product with a matrix of `nnz` entries, by a kernel of which nothing else is known.
    pub(crate) fn new(nnz: usize, operation: Operation) -> Self {
        Self { flops: 2.0 * nnz as f64 * f64::from(operation.columns()), packing: None }
    }

    /// By a kernel for a packed matrix.
    pub(crate) fn packed(self, packing: Packing) -> Self {
        Self { packing: Some(packing), ..self }
    }
}

impl Figures {
    /// Beside the `baselines` that were measured in turn with it; absent where the state of the cache was
    /// not measured.
    pub(crate) fn new(
        measurement: &Measurement,
        baselines: &[Baseline],
        cache: CacheState,
        Work { flops, packing }: Work,
    ) -> Option<Self> {
        let seconds = measurement.timing.median(cache)?;
        let compare = |baseline: &Baseline| {
            let theirs = baseline.median(cache)?;
            let gain = theirs - seconds;
            let pays =
                |packing: Packing| ((packing.seconds - baseline.analysis_seconds) / gain).max(0.0);
            Some(Comparison {
                algorithm: baseline.algorithm.clone(),
                seconds: theirs,
                ratio: theirs / seconds,
                break_even_calls: packing.filter(|_| gain > 0.0).map(pays),
            })
        };
        let speed = packing.map(|p| (p.packed_bytes + p.dense_bytes) as f64 / seconds);
        let bandwidth = packing.and_then(|packing| packing.copy_bandwidth);
        let all = baselines.iter().filter_map(compare);
        Some(Self {
            seconds,
            gflops: flops / seconds / 1e9,
            bytes_per_second: speed,
            floor_share: speed.zip(bandwidth).map(|(speed, bandwidth)| speed / bandwidth),
            default: baselines.iter().find(|baseline| baseline.is_default).and_then(compare),
            best: all.min_by(|a, b| a.seconds.total_cmp(&b.seconds)),
        })
    }

    /// The comparison with one of the rivals.
    pub(crate) fn against(&self, rival: Rival) -> Option<&Comparison> {
        match rival {
            Rival::Default => self.default.as_ref(),
            Rival::Best => self.best.as_ref(),
        }
    }
}

/// Indices of the right kernels, fastest first; where some have cold times, those that have none come
/// last.
pub(crate) fn ranking<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<usize> {
    let medians = |outcome: &Outcome| {
        let timing = &outcome.measurement()?.timing;
        Some(CACHES.map(|cache| timing.median(cache).unwrap_or(f64::INFINITY)))
    };
    let outcomes = outcomes.into_iter().enumerate();
    let mut right: Vec<_> = outcomes.filter_map(|(i, o)| Some((i, medians(o)?))).collect();
    right.sort_by(|(_, [cold, warm]), (_, [other_cold, other_warm])| {
        cold.total_cmp(other_cold).then(warm.total_cmp(other_warm))
    });
    right.into_iter().map(|(index, _)| index).collect()
}

/// Index of the fastest right kernel.
pub(crate) fn fastest<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<usize> {
    ranking(outcomes).into_iter().next()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use sparserl_core::outcome::{Timing, Violation};

    use super::*;

    fn measured(warm: f64, cold: Option<f64>) -> Measurement {
        Measurement { checks: 4, worst_ratio: 0.1, timing: timing(warm, cold) }
    }

    fn timing(warm: f64, cold: Option<f64>) -> Timing {
        let samples = |s: f64| vec![s].try_into().unwrap();
        Timing { warm: samples(warm), cold: cold.map(samples) }
    }

    fn baseline(algorithm: &str, analysis: f64, timing: Result<Timing, String>) -> Baseline {
        Baseline {
            algorithm: algorithm.to_owned(),
            is_default: algorithm == "DEFAULT",
            analysis_seconds: analysis,
            buffer_bytes: 0,
            timing,
        }
    }

    fn baselines() -> [Baseline; 3] {
        [
            baseline("DEFAULT", 0.0, Ok(timing(3.0, Some(6.0)))),
            baseline("ALG1", 0.0, Err("not supported".to_owned())),
            baseline("ALG2", 4.0, Ok(timing(2.5, Some(8.0)))),
        ]
    }

    #[test]
    fn right_kernels_are_ranked_and_cold_decides() {
        let right = |warm, cold| Outcome::Measured(measured(warm, cold));
        let wrong =
            Outcome::WrongResult { violation: Violation::Inexact, reason: "off".to_owned() };
        assert_eq!(fastest([&wrong]), None);
        assert_eq!(ranking(&[wrong.clone(), right(2.0, None), right(0.1, None)]), [2, 1]);
        // The second is faster warm, the third faster cold; the others were never cold.
        let cold = [right(1.0, Some(5.0)), right(2.0, Some(4.0))];
        let [first, second] = cold;
        let mixed = [wrong, first, second, right(0.2, None), right(0.1, None)];
        assert_eq!(ranking(&mixed), [2, 1, 4, 3]);
        assert_eq!(fastest(&mixed), Some(2));
    }

    #[test]
    fn figures_by_hand() {
        let columns = NonZeroU32::new(4).unwrap();
        let work = Work::new(1_000_000_000, Operation::SpMM { columns }).packed(Packing {
            packed_bytes: 150,
            dense_bytes: 50,
            seconds: 10.0,
            copy_bandwidth: Some(100.0),
        });
        let of = |cache| Figures::new(&measured(2.0, Some(4.0)), &baselines(), cache, work);
        let cold = of(CacheState::Cold).unwrap();
        assert_eq!((cold.seconds, cold.gflops, cold.bytes_per_second), (4.0, 2.0, Some(50.0)));
        assert_eq!(cold.floor_share, Some(0.5));
        let default = cold.default.unwrap();
        // 10 s of packing against 2 s a call.
        assert_eq!((default.ratio, default.break_even_calls), (1.5, Some(5.0)));
        let best = cold.best.unwrap();
        assert_eq!((best.algorithm.as_str(), best.ratio), ("DEFAULT", 1.5));

        let best = of(CacheState::Warm).unwrap().best.unwrap();
        // 10 s of packing less 4 s of analysis, against 0.5 s a call.
        assert_eq!((best.algorithm.as_str(), best.break_even_calls), ("ALG2", Some(12.0)));
    }

    #[test]
    fn what_is_slower_never_pays_and_what_is_cheaper_pays_at_once() {
        let packing =
            Packing { packed_bytes: 1, dense_bytes: 1, seconds: 1.0, copy_bandwidth: None };
        let work = Work::new(1, Operation::SpMV).packed(packing);
        let calls = |warm| {
            let of = |cache| Figures::new(&measured(warm, None), &baselines(), cache, work);
            assert!(of(CacheState::Cold).is_none());
            of(CacheState::Warm).unwrap().best.unwrap().break_even_calls
        };
        assert_eq!(calls(2.6), None);
        assert_eq!(calls(2.5), None);
        assert_eq!(calls(2.4), Some(0.0));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let work = Work::new(1, Operation::SpMV);
        let of = |baselines: &[Baseline]| {
            Figures::new(&measured(1.0, None), baselines, CacheState::Warm, work).unwrap()
        };
        let beside = of(&baselines());
        assert_eq!((beside.bytes_per_second, beside.floor_share), (None, None));
        let default = beside.default.unwrap();
        assert_eq!((default.ratio, default.break_even_calls), (3.0, None));
        let alone = of(&[baseline("DEFAULT", 0.0, Err("refused".to_owned()))]);
        assert_eq!((alone.default, alone.best), (None, None));
    }
}
