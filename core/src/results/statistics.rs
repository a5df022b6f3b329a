//! Statistics over candidates and matrices.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::outcome::{Objective, Outcome, Samples, Timing};
use crate::random::SplitMix64;

/// How many candidates came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Candidates that were judged.
    pub candidates: usize,
    /// Right, timed or not.
    pub right: usize,
    /// Did not parse, pack or compile.
    pub compile_failed: usize,
    /// Were not loaded or launched.
    pub launch_failed: usize,
    /// Faulted.
    pub faulted: usize,
    /// Ran, and did something else than they should.
    pub wrong: usize,
    /// Did not end in time.
    pub timed_out: usize,
}

impl Counts {
    /// Counts some outcomes.
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            counts.candidates += 1;
            *match outcome {
                Outcome::Measured(_) | Outcome::Verified(_) => &mut counts.right,
                Outcome::CompileFailed { .. } => &mut counts.compile_failed,
                Outcome::LaunchFailed { .. } => &mut counts.launch_failed,
                Outcome::Faulted { .. } => &mut counts.faulted,
                Outcome::WrongResult { .. } => &mut counts.wrong,
                Outcome::TimedOut { .. } => &mut counts.timed_out,
            } += 1;
        }
        counts
    }
}

impl core::iter::Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            candidates: a.candidates + b.candidates,
            right: a.right + b.right,
            compile_failed: a.compile_failed + b.compile_failed,
            launch_failed: a.launch_failed + b.launch_failed,
            faulted: a.faulted + b.faulted,
            wrong: a.wrong + b.wrong,
            timed_out: a.timed_out + b.timed_out,
        })
    }
}

/// The unbiased estimate of pass@k, the chance that at least one of k samples is right, from `n`
/// samples of which `c` are right: 1 − C(n−c, k) / C(n, k), as the product that Chen et al. compute
/// (Evaluating Large Language Models Trained on Code, 2021, figure 3).
///
/// Absent for fewer samples than k.
#[must_use]
pub fn pass_at_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if n < k || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let none_right: f64 = (n - c + 1..=n).map(|i| 1.0 - k as f64 / i as f64).product();
    Some(1.0 - none_right)
}

/// fast@p: the share of all `candidates` that are right and more than `p` times as fast as the
/// rival, from the ratios of the right ones (Ouyang et al., KernelBench, 2025).
///
/// Absent where a right one has no ratio: it is not known whether it counts.
pub fn fast_at_p(
    candidates: usize,
    ratios: impl IntoIterator<Item = Option<f64>>,
    p: f64,
) -> Option<f64> {
    let ratios: Option<Vec<f64>> = ratios.into_iter().collect();
    let fast = ratios?.into_iter().filter(|&ratio| ratio > p).count();
    Some(fast as f64 / candidates.max(1) as f64)
}

/// pass@k for one k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassAt<T> {
    /// Samples that may be tried.
    pub k: u32,
    /// Absent where there are fewer candidates than k.
    pub value: T,
}

/// Where a mean or a ratio lies with a confidence of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Resamples of the families, or of the rounds, for an interval over them.
const RESAMPLES: usize = 2000;

/// The 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// The interval of the mean of a population, from a sample of it, by Student's t; absent for
    /// fewer than two values.
    ///
    /// The matrices of a benchmark are the sample: the interval says what other matrices of their
    /// kind would give, not how well each was timed.
    #[must_use]
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = libm::sqrt(squares / freedom as f64 / values.len() as f64);
        // Beyond the table, the first terms of its expansion about the normal quantile.
        let quantile = STUDENT.get(freedom - 1).copied().unwrap_or_else(|| {
            let inverse = 1.0 / freedom as f64;
            1.959_964 + 2.372_271 * inverse + 2.822_5 * inverse * inverse
        });
        Some(Self { low: mean - quantile * error, high: mean + quantile * error })
    }

    /// The interval of the mean of some values, each with its family, by a bootstrap over families:
    /// they are drawn again, with all their values, 2000 times. The same values give the same
    /// interval; absent for fewer than two families.
    ///
    /// Matrices of one family are alike: where a few families give many matrices each,
    /// [`of_mean`](Self::of_mean) would be too sure.
    pub fn over_families<'f>(values: impl IntoIterator<Item = (&'f str, f64)>) -> Option<Self> {
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
                let (sum, count) =
                    drawn.fold((0.0, 0), |(s, n), (sum, count)| (s + sum, n + count));
                sum / count as f64
            })
            .collect();
        Self::of_resamples(&mut means)
    }

    /// The interval of how many times as fast `fast` is as `slow`, by the times that decide, if
    /// both were sampled in turn: by a bootstrap over rounds, which are drawn again 2000 times in
    /// each regime. The same samples give the same interval; absent where a regime that decides was
    /// not measured of both.
    #[must_use]
    pub fn of_speedup(slow: &Timing, fast: &Timing, objective: Objective) -> Option<Self> {
        let of = |timing: &Timing| -> Option<Vec<Samples>> {
            objective.regimes().iter().map(|&regime| timing.samples(regime).cloned()).collect()
        };
        let regimes: Vec<(Samples, Samples)> = of(slow)?.into_iter().zip(of(fast)?).collect();
        let mut random = SplitMix64::new(0);
        let mut ratios = (0..RESAMPLES)
            .map(|_| {
                geometric_mean(regimes.iter().filter_map(|(slow, fast)| {
                    let (slow, fast) = (slow.seconds(), fast.seconds());
                    let rounds = slow.len().min(fast.len());
                    let places: Vec<usize> = (0..rounds).map(|_| random.below(rounds)).collect();
                    let median = |all: &[f64]| {
                        let drawn = places.iter().filter_map(|&place| all.get(place).copied());
                        Some(Samples::try_from(drawn.collect::<Vec<_>>()).ok()?.median())
                    };
                    Some(median(slow)? / median(fast)?)
                }))
            })
            .collect::<Option<Vec<f64>>>()?;
        Self::of_resamples(&mut ratios)
    }

    /// The interval that 95 % of resamples lie in.
    fn of_resamples(values: &mut [f64]) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let quantile = |share: f64| values.get((share * RESAMPLES as f64) as usize).copied();
        Some(Self { low: quantile(0.025)?, high: quantile(0.975)? })
    }

    /// From the interval of the mean of logarithms that of the geometric mean.
    #[must_use]
    pub fn exp(self) -> Self {
        Self { low: libm::exp(self.low), high: libm::exp(self.high) }
    }
}

/// The geometric mean of values above 0; absent where there is none.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) =
        values.into_iter().fold((0.0, 0_usize), |(sum, n), value| (sum + libm::log(value), n + 1));
    (count > 0).then(|| libm::exp(sum / count as f64))
}

/// A mean over the matrices that have a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Absent where no matrix has one.
    pub value: Option<f64>,
    /// Absent for fewer than two matrices.
    pub interval: Option<Interval>,
    /// How many have one.
    pub matrices: usize,
}

impl Mean {
    /// The spread of the values that are there.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let matrices = values.len();
        let value = (matrices > 0).then(|| values.iter().sum::<f64>() / matrices as f64);
        Self { value, interval: Interval::of_mean(&values), matrices }
    }
}

/// Spearman's rank correlation of pairs: 1 where both sides are in the same order, −1 where one is
/// in the reverse of the other's. Equal values share the mean of their ranks.
///
/// Absent where a side has no two different values.
#[must_use]
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (ours, theirs) = (ranks(&ours), ranks(&theirs));
    // The mean rank, from 0, is the same on both sides.
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let scale = libm::sqrt(product(&ours, &ours) * product(&theirs, &theirs));
    (scale > 0.0).then(|| product(&ours, &theirs) / scale)
}

/// The rank of each value, from 0.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = alloc::vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        for &place in equal {
            ranks[place] = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        }
        first += equal.len();
    }
    ranks
}

/// How the ratios of some matrices against one rival spread, in one regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Matrices that have a ratio.
    pub matrices: usize,
    /// Their geometric mean.
    pub geomean: f64,
    /// The interval of the geometric mean; absent for fewer than two matrices.
    pub interval: Option<Interval>,
    /// The least of them.
    pub least: f64,
    /// All that are below 1, the worst first: no mean is stated without them.
    pub losses: Vec<Loss>,
}

/// A ratio below 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The matrix.
    pub matrix: String,
    /// The rival's time over ours.
    pub ratio: f64,
}

impl Spread {
    /// The spread of ratios above 0, each with its matrix; absent where there is none.
    pub fn of<'a>(ratios: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Self> {
        let ratios: Vec<(&str, f64)> = ratios.into_iter().collect();
        let least = ratios.iter().map(|&(_, ratio)| ratio).min_by(f64::total_cmp)?;
        let geomean = geometric_mean(ratios.iter().map(|&(_, ratio)| ratio))?;
        let logarithms: Vec<f64> = ratios.iter().map(|&(_, ratio)| libm::log(ratio)).collect();
        let interval = Interval::of_mean(&logarithms).map(Interval::exp);
        let lost = ratios.iter().filter(|&&(_, ratio)| ratio < 1.0);
        let mut losses: Vec<Loss> =
            lost.map(|&(matrix, ratio)| Loss { matrix: matrix.into(), ratio }).collect();
        losses.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        Some(Self { matrices: ratios.len(), geomean, interval, least, losses })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_speedup_has_the_interval_of_what_is_sampled_in_turn() {
        let timing = |factor: f64, noise: u64| {
            let mut random = SplitMix64::new(noise);
            let drift = |round: usize| 1.0 + 0.2 * (round % 5) as f64;
            let samples =
                (0..20).map(|round| factor * drift(round) * (1.0 + 0.01 * random.uniform()));
            let cold = Samples::try_from(samples.collect::<Vec<_>>()).ok();
            Timing { warm: cold.clone(), cold, back_to_back: None }
        };
        let (slow, fast) = (timing(1.1, 1), timing(1.0, 2));
        for objective in Objective::ALL {
            let Interval { low, high } = Interval::of_speedup(&slow, &fast, objective).unwrap();
            assert!(1.08 < low && low < 1.1 && 1.1 < high && high < 1.12, "{low} {high}");
            let same = Interval::of_speedup(&slow, &slow, objective).unwrap();
            assert_eq!((same.low, same.high), (1.0, 1.0));
        }
        let cold = Timing { warm: None, ..slow.clone() };
        assert!(Interval::of_speedup(&cold, &slow, Objective::Cold).is_some());
        assert!(Interval::of_speedup(&cold, &slow, Objective::Both).is_none());
    }

    #[test]
    fn known_values() {
        for (n, c, k, expected) in [
            (1, 0, 1, 0.0),
            (1, 1, 1, 1.0),
            (10, 3, 1, 0.3),
            (5, 2, 2, 0.7),
            (10, 3, 5, 11.0 / 12.0),
            (10, 1, 10, 1.0),
            (10, 0, 10, 0.0),
            (200, 1, 100, 0.5),
            // C(190, 100) and C(200, 100) overflow neither here nor there.
            (200, 10, 100, 0.999_228_973_937),
        ] {
            let found = pass_at_k(n, c, k).unwrap();
            assert!((found - expected).abs() < 1e-7, "pass@{k} of {c} in {n}: {found}");
        }
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert_eq!(pass_at_k(4, 4, 5), None);
        assert_eq!(pass_at_k(0, 0, 1), None);
    }

    #[test]
    fn many_samples_stay_in_bounds() {
        let found = pass_at_k(1_000_000, 3, 1000).unwrap();
        let expected = 1.0 - 0.999_f64.powi(3);
        assert!((found - expected).abs() < 1e-6, "{found}");
    }

    proptest! {
        #[test]
        fn pass_at_k_counts_the_choices_with_a_right_sample(
            n in 1_usize..=10, c in 0_usize..=10, k in 1_usize..=10
        ) {
            let c = c.min(n);
            let k = k.min(n);
            // The right samples are the lowest bits.
            let right = (1_u32 << c) - 1;
            let choices: Vec<u32> =
                (0..1_u32 << n).filter(|set| set.count_ones() as usize == k).collect();
            let passing = choices.iter().filter(|&&set| set & right != 0).count();
            let expected = passing as f64 / choices.len() as f64;
            prop_assert!((pass_at_k(n, c, k).unwrap() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn means_leave_out_what_is_absent() {
        let mean = Mean::of([Some(1.0), None, Some(0.0)]);
        assert_eq!((mean.value, mean.matrices), (Some(0.5), 2));
        assert_eq!(Mean::of([None]), Mean { value: None, interval: None, matrices: 0 });
    }

    #[test]
    fn ranks_correlate_whatever_the_distances_and_ties_share_theirs() {
        let of = |ours: &[f64], theirs: &[f64]| {
            let pairs: Vec<_> = ours.iter().copied().zip(theirs.iter().copied()).collect();
            rank_correlation(&pairs)
        };
        assert_eq!(of(&[1.0, 2.0, 9.0], &[-5.0, 0.1, 0.2]), Some(1.0));
        assert_eq!(of(&[1.0, 2.0, 9.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / √(4.5 · 5).
        let found = of(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((found - libm::sqrt(0.9)).abs() < 1e-12, "{found}");
        assert_eq!(of(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(of(&[], &[]), None);
    }

    #[test]
    fn an_interval_is_students() {
        // Mean 5, standard deviation 2, n = 4: 2 / 2 · 3.182 to either side.
        let deviation = libm::sqrt(6.0);
        let values = [5.0 - deviation, 5.0, 5.0, 5.0 + deviation];
        let Interval { low, high } = Interval::of_mean(&values).unwrap();
        assert!((low - 1.818).abs() < 1e-9 && (high - 8.182).abs() < 1e-9, "{low} {high}");
        assert_eq!(Interval::of_mean(&[1.0]), None);
        // 57 matrices: 2.0032 standard errors.
        let many: Vec<f64> = (0..57).map(f64::from).collect();
        let Interval { low, high } = Interval::of_mean(&many).unwrap();
        let error = libm::sqrt(57.0 * 58.0 / 12.0 / 57.0);
        assert!(((high - low) / 2.0 / error - 2.0032).abs() < 2e-3);
    }

    #[test]
    fn families_are_drawn_with_all_their_values() {
        let values = [("a", 1.0), ("a", 1.0), ("a", 4.0), ("b", 10.0)];
        // Twice a, twice b, or both.
        let interval = Interval::over_families(values).unwrap();
        assert_eq!(interval, Interval { low: 2.0, high: 10.0 });
        assert_eq!(Interval::over_families(values), Some(interval), "nothing is left to chance");
        assert_eq!(Interval::over_families([("a", 1.0), ("a", 2.0)]), None);
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_1() {
        let spread = Spread::of([("a", 4.0), ("b", 0.25), ("c", 1.0), ("d", 0.5), ("e", 2.0)]);
        let spread = spread.unwrap();
        assert!((spread.geomean - 1.0).abs() < 1e-12);
        assert_eq!((spread.matrices, spread.least), (5, 0.25));
        let loss = |matrix: &str, ratio| Loss { matrix: matrix.into(), ratio };
        assert_eq!(spread.losses, vec![loss("b", 0.25), loss("d", 0.5)]);
        let Interval { low, high } = spread.interval.unwrap();
        assert!((low * high - 1.0).abs() < 1e-12 && low < 1.0, "{low} {high}");
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn fast_at_p_is_of_all_candidates_and_of_known_ratios() {
        assert_eq!(fast_at_p(4, [Some(1.2), Some(0.9), Some(1.0)], 1.0), Some(0.25));
        assert_eq!(fast_at_p(4, [Some(1.2), None], 1.0), None);
        assert_eq!(fast_at_p(3, [], 1.0), Some(0.0));
    }
}
