//! Judging candidates on a GPU, programs and CUDA kernels each timed in turn.

use anyhow::ensure;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::Evaluation;
use sparserl_core::task::Task;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::store::fingerprint::MatrixIdentity;
use sparserl_gpu::store::recording::Recorder;

use super::candidates::Candidate;
use super::results::{CandidateResult, Instrument, Round};
use super::{Jury, TOGETHER, Verdicts};
use crate::kernel_file::Kernel;
use crate::progress::Progress;
use crate::recordings;
use crate::verify::judge::Judge;

/// Measures.
pub(super) struct Measuring<J> {
    pub(super) judge: J,
    /// Where outcomes of programs go, if they are recorded.
    pub(super) recorder: Option<Recorder>,
    pub(super) task: Task,
}

impl<J: Judge> Jury for Measuring<J> {
    fn instrument(&self) -> Instrument {
        Instrument::Device(self.judge.device().clone())
    }

    /// Judges all programs and then the CUDA kernels.
    fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        identity: &MatrixIdentity,
        candidates: &[Candidate],
        progress: &Progress,
    ) -> anyhow::Result<Verdicts> {
        let name = &identity.name;
        let (mut programs, mut program_places) = (Vec::new(), Vec::new());
        let mut cuda: Vec<(usize, &RawKernel)> = Vec::new();
        let mut results: Vec<Option<CandidateResult>> = Vec::new();
        for (place, candidate) in candidates.iter().enumerate() {
            let unreadable = |reason: &String| CandidateResult::unreadable(candidate, reason);
            results.push(candidate.kernel.as_ref().err().map(unreadable));
            match &candidate.kernel {
                Ok(Kernel::Program(program)) => {
                    programs.push(program.clone());
                    program_places.push(place);
                }
                Ok(Kernel::Cuda(kernel)) => cuda.push((place, kernel)),
                Err(_) => {}
            }
        }

        let mut rounds = Vec::new();
        let mut keep = |places: Vec<usize>, evaluation: Evaluation| {
            let Evaluation { outcomes, baselines, copy_bandwidth } = evaluation;
            ensure!(outcomes.len() == places.len(), "not every candidate was judged");
            for (place, outcome) in places.into_iter().zip(outcomes) {
                if let Some((slot, candidate)) = results.get_mut(place).zip(candidates.get(place)) {
                    *slot = Some(CandidateResult::new(candidate, Some(rounds.len()), outcome));
                }
            }
            rounds.push(Round { baselines, copy_bandwidth });
            Ok(())
        };
        if !programs.is_empty() {
            progress.step(format!("{name}: judging {} programs", programs.len()));
            let evaluation = self.judge.programs(matrix, &programs)?;
            if let Some(recorder) = &mut self.recorder {
                let context = self.judge.context()?;
                recordings::record(recorder, matrix, identity, &programs, &evaluation, &context)?;
            }
            keep(program_places, evaluation)?;
        }
        let mut first = 1;
        for batch in cuda.chunks(TOGETHER) {
            let last = first + batch.len() - 1;
            let of = cuda.len();
            progress.step(format!("{name}: judging CUDA kernels {first} to {last} of {of}"));
            first = last + 1;
            let (places, kernels): (Vec<usize>, Vec<&RawKernel>) = batch.iter().copied().unzip();
            keep(places, self.judge.cuda(matrix, self.task, &kernels)?)?;
        }
        let candidates = results.into_iter().flatten().collect();
        Ok(Verdicts { candidates, rounds, unjudged: Vec::new() })
    }
}
