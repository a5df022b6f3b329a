//! Choosers against each other, matrix by matrix.
//!
//! Two choosers' intervals overlap easily, because matrices differ more than choosers do: both are
//! far from the oracle on the same ones. The ratio of their times on a matrix is free of that.

use std::fmt;

use serde::Serialize;
use sparserl_core::outcome::Regime;
use sparserl_core::results::{Interval, geometric_mean};

use super::ratios::{BEST_OF, interval_of, ratios};
use super::text::{table, written};
use super::{COST_MODEL, CaseResult};

/// One chooser against another on one task in one regime, on the matrices that both were asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The task, as programs state it.
    pub task: String,
    /// The regime.
    pub regime: Regime,
    /// The chooser.
    pub chooser: String,
    /// The other one.
    pub against: String,
    /// Matrices.
    pub matrices: usize,
    /// The ratio of the first picks.
    pub first: Ratio,
    /// The ratio of the best of the first eight picks of each.
    pub of_eight: Ratio,
}

/// How many times as fast what one chooser picks is as what the other one picks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean over the matrices of the other one's time ÷ the chooser's; a wrong pick's
    /// time is a hundred times the oracle's.
    pub mean: f64,
    /// Its interval, with 95 %: families are drawn again, with all their matrices; absent for fewer
    /// than two families.
    pub interval: Option<Interval>,
}

/// What chooses without a network, beside the cost model.
pub(super) fn is_baseline(chooser: &str) -> bool {
    let nearest = ["nearest neighbour", "nearest neighbours"];
    ["fixed portfolio", "extra trees"].contains(&chooser)
        || nearest.iter().any(|name| chooser.ends_with(name))
}

/// How a network's programs are chosen: what a chooser's name has behind the network's.
fn way(chooser: &str) -> &str {
    chooser.rsplit_once(", ").map_or("", |(_, way)| way)
}

impl Difference {
    /// All that is compared of a task's results in a regime: each chooser that has a network with
    /// the cost model, with the baseline that is the best one beside it, for the first pick or for
    /// eight, and with the networks after it whose programs are chosen in the same way, as those of
    /// other seeds.
    ///
    /// The best baseline is found in the same results, so it gains by luck, and the networks do
    /// not.
    #[must_use]
    pub fn all(
        task: &str,
        regime: Regime,
        choosers: &[&str],
        results: &[&CaseResult],
    ) -> Vec<Self> {
        let is_network = |chooser: &str| chooser != COST_MODEL && !is_baseline(chooser);
        let networks: Vec<&str> = choosers.iter().copied().filter(|c| is_network(c)).collect();
        let mut baselines: Vec<&str> =
            choosers.iter().copied().filter(|&chooser| chooser == COST_MODEL).collect();
        for place in [0, BEST_OF.len() - 1] {
            let mean = |chooser: &str| {
                let all = results.iter().filter_map(|result| ratios(result, regime, chooser));
                geometric_mean(all.map(|(_, ratios, _)| ratios[place])).unwrap_or(0.0)
            };
            let others = choosers.iter().copied().filter(|chooser| is_baseline(chooser));
            // Backwards, since of equals the last one is taken.
            let best = others.rev().max_by(|a, b| mean(a).total_cmp(&mean(b)));
            baselines.extend(best.filter(|best| !baselines.contains(best)));
        }
        let mut differences = Vec::new();
        for (place, &network) in networks.iter().enumerate() {
            let after = networks.iter().skip(place + 1).copied();
            let seeds = after.filter(|other| way(other) == way(network));
            for against in baselines.iter().copied().chain(seeds) {
                let pair = (network, against);
                differences.extend(Self::of(task, regime, pair, results));
            }
        }
        differences
    }

    /// One of them; absent where no matrix has both choosers.
    fn of(
        task: &str,
        regime: Regime,
        (chooser, against): (&str, &str),
        results: &[&CaseResult],
    ) -> Option<Self> {
        let mut pairs = Vec::new();
        for result in results {
            let ours = ratios(result, regime, chooser);
            if let Some(((family, ours, _), (_, theirs, _))) =
                ours.zip(ratios(result, regime, against))
            {
                pairs.push((family, ours, theirs));
            }
        }
        let ratio = |place: usize| {
            let of_family = || {
                pairs.iter().map(|(family, ours, theirs)| (*family, ours[place] / theirs[place]))
            };
            let mean = geometric_mean(of_family().map(|(_, ratio)| ratio))?;
            Some(Ratio { mean, interval: interval_of(of_family()) })
        };
        Some(Self {
            task: task.to_owned(),
            regime,
            chooser: chooser.to_owned(),
            against: against.to_owned(),
            matrices: pairs.len(),
            first: ratio(0)?,
            of_eight: ratio(BEST_OF.len() - 1)?,
        })
    }
}

/// Differences as people read them.
pub(super) struct DifferenceTable<'d>(pub(super) &'d [Difference]);

impl fmt::Display for DifferenceTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table([
            "task",
            "cache",
            "chooser",
            "times as fast as",
            "matrices",
            "first pick",
            "95 %",
            "of 8",
            "95 %",
        ]);
        for row in self.0 {
            table.add_row([
                row.task.clone(),
                row.regime.name().to_owned(),
                row.chooser.clone(),
                row.against.clone(),
                row.matrices.to_string(),
                format!("{:.3}", row.first.mean),
                written(row.first.interval),
                format!("{:.3}", row.of_eight.mean),
                written(row.of_eight.interval),
            ]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Oracle, Picks, Table, TimedProgram};
    use super::*;

    /// A matrix of a family, with the seconds of each chooser's picks; the oracle takes one.
    fn result(family: &str, picks: &[(&str, &[f64])]) -> CaseResult {
        let timed = |&seconds: &f64| TimedProgram {
            program: String::new(),
            cold: Some(seconds),
            warm: Some(seconds),
        };
        let of = |(chooser, seconds): &(&str, &[f64])| Picks {
            chooser: (*chooser).to_owned(),
            regime: Regime::Cold,
            programs: seconds.iter().map(timed).collect(),
        };
        CaseResult {
            recipe: String::new(),
            family: family.to_owned(),
            task: "spmv f32".to_owned(),
            choosers: picks.iter().map(of).collect(),
            oracle: Oracle { cold: timed(&1.0), warm: timed(&1.0) },
            searched: 1,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn pairs(table: &Table) -> Vec<(&str, &str)> {
        table.differences.iter().map(|d| (&*d.chooser, &*d.against)).collect()
    }

    #[test]
    fn a_constant_ratio_has_an_interval_of_no_width_however_matrices_differ() {
        let of = |family, seconds: f64| {
            let (one, two) = ([seconds], [2.0 * seconds, seconds]);
            result(family, &[("it", &one), (COST_MODEL, &two)])
        };
        let table = Table::new(&[of("a", 1.0), of("a", 8.0), of("b", 2.0), of("c", 4.0)]);
        let [difference] = &table.differences[..] else { panic!("{:?}", table.differences) };
        assert_eq!((difference.matrices, difference.regime), (4, Regime::Cold));
        for (ratio, expected) in [(difference.first, 2.0), (difference.of_eight, 1.0)] {
            let interval = ratio.interval.unwrap();
            assert!(near(ratio.mean, expected), "{ratio:?}");
            assert!(near(interval.low, expected) && near(interval.high, expected), "{interval:?}");
        }
        // That of the chooser alone is wide.
        let interval = table.rows[0].interval.unwrap();
        assert!(interval.high > 1.5 * interval.low, "{interval:?}");
        assert!(table.to_string().contains("times as fast as"));
    }

    #[test]
    fn families_are_drawn_again_whole() {
        let of = |family, ours: f64| result(family, &[("it", &[ours]), (COST_MODEL, &[4.0])]);
        // Of family a ratios of 4 and 1, of b one of 2: twice a gives 2, and so does twice b.
        let table = Table::new(&[of("a", 1.0), of("a", 4.0), of("b", 2.0)]);
        let first = table.differences[0].first;
        let interval = first.interval.unwrap();
        assert!(near(first.mean, 2.0) && near(interval.low, 2.0) && near(interval.high, 2.0));
        // Only a, or only b.
        let table = Table::new(&[of("a", 1.0), of("a", 4.0), of("b", 4.0)]);
        let first = table.differences[0].first;
        let interval = first.interval.unwrap();
        assert!(near(first.mean, 4.0_f64.cbrt()));
        assert!(near(interval.low, 1.0) && near(interval.high, 2.0), "{interval:?}");
        // One family has no interval, and a matrix that one of both was not asked for has no ratio.
        let lone = result("a", &[("it", &[1.0])]);
        let table = Table::new(&[of("a", 2.0), lone]);
        let [difference] = &table.differences[..] else { panic!("{:?}", table.differences) };
        assert_eq!((difference.matrices, difference.first.interval), (1, None));
    }

    #[test]
    fn networks_are_compared_with_the_best_baselines_and_other_seeds() {
        let (portfolio, trees) = ("fixed portfolio", "extra trees");
        let all: [(&str, &[f64]); 8] = [
            (portfolio, &[3.0, 1.0]),
            ("nearest neighbour", &[4.0]),
            ("5 nearest neighbours", &[5.0]),
            (trees, &[2.0]),
            (COST_MODEL, &[2.0]),
            ("one, likeliest", &[1.5]),
            ("one, re-ranked", &[1.0]),
            ("two, re-ranked", &[1.25]),
        ];
        let table = Table::new(&[result("a", &all), result("b", &all)]);
        let (one, two) = ("one, re-ranked", "two, re-ranked");
        let mut expected = Vec::new();
        for network in ["one, likeliest", one, two] {
            // The trees' first pick is the best, and the portfolio's best of eight.
            expected.extend([COST_MODEL, trees, portfolio].map(|against| (network, against)));
            if network == one {
                expected.push((one, two));
            }
        }
        assert_eq!(pairs(&table), expected);
        let seeds = table.differences.iter().find(|d| d.against == two).unwrap();
        assert!(near(seeds.first.mean, 1.25));
    }
}
