//! The best few once more, by processes that have not run them: one chooses, another one measures
//! what was chosen, so that luck in being chosen is not in what is reported.

use std::convert::Infallible;

use anyhow::{anyhow, bail};
use sparserl_core::decode::{CostRanker, Decoding, Policy as _, PolicyInput, score};
use sparserl_core::language::{Mask, Program};
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Evaluation, Outcome};
use sparserl_core::pipeline::{Artefact, BATCH, NoneRight, Prediction};
use sparserl_core::results::{Opponents, ranking};
use sparserl_core::search::Search;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::worker::Protocol;

use super::folder::KERNEL;
use super::record::{TimedProgram, TuneResult};
use super::rounds::{Laboratory, refuse_wrong};
use crate::instrument::Instrument;

/// The winner, and what it was chosen from.
pub(super) struct Finals {
    pub(super) artefact: Artefact<Cubin, Infallible>,
    pub(super) result: TuneResult,
}

impl<T: Scalar, E: Instrument> Laboratory<'_, T, E> {
    /// Chooses the fastest of a search, and measures it once more beside what the policy finds
    /// best.
    pub(super) fn finals(
        &mut self,
        search: &mut Search<'_>,
        input: &PolicyInput<'_>,
        first_pick: &Program,
    ) -> anyhow::Result<Finals> {
        let regime = self.record.case.regime;
        self.evaluator.set_protocol(Protocol::full());
        self.evaluator.restart();
        let mut finalists = search.finalists(BATCH);
        if !finalists.contains(first_pick) {
            finalists.truncate(BATCH - 1);
            finalists.push(first_pick.clone());
        }
        let chosen_from = self.measure(&finalists)?;
        refuse_wrong(search, &finalists, &chosen_from.outcomes);
        let ranked = ranking(&chosen_from.outcomes, regime.into());
        let timed = |program: &Program, outcome: &Outcome| TimedProgram {
            program: program.to_string(),
            outcome: outcome.clone(),
        };
        let mut wrong = Vec::new();
        for winner in ranked.into_iter().filter_map(|index| finalists.get(index)) {
            let mut programs = vec![winner.clone()];
            programs.extend((first_pick != winner).then(|| first_pick.clone()));
            let (artefact, evaluation) = self.measure_winner(&programs, input)?;
            self.keep(&programs, &evaluation)?;
            refuse_wrong(search, &programs, &evaluation.outcomes);
            // What is found wrong only now is no winner: the next one is.
            let Some(artefact) = artefact else {
                wrong.extend(evaluation.outcomes.into_iter().next());
                continue;
            };
            let [of_winner, ..] = &*evaluation.outcomes else { continue };
            // The winner may be the first pick.
            let of_first = evaluation.outcomes.get(1).unwrap_or(of_winner);
            let result = TuneResult {
                kernel: KERNEL.to_owned(),
                winner: timed(winner, of_winner),
                first_pick: timed(first_pick, of_first),
                opponents: Opponents {
                    baselines: evaluation.baselines.clone(),
                    copy_bandwidth: evaluation.copy_bandwidth,
                },
                finalists: finalists
                    .iter()
                    .zip(&chosen_from.outcomes)
                    .map(|(program, outcome)| timed(program, outcome))
                    .collect(),
            };
            return Ok(Finals { artefact, result });
        }
        match NoneRight::of(wrong.iter().chain(&chosen_from.outcomes)) {
            Some(none) => bail!(NoneRight { tried: finalists.len(), ..none }),
            None => bail!("the search found no program (a defect of SparseRL)"),
        }
    }

    /// Makes kernels of a winner and of what stands beside it, and has them measured in turn with
    /// the opponents by a new process. No artefact where the winner is not right.
    fn measure_winner(
        &mut self,
        programs: &[Program],
        input: &PolicyInput<'_>,
    ) -> anyhow::Result<(Option<Artefact<Cubin, Infallible>>, Evaluation)> {
        self.evaluator.restart();
        let made = self.maker.make_all(programs)?;
        let evaluation = made
            .judge(self.maker.matrix(), &mut *self.evaluator)
            .map_err(|error| anyhow!("the evaluation failed: {error}"))?;
        let (Some(program), Some(outcome)) = (programs.first(), evaluation.outcomes.first()) else {
            bail!("nothing was measured (a defect of SparseRL)");
        };
        let kernel = made.into_kernels().next().flatten().filter(|_| outcome.is_right());
        let Some(kernel) = kernel else { return Ok((None, evaluation)) };
        let decoding = Decoding::Masked(Mask::legal(&input.stats, input.task));
        let trajectory = score(&mut *CostRanker.read(input)?, decoding, 1.0, &program.tokens())?;
        let artefact = Artefact {
            predicted: Prediction::new(input, program),
            kernel,
            score: trajectory.log_probability(),
            outcome: Some(outcome.clone()),
            general: None,
            verdict: None,
            baselines: evaluation.baselines.clone(),
            copy_bandwidth: evaluation.copy_bandwidth,
        };
        Ok((Some(artefact), evaluation))
    }
}
