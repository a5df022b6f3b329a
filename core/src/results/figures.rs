//! What follows from the times of a right kernel and of its opponents.
//!
//! With t the median seconds of a product, nnz the entries of A and N the columns of B:
//!
//! - ratio = t(opponent) / t(ours): above 1 is a win. `DEFAULT` is the algorithm that cuSPARSE
//!   takes unasked, *best* the quickest of all opponents' algorithms that ran, in the same regime.
//! - GFLOPS = 2 · nnz · N / t.
//! - moved bytes = arrays of the packed matrix + dense operands, each element once; GB/s = moved /
//!   t.
//! - floor = moved bytes / bandwidth of a copy, and its share = floor / t. With a warm cache the
//!   share may exceed 1.
//! - break-even calls n solve pack + n · t(ours) = analysis + n · t(opponent), so n = (pack −
//!   analysis) / (t(opponent) − t(ours)), at least 0; there is none where ours is not faster.
//!   `pack` is the packing on the host; search, compilation and copies to the device are not in it.
//!
//! Of several right kernels the *fastest* is taken, by the times of an [`Objective`]; those that
//! lack them come last. Times of two regimes are never compared.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::ByRegime;
use crate::outcome::{Baseline, Measurement, Objective, Outcome, Regime};
use crate::task::Operation;

/// What a kernel is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// What cuSPARSE does unasked.
    Default,
    /// The quickest of all opponents' algorithms.
    Best,
}

impl Rival {
    /// All rivals.
    pub const ALL: [Self; 2] = [Self::Default, Self::Best];

    /// The name that tables have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::Best => "best",
        }
    }
}

/// How fast a right kernel is, in one regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Median seconds of a product.
    pub seconds: f64,
    /// Floating-point operations of the product, in 10⁹ a second.
    pub gflops: f64,
    /// Moved bytes over the median; absent where it is not known what is moved.
    pub bytes_per_second: Option<f64>,
    /// Floor over the median, usually at most 1; absent where moved bytes or bandwidth are.
    pub floor_share: Option<f64>,
    /// The comparison with cuSPARSE's default algorithm; absent where it did not run.
    pub default: Option<Comparison>,
    /// The comparison with the quickest of the opponents' algorithms; absent where none ran.
    pub best: Option<Comparison>,
}

/// A kernel beside an opponent's algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The algorithm's library and its version.
    pub library: String,
    /// The algorithm's name.
    pub algorithm: String,
    /// Median seconds of a product.
    pub seconds: f64,
    /// The opponent's time over ours: above 1 is a win.
    pub ratio: f64,
    /// Products after which packing has paid; absent where ours is not faster, or nothing was
    /// packed.
    pub break_even_calls: Option<f64>,
}

/// What figures are made of, besides times.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Floating-point operations of a product.
    flops: f64,
    packing: Option<Packing>,
}

/// What is known of a kernel for a packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Bytes of the arrays of the packed matrix, workspace excluded.
    pub packed_bytes: u64,
    /// Bytes of the dense operands, each element once.
    pub dense_bytes: u64,
    /// Seconds to pack the matrix on the host.
    pub seconds: f64,
    /// Bytes a second, read and written, of a device-to-device copy in the same run.
    pub copy_bandwidth: Option<f64>,
}

impl Work {
    /// The work of a product with a matrix of `nnz` entries, by a kernel of which nothing else is
    /// known.
    #[must_use]
    pub fn new(nnz: usize, operation: Operation) -> Self {
        Self { flops: 2.0 * nnz as f64 * f64::from(operation.columns()), packing: None }
    }

    /// Adds what is known of a kernel for a packed matrix.
    #[must_use]
    pub fn packed(self, packing: Packing) -> Self {
        Self { packing: Some(packing), ..self }
    }
}

impl Figures {
    /// The figures of a kernel beside the `baselines` that were measured in turn with it; absent
    /// where the regime was not measured.
    #[must_use]
    pub fn new(
        measurement: &Measurement,
        baselines: &[Baseline],
        regime: Regime,
        Work { flops, packing }: Work,
    ) -> Option<Self> {
        let seconds = measurement.timing.median(regime)?;
        let compare = |baseline: &Baseline| {
            let theirs = baseline.median(regime)?;
            let gain = theirs - seconds;
            let pays =
                |packing: Packing| ((packing.seconds - baseline.analysis_seconds) / gain).max(0.0);
            Some(Comparison {
                library: baseline.library.clone(),
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
    #[must_use]
    pub fn against(&self, rival: Rival) -> Option<&Comparison> {
        match rival {
            Rival::Default => self.default.as_ref(),
            Rival::Best => self.best.as_ref(),
        }
    }
}

/// The candidate that a user would be given: the fastest right one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Its place among the candidates, from 0.
    pub index: usize,
    /// Which times decided, as far as there are any.
    pub by: Objective,
    /// Bytes of the arrays of the packed matrix, workspace excluded.
    pub packed_bytes: u64,
    /// Seconds to pack the matrix on the host.
    pub pack_seconds: f64,
    /// Bytes of the dense operands, each element once.
    pub dense_bytes: u64,
    /// Its figures; absent for a regime that was not measured.
    #[serde(flatten)]
    pub figures: ByRegime<Option<Figures>>,
}

impl Chosen {
    /// Chooses the candidate of this index, which was fastest `by` these times, packed as `packing`
    /// says.
    #[must_use]
    pub fn new(
        (index, by): (usize, Objective),
        measurement: &Measurement,
        baselines: &[Baseline],
        operation_work: Work,
        packing: Packing,
    ) -> Self {
        let work = operation_work.packed(packing);
        Self {
            index,
            by,
            packed_bytes: packing.packed_bytes,
            pack_seconds: packing.seconds,
            dense_bytes: packing.dense_bytes,
            figures: ByRegime::of(|regime| Figures::new(measurement, baselines, regime, work)),
        }
    }

    /// The figures of one regime.
    #[must_use]
    pub fn figures(&self, regime: Regime) -> Option<&Figures> {
        self.figures.get(regime).as_ref()
    }

    /// A rival's time over ours; absent where one of the two is.
    #[must_use]
    pub fn ratio(&self, regime: Regime, rival: Rival) -> Option<f64> {
        Some(self.figures(regime)?.against(rival)?.ratio)
    }
}

/// Indices of the right kernels, fastest first; where some have the times that decide, those that
/// have none come last, by the times that they have.
pub fn ranking<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
    objective: Objective,
) -> Vec<usize> {
    let medians = |outcome: &Outcome| {
        let timing = &outcome.measurement()?.timing;
        let others = [Regime::Cold, Regime::Warm, Regime::BackToBack];
        let [cold, warm, back_to_back] = others.map(|regime| timing.median(regime));
        let keys = [objective.seconds(timing), cold, warm, back_to_back];
        Some(keys.map(|key| key.unwrap_or(f64::INFINITY)))
    };
    let outcomes = outcomes.into_iter().enumerate();
    let mut right: Vec<_> = outcomes.filter_map(|(i, o)| Some((i, medians(o)?))).collect();
    right.sort_by(|(_, ours), (_, theirs)| {
        let each = ours.iter().zip(theirs).map(|(ours, theirs)| ours.total_cmp(theirs));
        each.fold(Ordering::Equal, Ordering::then)
    });
    right.into_iter().map(|(index, _)| index).collect()
}

/// Index of the fastest right kernel.
pub fn fastest<'a>(
    outcomes: impl IntoIterator<Item = &'a Outcome>,
    objective: Objective,
) -> Option<usize> {
    ranking(outcomes, objective).into_iter().next()
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;
    use core::num::NonZeroU32;

    use super::*;
    use crate::outcome::{Timing, Violation};

    fn measured(warm: f64, cold: Option<f64>) -> Measurement {
        Measurement { checks: 4, worst_ratio: 0.1, timing: timing(warm, cold) }
    }

    fn timing(warm: f64, cold: Option<f64>) -> Timing {
        let samples = |s: f64| vec![s].try_into().unwrap();
        Timing { warm: Some(samples(warm)), cold: cold.map(samples), back_to_back: None }
    }

    fn baseline(algorithm: &str, analysis: f64, timing: Result<Timing, String>) -> Baseline {
        Baseline {
            library: "cuSPARSE 12.9.4".to_owned(),
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
    fn right_kernels_are_ranked_by_the_times_that_decide() {
        let right = |warm, cold| Outcome::Measured(measured(warm, cold));
        let wrong =
            Outcome::WrongResult { violation: Violation::Inexact, reason: "off".to_owned() };
        let warm_only = [wrong.clone(), right(2.0, None), right(0.1, None)];
        for objective in Objective::ALL {
            assert_eq!(fastest([&wrong], objective), None);
            assert_eq!(ranking(&warm_only, objective), [2, 1], "{objective:?}");
        }
        // The second is faster warm, the third faster cold, the fourth by less; the others were
        // never cold. Geometric means: 2.2, 2.8, 2.1.
        let cold = [right(1.0, Some(5.0)), right(2.0, Some(4.0)), right(1.1, Some(4.1))];
        let [first, second, third] = cold;
        let mixed = [wrong, first, second, third, right(0.2, None), right(0.1, None)];
        assert_eq!(ranking(&mixed, Objective::Cold), [2, 3, 1, 5, 4]);
        assert_eq!(ranking(&mixed, Objective::Warm), [5, 4, 1, 3, 2]);
        assert_eq!(ranking(&mixed, Objective::Both), [3, 1, 2, 5, 4]);
        assert_eq!(fastest(&mixed, Objective::Cold), Some(2));
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
        let of = |regime| Figures::new(&measured(2.0, Some(4.0)), &baselines(), regime, work);
        let cold = of(Regime::Cold).unwrap();
        assert_eq!((cold.seconds, cold.gflops, cold.bytes_per_second), (4.0, 2.0, Some(50.0)));
        assert_eq!(cold.floor_share, Some(0.5));
        let default = cold.default.unwrap();
        // 10 s of packing against 2 s a call.
        assert_eq!((default.ratio, default.break_even_calls), (1.5, Some(5.0)));
        let best = cold.best.unwrap();
        assert_eq!((best.algorithm.as_str(), best.ratio), ("DEFAULT", 1.5));

        let best = of(Regime::Warm).unwrap().best.unwrap();
        // 10 s of packing less 4 s of analysis, against 0.5 s a call.
        assert_eq!((best.algorithm.as_str(), best.break_even_calls), ("ALG2", Some(12.0)));
    }

    #[test]
    fn what_is_slower_never_pays_and_what_is_cheaper_pays_at_once() {
        let packing =
            Packing { packed_bytes: 1, dense_bytes: 1, seconds: 1.0, copy_bandwidth: None };
        let work = Work::new(1, Operation::SpMV).packed(packing);
        let calls = |warm| {
            let of = |regime| Figures::new(&measured(warm, None), &baselines(), regime, work);
            assert!(of(Regime::Cold).is_none());
            of(Regime::Warm).unwrap().best.unwrap().break_even_calls
        };
        assert_eq!(calls(2.6), None);
        assert_eq!(calls(2.5), None);
        assert_eq!(calls(2.4), Some(0.0));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let work = Work::new(1, Operation::SpMV);
        let of = |baselines: &[Baseline]| {
            Figures::new(&measured(1.0, None), baselines, Regime::Warm, work).unwrap()
        };
        let beside = of(&baselines());
        assert_eq!((beside.bytes_per_second, beside.floor_share), (None, None));
        let default = beside.default.unwrap();
        assert_eq!((default.ratio, default.break_even_calls), (3.0, None));
        let alone = of(&[baseline("DEFAULT", 0.0, Err("refused".to_owned()))]);
        assert_eq!((alone.default, alone.best), (None, None));
    }
}
