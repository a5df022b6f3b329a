//! What became of the samples of policies, and the table of compile rates and pass@k that is made
//! of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sparserl_core::results::{Counts, Interval, PassAt, pass_at_k};

use super::text::table;

/// What became of the programs that policies wrote for one matrix and task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledCase {
    /// The text of the matrix's recipe.
    pub recipe: String,
    /// The families that the matrix is made of.
    pub family: String,
    /// The task, as programs state it.
    pub task: String,
    /// What each policy wrote, by what it chose from.
    pub sampled: Vec<Sampled>,
}

/// What a policy's tokens are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhichTokens {
    /// Those that the mask offers for the matrix.
    Legal,
    /// All of the vocabulary: not even the syntax is forced.
    Any,
}

/// What became of the programs of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The policy.
    pub policy: String,
    /// What its tokens were drawn from.
    pub tokens: WhichTokens,
    /// Different programs among the samples.
    pub distinct: usize,
    /// Samples that are no program; they count as not compiled.
    pub no_program: usize,
    /// How many came to which end.
    pub counts: Counts,
}

/// How often programs of policies compile and are right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledTable {
    /// Rows by task, policy and tokens, in the order in which the cases have them.
    pub rows: Vec<SampledRow>,
}

/// A policy on one task. All shares are means over the matrices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledRow {
    /// The task, as programs state it.
    pub task: String,
    /// The policy.
    pub policy: String,
    /// What its tokens were drawn from.
    pub tokens: WhichTokens,
    /// Matrices.
    pub matrices: usize,
    /// Samples of all matrices.
    pub samples: usize,
    /// Different programs for a matrix.
    pub distinct: f64,
    /// Share of the samples that compile.
    pub compiled: f64,
    /// Share of the samples that are right, which is pass@1, with 95 %: families are drawn again,
    /// with all their matrices.
    pub right: f64,
    /// Absent for fewer than two families.
    pub interval: Option<Interval>,
    /// pass@k (Chen et al., 2021); absent where a matrix has fewer than k samples.
    pub pass: Vec<PassAt<Option<f64>>>,
}

/// Samples for a matrix of a family.
type OfFamily<'c> = (&'c str, &'c Sampled);

impl SampledTable {
    /// The table of some cases, with pass@k for each of some k.
    #[must_use]
    pub fn new(cases: &[SampledCase], tries: &[u32]) -> Self {
        let mut groups: Vec<(&str, Vec<OfFamily<'_>>)> = Vec::new();
        for case in cases {
            for sampled in &case.sampled {
                let of = (case.family.as_str(), sampled);
                let group = groups.iter_mut().find(|(task, group)| {
                    let alike = |first: &Sampled| {
                        (&first.policy, first.tokens) == (&sampled.policy, sampled.tokens)
                    };
                    *task == case.task && group.first().is_some_and(|(_, first)| alike(first))
                });
                match group {
                    Some((_, group)) => group.push(of),
                    None => groups.push((&case.task, vec![of])),
                }
            }
        }
        let row = |(task, group): (&str, Vec<OfFamily<'_>>)| SampledRow::new(task, &group, tries);
        Self { rows: groups.into_iter().filter_map(row).collect() }
    }
}

impl SampledRow {
    fn new(task: &str, cases: &[OfFamily<'_>], tries: &[u32]) -> Option<Self> {
        let (_, first) = cases.first()?;
        let mean = |value: &dyn Fn(&Sampled) -> f64| {
            cases.iter().map(|(_, sampled)| value(sampled)).sum::<f64>() / cases.len() as f64
        };
        let share = |part: usize, counts: &Counts| part as f64 / counts.candidates.max(1) as f64;
        let right = |sampled: &Sampled| share(sampled.counts.right, &sampled.counts);
        let pass = |k: u32| {
            let counts = cases.iter().map(|(_, sampled)| &sampled.counts);
            let each = counts.map(|c| pass_at_k(c.candidates, c.right, k as usize));
            let sum = each.sum::<Option<f64>>();
            PassAt { k, value: sum.map(|sum| sum / cases.len() as f64) }
        };
        Some(Self {
            task: task.to_owned(),
            policy: first.policy.clone(),
            tokens: first.tokens,
            matrices: cases.len(),
            samples: cases.iter().map(|(_, sampled)| sampled.counts.candidates).sum(),
            distinct: mean(&|sampled| sampled.distinct as f64),
            compiled: mean(&|sampled| 1.0 - share(sampled.counts.compile_failed, &sampled.counts)),
            right: mean(&right),
            interval: Interval::over_families(
                cases.iter().map(|(family, sampled)| (*family, right(sampled))),
            ),
            pass: tries.iter().map(|&k| pass(k)).collect(),
        })
    }
}

impl fmt::Display for SampledTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries: Vec<u32> =
            self.rows.first().map_or_else(Vec::new, |row| row.pass.iter().map(|p| p.k).collect());
        let fixed =
            ["task", "policy", "tokens", "matrices", "compiled", "right", "95 %", "distinct"];
        let header = fixed.iter().map(ToString::to_string);
        let mut table = table(header.chain(tries.iter().map(|k| format!("pass@{k}"))));
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        for row in &self.rows {
            let interval = row.interval.map_or_else(String::new, |interval| {
                format!("{:.1} to {:.1}", 100.0 * interval.low, 100.0 * interval.high)
            });
            let tokens = match row.tokens {
                WhichTokens::Legal => "legal",
                WhichTokens::Any => "any",
            };
            let fixed = [
                row.task.clone(),
                row.policy.clone(),
                tokens.to_owned(),
                row.matrices.to_string(),
                percent(row.compiled),
                percent(row.right),
                interval,
                format!("{:.0}", row.distinct),
            ];
            let pass = row.pass.iter().map(|pass| pass.value.map_or_else(String::new, percent));
            table.add_row(fixed.into_iter().chain(pass));
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(family: &str, right: usize, compile_failed: usize, wrong: usize) -> SampledCase {
        let candidates = right + compile_failed + wrong;
        let counts = Counts { candidates, right, compile_failed, wrong, ..Counts::default() };
        let sampled = |tokens| Sampled {
            policy: "it".to_owned(),
            tokens,
            distinct: 3,
            no_program: compile_failed,
            counts,
        };
        SampledCase {
            recipe: String::new(),
            family: family.to_owned(),
            task: "spmv f32".to_owned(),
            sampled: vec![sampled(WhichTokens::Legal), sampled(WhichTokens::Any)],
        }
    }

    #[test]
    fn shares_are_means_over_matrices_whatever_they_have_of_samples() {
        let cases = [case("a", 2, 2, 0), case("b", 0, 2, 6)];
        let table = SampledTable::new(&cases, &[1, 2, 5]);
        assert_eq!(table.rows.len(), 2);
        let row = &table.rows[1];
        assert_eq!((row.matrices, row.samples, row.tokens), (2, 12, WhichTokens::Any));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        // Half of the samples of one matrix compile and are right; of the other three quarters
        // compile, and none is right.
        assert!(near(row.compiled, 0.625) && near(row.right, 0.25));
        let interval = row.interval.unwrap();
        assert!(near(interval.low, 0.0) && near(interval.high, 0.5));
        // Two of four: one of two draws is right with 1 − (2 · 1) / (4 · 3).
        let [one, two, five] = &row.pass[..] else { panic!("three are asked for") };
        assert!(near(one.value.unwrap(), 0.25) && near(two.value.unwrap(), 5.0 / 12.0));
        assert_eq!(five.value, None, "one matrix has four samples only");
        assert!(table.to_string().contains("41.7 %"), "{table}");
    }
}
