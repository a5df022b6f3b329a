//! What is taken of programs that a process beside this one measures.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sparserl_core::decode::Choice;
use sparserl_core::kernel::{Candidate, Kernel};
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Evaluator as _, Outcome, Regime};
use sparserl_core::pipeline::{self, BATCH, Budget, PipelineError, Request, Tools};
use sparserl_core::results::ranking;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::worker::Protocol;

use super::{Chosen, OBJECTIVE, Search};
use crate::context::Gpu;
use crate::kernel::Known;

impl<T: Scalar> Search<'_, T> {
    /// Programs that are found right, the fastest first; `plain` is plain CSR as the plan has it,
    /// the first of the choices. Whether they fit the memory that is left is for the caller to see.
    /// Kernels are measured without the side's epilogue, whose arrays only callers have, and
    /// without gaps between rows.
    pub(super) fn measure(
        &self,
        gpu: &Gpu,
        plain: Kernel<Cubin>,
        choices: &[Choice],
        time: Duration,
    ) -> Result<Vec<Chosen>, String> {
        let Self { plan, matrix, ref costs, .. } = *self;
        let context = &*plan.context;
        let (server, pool) = (context.server.clone(), Arc::clone(&context.pool));
        let opened = GpuEvaluator::open(server, pool, gpu.ordinal, Protocol::full());
        let mut evaluator = opened.map_err(|error| error.to_string())?;
        let budget = Budget::Time(time);
        // The fastest is used as it was measured. The others, of which one takes its place only
        // where memory or the epilogue refuse it, would keep their arrays for nothing. Machine code
        // that serves other matrices, too, is not compiled anew for each.
        let (wanted, objective) = (1, OBJECTIVE);
        let input = self.input();
        let request =
            Request { matrix, input, wanted, objective, budget, spare: 0, specialise: false };
        let start = Instant::now();
        // To a search that is abandoned, or waited for, each look at the clock is another budget
        // later, so that it ends with the batch that it is at, whenever that became so.
        let leaps = AtomicU32::new(0);
        let clock = || {
            let now = start.elapsed();
            if !plan.is_abandoned.load(Ordering::Relaxed) && !plan.is_waited_for() {
                return now;
            }
            now.saturating_add(time.saturating_mul(leaps.fetch_add(1, Ordering::Relaxed) + 1))
        };
        let made = [plain];
        let tools = Tools {
            compiler: Some(&context.compiler),
            made: &made,
            evaluator: Some(&mut evaluator),
            check: None::<&mut Infallible>,
            clock: &clock,
            observer: &mut |_| (),
        };
        let generated = match pipeline::generate_from(&request, tools, choices) {
            Ok(generated) => generated,
            // They were measured: none of them may be taken unmeasured.
            Err(error @ PipelineError::NoneRight { .. }) => {
                context.say(&error.to_string());
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.to_string()),
        };
        let Some(evaluation) = generated.evaluation else { return Ok(Vec::new()) };
        let regime = Regime::Warm;
        let median = |outcome: &Outcome| outcome.measurement()?.timing.median(regime);
        let outcomes = &evaluation.outcomes;
        let right = ranking(outcomes, OBJECTIVE);
        let first_batch = right.first().map(|index| index / BATCH);
        let mut kept = generated.artefacts.into_iter().next().map(|artefact| artefact.kernel);
        // Clocks drift: where the fastest was not measured in turn with plain CSR, it is once more.
        let is_apart = first_batch.is_some_and(|batch| batch > 0);
        let in_turn = kept.as_ref().filter(|_| is_apart).and_then(|fastest| {
            let pair = [&made[0], fastest].map(Candidate::Kernel);
            evaluator.judge_all(matrix, &pair).ok()
        });
        let chosen = right.iter().zip(1..).filter_map(|(&index, place)| {
            let program = choices.get(index)?.program.clone();
            let judged = kept.take_if(|kernel| kernel.packed.program == program);
            // Plain CSR is the first of each.
            let (of, own, is_in_turn) = match &in_turn {
                Some(again) if judged.is_some() => (again, 1, true),
                _ => (&evaluation, index, index / BATCH == 0),
            };
            let own = of.outcomes.get(own).filter(|outcome| outcome.is_right())?;
            let measured = median(own);
            let csr = of.outcomes.first().filter(|_| is_in_turn).and_then(median);
            let gain = match (measured, csr) {
                (Some(own), Some(csr)) if index != 0 => {
                    format!(", {:.2} times as fast as plain CSR", csr / own)
                }
                _ => String::new(),
            };
            let which = if index == 0 { "plain CSR: the" } else { "the" };
            let rank = match place {
                1 => "fastest".to_owned(),
                place => format!("number {place} in speed"),
            };
            let (count, name) = (outcomes.len(), &gpu.facts.name);
            let why = format!("{which} {rank} of {count} programs measured on {name}{gain}");
            // The baselines are those that were measured in turn with the fastest.
            let cusparse = of.best_baseline(regime).filter(|_| first_batch == Some(index / BATCH));
            let predicted = costs.cost(&program).seconds;
            let known = Known { predicted, measured, csr, cusparse, why, ..Known::default() };
            Some(Chosen { program, judged, known })
        });
        Ok(chosen.collect())
    }
}
