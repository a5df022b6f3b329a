//! What follows from the samples of a matrix and task.
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

use std::time::Instant;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sparserl_core::language::{Facts, Program};
use sparserl_core::layout::{ArrayRole, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Baseline, CacheState, Evaluation, Measurement};

/// The candidate that a user would be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    /// Among the candidates, from 0.
    pub(crate) index: usize,
    /// Which times decided: cold where any right candidate has them.
    pub(crate) by: CacheState,
    /// Of the arrays of the packed matrix, workspace excluded.
    pub(crate) packed_bytes: u64,
    /// To pack the matrix on the host.
    pub(crate) pack_seconds: f64,
    /// Of the dense operands, each element once.
    pub(crate) dense_bytes: u64,
    /// With a warm cache.
    pub(crate) warm: Figures,
    /// With a cold cache; absent when not measured.
    pub(crate) cold: Option<Figures>,
}

impl Chosen {
    /// The figures of one state of the cache.
    pub(crate) fn figures(&self, cache: CacheState) -> Option<&Figures> {
        match cache {
            CacheState::Warm => Some(&self.warm),
            CacheState::Cold => self.cold.as_ref(),
        }
    }
}

/// How fast the chosen candidate is, in one state of the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Median.
    pub(crate) seconds: f64,
    pub(crate) gflops: f64,
    pub(crate) bytes_per_second: f64,
    /// Absent without a bandwidth.
    pub(crate) floor_share: Option<f64>,
    /// Against the default algorithm; absent where it did not run.
    pub(crate) default: Option<Comparison>,
    /// Against the quickest algorithm; absent where none ran.
    pub(crate) best: Option<Comparison>,
}

impl Figures {
    /// The comparison with one of the rivals.
    pub(crate) fn against(&self, rival: Rival) -> Option<&Comparison> {
        match rival {
            Rival::Default => self.default.as_ref(),
            Rival::Best => self.best.as_ref(),
        }
    }
}

/// What a candidate is compared with.
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

/// The chosen candidate beside an algorithm of the library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The algorithm's name.
    pub(crate) algorithm: String,
    /// Its median.
    pub(crate) seconds: f64,
    /// Its time over ours.
    pub(crate) ratio: f64,
    /// Products after which packing has paid; absent where ours is not faster.
    pub(crate) break_even_calls: Option<f64>,
}

/// What the chosen candidate's figures are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Floating-point operations of a product.
    pub(crate) flops: f64,
    pub(crate) packed_bytes: u64,
    pub(crate) dense_bytes: u64,
    pub(crate) pack_seconds: f64,
}

/// The fastest right candidate: by cold times where any right one has them, else by warm ones.
pub(crate) fn fastest(evaluation: &Evaluation) -> Option<(usize, CacheState, &Measurement)> {
    let by = |cache: CacheState| {
        let right = evaluation.outcomes.iter().enumerate().filter_map(move |(index, outcome)| {
            let measurement = outcome.measurement()?;
            Some((index, measurement, measurement.timing.median(cache)?))
        });
        let best = right.min_by(|a, b| a.2.total_cmp(&b.2));
        best.map(|(index, measurement, _)| (index, cache, measurement))
    };
    by(CacheState::Cold).or_else(|| by(CacheState::Warm))
}

/// The figures of a measurement in one state of the cache, when it was measured in that.
pub(crate) fn figures(
    measurement: &Measurement,
    evaluation: &Evaluation,
    cache: CacheState,
    work: Work,
) -> Option<Figures> {
    let seconds = measurement.timing.median(cache)?;
    let moved = (work.packed_bytes + work.dense_bytes) as f64;
    let compare = |baseline: &Baseline| {
        let theirs = baseline.median(cache)?;
        let gain = theirs - seconds;
        let before = work.pack_seconds - baseline.analysis_seconds;
        Some(Comparison {
            algorithm: baseline.algorithm.clone(),
            seconds: theirs,
            ratio: theirs / seconds,
            break_even_calls: (gain > 0.0).then(|| (before / gain).max(0.0)),
        })
    };
    let best = evaluation.baselines.iter().filter_map(compare);
    Some(Figures {
        seconds,
        gflops: work.flops / seconds / 1e9,
        bytes_per_second: moved / seconds,
        floor_share: evaluation.copy_bandwidth.map(|bandwidth| moved / bandwidth / seconds),
        default: evaluation.default_baseline().and_then(compare),
        best: best.min_by(|a, b| a.seconds.total_cmp(&b.seconds)),
    })
}

/// Takes the fastest right candidate and packs the matrix for it, to see what that costs; `None` where
/// no candidate is right.
pub(crate) fn choose<T: Scalar>(
    matrix: CsrView<'_, T>,
    facts: &Facts<'_>,
    programs: &[Program],
    evaluation: &Evaluation,
) -> anyhow::Result<Option<Chosen>> {
    let Some((index, by, measurement)) = fastest(evaluation) else { return Ok(None) };
    let Some(program) = programs.get(index) else { return Ok(None) };
    let start = Instant::now();
    let packed = pack(matrix, program).context("packing (a defect of SparseRL)")?;
    let pack_seconds = start.elapsed().as_secs_f64();
    let cost = facts.cost(program);
    let work = Work {
        flops: cost.flops as f64,
        packed_bytes: packed.bytes(ArrayRole::Matrix),
        dense_bytes: cost.dense_bytes,
        pack_seconds,
    };
    let Some(warm) = figures(measurement, evaluation, CacheState::Warm, work) else {
        return Ok(None);
    };
    Ok(Some(Chosen {
        index,
        by,
        packed_bytes: work.packed_bytes,
        pack_seconds,
        dense_bytes: work.dense_bytes,
        warm,
        cold: figures(measurement, evaluation, CacheState::Cold, work),
    }))
}

#[cfg(test)]
mod tests {
    use sparserl_core::outcome::{Outcome, Timing, Violation};

    use super::*;

    fn measured(warm: f64, cold: Option<f64>) -> Outcome {
        Outcome::Measured(Measurement { checks: 4, worst_ratio: 0.1, timing: timing(warm, cold) })
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

    fn evaluation(outcomes: Vec<Outcome>) -> Evaluation {
        let baselines = vec![
            baseline("DEFAULT", 0.0, Ok(timing(3.0, Some(6.0)))),
            baseline("ALG1", 0.0, Err("not supported".to_owned())),
            baseline("ALG2", 4.0, Ok(timing(2.5, Some(8.0)))),
        ];
        Evaluation { outcomes, baselines, copy_bandwidth: Some(100.0) }
    }

    fn wrong() -> Outcome {
        Outcome::WrongResult { violation: Violation::Inexact, reason: "off".to_owned() }
    }

    #[test]
    fn the_fastest_is_right_and_cold_decides() {
        let of = |outcomes| {
            let evaluation = evaluation(outcomes);
            fastest(&evaluation).map(|(index, by, _)| (index, by))
        };
        use CacheState::{Cold, Warm};
        let warm_only = measured(0.1, None);
        assert_eq!(of(vec![wrong()]), None);
        assert_eq!(of(vec![wrong(), measured(2.0, None), warm_only.clone()]), Some((2, Warm)));
        // The second is faster warm, the third faster cold; the fourth was never cold.
        let mixed = vec![wrong(), measured(1.0, Some(5.0)), measured(2.0, Some(4.0)), warm_only];
        assert_eq!(of(mixed), Some((2, Cold)));
    }

    #[test]
    fn figures_by_hand() {
        let evaluation = evaluation(vec![measured(2.0, Some(4.0))]);
        let (_, _, measurement) = fastest(&evaluation).unwrap();
        let work = Work { flops: 8e9, packed_bytes: 150, dense_bytes: 50, pack_seconds: 10.0 };
        let cold = figures(measurement, &evaluation, CacheState::Cold, work).unwrap();
        assert_eq!((cold.seconds, cold.gflops, cold.bytes_per_second), (4.0, 2.0, 50.0));
        assert_eq!(cold.floor_share, Some(0.5));
        let default = cold.default.unwrap();
        // 10 s of packing against 2 s a call.
        assert_eq!((default.ratio, default.break_even_calls), (1.5, Some(5.0)));
        let best = cold.best.unwrap();
        assert_eq!((best.algorithm.as_str(), best.ratio), ("DEFAULT", 1.5));

        let warm = figures(measurement, &evaluation, CacheState::Warm, work).unwrap();
        let best = warm.best.unwrap();
        // 10 s of packing less 4 s of analysis, against 0.5 s a call.
        assert_eq!((best.algorithm.as_str(), best.break_even_calls), ("ALG2", Some(12.0)));
    }

    #[test]
    fn what_is_slower_never_pays_and_what_is_cheaper_pays_at_once() {
        let work = Work { flops: 1.0, packed_bytes: 1, dense_bytes: 1, pack_seconds: 1.0 };
        let calls = |warm| {
            let evaluation = evaluation(vec![measured(warm, None)]);
            let (_, _, measurement) = fastest(&evaluation).unwrap();
            assert!(figures(measurement, &evaluation, CacheState::Cold, work).is_none());
            let best = figures(measurement, &evaluation, CacheState::Warm, work).unwrap().best;
            best.unwrap().break_even_calls
        };
        assert_eq!(calls(2.6), None);
        assert_eq!(calls(2.5), None);
        assert_eq!(calls(2.4), Some(0.0));
    }
}
