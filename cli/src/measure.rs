//! Measures candidates as far as a budget goes.

use std::time::{Duration, Instant};

use anyhow::bail;
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator};
use sparserl_core::results::fastest;

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

/// Judges programs, best first, until the budget is spent; the baselines are those that were measured
/// with the fastest.
///
/// # Errors
/// When the evaluator fails, or when no program is right.
pub(crate) fn measure<T: Scalar, E>(
    evaluator: &mut E,
    matrix: CsrView<'_, T>,
    programs: &[Program],
    budget: Budget,
) -> anyhow::Result<Evaluation>
where
    E: Evaluator,
    anyhow::Error: From<E::Error>,
{
    let start = Instant::now();
    let mut whole: Option<Evaluation> = None;
    for batch in programs.chunks(BATCH) {
        let judged = whole.as_ref().map_or(0, |whole| whole.outcomes.len());
        let spent = match budget {
            Budget::Candidates(count) => judged >= count,
            Budget::Time(time) => judged > 0 && start.elapsed() >= time,
        };
        if spent {
            break;
        }
        let mut evaluation = evaluator.evaluate(matrix, batch)?;
        whole = Some(match whole {
            None => evaluation,
            Some(mut whole) => {
                let fastest_before = fastest(&whole.outcomes);
                whole.outcomes.append(&mut evaluation.outcomes);
                if fastest(&whole.outcomes) == fastest_before {
                    whole
                } else {
                    Evaluation { outcomes: whole.outcomes, ..evaluation }
                }
            }
        });
    }
    let Some(whole) = whole else { bail!("there are no candidates to measure") };
    if fastest(&whole.outcomes).is_none() {
        let first = whole.outcomes.first().map_or_else(String::new, ToString::to_string);
        bail!("none of {} candidates is right; the first {first}", whole.outcomes.len());
    }
    Ok(whole)
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
