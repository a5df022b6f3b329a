use std::collections::BTreeMap;

use sparserl_core::random::SplitMix64;
use sparserl_core::results::Interval;

/// Resamples of the families for an interval.
const RESAMPLES: usize = 2000;

/// An interval as tables have it; nothing where there is none.
pub(crate) fn written(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |Interval { low, high }| format!("{low:.3} to {high:.3}"))
}

/// Where the mean of some values lies with 95 %, by a bootstrap over families: they are drawn
/// again, with all their values. The same values give the same; absent for fewer than two families.
pub(super) fn interval<'f>(values: impl Iterator<Item = (&'f str, f64)>) -> Option<Interval> {
    let mut families = BTreeMap::<&str, (f64, usize)>::new();
    for (family, value) in values {
        let (sum, count) = families.entry(family).or_default();
        *sum += value;
        *count += 1;
    }
    let families: Vec<(f64, usize)> = families.into_values().collect();
    if families.len() < 2 {
        return None;
    }
    let mut random = SplitMix64::new(0);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..families.len()).map(|_| families[random.below(families.len())]);
            let (sum, count) = drawn.fold((0.0, 0), |(s, n), (sum, count)| (s + sum, n + count));
            sum / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let quantile = |share: f64| means.get((share * RESAMPLES as f64) as usize).copied();
    Some(Interval { low: quantile(0.025)?, high: quantile(0.975)? })
}
