//! Candidates are made and judged, as far as a budget goes.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::PipelineError;
use super::make::Maker;
use crate::codegen::{CudaSource, Launch};
use crate::decode::Choice;
use crate::kernel::{Compiler, Kernel, SharedCompiler};
use crate::language::Program;
use crate::layout::{PackError, Packed};
use crate::matrix::Scalar;
use crate::outcome::{Evaluation, Evaluator, Objective, Outcome};
use crate::results::ranking;

/// Kernels that are judged together, and so timed in turn.
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
        let mut whole = Self { batches: Vec::new(), kernels: Vec::new(), objective };
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
        if !whole.outcomes().any(Outcome::is_right) {
            let mut outcomes = whole.outcomes();
            let first = outcomes.next().ok_or(PipelineError::NoProgram)?.to_string();
            return Err(PipelineError::NoneRight { tried: 1 + outcomes.count(), first });
        }
        Ok(whole)
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

    /// What became of the program at a place, and what was measured in turn with it.
    pub(super) fn outcome(&self, index: usize) -> Option<(&Outcome, &Evaluation)> {
        let batch = self.batches.get(index / BATCH)?;
        Some((batch.outcomes.get(index % BATCH)?, batch))
    }

    /// What became of all programs; the baselines are those that were measured in turn with the
    /// fastest kernel.
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
