//! What is taken of programs that nobody measures.

use std::time::Instant;

use sparserl_core::decode::Choice;
use sparserl_core::language::Program;
use sparserl_core::matrix::Scalar;
use sparserl_core::pipeline::{self, Budget, Request, Tools};
use sparserl_gpu::emulated::checker::{Checker, Unjudged};
use sparserl_gpu::evaluator::GpuEvaluator;

use super::{CHOSEN, Chosen, OBJECTIVE, Search};
use crate::kernel::Known;

impl<T: Scalar> Search<'_, T> {
    /// Programs in the order of the policy, with the times that their gains over plain CSR make of
    /// its own. Without a GPU, those that emulation finds right.
    pub(super) fn check(&self, choices: &[Choice]) -> Result<Vec<Chosen>, String> {
        let Self { plan, matrix, .. } = *self;
        let context = &*plan.context;
        let words = self.policy.in_words();
        let chosen = |program: Program, judged, how: String| {
            let gain = choices.iter().find(|choice| choice.program == program);
            let predicted = self.csr_predicted / gain.map_or(1.0, |choice| choice.score.exp2());
            let why = format!("chosen by {words}, {how}");
            Chosen { program, judged, known: Known { predicted, why, ..Known::default() } }
        };
        if context.gpu.is_ok() {
            let unmeasured = |Choice { program, .. }: &Choice| {
                chosen(program.clone(), None, "not measured".to_owned())
            };
            return Ok(choices.iter().map(unmeasured).collect());
        }
        let checker =
            Checker::open(&context.compiler, matrix, plan.task.operation, Unjudged::Never)
                .map_err(|error| error.to_string())?;
        let left = self.deadline.map(|deadline| deadline.saturating_sub(self.age()));
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let (mut checker, compiler) = (checker.until(until), context.compiler.until(until));
        let budget = Budget::Candidates(0);
        let (wanted, objective) = (CHOSEN, OBJECTIVE);
        let input = self.input();
        let request =
            Request { matrix, input, wanted, objective, budget, spare: 0, specialise: false };
        let start = Instant::now();
        let tools = Tools {
            // Nothing launches a kernel without the epilogue.
            compiler: self.side.epilogue.is_none().then_some(&compiler),
            made: &[],
            evaluator: None::<&mut GpuEvaluator>,
            check: Some(&mut checker),
            clock: &move || start.elapsed(),
            observer: &mut |_| (),
        };
        let generated = pipeline::generate_from(&request, tools, choices);
        let generated = generated.map_err(|error| error.to_string())?;
        let artefacts = generated.artefacts.into_iter().filter_map(|artefact| {
            let program = artefact.kernel.packed.program.clone();
            let how = format!("emulated on {} and found right", artefact.verdict?.extent);
            Some(chosen(program, Some(artefact.kernel), how))
        });
        Ok(artefacts.collect())
    }
}
