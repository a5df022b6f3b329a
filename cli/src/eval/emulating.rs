//! Judging candidates without a GPU.

use rayon::prelude::*;
use sparserl_core::matrix::{CsrView, MatrixIdentity, Scalar};
use sparserl_core::message;
use sparserl_core::pipeline::TOGETHER;
use sparserl_core::results::CandidateResult;
use sparserl_core::task::Task;
use sparserl_gpu::emulated::EmulatorEvaluator;
use sparserl_gpu::emulated::ground::Emulated;

use super::candidates::Candidate;
use super::results::{Emulator, JudgedFile, JudgedOn};
use super::{Jury, Verdicts};
use crate::args::{EmulationArgs, EvalArgs};
use crate::progress::Progress;
use crate::verify::emulate::{self, Grounds};

/// Emulates.
pub(super) struct Emulating<'a> {
    args: &'a EmulationArgs,
    emulator: EmulatorEvaluator,
    task: Task,
}

impl<'a> Emulating<'a> {
    pub(super) fn open(args: &'a EvalArgs, task: Task) -> anyhow::Result<Self> {
        let emulator = emulate::open(&args.emulation, args.judging.deadline)?;
        Ok(Self { args: &args.emulation, emulator, task })
    }
}

impl Jury for Emulating<'_> {
    fn judges_on(&self) -> JudgedOn {
        JudgedOn::Emulator(Emulator {
            architecture: self.emulator.architecture(),
            nvrtc: self.emulator.nvrtc(),
        })
    }

    fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        identity: &MatrixIdentity,
        candidates: &[Candidate],
        progress: &Progress,
    ) -> anyhow::Result<Verdicts> {
        let grounds = Grounds::new(self.args, matrix, self.task);
        let judge = |candidate: &Candidate| -> Result<CandidateResult<JudgedFile>, String> {
            let kernel = match &candidate.kernel {
                Ok(kernel) => kernel,
                Err(reason) => return Ok(JudgedFile::unreadable(candidate, reason)),
            };
            match grounds.judge(&self.emulator, kernel) {
                Ok(Emulated { judgement, extent }) => {
                    Ok(JudgedFile::emulated(candidate, extent, judgement.outcome))
                }
                Err(error) => {
                    let why = message::with_causes(&error);
                    let hint = EmulationArgs::hint(&error).map(|hint| format!("; {hint}"));
                    let hint = hint.unwrap_or_default();
                    Err(format!("{} is not among the results: {why}{hint}", candidate.file))
                }
            }
        };
        let mut verdicts = Verdicts::default();
        for (index, batch) in candidates.chunks(TOGETHER).enumerate() {
            let (first, of) = (1 + index * TOGETHER, candidates.len());
            let last = first + batch.len() - 1;
            progress
                .step(format!("{}: emulating kernels {first} to {last} of {of}", identity.name));
            for judged in batch.par_iter().map(judge).collect::<Vec<_>>() {
                match judged {
                    Ok(result) => verdicts.candidates.push(result),
                    Err(why) => verdicts.unjudged.push(why),
                }
            }
        }
        Ok(verdicts)
    }
}
