//! Many cases in a few numbers, with every loss by name.

use std::collections::BTreeMap;

use indicatif::HumanCount;
use sparserl_core::outcome::CacheState;
use sparserl_core::task::Task;

use super::results::{Case, Results};
use crate::figures::{CACHES, Rival};
use crate::spread::Spread;

/// The cases of one task.
#[derive(Debug)]
pub(crate) struct TaskTotals<'a> {
    pub(crate) task: Task,
    /// In the order of measurement.
    pub(crate) cases: Vec<&'a Case>,
}

/// All cases by task.
pub(crate) fn by_task(results: &Results) -> Vec<TaskTotals<'_>> {
    let mut tasks: BTreeMap<Task, Vec<&Case>> = BTreeMap::new();
    for case in &results.cases {
        tasks.entry(case.task).or_default().push(case);
    }
    tasks.into_iter().map(|(task, cases)| TaskTotals { task, cases }).collect()
}

impl<'a> TaskTotals<'a> {
    /// How the ratios spread; absent where no case has one.
    pub(crate) fn spread(&self, cache: CacheState, rival: Rival) -> Option<Spread> {
        Spread::of(self.cases.iter().filter_map(|case| ratio(case, cache, rival)))
    }

    /// Cases that are slower than a rival in any state of the cache, the worst first.
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

    /// Cases with a right candidate but no algorithm of the library that ran.
    pub(crate) fn unrivalled(&self) -> Vec<&'a Case> {
        let unrivalled = |case: &Case| case.chosen.is_some() && least_ratio(case).is_none();
        self.cases.iter().copied().filter(|case| unrivalled(case)).collect()
    }
}

/// Their time over ours; absent where one of the two is.
pub(crate) fn ratio(case: &Case, cache: CacheState, rival: Rival) -> Option<f64> {
    Some(case.chosen.as_ref()?.figures(cache)?.against(rival)?.ratio)
}

/// The least of a case's ratios.
fn least_ratio(case: &Case) -> Option<f64> {
    let all = CACHES.iter().flat_map(|&cache| Rival::ALL.map(|rival| ratio(case, cache, rival)));
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
