//! Candidates are made and judged, as far as a budget goes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::make::Maker;
use super::specialise::{Beside, specialise};
use super::{NoneRight, PipelineError};
use crate::codegen::{CudaSource, Launch};
use crate::decode::Choice;
use crate::kernel::{Compiler, Kernel, SharedCompiler};
use crate::language::Program;
use crate::layout::{PackError, Packed};
use crate::matrix::Scalar;
use crate::outcome::{Evaluation, Evaluator, Objective, Outcome};
use crate::results::ranking;

/// Kernels that [`generate`](super::generate) has timed in turn: few, so that a budget of time can
/// end between two batches.
pub const BATCH: usize = 8;

/// How much may be spent on measuring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many candidates.
    Candidates(usize),
    /// New batches of candidates are begun until so much time has passed.
    Time(Duration),
}

impl Budget {
    /// Candidates that are worth searching for.
    #[must_use]
    pub fn candidates(self) -> usize {
        match self {
            Self::Candidates(count) => count,
            // More than are measured in minutes.
            Self::Time(_) => 64 * BATCH,
        }
    }
}

/// A kernel that was measured. The arrays of all would not fit the memory: the best ones have
/// theirs.
pub(super) struct Kept<C> {
    pub(super) packed: Option<Arc<Packed>>,
    pub(super) source: CudaSource,
    pub(super) launch: Launch,
    pub(super) code: Option<C>,
    pub(super) pack_time: Duration,
    pub(super) compile_time: Duration,
}

/// What was found out about some programs, and the kernels of those that have one.
type Batch<C> = (Evaluation, Vec<Option<Kept<C>>>);

/// What was measured.
pub(super) struct Measured<C> {
    /// What was found out about [`BATCH`] programs each, the last perhaps about fewer.
    batches: Vec<Evaluation>,
    /// By the place of the program; nothing where there is no kernel of it.
    kernels: Vec<Option<Kept<C>>>,
    objective: Objective,
    /// The place where a kernel for the sizes of its matrix alone has taken that of the general
    /// one, and what was found out about the general one, and then about this one.
    special: Option<(usize, Evaluation)>,
}

impl<C: Clone + Send + Sync> Measured<C> {
    /// Makes and judges kernels, in their order, until the budget is spent. The
    /// `kept` fastest keep their arrays.
    pub(super) fn new<T, K, E, X>(
        maker: &Maker<'_, T, K>,
        evaluator: &mut E,
        candidates: &[Choice],
        budget: Budget,
        (kept, objective): (usize, Objective),
    ) -> Result<Self, PipelineError<K::Error, E::Error, X>>
    where
        T: Scalar,
        K: Compiler<Code = C, Error: Send> + Sync,
        E: Evaluator<Code = C>,
    {
        let start = maker.now();
        let mut whole = Self { batches: Vec::new(), kernels: Vec::new(), objective, special: None };
        for batch in candidates.chunks(BATCH) {
            let judged = whole.kernels.len();
            let spent = match budget {
                Budget::Candidates(count) => judged >= count,
                Budget::Time(time) => judged > 0 && maker.now() - start >= time,
            };
            if spent {
                break;
            }
            let (evaluation, kernels) = Self::batch(maker, evaluator, batch)?;
            whole.batches.push(evaluation);
            whole.kernels.extend(kernels);
            whole.give_up_arrays(kept);
        }
        whole.refuse_none_right()?;
        Ok(whole)
    }

    /// Refuses to go on without a right kernel.
    fn refuse_none_right<K, E, X>(&self) -> Result<(), PipelineError<K, E, X>> {
        if self.outcomes().any(Outcome::is_right) {
            return Ok(());
        }
        let none = NoneRight::of(self.outcomes());
        Err(none.map_or(PipelineError::NoProgram, PipelineError::NoneRight))
    }

    fn batch<T, K, E, X>(
        maker: &Maker<'_, T, K>,
        evaluator: &mut E,
        candidates: &[Choice],
    ) -> Result<Batch<C>, PipelineError<K::Error, E::Error, X>>
    where
        T: Scalar,
        K: Compiler<Code = C, Error: Send> + Sync,
        E: Evaluator<Code = C>,
    {
        let made = maker.make_all(candidates.iter().map(|found| &found.program))?;
        let evaluation = made.judge(maker.matrix(), evaluator).map_err(PipelineError::Evaluator)?;
        let kernels = made.0.into_iter().map(|made| made.ok().map(Kept::from)).collect();
        Ok((evaluation, kernels))
    }

    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.batches.iter().flat_map(|batch| &batch.outcomes)
    }

    /// Places of the right kernels that were timed, fastest first.
    pub(super) fn ranking(&self) -> Vec<usize> {
        ranking(self.outcomes(), self.objective)
    }

    /// Whether the program at a place is right, and was not timed.
    pub(super) fn is_untimed(&self, index: usize) -> bool {
        matches!(self.outcome(index), Some((Outcome::Verified(_), _)))
    }

    /// What became of the kernel that the program at a place has, and what was measured in turn
    /// with it.
    pub(super) fn outcome(&self, index: usize) -> Option<(&Outcome, &Evaluation)> {
        if let Some(evaluation) = self.special_at(index) {
            return Some((evaluation.outcomes.get(1)?, evaluation));
        }
        let batch = self.batches.get(index / BATCH)?;
        Some((batch.outcomes.get(index % BATCH)?, batch))
    }

    /// What became of the general kernel of the program at a place, in turn with the one that took
    /// its place; absent where none did.
    pub(super) fn general(&self, index: usize) -> Option<&Outcome> {
        self.special_at(index)?.outcomes.first()
    }

    fn special_at(&self, index: usize) -> Option<&Evaluation> {
        self.special.as_ref().filter(|(place, _)| *place == index).map(|(_, found)| found)
    }

    /// Makes the fastest kernel for the sizes of its matrix alone as well; where that is faster, it
    /// takes its place.
    pub(super) fn specialise<T, K, E, X>(
        &mut self,
        maker: &Maker<'_, T, K>,
        evaluator: &mut E,
        candidates: &[Choice],
    ) -> Result<(), PipelineError<K::Error, E::Error, X>>
    where
        T: Scalar,
        K: SharedCompiler<Code = C>,
        E: Evaluator<Code = C>,
    {
        let fastest = self.ranking().first().copied();
        let Some((index, choice)) = fastest.and_then(|at| Some((at, candidates.get(at)?))) else {
            return Ok(());
        };
        let Some(kept) = self.take(index) else { return Ok(()) };
        let general = kept.restore(maker, &choice.program)?;
        match specialise(maker, evaluator, general, self.objective)? {
            Beside::General(kernel) => self.keep(index, kernel),
            Beside::Special(kernel, evaluation) => {
                self.keep(index, kernel);
                self.special = Some((index, evaluation));
            }
            Beside::Wrong(outcome) => {
                let batch = self.batches.get_mut(index / BATCH);
                if let Some(known) = batch.and_then(|batch| batch.outcomes.get_mut(index % BATCH)) {
                    *known = outcome;
                }
                self.refuse_none_right()?;
            }
        }
        Ok(())
    }

    /// What became of all programs, of each as it was measured beside the others; the baselines are
    /// those that were measured in turn with the fastest kernel.
    pub(super) fn into_evaluation(self) -> Evaluation {
        let fastest = self.ranking().first().map_or(0, |index| index / BATCH);
        let outcomes = self.outcomes().cloned().collect();
        let batch = self.batches.into_iter().nth(fastest);
        let (baselines, copy_bandwidth) =
            batch.map_or((Vec::new(), None), |batch| (batch.baselines, batch.copy_bandwidth));
        Evaluation { outcomes, baselines, copy_bandwidth }
    }

    fn give_up_arrays(&mut self, kept: usize) {
        let mut best = self.ranking();
        best.truncate(kept);
        for (index, kernel) in self.kernels.iter_mut().enumerate() {
            if let Some(kernel) = kernel.as_mut().filter(|_| !best.contains(&index)) {
                kernel.packed = None;
            }
        }
    }

    /// The kernel of the program at a place.
    pub(super) fn take(&mut self, index: usize) -> Option<Kept<C>> {
        self.kernels.get_mut(index)?.take()
    }

    /// Keeps a kernel of the program at a place.
    fn keep(&mut self, index: usize, kernel: Kernel<C>) {
        if let Some(place) = self.kernels.get_mut(index) {
            *place = Some(kernel.into());
        }
    }
}

impl<C> Kept<C> {
    /// The kernel of a program, with its arrays again where they were given up.
    pub(super) fn restore<T: Scalar, K: SharedCompiler>(
        self,
        maker: &Maker<'_, T, K>,
        program: &Program,
    ) -> Result<Kernel<C>, PackError> {
        let Self { packed, source, launch, code, pack_time, compile_time } = self;
        let packed = match packed {
            Some(packed) => packed,
            None => Arc::new(maker.pack(program)?),
        };
        Ok(Kernel { packed, source, launch, code, pack_time, compile_time })
    }
}

impl<C> From<Kernel<C>> for Kept<C> {
    fn from(kernel: Kernel<C>) -> Self {
        let Kernel { packed, source, launch, code, pack_time, compile_time } = kernel;
        Self { packed: Some(packed), source, launch, code, pack_time, compile_time }
    }
}
