//! Which of the candidates are given, by what was measured of them and by what a check says.

use alloc::vec::Vec;
use core::iter;
use core::time::Duration;

use super::make::{Attempt, MakeError, Maker, Unmade};
use super::measure::Measured;
use super::{Artefact, Check, PipelineError, Prediction, Ranked, Request, Step, Taken};
use crate::decode::{Choice, PolicyInput};
use crate::kernel::{Compiler, SharedCompiler};
use crate::language::Program;
use crate::matrix::Scalar;
use crate::outcome::{Evaluation, Evaluator, Outcome};

/// What a step of the selection gives, or why there are no kernels.
type SelectResult<R, K, E, X> = Result<R, PipelineError<<K as Compiler>::Error, E, X>>;

/// What a check takes of candidates with such code, and how long that took, without the making of
/// their kernels.
type Checked<C, X> = (Vec<Taken<C, <X as Check<C>>::Verdict>>, Duration);

/// Candidates for a matrix, with what was measured of them.
pub(super) struct Selection<'a, T, K: Compiler> {
    maker: Maker<'a, T, K>,
    candidates: &'a [Choice],
    /// Absent without an evaluator.
    measured: Option<Measured<K::Code>>,
}

impl<'a, T: Scalar, K: SharedCompiler> Selection<'a, T, K> {
    /// Candidates of which nothing was measured.
    pub(super) fn new(maker: Maker<'a, T, K>, candidates: &'a [Choice]) -> Self {
        Self { maker, candidates, measured: None }
    }

    /// Measures candidates as far as the budget goes. The `kept` fastest keep their arrays.
    pub(super) fn measure<E, X>(
        &mut self,
        evaluator: &mut E,
        &Request { budget, objective, specialise, .. }: &Request<'_, T>,
        kept: usize,
    ) -> SelectResult<(), K, E::Error, X>
    where
        E: Evaluator<Code = K::Code>,
    {
        let Self { maker, candidates, .. } = self;
        let mut measured = Measured::new(maker, evaluator, candidates, budget, (kept, objective))?;
        if specialise {
            measured.specialise(maker, evaluator, candidates)?;
        }
        self.measured = Some(measured);
        Ok(())
    }

    /// Takes the best candidates as they are, at most `wanted`.
    pub(super) fn best<E, V, X>(
        &mut self,
        wanted: usize,
        observer: &mut dyn FnMut(Step),
    ) -> SelectResult<Vec<Taken<K::Code, V>>, K, E, X> {
        let mut chosen = Vec::new();
        for ((index, choice), number) in self.ranking().take(wanted).zip(1..) {
            observer(Step::Make(number));
            let made = self.make(index, &choice.program)?;
            let kernel = made.map_err(PipelineError::from)?;
            let ranked = Ranked { index, score: choice.score, kernel };
            chosen.push(Taken { ranked, verdict: None });
        }
        Ok(chosen)
    }

    /// Has a check take at most `wanted` of the candidates, and of `others` where it refuses too
    /// many of them.
    pub(super) fn checked<E, X: Check<K::Code>>(
        &mut self,
        check: &mut X,
        wanted: usize,
        others: impl FnOnce() -> Vec<Choice>,
    ) -> SelectResult<Checked<K::Code, X>, K, E, X::Error> {
        let start = self.maker.now();
        let candidates = self.candidates;
        let is_new = |choice: &Choice| candidates.iter().all(|c| c.program != choice.program);
        let others = iter::once_with(others).flatten().filter(is_new).zip(candidates.len()..);
        let others = others.map(|(choice, index)| (index, choice));
        let found = self.ranking().map(|(index, choice)| (index, choice.clone()));
        let (mut making, mut broken) = (Duration::ZERO, None);
        let mut attempts = found.chain(others).map_while(|(index, choice)| {
            let start = self.maker.now();
            let made = self.make(index, &choice.program);
            making += self.maker.now() - start;
            let made = made.map_err(|error| broken = Some(error)).ok()?;
            let ranked = |kernel| Ranked { index, score: choice.score, kernel };
            Some(made.map(ranked).map_err(Outcome::from))
        });
        let taken = check.take(&mut attempts, wanted);
        if let Some(broken) = broken {
            return Err(broken.into());
        }
        let mut taken = taken.map_err(PipelineError::Check)?;
        taken.truncate(wanted);
        Ok((taken, (self.maker.now() - start).saturating_sub(making)))
    }

    /// A candidate that was taken, with all that is known of it.
    pub(super) fn artefact<V>(
        &self,
        Taken { ranked, verdict }: Taken<K::Code, V>,
        input: &PolicyInput<'_>,
    ) -> Artefact<K::Code, V> {
        let Ranked { index, score, kernel } = ranked;
        let known = self.measured.as_ref().and_then(|measured| measured.outcome(index));
        Artefact {
            predicted: Prediction::new(input, &kernel.packed.program),
            kernel,
            score,
            outcome: known.map(|(outcome, _)| outcome.clone()),
            general: self.measured.as_ref().and_then(|measured| measured.general(index)).cloned(),
            verdict,
            baselines: known.map_or(Vec::new(), |(_, batch)| batch.baselines.clone()),
            copy_bandwidth: known.and_then(|(_, batch)| batch.copy_bandwidth),
        }
    }

    /// What was found out about all candidates; absent where nothing was measured.
    pub(super) fn into_evaluation(self) -> Option<Evaluation> {
        self.measured.map(Measured::into_evaluation)
    }

    /// Candidates with their places: fastest first; of those without times, what the chooser finds
    /// best, which gives them in another order. Where some were measured, those that are wrong and
    /// those that were not are left out.
    fn ranking(&self) -> impl Iterator<Item = (usize, &'a Choice)> + use<'a, T, K> {
        let (candidates, measured) = (self.candidates, self.measured.as_ref());
        let mut ranking = measured.map_or(Vec::new(), Measured::ranking);
        let is_untimed = |index| measured.is_none_or(|measured| measured.is_untimed(index));
        ranking.extend(by_score(candidates).into_iter().filter(|&index| is_untimed(index)));
        ranking.into_iter().filter_map(move |index| Some((index, candidates.get(index)?)))
    }

    /// The kernel of a program as it was measured, or one that is made now.
    fn make(
        &mut self,
        index: usize,
        program: &Program,
    ) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        match self.measured.as_mut().and_then(|measured| measured.take(index)) {
            Some(kept) => Ok(kept.restore(&self.maker, program).map_err(Unmade::Pack)),
            None => self.maker.make(program),
        }
    }
}

/// Indices of candidates, those with the highest scores first.
fn by_score(candidates: &[Choice]) -> Vec<usize> {
    let mut order: Vec<_> = candidates.iter().map(|c| c.score).enumerate().collect();
    order.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    order.into_iter().map(|(index, _)| index).collect()
}
