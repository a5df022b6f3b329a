//! Many cases in a few numbers, with every loss by name.

use std::collections::BTreeMap;

use indicatif::HumanCount;
use sparserl_core::outcome::Regime;
use sparserl_core::results::{Rival, Spread, ValueSource};
use sparserl_core::task::Task;

use super::results::{BenchResults, Case};
use crate::matrix_source::MatrixSource;

/// The cases of one task and one source of values.
#[derive(Clone, Debug)]
pub(crate) struct TaskTotals<'a> {
    pub(crate) task: Task,
    pub(crate) values: ValueSource,
    /// In the order of measurement.
    pub(crate) cases: Vec<&'a Case>,
}

/// All cases by source of values and task: products with random values are never counted with those
/// of a file, which a kernel may know.
pub(crate) fn by_task(results: &BenchResults) -> Vec<TaskTotals<'_>> {
    let mut tasks: BTreeMap<(ValueSource, Task), Vec<&Case>> = BTreeMap::new();
    for case in &results.cases {
        tasks.entry((case.values, case.task)).or_default().push(case);
    }
    let totals = |((values, task), cases)| TaskTotals { task, values, cases };
    tasks.into_iter().map(totals).collect()
}

impl<'a> TaskTotals<'a> {
    /// How the ratios spread; absent where no case has one.
    pub(crate) fn spread(&self, regime: Regime, rival: Rival) -> Option<Spread> {
        let named = |case: &&'a Case| {
            Some((case.matrix.identity.name.as_str(), ratio(case, regime, rival)?))
        };
        Spread::of(self.cases.iter().filter_map(named))
    }

    /// `spmv f32`, with the source of its values where it is not the usual one.
    pub(crate) fn name(&self) -> String {
        match self.values {
            ValueSource::Random => self.task.to_string(),
            ValueSource::File => format!("{}, values of the file", self.task),
        }
    }

    /// The cases by kind of matrix: `real` ones first, then each generated family.
    pub(crate) fn by_kind(&self) -> Vec<(String, Self)> {
        let mut kinds: BTreeMap<Option<&str>, Vec<&'a Case>> = BTreeMap::new();
        for &case in &self.cases {
            kinds
                .entry(MatrixSource::family_of(&case.matrix.identity.name))
                .or_default()
                .push(case);
        }
        let named = |(family, cases): (Option<&str>, _)| {
            let name =
                family.map_or_else(|| "real".to_owned(), |family| format!("generated: {family}"));
            (name, Self { cases, ..self.clone() })
        };
        kinds.into_iter().map(named).collect()
    }

    /// Cases that are slower than a rival in any regime, the worst first.
    pub(crate) fn losses(&self) -> Vec<&'a Case> {
        let mut losses: Vec<(f64, &Case)> = self
            .cases
            .iter()
            .filter_map(|&case| Some((least_ratio(case)?, case)))
            .filter(|&(least, _)| least < 1.0)
            .collect();
        losses.sort_by(|a, b| a.0.total_cmp(&b.0));
        losses.into_iter().map(|(_, case)| case).collect()
    }

    /// Cases without a right candidate.
    pub(crate) fn failures(&self) -> Vec<&'a Case> {
        self.cases.iter().copied().filter(|case| case.chosen.is_none()).collect()
    }

    /// Cases with a right candidate but no algorithm of an opponent that ran.
    pub(crate) fn unrivalled(&self) -> Vec<&'a Case> {
        let unrivalled = |case: &Case| case.chosen.is_some() && least_ratio(case).is_none();
        self.cases.iter().copied().filter(|case| unrivalled(case)).collect()
    }
}

/// Their time over ours; absent where one of the two is.
pub(crate) fn ratio(case: &Case, regime: Regime, rival: Rival) -> Option<f64> {
    case.chosen.as_ref()?.ratio(regime, rival)
}

/// The least of a case's ratios.
fn least_ratio(case: &Case) -> Option<f64> {
    let all = Regime::ALL.iter().flat_map(|&r| Rival::ALL.map(|rival| ratio(case, r, rival)));
    all.flatten().min_by(f64::total_cmp)
}

/// How many candidates of some cases came to which end, by its word.
pub(crate) fn outcomes<'a>(
    cases: impl IntoIterator<Item = &'a Case>,
) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for candidate in cases.into_iter().flat_map(|case| &case.candidates) {
        *counts.entry(candidate.outcome.word()).or_default() += 1;
    }
    counts
}

/// `30 measured, 1 wrong-result`
pub(crate) fn outcomes_text<'a>(cases: impl IntoIterator<Item = &'a Case>) -> String {
    let counts = outcomes(cases);
    let text = |(word, &count): (&&str, &usize)| format!("{} {word}", HumanCount(count as u64));
    let texts: Vec<String> = counts.iter().map(text).collect();
    texts.join(", ")
}
