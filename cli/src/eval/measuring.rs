//! Judging candidates on a GPU, programs and CUDA kernels timed in turn with each other.

use anyhow::ensure;
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, MatrixIdentity, Scalar};
use sparserl_core::outcome::Evaluation;
use sparserl_core::pipeline::TOGETHER;
use sparserl_core::results::{Opponents, ValueSource};
use sparserl_core::task::Task;
use sparserl_gpu::store::recording::Recorder;

use super::candidates::Candidate;
use super::results::{JudgedFile, JudgedOn};
use super::{Jury, Verdicts};
use crate::instrument::Instrument;
use crate::kernel_file::Kernel;
use crate::progress::Progress;
use crate::recordings;

/// Measures.
pub(super) struct Measuring<I> {
    pub(super) instrument: I,
    /// Where outcomes of programs go, if they are recorded.
    pub(super) recorder: Option<Recorder>,
    pub(super) task: Task,
}

impl<I: Instrument> Jury for Measuring<I> {
    fn judges_on(&self) -> JudgedOn {
        JudgedOn::Device(self.instrument.device())
    }

    fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        identity: &MatrixIdentity,
        candidates: &[Candidate],
        progress: &Progress,
    ) -> anyhow::Result<Verdicts> {
        let readable = candidates.iter().filter_map(|one| one.kernel.as_ref().ok());
        let kernels: Vec<&Kernel> = readable.collect();
        let (mut batches, of) = (Vec::new(), kernels.len());
        let show = |judged: usize| {
            if judged < of {
                let (first, last) = (judged + 1, (judged + TOGETHER).min(of));
                let name = &identity.name;
                progress.step(format!("{name}: judging kernels {first} to {last} of {of}"));
            }
        };
        show(0);
        let mut judged = 0;
        self.instrument.judge_files(matrix, self.task, &kernels, |evaluation| {
            judged += evaluation.outcomes.len();
            show(judged);
            batches.push(evaluation);
        })?;
        ensure!(judged == of, "not every candidate was judged");
        self.record::<T>(identity, &kernels, &batches)?;

        let (mut rounds, mut outcomes) = (Vec::new(), Vec::new());
        for Evaluation { outcomes: own, baselines, copy_bandwidth } in batches {
            let round = rounds.len();
            outcomes.extend(own.into_iter().map(|outcome| (round, outcome)));
            rounds.push(Opponents { baselines, copy_bandwidth });
        }
        let mut outcomes = outcomes.into_iter();
        let result = |candidate: &Candidate| match &candidate.kernel {
            Ok(_) => {
                let (round, outcome) = outcomes.next()?;
                Some(JudgedFile::measured(candidate, round, outcome))
            }
            Err(reason) => Some(JudgedFile::unreadable(candidate, reason)),
        };
        let candidates = candidates.iter().filter_map(result).collect();
        Ok(Verdicts { candidates, rounds, unjudged: Vec::new() })
    }
}

impl<I: Instrument> Measuring<I> {
    /// Keeps what was found out about programs, if anything is recorded; stores hold no CUDA.
    fn record<T: Scalar>(
        &mut self,
        identity: &MatrixIdentity,
        kernels: &[&Kernel],
        batches: &[Evaluation],
    ) -> anyhow::Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let mut kernels = kernels.iter();
        for batch in batches {
            let (mut programs, mut outcomes): (Vec<Program>, Vec<_>) = Default::default();
            for (outcome, kernel) in batch.outcomes.iter().zip(kernels.by_ref()) {
                if let Kernel::Program(program) = kernel {
                    programs.push(program.clone());
                    outcomes.push(outcome.clone());
                }
            }
            if programs.is_empty() {
                continue;
            }
            let evaluation = Evaluation { outcomes, ..batch.clone() };
            let context = self.instrument.context(ValueSource::File)?;
            recordings::record::<T>(recorder, identity, &programs, &evaluation, &context)?;
        }
        Ok(())
    }
}
