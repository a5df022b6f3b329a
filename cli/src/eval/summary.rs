//! What follows from the results: shares, pass@k, speedups.
//!
//! All shares are of all candidates for a matrix, whatever became of them; over several matrices
//! they are means of the matrices' shares. fast@1 is the share that is right and faster than what
//! cuSPARSE does unasked.

use serde::Serialize;
use sparserl_core::outcome::{Objective, Regime};
use sparserl_core::results::{
    ByRegime, ByRival, CandidateResult, Counts, Figures, Mean, PassAt, Rival, Spread, Work,
    fast_at_p, fastest, pass_at_k,
};

use super::results::{EvalResults, JudgedFile, MatrixResult, Settings};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) matrices: Vec<MatrixSummary>,
    pub(crate) all: Totals,
}

/// One matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MatrixSummary {
    pub(crate) matrix: String,
    pub(crate) counts: Counts,
    /// Share that compiles.
    pub(crate) compiled: f64,
    /// Share that is right.
    pub(crate) right: f64,
    pub(crate) pass_at: Vec<PassAt<Option<f64>>>,
    /// Absent where the default algorithm was not measured.
    pub(crate) fast_1: ByRegime<Option<f64>>,
    /// The fastest right candidate.
    pub(crate) best: Option<Best>,
}

/// All matrices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Totals {
    pub(crate) counts: Counts,
    pub(crate) compiled: Mean,
    pub(crate) right: Mean,
    pub(crate) pass_at: Vec<PassAt<Mean>>,
    pub(crate) fast_1: ByRegime<Mean>,
    /// Of the best candidates of the matrices that have a right one.
    pub(crate) speedups: ByRegime<ByRival<Option<Spread>>>,
    /// Matrices whose best candidate loses to a rival in some regime.
    pub(crate) losses: Vec<String>,
    /// Matrices without a right candidate.
    pub(crate) failures: Vec<String>,
}

/// The right candidate whose cold and warm times have the least geometric mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Best {
    pub(crate) file: String,
    pub(crate) figures: ByRegime<Option<Figures>>,
}

impl Summary {
    /// With pass@k for the given k.
    pub(crate) fn new(results: &EvalResults, sizes: &[u32]) -> Self {
        let of = |result| MatrixSummary::new(result, &results.settings, sizes);
        let matrices: Vec<_> = results.matrices.iter().map(of).collect();
        let all = Totals::new(&matrices, sizes);
        Self { matrices, all }
    }
}

impl MatrixSummary {
    fn new(result: &MatrixResult, settings: &Settings, sizes: &[u32]) -> Self {
        let counts = Counts::of(result.candidates.iter().map(|candidate| &candidate.outcome));
        let share = |count: usize| count as f64 / counts.candidates.max(1) as f64;
        let work = Work::new(result.matrix.nnz, settings.task.operation);
        let pass_at = |&k: &u32| PassAt {
            k,
            value: pass_at_k(
                counts.candidates,
                counts.right,
                usize::try_from(k).unwrap_or(usize::MAX),
            ),
        };
        let fast_1 = |regime| {
            let right = result.candidates.iter().filter(|c| c.outcome.is_right());
            let ratio = |candidate: &CandidateResult<JudgedFile>| {
                Some(figures_of(result, candidate, regime, work)?.against(Rival::Default)?.ratio)
            };
            let measured = settings.has_baselines();
            fast_at_p(counts.candidates, right.map(ratio), 1.0).filter(|_| measured)
        };
        let outcomes = result.candidates.iter().map(|candidate| &candidate.outcome);
        let best = fastest(outcomes, Objective::default());
        let best = best.and_then(|index| result.candidates.get(index)).map(|candidate| Best {
            file: candidate.candidate.file.clone(),
            figures: ByRegime::of(|regime| figures_of(result, candidate, regime, work)),
        });
        Self {
            matrix: result.matrix.name.clone(),
            counts,
            compiled: share(counts.candidates - counts.compile_failed),
            right: share(counts.right),
            pass_at: sizes.iter().map(pass_at).collect(),
            fast_1: ByRegime::of(fast_1),
            best,
        }
    }

    /// Of the best candidate; absent where there is none or something was not measured.
    pub(crate) fn ratio(&self, regime: Regime, rival: Rival) -> Option<f64> {
        let figures = self.best.as_ref()?.figures.get(regime).as_ref()?;
        Some(figures.against(rival)?.ratio)
    }

    fn loses(&self) -> bool {
        let is_loss = |regime, rival| self.ratio(regime, rival).is_some_and(|s| s < 1.0);
        Regime::ALL.iter().any(|&regime| Rival::ALL.iter().any(|&rival| is_loss(regime, rival)))
    }
}

impl Totals {
    fn new(matrices: &[MatrixSummary], sizes: &[u32]) -> Self {
        let mean =
            |value: &dyn Fn(&MatrixSummary) -> Option<f64>| Mean::of(matrices.iter().map(value));
        let pass_at = |(i, &k): (usize, &u32)| PassAt {
            k,
            value: mean(&|matrix| matrix.pass_at.get(i)?.value),
        };
        let spread = |regime, rival| {
            let named = |m: &'_ MatrixSummary| Some((m.matrix.clone(), m.ratio(regime, rival)?));
            let ratios: Vec<(String, f64)> = matrices.iter().filter_map(named).collect();
            Spread::of(ratios.iter().map(|(matrix, ratio)| (matrix.as_str(), *ratio)))
        };
        let names = |is: &dyn Fn(&MatrixSummary) -> bool| {
            matrices.iter().filter(|m| is(m)).map(|m| m.matrix.clone()).collect()
        };
        Self {
            counts: matrices.iter().map(|matrix| matrix.counts).sum(),
            compiled: mean(&|matrix| Some(matrix.compiled)),
            right: mean(&|matrix| Some(matrix.right)),
            pass_at: sizes.iter().enumerate().map(pass_at).collect(),
            fast_1: ByRegime::of(|regime| mean(&|matrix| *matrix.fast_1.get(regime))),
            speedups: ByRegime::of(|regime| ByRival::of(|rival| spread(regime, rival))),
            losses: names(&MatrixSummary::loses),
            failures: names(&|matrix| matrix.counts.right == 0),
        }
    }
}

/// The figures of a right candidate, beside the library in its round.
fn figures_of(
    result: &MatrixResult,
    candidate: &CandidateResult<JudgedFile>,
    regime: Regime,
    work: Work,
) -> Option<Figures> {
    let round = result.rounds.get(candidate.candidate.round?)?;
    Figures::new(candidate.outcome.measurement()?, &round.baselines, regime, work)
}
