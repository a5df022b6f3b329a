//! Fits the constants of the cost model to recordings.
//!
//! ```text
//! recordings ─► MeasuredCase ─► matrix ─► Terms ─┬─► fit ─► CostConstants ─┬─► Report
//!                                                └─────────────────────────┘
//! ```
//!
//! Times are compared within a case only: a matrix, task, GPU and regime. What the model is for is
//! to choose among the programs of a case, so each case may be off by a factor of its own, all
//! cases weigh the same, and within one the faster programs weigh more. What is reported are the
//! scores of constants that were fitted to other families' matrices ([`held_out`]), since those of
//! the data that was fitted to say little about the next matrix.

mod report;
mod score;
mod solver;
mod terms;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use sparserl_core::layout::CostConstants;

pub use report::{Report, TaskScores};
pub use score::{CaseScore, Scores};
pub use terms::{CaseTerms, FitError, ProgramTerms, Terms};

use solver::Fit;

/// The constants that fit these cases best, searched from `start`.
///
/// Cases say how long programs take relative to each other, and so nothing about the unit of time
/// that all constants share: that, and constants that no program depends on, stay where they are.
#[must_use]
pub fn fit(cases: &[&CaseTerms], start: &CostConstants) -> CostConstants {
    let residuals = |logarithms: &[f64; CostConstants::COUNT]| {
        let constants = CostConstants::from_array(logarithms.map(f64::exp));
        cases.iter().flat_map(|case| case.residuals(&constants)).collect()
    };
    let fit = Fit { start: start.to_array().map(f64::ln), residuals };
    CostConstants::from_array(fit.minimum().map(f64::exp))
}

/// Scores of each case with constants that were fitted to the matrices in which nothing is of its
/// family, in the current rayon pool. `fitted` is told how many families are done, and of how many.
#[must_use]
pub fn held_out<'c>(
    cases: &[&'c CaseTerms],
    start: &CostConstants,
    fitted: impl Fn(usize, usize) + Sync,
) -> Vec<(&'c CaseTerms, CaseScore)> {
    let families: BTreeSet<&str> = cases.iter().map(|case| case.family()).collect();
    let families: Vec<&str> = families.into_iter().collect();
    let done = AtomicUsize::new(0);
    fitted(0, families.len());
    let scored = families.par_iter().map(|family| {
        let others: Vec<&CaseTerms> =
            cases.iter().copied().filter(|case| !case.is_from(family)).collect();
        let constants = fit(&others, start);
        let of_family = cases.iter().filter(|case| case.family() == *family);
        let scored: Vec<_> =
            of_family.map(|&case| (case, CaseScore::of(case, &constants))).collect();
        fitted(done.fetch_add(1, Ordering::Relaxed) + 1, families.len());
        scored
    });
    scored.flatten().collect()
}

#[cfg(test)]
mod tests;
