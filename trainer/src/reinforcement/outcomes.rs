//! What becomes of the programs that a policy writes, whoever says so; and the answers of
//! recordings.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use sparserl_core::decode::is_offered;
use sparserl_core::language::{Mask, Program};
use sparserl_core::layout::pack;
use sparserl_core::outcome::Tier;
use sparserl_core::target::Target;
use sparserl_core::task::Task;

use super::cases::{TypedSubject, with_subject};
use super::{Cases, MatrixError};
use sparserl_onnx_models::programs::token_ids;
use sparserl_onnx_models::speeds::REGIMES;

use crate::dataset::{Dataset, DatasetCase};
use crate::measured::MeasuredCase;

/// What became of a program: of what it is judged by, all that rewards depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// How far it came.
    pub tier: Tier,
    /// log2 of its speed relative to the reference in each of [`REGIMES`]; `None` where it was not
    /// timed.
    pub speeds: [Option<f32>; REGIMES.len()],
}

/// Programs for one case.
#[derive(Clone, Debug)]
pub struct Request<'d> {
    /// The case.
    pub case: &'d DatasetCase,
    /// The programs; the same one may be there several times.
    pub programs: Vec<Program>,
}

/// Judgements of the programs of some requests, in their order; `None` where nothing is known.
pub type Judgements = Vec<Vec<Option<Judgement>>>;

/// Where outcomes come from.
pub trait Outcomes {
    /// Why nothing can be said: what is broken is no program.
    type Error: fmt::Debug + fmt::Display;

    /// Says what becomes of programs.
    ///
    /// # Errors
    /// When it cannot be found out, whatever the programs are.
    fn judge(
        &mut self,
        cases: &Cases<'_>,
        requests: &[Request<'_>],
    ) -> Result<Judgements, Self::Error>;

    /// Sees to it that what was found out is not lost with the process.
    ///
    /// # Errors
    /// When it cannot be written.
    fn keep(&mut self) -> Result<(), Self::Error>;

    /// The one GPU that it knows about; `None` when it can be asked about all.
    fn target(&self) -> Option<Target>;

    /// What it is, for the provenance of models.
    fn description(&self) -> String;
}

/// What is known already, by matrix, task, GPU and program.
#[derive(Clone, Debug, Default)]
pub struct Known(HashMap<(String, Task, Target), HashMap<Vec<u8>, Judgement>>);

/// Outcomes that were recorded; nothing is measured.
#[derive(Clone, Debug)]
pub struct RecordedOutcomes {
    known: Known,
    /// Of what was recorded.
    fingerprint: u64,
}

impl Judgement {
    /// The judgement of a program that there is no kernel of.
    pub const NOT_COMPILED: Self = Self { tier: Tier::NotCompiled, speeds: [None; REGIMES.len()] };

    /// The mean of its speeds over the regimes in which it was timed.
    #[must_use]
    pub fn speed(&self) -> Option<f32> {
        let timed = self.speeds.iter().flatten();
        let count = timed.clone().count();
        (count > 0).then(|| timed.sum::<f32>() / count as f32)
    }
}

impl Known {
    /// What some cases were measured to be. Nothing is known of programs that were timed in fewer
    /// regimes than others of their case, with whose speeds theirs do not compare.
    #[must_use]
    pub fn of(cases: &[MeasuredCase]) -> Self {
        let mut known = Self::default();
        for case in cases {
            let judged = case.programs.iter().map(|measured| {
                let speeds = REGIMES.map(|regime| measured.speed(regime));
                let speeds = speeds.map(|speed| speed.map(|speed| speed.relative as f32));
                (token_ids(&measured.program), Judgement { tier: measured.tier, speeds })
            });
            let key = (case.recipe.to_string(), case.task, case.target);
            known.add_comparable(key, judged.collect());
        }
        known
    }

    /// What the cases of a dataset were measured to be; it does not say how far programs came that
    /// are not right.
    #[must_use]
    pub fn of_dataset(dataset: &Dataset) -> Self {
        let mut known = Self::default();
        for case in &dataset.cases {
            let Some(key) = key(dataset, case) else { continue };
            let right = case.programs.iter().filter(|program| program.right);
            let judged = right.map(|program| {
                let judgement = Judgement { tier: Tier::Right, speeds: program.speeds };
                (program.tokens.clone(), judgement)
            });
            known.add_comparable(key, judged.collect());
        }
        known
    }

    /// Notes the first judgement of each program of a case, but for those that lack a time.
    fn add_comparable(&mut self, key: (String, Task, Target), judged: Vec<(Vec<u8>, Judgement)>) {
        let regimes = |judgement: &Judgement| judgement.speeds.iter().flatten().count();
        let most = judged.iter().map(|(_, judgement)| regimes(judgement)).max().unwrap_or(0);
        let of_case = self.0.entry(key).or_default();
        for (program, judgement) in judged {
            if [0, most].contains(&regimes(&judgement)) {
                of_case.entry(program).or_insert(judgement);
            }
        }
    }

    /// Number of programs.
    #[must_use]
    pub fn programs(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }

    /// What is known of a program for a case of a dataset.
    #[must_use]
    pub fn get(
        &self,
        dataset: &Dataset,
        case: &DatasetCase,
        program: &Program,
    ) -> Option<Judgement> {
        self.0.get(&key(dataset, case)?)?.get(&token_ids(program)).copied()
    }

    /// A number that is another one for other outcomes, whatever their order.
    fn fingerprint(&self) -> u64 {
        let mut sum = 0_u64;
        for (case, programs) in &self.0 {
            for known in programs {
                let hash = blake3::hash(format!("{case:?} {known:?}").as_bytes());
                let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
                sum = sum.wrapping_add(u64::from_le_bytes(first));
            }
        }
        sum
    }

    /// Notes what became of a program for a case of a dataset.
    pub(super) fn add(
        &mut self,
        dataset: &Dataset,
        case: &DatasetCase,
        program: &Program,
        judgement: Judgement,
    ) {
        if let Some(key) = key(dataset, case) {
            self.0.entry(key).or_default().insert(token_ids(program), judgement);
        }
    }

    /// What is known of all programs of a request.
    pub(super) fn all(&self, dataset: &Dataset, request: &Request<'_>) -> Vec<Option<Judgement>> {
        let of_case = key(dataset, request.case).and_then(|key| self.0.get(&key));
        let known = |program: &Program| of_case?.get(&token_ids(program)).copied();
        request.programs.iter().map(known).collect()
    }

    /// Of each request the programs of which nothing is known, each once.
    pub(super) fn missing(&self, dataset: &Dataset, request: &Request<'_>) -> Vec<Program> {
        let known = self.all(dataset, request);
        let mut seen = BTreeSet::new();
        let unknown = request.programs.iter().zip(known).filter(|(_, known)| known.is_none());
        let unknown = unknown.map(|(program, _)| program);
        unknown.filter(|program| seen.insert(token_ids(program))).cloned().collect()
    }
}

fn key(dataset: &Dataset, case: &DatasetCase) -> Option<(String, Task, Target)> {
    Some((dataset.matrix(case)?.recipe.clone(), case.task, case.target))
}

impl RecordedOutcomes {
    /// Answers with what is known.
    #[must_use]
    pub fn new(known: Known) -> Self {
        let fingerprint = known.fingerprint();
        Self { known, fingerprint }
    }
}

impl Outcomes for RecordedOutcomes {
    type Error = MatrixError;

    /// Of programs that were not recorded only those are judged that do not fit the matrix, since
    /// that shows without a GPU.
    fn judge(
        &mut self,
        cases: &Cases<'_>,
        requests: &[Request<'_>],
    ) -> Result<Judgements, MatrixError> {
        let dataset = cases.dataset();
        let mut all = Vec::with_capacity(requests.len());
        for request in requests {
            let mut found = self.known.all(dataset, request);
            for program in self.known.missing(dataset, request) {
                // What a mask offers does fit.
                let mask = Mask::legal(cases.stats(request.case)?, request.case.task);
                if is_offered(mask, &program) {
                    continue;
                }
                let subject = cases.subject(request.case)?;
                let packed = with_subject!(subject, subject => {
                    pack(subject.matrix.view(), &program).map(drop)
                });
                if packed.is_err() {
                    let unfit = Judgement::NOT_COMPILED;
                    self.known.add(dataset, request.case, &program, unfit);
                    let same = request.programs.iter().zip(&mut found);
                    same.filter(|(other, _)| **other == program)
                        .for_each(|(_, found)| *found = Some(unfit));
                }
            }
            all.push(found);
        }
        Ok(all)
    }

    fn keep(&mut self) -> Result<(), MatrixError> {
        Ok(())
    }

    fn target(&self) -> Option<Target> {
        None
    }

    fn description(&self) -> String {
        format!("recordings {:016x}", self.fingerprint)
    }
}
