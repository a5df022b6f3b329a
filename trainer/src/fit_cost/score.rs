//! How well predicted times rank the programs of a case.

use serde::{Deserialize, Serialize};
use sparserl_core::layout::CostConstants;
use sparserl_core::results::{Mean, Spread, rank_correlation};

use super::solver::loss;
use super::terms::CaseTerms;

/// How well predicted times rank the programs of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaseScore {
    /// Weighted mean of Huber's loss of the programs, but for a factor of the case's own.
    pub objective: f64,
    /// Time of the fastest program over that of the one with the least prediction: at most 1.
    pub first_pick: f64,
    /// Spearman's rank correlation, from −1 to 1, of predicted and measured times; absent where all
    /// of either are equal.
    pub rank_correlation: Option<f64>,
}

/// How well predicted times rank the programs of many cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Cases: of one matrix, task, GPU and regime each.
    pub cases: usize,
    /// Mean of their objectives: what is fitted.
    pub objective: f64,
    /// Geometric mean of their first picks.
    pub first_pick: f64,
    /// The least of their first picks.
    pub least_first_pick: f64,
    /// Mean of Spearman's rank correlations; absent where no case has one.
    pub rank_correlation: Option<f64>,
}

impl CaseScore {
    /// Scores the predictions that these constants give for a case. Of programs with the same
    /// prediction the first is picked.
    #[must_use]
    pub fn of(case: &CaseTerms, constants: &CostConstants) -> Self {
        let predicted = case.predict(constants);
        let slowness = case.programs.iter().map(|program| program.slowness);
        let pairs: Vec<(f64, f64)> = predicted.into_iter().zip(slowness).collect();
        let fastest = pairs.iter().map(|pair| pair.1).fold(f64::INFINITY, f64::min);
        let picked = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(fastest, |pair| pair.1);
        let residuals = case.residuals(constants);
        let losses = residuals.iter().map(|residual| residual.weight * loss(residual.value));
        Self {
            objective: losses.sum(),
            first_pick: (fastest - picked).exp(),
            rank_correlation: rank_correlation(&pairs),
        }
    }
}

impl Scores {
    /// Sums up the scores of some cases; absent where there are none.
    pub fn of<'s>(scores: impl IntoIterator<Item = &'s CaseScore>) -> Option<Self> {
        let scores: Vec<&CaseScore> = scores.into_iter().collect();
        let first_picks = Spread::of(scores.iter().map(|score| ("", score.first_pick)))?;
        let objective = Mean::of(scores.iter().map(|score| Some(score.objective))).value?;
        Some(Self {
            cases: scores.len(),
            objective,
            first_pick: first_picks.geomean,
            least_first_pick: first_picks.least,
            rank_correlation: Mean::of(scores.iter().map(|s| s.rank_correlation)).value,
        })
    }
}
