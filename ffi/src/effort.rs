//! What planning may cost, by the calls that are expected.

use std::time::Duration;

use crate::options::{Measure, PlanOptions};

/// The share of plain CSR's time that a better kernel saves, about as often less as more.
const SAVING: f64 = 0.3;
/// Seconds that choosing and compiling take, about: what is to be saved where somebody waits for
/// it.
const CHOOSING: f64 = 0.1;
/// Seconds to save from which a program is chosen beside the calls. It may be there too late for
/// these, and is remembered for those of later plans.
const CHOOSING_BESIDE: f64 = 0.02;
/// Seconds to save from which a program is looked for that was chosen before: about what looking,
/// packing and loading take.
const REMEMBERING: f64 = 0.005;
/// Seconds to save from which programs are measured: opening a device for it takes one of them.
const MEASURING: f64 = 3.0;
/// How long programs are measured at most, in seconds.
const LONGEST: f64 = 60.0;

/// What is done for a plan beyond plain CSR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effort {
    /// Nothing.
    None,
    /// A program is taken that the policy chose for an earlier plan, if it did.
    Remember,
    /// The policy chooses a program.
    Choose,
    /// Programs are measured for so long.
    Measure(Duration),
}

impl Effort {
    /// What pays where plain CSR takes so many seconds.
    pub(crate) fn of(options: &PlanOptions, csr_seconds: f64, has_gpu: bool) -> Self {
        if options.expected_calls == 0 {
            return Self::None;
        }
        // Nobody waits for a first call that cannot be made.
        if !has_gpu {
            return Self::Choose;
        }
        let saved = options.expected_calls as f64 * csr_seconds * SAVING;
        let budget = Duration::from_secs_f64((saved / 2.0).clamp(MEASURING, LONGEST));
        if options.deterministic {
            // What every run ends with depends neither on times nor on what was chosen before.
            return if saved >= CHOOSING { Self::Choose } else { Self::None };
        }
        match options.measure {
            Measure::Always => Self::Measure(budget),
            _ if saved < REMEMBERING => Self::None,
            _ if saved < CHOOSING_BESIDE => Self::Remember,
            Measure::Worthwhile if saved >= MEASURING => Self::Measure(budget),
            _ => Self::Choose,
        }
    }
}

/// Why a plan stays plain CSR that so many calls are expected of.
pub(crate) fn too_few(calls: u64) -> String {
    format!("plain CSR: {calls} calls are too few to pay for a search")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_grows_with_the_calls() {
        let of = |expected_calls, measure, deterministic| {
            let options =
                PlanOptions { expected_calls, measure, deterministic, ..PlanOptions::default() };
            Effort::of(&options, 1e-5, true)
        };
        use Measure::{Always, Never, Worthwhile};
        assert_eq!(of(0, Always, false), Effort::None);
        assert_eq!(of(1_000, Worthwhile, false), Effort::None);
        assert_eq!(of(3_000, Worthwhile, false), Effort::Remember);
        assert_eq!(of(10_000, Never, false), Effort::Choose);
        assert_eq!(of(10_000, Worthwhile, true), Effort::None);
        assert_eq!(of(100_000, Worthwhile, false), Effort::Choose);
        assert_eq!(of(4_000_000, Worthwhile, false), Effort::Measure(Duration::from_secs(6)));
        assert_eq!(of(u64::MAX, Worthwhile, false), Effort::Measure(Duration::from_secs(60)));
        assert_eq!(of(u64::MAX, Never, false), Effort::Choose);
        assert_eq!(of(1, Always, false), Effort::Measure(Duration::from_secs(3)));
        assert_eq!(of(u64::MAX, Always, true), Effort::Choose);
        let options = PlanOptions { expected_calls: 1, ..PlanOptions::default() };
        assert_eq!(Effort::of(&options, 1e-5, false), Effort::Choose);
    }
}
