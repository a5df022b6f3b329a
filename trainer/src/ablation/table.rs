//! How well the networks of variants and improvements choose, side by side.

use std::fmt;

use serde::{Deserialize, Serialize};
use sparserl_core::outcome::Regime;
use sparserl_core::results::Interval;

use crate::evaluation::text::{table, written};
use crate::evaluation::{COST_MODEL, CaseResult, Table};

/// How the network of one variant or improvement and one seed chooses among what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedResult {
    /// The variant or improvement.
    pub variant: String,
    /// The seed of all that was drawn in its training.
    pub seed: u64,
    /// Cases of the test, as [`replay`](crate::evaluation::replay) has them for a network of the
    /// variant's name.
    pub cases: Vec<CaseResult>,
}

/// How well the networks of variants choose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationTable {
    /// Rows by task, regime and variant, in the order of the results.
    pub rows: Vec<AblationRow>,
}

/// A variant on one task in one regime. All ratios are the time of the fastest measured program ÷
/// that of what was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AblationRow {
    /// The task, as programs state it.
    pub task: String,
    /// The regime.
    pub regime: Regime,
    /// The variant or improvement, whose network chooses by speed or by likelihood; or the cost
    /// model.
    pub variant: String,
    /// Geometric mean of the first picks on all matrices, by each seed.
    pub first: Vec<f64>,
    /// Geometric mean of the best of eight picks on all matrices, by each seed.
    pub of_eight: Vec<f64>,
    /// Where the first seed's mean lies, by a bootstrap over families; absent for fewer than two.
    pub interval: Option<Interval>,
    /// Matrices.
    pub matrices: usize,
}

impl AblationTable {
    /// The table of some results, those of a variant by its seeds.
    #[must_use]
    pub fn new(results: &[SeedResult]) -> Self {
        let mut rows: Vec<AblationRow> = Vec::new();
        for result in results {
            for row in Table::new(&result.cases).rows {
                let [first, _, _, of_eight] = row.best_of;
                let known = rows.iter_mut().find(|known| {
                    (&known.task, known.regime) == (&row.task, row.regime)
                        && known.variant == row.chooser
                });
                match known {
                    // What has not learned is the same beside every network.
                    Some(_) if row.chooser == COST_MODEL => {}
                    Some(known) => {
                        known.first.push(first);
                        known.of_eight.push(of_eight);
                    }
                    None => rows.push(AblationRow {
                        task: row.task,
                        regime: row.regime,
                        variant: row.chooser,
                        first: vec![first],
                        of_eight: vec![of_eight],
                        interval: row.interval,
                        matrices: row.matrices,
                    }),
                }
            }
        }
        // As the results have the tasks, and of a task one regime after the other.
        let mut tasks: Vec<String> = Vec::new();
        for row in &rows {
            if !tasks.contains(&row.task) {
                tasks.push(row.task.clone());
            }
        }
        let place = |row: &AblationRow| {
            (tasks.iter().position(|task| *task == row.task), row.regime != Regime::Cold)
        };
        rows.sort_by_key(place);
        Self { rows }
    }
}

impl fmt::Display for AblationTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table([
            "task",
            "cache",
            "variant",
            "matrices",
            "first pick",
            "seeds",
            "95 % of the first",
            "of 8",
        ]);
        for row in &self.rows {
            let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
            let seeds: Vec<String> = row.first.iter().map(|first| format!("{first:.3}")).collect();
            table.add_row([
                row.task.clone(),
                row.regime.name().to_owned(),
                row.variant.clone(),
                row.matrices.to_string(),
                format!("{:.3}", mean(&row.first)),
                seeds.join(" "),
                written(row.interval),
                format!("{:.3}", mean(&row.of_eight)),
            ]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::{Oracle, Picks, TimedProgram};

    fn result(variant: &str, seed: u64, family: [&str; 2], seconds: [f64; 2]) -> SeedResult {
        let timed = |seconds: f64| TimedProgram {
            program: String::new(),
            cold: Some(seconds),
            warm: Some(seconds),
        };
        let picks = |chooser: &str, seconds| {
            [Regime::Cold, Regime::Warm].map(|regime| Picks {
                chooser: chooser.to_owned(),
                regime,
                programs: vec![timed(seconds)],
            })
        };
        let case = |(family, seconds): (&str, f64)| CaseResult {
            recipe: String::new(),
            family: family.to_owned(),
            task: "spmv f32".to_owned(),
            choosers: [picks(variant, seconds), picks("cost model", 4.0)].concat(),
            oracle: Oracle { cold: timed(1.0), warm: timed(1.0) },
            searched: 2,
        };
        let cases = family.into_iter().zip(seconds).map(case).collect();
        SeedResult { variant: variant.to_owned(), seed, cases }
    }

    #[test]
    fn a_variant_has_a_mean_for_each_seed_and_the_cost_model_one() {
        let results = [
            result("all", 1, ["a", "b"], [1.0, 4.0]),
            result("all", 2, ["a", "b"], [1.0, 1.0]),
            result("part", 1, ["a", "b"], [2.0, 8.0]),
        ];
        let table = AblationTable::new(&results);
        let of = |variant: &str| {
            let mut rows = table.rows.iter().filter(|row| row.variant == variant);
            let row = rows.next().unwrap();
            assert_eq!((row.regime, row.matrices), (Regime::Cold, 2));
            assert_eq!(rows.next().unwrap().regime, Regime::Warm);
            assert!(rows.next().is_none());
            row.clone()
        };
        let near = |found: &[f64], expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        near(&of("all").first, &[0.5, 1.0]);
        near(&of("part").first, &[0.25]);
        near(&of("cost model").first, &[0.25]);
        let interval = of("all").interval.unwrap();
        near(&[interval.low, interval.high], &[0.25, 1.0]);
        assert!(table.to_string().contains("0.500 1.000"), "{table}");
    }
}
