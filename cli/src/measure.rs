//! Measures candidates on a GPU, and picks the fastest right one.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Baseline, CacheState, Evaluation, Evaluator, Measurement, Outcome};
use sparserl_core::task::Task;
use sparserl_gpu::device::DeviceFacts;

/// Programs that are measured together, so that they can be compared.
pub(crate) const BATCH: usize = 8;

/// How much may be spent on measuring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// So many candidates.
    Candidates(usize),
    /// New batches of candidates are begun until so much time has passed.
    Time(Duration),
}

impl Budget {
    /// Candidates that are worth searching for.
    pub(crate) fn candidates(self) -> usize {
        match self {
            Self::Candidates(count) => count,
            // More than are measured in minutes.
            Self::Time(_) => 64 * BATCH,
        }
    }
}

impl std::str::FromStr for Budget {
    type Err = String;

    /// `8` or `10s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let error =
            || format!("`{text}` is no budget: give candidates, as in 8, or seconds, as in 10s");
        let budget = match text.strip_suffix('s') {
            Some(seconds) => {
                let seconds = seconds.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1e6);
                Self::Time(Duration::from_secs_f64(seconds.ok_or_else(error)?))
            }
            None => {
                let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
                Self::Candidates(count.ok_or_else(error)?)
            }
        };
        Ok(budget)
    }
}

/// What measuring the candidates for a matrix showed.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) device: DeviceFacts,
    /// Of each candidate that was measured, in their order.
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) baselines: Vec<Baseline>,
    pub(crate) copy_bandwidth: Option<f64>,
}

impl Measured {
    /// Judges programs, best first, until the budget is spent.
    ///
    /// # Errors
    /// When the evaluator fails, or when no program is right.
    pub(crate) fn measure<T: Scalar, E>(
        evaluator: &mut E,
        device: DeviceFacts,
        matrix: CsrView<'_, T>,
        programs: &[Program],
        budget: Budget,
    ) -> anyhow::Result<Self>
    where
        E: Evaluator,
        anyhow::Error: From<E::Error>,
    {
        let start = Instant::now();
        let (mut outcomes, mut best): (Vec<Outcome>, Option<Evaluation>) = (Vec::new(), None);
        for batch in programs.chunks(BATCH) {
            let spent = match budget {
                Budget::Candidates(count) => outcomes.len() >= count,
                Budget::Time(time) => !outcomes.is_empty() && start.elapsed() >= time,
            };
            if spent {
                break;
            }
            let evaluation = evaluator.evaluate(matrix, batch)?;
            outcomes.extend(evaluation.outcomes.iter().cloned());
            // The baselines that were measured with the fastest kernel are those to compare it with.
            let faster = best.as_ref().is_none_or(|best| {
                let time = |e: &Evaluation| e.fastest().and_then(|i| seconds(&e.outcomes, i));
                time(&evaluation).zip(time(best)).is_none_or(|(new, old)| new < old)
            });
            if faster {
                best = Some(evaluation);
            }
        }
        let (baselines, copy_bandwidth) =
            best.map_or((Vec::new(), None), |best| (best.baselines, best.copy_bandwidth));
        let measured = Self { device, outcomes, baselines, copy_bandwidth };
        if measured.ranking().is_empty() {
            let why = measured.outcomes.first().map_or_else(String::new, ToString::to_string);
            bail!("none of {} candidates is right; the first {why}", measured.outcomes.len());
        }
        Ok(measured)
    }

    /// Indices of the right candidates, fastest first.
    pub(crate) fn ranking(&self) -> Vec<usize> {
        let right = (0..self.outcomes.len()).filter_map(|i| Some((i, seconds(&self.outcomes, i)?)));
        let mut right: Vec<_> = right.collect();
        right.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        right.into_iter().map(|(index, _)| index).collect()
    }

    /// How one of the right candidates compares.
    pub(crate) fn comparison(
        &self,
        index: usize,
        task: Task,
        nnz: usize,
        floor_bytes: u64,
        pack_seconds: f64,
    ) -> Option<Comparison> {
        let measurement = self.outcomes.get(index)?.measurement()?;
        let cold = Times::new(self, measurement, CacheState::Cold);
        let warm = Times::new(self, measurement, CacheState::Warm)?;
        let seconds = cold.map_or(warm.seconds, |cold| cold.seconds);
        let flops = 2.0 * nnz as f64 * f64::from(task.operation.columns());
        let default = self.baselines.iter().find(|baseline| baseline.is_default);
        Some(Comparison {
            device: self.device.name.clone(),
            checks: measurement.checks,
            worst_ratio: measurement.worst_ratio,
            cold,
            warm,
            gflops: flops / seconds * 1e-9,
            gigabytes_per_second: floor_bytes as f64 / seconds * 1e-9,
            floor_share: self
                .copy_bandwidth
                .map(|bandwidth| floor_bytes as f64 / bandwidth / seconds),
            best_algorithm: self.best_algorithm().map(|baseline| baseline.algorithm.clone()),
            break_even_calls: default.and_then(|default| {
                let gained = default.median(CacheState::Warm)? - warm.seconds;
                let ahead = (pack_seconds - default.analysis_seconds).max(0.0);
                (gained > 0.0).then(|| (ahead / gained).ceil())
            }),
        })
    }

    /// The fastest of the library's algorithms, cold where that was measured.
    fn best_algorithm(&self) -> Option<&Baseline> {
        let median = |baseline: &Baseline| {
            baseline.median(CacheState::Cold).or(baseline.median(CacheState::Warm))
        };
        let ran = self.baselines.iter().filter_map(|b| Some((b, median(b)?)));
        ran.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(baseline, _)| baseline)
    }
}

/// Median seconds of a right candidate: cold where that was measured.
fn seconds(outcomes: &[Outcome], index: usize) -> Option<f64> {
    let timing = &outcomes.get(index)?.measurement()?.timing;
    timing.median(CacheState::Cold).or(timing.median(CacheState::Warm))
}

/// A right candidate against the library and against the memory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) device: String,
    /// Results compared with the reference.
    pub(crate) checks: u32,
    /// The largest |error| / bound.
    pub(crate) worst_ratio: f64,
    pub(crate) cold: Option<Times>,
    pub(crate) warm: Times,
    /// 2 · nnz · N a second, cold.
    pub(crate) gflops: f64,
    /// Compulsory bytes a second, cold.
    pub(crate) gigabytes_per_second: f64,
    /// Compulsory bytes at the bandwidth of a copy, as a share of the time taken, cold.
    pub(crate) floor_share: Option<f64>,
    /// The fastest of the library's algorithms.
    pub(crate) best_algorithm: Option<String>,
    /// Products after which packing has paid, against the library's default; absent when it never
    /// does.
    pub(crate) break_even_calls: Option<f64>,
}

/// Median seconds of one product.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    pub(crate) seconds: f64,
    /// Of the library's default.
    pub(crate) default: Option<f64>,
    /// Of the fastest of the library's algorithms.
    pub(crate) best: Option<f64>,
}

impl Times {
    fn new(measured: &Measured, measurement: &Measurement, cache: CacheState) -> Option<Self> {
        let default = measured.baselines.iter().find(|baseline| baseline.is_default);
        let medians = measured.baselines.iter().filter_map(|baseline| baseline.median(cache));
        Some(Self {
            seconds: measurement.timing.median(cache)?,
            default: default.and_then(|default| default.median(cache)),
            best: medians.min_by(f64::total_cmp),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_candidates_or_seconds() {
        assert_eq!("8".parse(), Ok(Budget::Candidates(8)));
        assert_eq!("2.5s".parse(), Ok(Budget::Time(Duration::from_millis(2500))));
        for wrong in ["", "0", "s", "-1s", "1001", "8.5", "nans", "infs", "1e9s"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
    }
}
