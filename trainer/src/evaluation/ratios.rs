//! How near a chooser's picks come to the oracle on one matrix, and the interval over many.

use sparserl_core::outcome::Regime;
use sparserl_core::results::Interval;

use super::CaseResult;

/// Numbers of measured picks that a table has a column for.
pub(super) const BEST_OF: [usize; 4] = [1, 2, 4, 8];
/// A wrong pick's ratio.
pub(super) const WRONG: f64 = 0.01;

/// The family of a case, the ratios of the best of so many picks of a chooser, and whether the
/// first is right; `None` where the oracle was not timed or the chooser was not asked.
pub(super) fn ratios<'r>(
    result: &'r CaseResult,
    regime: Regime,
    chooser: &str,
) -> Option<(&'r str, [f64; BEST_OF.len()], bool)> {
    let oracle = result.oracle.seconds(regime)?;
    let picks =
        result.choosers.iter().find(|picks| picks.chooser == chooser && picks.regime == regime)?;
    let ratio = |seconds: f64| oracle / seconds;
    let best_of = |count: usize| {
        let times = picks.programs.iter().take(count).filter_map(|pick| pick.seconds(regime));
        times.map(ratio).fold(WRONG, f64::max)
    };
    let right = picks.programs.first().is_some_and(|pick| pick.seconds(regime).is_some());
    Some((&result.family, BEST_OF.map(best_of), right))
}

/// The interval of the geometric mean of some ratios, each with its family, as
/// [`Interval::over_families`] has that of a mean.
pub(super) fn interval_of<'f>(
    ratios: impl IntoIterator<Item = (&'f str, f64)>,
) -> Option<Interval> {
    let logarithms = ratios.into_iter().map(|(family, ratio)| (family, ratio.ln()));
    Interval::over_families(logarithms).map(Interval::exp)
}
