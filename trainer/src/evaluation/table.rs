//! How near choosers come to the oracle: geometric means of ratios of times, with intervals over
//! families; and how far they are from each other.

use std::fmt;

use serde::Serialize;
use sparserl_core::outcome::Regime;
use sparserl_core::results::{Interval, geometric_mean};

use super::differences::DifferenceTable;
use super::ratios::{BEST_OF, interval_of, ratios};
use super::text::{table, written};
use super::{CaseResult, Difference};

/// A pick this close to the oracle's time counts as the oracle's.
const CLOSE: f64 = 0.98;

/// How near each chooser comes to the oracle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Rows by task, regime and chooser, in the order in which the results have them.
    pub rows: Vec<Row>,
    /// Networks against what chooses without one, and against each other.
    pub differences: Vec<Difference>,
}

/// One chooser on one task in one regime. All ratios are the oracle's time ÷ the picks': 1 is as
/// fast as the oracle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The task, as programs state it.
    pub task: String,
    /// The regime.
    pub regime: Regime,
    /// The chooser.
    pub chooser: String,
    /// Matrices.
    pub matrices: usize,
    /// Matrices whose first pick was not right, which count as a hundred times slower.
    pub wrong: usize,
    /// Geometric means of the best of the first 1, 2, 4 and 8 picks.
    pub best_of: [f64; BEST_OF.len()],
    /// The interval of the first picks' geometric mean, with 95 %: families are drawn again, with
    /// all their matrices; absent for fewer than two families.
    pub interval: Option<Interval>,
    /// Share of the first picks within 2 % of the oracle.
    pub close: f64,
    /// The ratio that 10 % of the first picks do not exceed.
    pub tenth: f64,
    /// The least ratio of a first pick.
    pub least: f64,
}

impl Table {
    /// The table of some results; the intervals are the same for the same results.
    #[must_use]
    pub fn new(results: &[CaseResult]) -> Self {
        let mut groups: Vec<(&str, Vec<&CaseResult>)> = Vec::new();
        for result in results {
            match groups.iter_mut().find(|(task, _)| *task == result.task) {
                Some((_, group)) => group.push(result),
                None => groups.push((&result.task, vec![result])),
            }
        }
        let (mut rows, mut differences) = (Vec::new(), Vec::new());
        for (task, group) in &groups {
            for regime in [Regime::Cold, Regime::Warm] {
                let mut choosers: Vec<&str> = Vec::new();
                for picks in group.iter().flat_map(|result| &result.choosers) {
                    if !choosers.contains(&picks.chooser.as_str()) {
                        choosers.push(&picks.chooser);
                    }
                }
                differences.extend(Difference::all(task, regime, &choosers, group));
                rows.extend(choosers.into_iter().filter_map(|c| Row::new(task, regime, c, group)));
            }
        }
        Self { rows, differences }
    }
}

impl Row {
    fn new(task: &str, regime: Regime, chooser: &str, results: &[&CaseResult]) -> Option<Self> {
        let cases: Vec<(&str, [f64; BEST_OF.len()], bool)> =
            results.iter().filter_map(|result| ratios(result, regime, chooser)).collect();
        let mut firsts: Vec<f64> = cases.iter().map(|(_, ratios, _)| ratios[0]).collect();
        firsts.sort_by(f64::total_cmp);
        let least = *firsts.first()?;
        let matrices = firsts.len();
        let [one, two, four, eight] = std::array::from_fn(|place| {
            geometric_mean(cases.iter().map(|(_, ratios, _)| ratios[place]))
        });
        let of_family = cases.iter().map(|(family, ratios, _)| (*family, ratios[0]));
        Some(Self {
            task: task.to_owned(),
            regime,
            chooser: chooser.to_owned(),
            matrices,
            wrong: cases.iter().filter(|(_, _, right)| !right).count(),
            best_of: [one?, two?, four?, eight?],
            interval: interval_of(of_family),
            close: firsts.iter().filter(|ratio| **ratio >= CLOSE).count() as f64 / matrices as f64,
            tenth: firsts.get(matrices / 10).copied().unwrap_or(least),
            least,
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table([
            "task",
            "cache",
            "chooser",
            "first pick",
            "95 %",
            "within 2 %",
            "p10",
            "min",
            "of 2",
            "of 4",
            "of 8",
        ]);
        for row in &self.rows {
            let [first, two, four, eight] = row.best_of.map(|ratio| format!("{ratio:.3}"));
            table.add_row([
                row.task.clone(),
                row.regime.name().to_owned(),
                row.chooser.clone(),
                first,
                written(row.interval),
                format!("{:.0} %", 100.0 * row.close),
                format!("{:.3}", row.tenth),
                format!("{:.3}", row.least),
                two,
                four,
                eight,
            ]);
        }
        write!(f, "{table}")?;
        if self.differences.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{}", DifferenceTable(&self.differences))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ratios::WRONG;
    use super::super::{Oracle, Picks, TimedProgram};
    use super::*;

    fn result(family: &str, oracle: f64, picks: &[Option<f64>]) -> CaseResult {
        let timed = |seconds: Option<f64>| TimedProgram {
            program: String::new(),
            cold: seconds,
            warm: seconds,
        };
        CaseResult {
            recipe: String::new(),
            family: family.to_owned(),
            task: "spmv f32".to_owned(),
            choosers: [Regime::Cold, Regime::Warm]
                .map(|regime| Picks {
                    chooser: "it".to_owned(),
                    regime,
                    programs: picks.iter().map(|&pick| timed(pick)).collect(),
                })
                .to_vec(),
            oracle: Oracle { cold: timed(Some(oracle)), warm: timed(Some(oracle)) },
            searched: 1,
        }
    }

    #[test]
    fn ratios_are_of_the_best_of_the_first_picks() {
        let results = [
            result("a", 1.0, &[Some(2.0), Some(1.0)]),
            result("a", 1.0, &[Some(0.5)]),
            result("b", 4.0, &[None, Some(4.0)]),
        ];
        let table = Table::new(&results);
        assert_eq!(table.rows.len(), 2);
        let row = &table.rows[0];
        assert_eq!((row.matrices, row.wrong, row.least), (3, 1, WRONG));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        // 1/2, 2 and a wrong one; then 1, 2 and 1.
        assert!(near(row.best_of[0], WRONG.cbrt()));
        assert!(near(row.best_of[1], 2.0_f64.cbrt()) && row.best_of[1] == row.best_of[3]);
        assert!(near(row.close, 1.0 / 3.0));
        let interval = row.interval.unwrap();
        // Only family a, or only family b.
        assert!(near(interval.low, WRONG) && near(interval.high, 1.0));
        assert!(table.to_string().contains("spmv f32"));
    }
}
