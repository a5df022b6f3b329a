//! Why a program was chosen, in words and numbers.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sparserl_core::decode::{Choices as _, PolicyInput};
use sparserl_core::language::Program;
use sparserl_core::layout::CostModel;
use sparserl_core::outcome::Objective;
use sparserl_onnx_models::OpenedChoices;
use sparserl_onnx_models::reference::reference;
use sparserl_onnx_models::speeds::{MemberSpeeds, disagreement, mean};

use crate::program_words::in_words;
use crate::text::{table, time, times};

/// Programs of the policy that are considered.
const CONSIDERED: usize = 8;

/// What was predicted of the programs that were considered, best first.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Explanation {
    policy: String,
    /// What the best program that was written does, part by part.
    in_words: Vec<String>,
    /// What speeds are relative to.
    reference: String,
    /// Whether the best program that was written is what the policy chose first.
    #[serde(skip)]
    is_first_choice: bool,
    programs: Vec<Predicted>,
}

/// What is predicted of a program.
#[derive(Clone, Debug, Serialize)]
struct Predicted {
    /// Without the version and the task.
    program: Vec<String>,
    /// The place in which it was written, from 1; absent where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<usize>,
    /// Whether the cost model proposed it beside a trained policy, or is the policy.
    of_cost_model: bool,
    /// By the ensemble; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    ensemble: Option<Ensemble>,
    /// Seconds of a product by the cost model. Of the traffic of the dense operands they have only
    /// reads of the input that miss the L2 cache.
    cost_model_seconds: f64,
    /// How much of that the memory system takes; the rest is the longest chain of dependent steps.
    memory_share: f64,
    /// Bytes of the matrix, relative to plain CSR.
    bytes_of_csr: f64,
}

/// What an ensemble predicts: speeds relative to the reference.
#[derive(Clone, Copy, Debug, Serialize)]
struct Ensemble {
    cold: f64,
    warm: f64,
    /// Standard deviation of its members, as a share of the speed.
    disagreement: f64,
}

impl From<&MemberSpeeds> for Ensemble {
    fn from(speeds: &MemberSpeeds) -> Self {
        let speed = |objective| f64::from(mean(speeds, objective)).exp2();
        let disagreement = f64::from(disagreement(speeds)).exp2() - 1.0;
        Self { cold: speed(Objective::Cold), warm: speed(Objective::Warm), disagreement }
    }
}

impl Predicted {
    /// The higher, the faster the policy finds the program.
    fn score(&self, objective: Objective) -> f64 {
        match (self.ensemble, objective) {
            (Some(Ensemble { cold, .. }), Objective::Cold) => cold,
            (Some(Ensemble { warm, .. }), Objective::Warm) => warm,
            (Some(Ensemble { cold, warm, .. }), Objective::Both) => cold * warm,
            (None, _) => -self.cost_model_seconds,
        }
    }
}

impl Explanation {
    /// Of the programs that were written, best first, and of those that the policy would have
    /// chosen beside them: `choices` are those that the written ones are of.
    pub(crate) fn new(
        choices: &mut OpenedChoices<'_>,
        input: &PolicyInput<'_>,
        objective: Objective,
        written: &[Program],
    ) -> anyhow::Result<Self> {
        let mut programs: Vec<Program> = written.to_vec();
        let considered = choices.first(CONSIDERED)?;
        let is_first_choice = considered.first().map(|choice| &choice.program) == written.first();
        for choice in considered {
            if !programs.contains(&choice.program) {
                programs.push(choice.program);
            }
        }
        let ensemble: Vec<Option<MemberSpeeds>> = match choices.speeds(&programs)? {
            None => vec![None; programs.len()],
            Some(speeds) => speeds.into_iter().map(Some).collect(),
        };
        let costs = CostModel::new(Arc::clone(&input.stats), input.task, input.target);
        let mut predicted: Vec<Predicted> = programs
            .iter()
            .zip(&ensemble)
            .zip(1..)
            .map(|((program, speeds), place)| {
                let parts = costs.parts(program);
                let matrix_bytes: u64 = parts.iter().map(|part| part.matrix_bytes).sum();
                let taken = costs.constants().time(&parts, &input.target);
                Ok(Predicted {
                    program: lines(program),
                    written: Some(place).filter(|&place| place <= written.len()),
                    of_cost_model: choices.is_of_cost_model(program)?,
                    ensemble: speeds.as_ref().map(Ensemble::from),
                    cost_model_seconds: taken.seconds(),
                    memory_share: taken.busy / taken.seconds().max(f64::MIN_POSITIVE),
                    bytes_of_csr: matrix_bytes as f64 / costs.csr_bytes().max(1) as f64,
                })
            })
            .collect::<anyhow::Result<_>>()?;
        predicted.sort_by(|a, b| b.score(objective).total_cmp(&a.score(objective)));
        Ok(Self {
            policy: choices.policy().in_words(),
            in_words: written.first().map(in_words).unwrap_or_default(),
            reference: lines(&reference(input.task)?).join("; "),
            is_first_choice,
            programs: predicted,
        })
    }
}

/// A program without the lines that say version and task.
fn lines(program: &Program) -> Vec<String> {
    program.to_string().lines().skip(2).map(str::to_owned).collect()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.in_words.iter().enumerate() {
            writeln!(f, "{:11}{line}", if index == 0 { "in words" } else { "" })?;
        }
        let first_written = self.programs.iter().position(|p| p.written == Some(1));
        if let Some((place, chosen)) =
            first_written.and_then(|place| Some((place, self.programs.get(place)?)))
        {
            let limit = if chosen.memory_share >= 0.5 { "memory traffic" } else { "latency" };
            writeln!(
                f,
                "why        {} ranks kernel 1 as {} of {}; the cost model expects {limit} to limit it \
                 ({:.0} % of {}), with {:.0} % of the bytes of plain CSR",
                self.policy,
                place + 1,
                self.programs.len(),
                100.0 * chosen.memory_share.max(1.0 - chosen.memory_share),
                time(chosen.cost_model_seconds),
                100.0 * chosen.bytes_of_csr,
            )?;
            let before = self.programs.iter().take(place);
            let of_cost_model = before.filter(|other| other.of_cost_model).count();
            if self.is_first_choice && !chosen.of_cost_model && of_cost_model > 0 {
                writeln!(
                    f,
                    "           {of_cost_model} of those before it {} the cost model's, whose predictions are \
                     less sure: the policy's own come first",
                    if of_cost_model == 1 { "is" } else { "are" },
                )?;
            }
            let best_other = self.programs.iter().find(|p| p.written.is_none());
            if let (Some(own), Some(other)) =
                (chosen.ensemble, best_other.and_then(|other| other.ensemble))
            {
                writeln!(
                    f,
                    "           predicted {} of plain CSR's speed with a cold cache, {} with a warm one \
                     (members differ by {:.0} %); the best other {} and {}",
                    times(own.cold),
                    times(own.warm),
                    100.0 * own.disagreement,
                    times(other.cold),
                    times(other.warm),
                )?;
            }
        }
        let header = ["program", "written", "by", "cold", "warm", "±", "cost model", "bytes ÷ CSR"];
        let rows = self.programs.iter().map(|predicted| {
            let of = |number: &dyn Fn(&Ensemble) -> String| {
                predicted.ensemble.as_ref().map_or_else(|| "–".to_owned(), number)
            };
            vec![
                predicted.program.join("\n"),
                predicted.written.map_or_else(String::new, |place| place.to_string()),
                if predicted.of_cost_model { "cost model" } else { "policy" }.to_owned(),
                of(&|ensemble| times(ensemble.cold)),
                of(&|ensemble| times(ensemble.warm)),
                of(&|ensemble| format!("{:.0} %", 100.0 * ensemble.disagreement)),
                time(predicted.cost_model_seconds),
                format!("{:.2}", predicted.bytes_of_csr),
            ]
        });
        writeln!(f, "{}", table(header.map(str::to_owned).to_vec(), rows))?;
        writeln!(f, "cold, warm: predicted speed relative to `{}`", self.reference)
    }
}
