//! What became of a kernel on a matrix, and who finds out.
//!
//! An [`Evaluator`] is given a matrix and candidates; it says of each what became of it, with the
//! times of the library that it is measured against. A GPU is one; an emulator is another, which
//! says whether candidates are right but not how fast they are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::Candidate;
use crate::matrix::{CsrView, Scalar};
pub use crate::timing::{NotSamples, Objective, Regime, Samples, Timing};

/// Judges candidates.
pub trait Evaluator {
    /// The code of the kernels that it takes.
    type Code;
    /// The kernels from anywhere that it takes.
    type Cuda;
    /// Why nothing can be said: what is broken is the evaluator, not a program.
    type Error;

    /// What it can say.
    fn abilities(&self) -> Abilities;

    /// Judges candidates of one operation for one matrix; one outcome for each, in their order.
    ///
    /// # Errors
    /// When the evaluator itself fails, which includes that it was asked for what it is not able to
    /// say. Whatever a candidate does is an [`Outcome`].
    fn judge_all<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        candidates: &[Candidate<'_, Self::Code, Self::Cuda>],
    ) -> Result<Evaluation, Self::Error>;

    /// Whether an error is of the matrix, of which nothing can be verified, as where its results
    /// overflow: the evaluator is well, and judges on others.
    fn is_unverifiable(error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// What an [`Evaluator`] can say of right and wrong kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// How fast a right kernel is: it is [`Outcome::Measured`], else [`Outcome::Verified`].
    pub times: bool,
    /// What a kernel does wrong that its result need not show: races, uninitialised memory,
    /// accesses out of bounds by any distance.
    pub findings: bool,
    /// Kernels from anywhere, not only programs.
    pub cuda: bool,
    /// How thoroughly it judges, in a word such as `full`.
    pub protocol: String,
}

/// What an [`Evaluator`] found out about some kernels for one matrix and task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// One for each kernel, in their order.
    pub outcomes: Vec<Outcome>,
    /// The opponents' algorithms, measured in turn with the kernels; where these were judged in
    /// parts, the fastest times of all parts. Empty when none were asked for.
    pub baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a device-to-device copy in the same run; absent when it
    /// was not measured.
    pub copy_bandwidth: Option<f64>,
}

impl Evaluation {
    /// The least median of the baselines that ran, in seconds.
    #[must_use]
    pub fn best_baseline(&self, regime: Regime) -> Option<f64> {
        let medians = self.baselines.iter().filter_map(|baseline| baseline.median(regime));
        medians.min_by(f64::total_cmp)
    }

    /// The evaluation of all candidates, some of which nobody had to judge: `known` has what became
    /// of those, and nothing for each that was judged, in the order of the candidates.
    #[must_use]
    pub fn among(self, known: impl IntoIterator<Item = Option<Outcome>>) -> Self {
        let mut judged = self.outcomes.into_iter();
        let outcomes = known.into_iter().filter_map(|known| known.or_else(|| judged.next()));
        Self { outcomes: outcomes.collect(), ..self }
    }

    /// Adds what was found out about further kernels for the same matrix and task. Samples of an
    /// algorithm that was measured with both are pooled; one that ran with either has its times.
    pub fn append(&mut self, later: Self) {
        self.outcomes.extend(later.outcomes);
        self.copy_bandwidth = self.copy_bandwidth.or(later.copy_bandwidth);
        let join = |one: Option<Samples>, other: Option<Samples>| {
            let (one, other) = one.zip(other)?;
            Samples::try_from([one.seconds(), other.seconds()].concat()).ok()
        };
        for baseline in later.baselines {
            let Some(known) = self.baselines.iter_mut().find(|known| known.is_like(&baseline))
            else {
                self.baselines.push(baseline);
                continue;
            };
            match (&mut known.timing, baseline.timing) {
                (Ok(timing), Ok(Timing { cold, warm, back_to_back })) => {
                    *timing = Timing {
                        cold: join(timing.cold.take(), cold),
                        warm: join(timing.warm.take(), warm),
                        back_to_back: join(timing.back_to_back.take(), back_to_back),
                    };
                }
                (failed @ Err(_), Ok(timing)) => *failed = Ok(timing),
                (_, Err(_)) => (),
            }
        }
    }
}

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is right, and this is how fast it is.
    Measured(Measurement),
    /// It is right; it was not timed.
    Verified(Verification),
    /// It does not parse, pack or compile.
    CompileFailed {
        /// Why, in one line.
        reason: String,
    },
    /// The driver refuses to load or to launch it, or the device has no memory for it.
    LaunchFailed {
        /// Why, in one line.
        reason: String,
    },
    /// It faulted on the device, or took its process down.
    Faulted {
        /// Why, in one line.
        reason: String,
    },
    /// It ran, but what it did is not what it should do.
    WrongResult {
        /// What it did.
        violation: Violation,
        /// What was seen, in one line.
        reason: String,
    },
    /// It did not end in time.
    TimedOut {
        /// The time that it had, in seconds.
        seconds: f64,
    },
}

impl Outcome {
    /// The measurement of a right kernel.
    #[must_use]
    pub fn measurement(&self) -> Option<&Measurement> {
        match self {
            Self::Measured(measurement) => Some(measurement),
            _ => None,
        }
    }

    /// Whether it is right, timed or not.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(self, Self::Measured(_) | Self::Verified(_))
    }

    /// Whether it ran and did what no right kernel does. What did not compile or launch is not
    /// known to be wrong: there may have been no time or no memory for it.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        match self {
            Self::Faulted { .. } | Self::WrongResult { .. } | Self::TimedOut { .. } => true,
            Self::Measured(_)
            | Self::Verified(_)
            | Self::CompileFailed { .. }
            | Self::LaunchFailed { .. } => false,
        }
    }

    /// It as what is said of a kernel: `it faults: …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Measured(_) | Self::Verified(_) | Self::WrongResult { .. } => {
                format!("it is {self}")
            }
            Self::CompileFailed { .. }
            | Self::LaunchFailed { .. }
            | Self::Faulted { .. }
            | Self::TimedOut { .. } => format!("it {self}"),
        }
    }

    /// How far it came.
    #[must_use]
    pub fn tier(&self) -> Tier {
        match self {
            Self::CompileFailed { .. } => Tier::NotCompiled,
            Self::LaunchFailed { .. } | Self::Faulted { .. } | Self::TimedOut { .. } => {
                Tier::Failed
            }
            Self::WrongResult { .. } => Tier::Wrong,
            Self::Measured(_) | Self::Verified(_) => Tier::Right,
        }
    }

    /// One word for tables and stores.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Verified(_) => "verified",
            Self::CompileFailed { .. } => "compile-failed",
            Self::LaunchFailed { .. } => "launch-failed",
            Self::Faulted { .. } => "faulted",
            Self::WrongResult { .. } => "wrong-result",
            Self::TimedOut { .. } => "timed-out",
        }
    }
}

/// How far a kernel came: each is better than those before, whatever the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// There is no kernel.
    NotCompiled,
    /// It did not launch, or not end as a kernel should.
    Failed,
    /// It ran, but what it did is not what it should do.
    Wrong,
    /// It is right.
    Right,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured(measurement) => {
                write!(f, "right in {} checks", measurement.checks)?;
                let median = |regime| Some((regime, measurement.timing.median(regime)?));
                let measured = [Regime::Warm, Regime::Cold, Regime::BackToBack];
                match measured.into_iter().find_map(median) {
                    Some((regime, seconds)) => {
                        write!(f, ", {:.2} µs {}", seconds * 1e6, regime.name())
                    }
                    None => Ok(()),
                }
            }
            Self::Verified(Verification { checks, .. }) => {
                write!(f, "right in {checks} checks, not timed")
            }
            Self::CompileFailed { reason } => write!(f, "does not compile: {reason}"),
            Self::LaunchFailed { reason } => write!(f, "does not launch: {reason}"),
            Self::Faulted { reason } => write!(f, "faults: {reason}"),
            Self::WrongResult { violation, reason } => write!(f, "wrong ({violation}): {reason}"),
            Self::TimedOut { seconds } => write!(f, "did not end within {seconds:.1} s"),
        }
    }
}

/// What a kernel that ran did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Violation {
    /// An element is further off than the error bound allows, or was not written.
    Inexact,
    /// It changed an operand or an array of the matrix, which it may only read.
    InputChanged,
    /// It wrote outside of its buffers.
    WroteOutside,
    /// It keeps state from launch to launch, where results could be hidden.
    KeepsState,
    /// It was faster than its compulsory traffic allows.
    TooFast,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inexact => "inexact",
            Self::InputChanged => "input changed",
            Self::WroteOutside => "wrote outside",
            Self::KeepsState => "keeps state",
            Self::TooFast => "too fast",
        })
    }
}

/// A right kernel's checks and times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Results that were compared with the reference, each for inputs of its own.
    pub checks: u32,
    /// The largest |error| / bound of all of them; at most 1.
    pub worst_ratio: f64,
    /// How long a launch takes.
    pub timing: Timing,
}

/// A right kernel's checks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Results that were compared with the reference, each for inputs of its own.
    pub checks: u32,
    /// The largest |error| / bound of all of them; at most 1.
    pub worst_ratio: f64,
}

/// An algorithm of an opponent: of cuSPARSE, or of another library for the same product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Name and version of the library, such as `cuSPARSE 12.9.4`; versions differ by more than
    /// algorithms do.
    pub library: String,
    /// Name, such as `CSR_ALG2`.
    pub algorithm: String,
    /// Whether this is what cuSPARSE does unasked.
    pub is_default: bool,
    /// Seconds to convert and analyse the matrix and to make a plan, before the first product.
    pub analysis_seconds: f64,
    /// Bytes of device memory that it needs besides the operands.
    pub buffer_bytes: u64,
    /// Times, or in one line why there are none.
    pub timing: Result<Timing, String>,
}

impl Baseline {
    /// Whether it is the same algorithm of the same library.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.library == other.library && self.algorithm == other.algorithm
    }

    /// Median seconds of a product; absent when it did not run.
    #[must_use]
    pub fn median(&self, regime: Regime) -> Option<f64> {
        self.timing.as_ref().ok()?.median(regime)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn samples_of_one_algorithm_are_pooled() {
        let evaluation = |baselines| Evaluation { baselines, ..Evaluation::default() };
        let (one, other) = (baseline("A", Ok(1.0)), baseline("B", Ok(2.0)));
        let mut pooled = Evaluation::default();
        pooled.append(evaluation(vec![one, other, baseline("D", Err("out of memory"))]));
        let later = [("B", Ok(4.0)), ("C", Ok(5.0)), ("D", Ok(6.0)), ("A", Err("busy"))];
        pooled.append(evaluation(later.map(|(name, timing)| baseline(name, timing)).into()));
        let medians: Vec<_> = pooled
            .baselines
            .iter()
            .map(|baseline| (baseline.algorithm.as_str(), baseline.median(Regime::Warm)))
            .collect();
        let expected = [("A", Some(1.0)), ("B", Some(3.0)), ("D", Some(6.0)), ("C", Some(5.0))];
        assert_eq!(medians, expected);
    }

    fn samples(seconds: &[f64]) -> Samples {
        seconds.to_vec().try_into().unwrap()
    }

    fn baseline(algorithm: &str, timing: Result<f64, &str>) -> Baseline {
        Baseline {
            library: "cuSPARSE 12.9.4".to_string(),
            algorithm: algorithm.to_string(),
            is_default: algorithm == "DEFAULT",
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing: timing
                .map(|s| Timing {
                    warm: Some(samples(&[s])),
                    cold: Some(samples(&[2.0 * s])),
                    back_to_back: None,
                })
                .map_err(ToString::to_string),
        }
    }

    #[test]
    fn right_is_right_timed_or_not() {
        let timing = Timing { warm: Some(samples(&[1e-6])), ..Timing::default() };
        let measured = Outcome::Measured(Measurement { checks: 2, worst_ratio: 0.5, timing });
        let verified = Outcome::Verified(Verification { checks: 3, worst_ratio: 0.5 });
        assert!(measured.is_right() && verified.is_right());
        assert!(verified.measurement().is_none());
        assert_eq!(measured.to_string(), "right in 2 checks, 1.00 µs warm");
        assert_eq!(verified.to_string(), "right in 3 checks, not timed");
        assert!(!Outcome::TimedOut { seconds: 1.0 }.is_right());
    }

    #[test]
    fn the_best_baseline_is_one_that_ran() {
        let baselines = vec![
            baseline("DEFAULT", Ok(3.0)),
            baseline("CSR_ALG1", Err("refused")),
            baseline("CSR_ALG2", Ok(2.0)),
        ];
        let evaluation = Evaluation { outcomes: vec![], baselines, copy_bandwidth: None };
        assert_eq!(evaluation.best_baseline(Regime::Warm), Some(2.0));
        assert_eq!(evaluation.best_baseline(Regime::Cold), Some(4.0));
        assert_eq!(evaluation.best_baseline(Regime::BackToBack), None);
    }
}
