//! What follows from the results: shares, pass@k, speedups.
//!
//! All shares are of all candidates for a matrix, whatever became of them; over several matrices they
//! are means of the matrices' shares. fast@1 is the share that is right and faster than what cuSPARSE
//! does unasked.

use serde::Serialize;
use sparserl_core::outcome::{CacheState, Outcome};

use super::results::{CandidateResult, MatrixResult, Results, Settings};
use super::statistics::{Mean, pass_at_k};
use crate::figures::{CACHES, Figures, Rival, Work, fastest};
use crate::spread::Spread;

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
    pub(crate) fast_1: ByCache<Option<f64>>,
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
    pub(crate) fast_1: ByCache<Mean>,
    /// Of the best candidates of the matrices that have a right one.
    pub(crate) speedups: ByCache<ByRival<Option<Spread>>>,
    /// Matrices whose best candidate loses to a rival in some state of the cache.
    pub(crate) losses: Vec<String>,
    /// Matrices without a right candidate.
    pub(crate) failures: Vec<String>,
}

/// How many candidates came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) candidates: usize,
    pub(crate) right: usize,
    pub(crate) compile_failed: usize,
    pub(crate) launch_failed: usize,
    pub(crate) faulted: usize,
    pub(crate) wrong: usize,
    pub(crate) timed_out: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct PassAt<T> {
    pub(crate) k: u32,
    /// Absent where there are fewer candidates than k.
    pub(crate) value: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ByCache<T> {
    pub(crate) cold: T,
    pub(crate) warm: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ByRival<T> {
    pub(crate) default: T,
    pub(crate) best: T,
}

/// A fastest right candidate: with a cold cache where any right one was measured so, else with a warm
/// one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Best {
    pub(crate) file: String,
    pub(crate) figures: ByCache<Option<Figures>>,
}

impl Summary {
    /// With pass@k for the given k.
    pub(crate) fn new(results: &Results, sizes: &[u32]) -> Self {
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
        let fast_1 = |cache| {
            let right = result.candidates.iter().filter(|c| c.outcome.is_right());
            let is_faster = |candidate: &CandidateResult| {
                let figures = figures_of(result, candidate, cache, work)?;
                Some(figures.against(Rival::Default)?.ratio > 1.0)
            };
            let faster: Option<Vec<bool>> = right.map(is_faster).collect();
            let faster = faster.filter(|_| settings.protocol.baselines)?;
            Some(share(faster.into_iter().filter(|&faster| faster).count()))
        };
        let best = fastest(result.candidates.iter().map(|candidate| &candidate.outcome));
        let best = best.and_then(|index| result.candidates.get(index)).map(|candidate| Best {
            file: candidate.file.clone(),
            figures: ByCache::of(|cache| figures_of(result, candidate, cache, work)),
        });
        Self {
            matrix: result.matrix.file.clone(),
            counts,
            compiled: share(counts.candidates - counts.compile_failed),
            right: share(counts.right),
            pass_at: sizes.iter().map(pass_at).collect(),
            fast_1: ByCache::of(fast_1),
            best,
        }
    }

    /// Of the best candidate; absent where there is none or something was not measured.
    pub(crate) fn ratio(&self, cache: CacheState, rival: Rival) -> Option<f64> {
        let figures = self.best.as_ref()?.figures.get(cache).as_ref()?;
        Some(figures.against(rival)?.ratio)
    }

    fn loses(&self) -> bool {
        let is_loss = |cache, rival| self.ratio(cache, rival).is_some_and(|s| s < 1.0);
        CACHES.iter().any(|&cache| Rival::ALL.iter().any(|&rival| is_loss(cache, rival)))
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
        let spread = |cache, rival| {
            Spread::of(matrices.iter().filter_map(|matrix| matrix.ratio(cache, rival)))
        };
        let names = |is: &dyn Fn(&MatrixSummary) -> bool| {
            matrices.iter().filter(|m| is(m)).map(|m| m.matrix.clone()).collect()
        };
        Self {
            counts: matrices.iter().map(|matrix| matrix.counts).sum(),
            compiled: mean(&|matrix| Some(matrix.compiled)),
            right: mean(&|matrix| Some(matrix.right)),
            pass_at: sizes.iter().enumerate().map(pass_at).collect(),
            fast_1: ByCache::of(|cache| mean(&|matrix| *matrix.fast_1.get(cache))),
            speedups: ByCache::of(|cache| ByRival {
                default: spread(cache, Rival::Default),
                best: spread(cache, Rival::Best),
            }),
            losses: names(&MatrixSummary::loses),
            failures: names(&|matrix| matrix.best.is_none()),
        }
    }
}

impl Counts {
    pub(crate) fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
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

impl std::iter::Sum for Counts {
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

impl<T> ByCache<T> {
    fn of(value: impl Fn(CacheState) -> T) -> Self {
        Self { cold: value(CacheState::Cold), warm: value(CacheState::Warm) }
    }

    pub(crate) fn get(&self, cache: CacheState) -> &T {
        match cache {
            CacheState::Cold => &self.cold,
            CacheState::Warm => &self.warm,
        }
    }
}

impl<T> ByRival<T> {
    pub(crate) fn get(&self, rival: Rival) -> &T {
        match rival {
            Rival::Default => &self.default,
            Rival::Best => &self.best,
        }
    }
}

/// The figures of a right candidate, beside the library in its round.
fn figures_of(
    result: &MatrixResult,
    candidate: &CandidateResult,
    cache: CacheState,
    work: Work,
) -> Option<Figures> {
    let round = result.rounds.get(candidate.round?)?;
    Figures::new(candidate.outcome.measurement()?, &round.baselines, cache, work)
}
