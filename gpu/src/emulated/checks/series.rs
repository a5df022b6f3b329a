//! The launches of a kernel, one after the other, and what becomes of the kernel by each.

use std::mem;
use std::time::Duration;

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Verification};
use sparserl_core::reference::{self, Comparison, Reference};
use sparserl_emulator::counters::Counters;
use sparserl_emulator::finding::{Finding, FindingKind};
use sparserl_emulator::launch::{Options, Report};

use super::strange::first_spread;
use super::{Kept, Launched, Operands, Trial, in_words, inexact, is_past};
use crate::candidate::executable::Parameter;
use crate::emulated::{EmulatorError, Judgement, verdict};
use crate::judge::{Check, Factor, Placement};

/// What inputs begin with. The same kernel is judged the same in every run.
const FIRST_INPUT: u64 = 0x5EED;

/// Launches of a kernel, each with what those before it have left, as long as they are right.
pub(super) struct Series<'t, A, D> {
    trial: &'t Trial<'t, A, D>,
    /// How long all of it may take, for the message that it took longer.
    deadline: Option<Duration>,
    random: fastrand::Rng,
    /// The dense input of the launch before.
    input: Vec<D>,
    /// The result of the launch before.
    output: Vec<D>,
    kept: Kept,
    /// Whether there was a launch since the kernel was loaded.
    was_launched: bool,
    /// Those of the first launch.
    counters: Option<Counters>,
    verified: Verification,
    remark: Option<String>,
}

/// A launch as it was made, which is repeated where it goes wrong.
struct Attempt<'o, D: Scalar> {
    check: Check,
    operands: Operands<D>,
    /// What launches before it had left, of kernels from anywhere.
    before: Kept,
    how: &'o Options,
}

/// A launch's result beside the reference.
struct Compared {
    reference: Reference,
    comparison: Comparison,
    /// The first wrong element, where all that is wrong is that NaN or infinity has spread.
    spread: Option<usize>,
}

impl<'t, A: Scalar, D: Scalar> Series<'t, A, D> {
    pub(super) fn new(trial: &'t Trial<'t, A, D>, deadline: Option<Duration>) -> Self {
        Self {
            trial,
            deadline,
            random: fastrand::Rng::with_seed(FIRST_INPUT),
            input: Vec::new(),
            output: Vec::new(),
            kept: Kept::default(),
            was_launched: false,
            counters: None,
            verified: Verification { checks: 0, worst_ratio: 0.0 },
            remark: None,
        }
    }

    /// Loads the kernel anew: what launches have left in its variables and workspace is gone.
    pub(super) fn load(&mut self) {
        self.kept = Kept::fresh(self.trial.prepared);
        self.was_launched = false;
    }

    /// Launches the kernel as a check says. Gives a judgement where something is wrong.
    pub(super) fn run(
        &mut self,
        check: Check,
        how: &Options,
    ) -> Result<Option<Judgement>, EmulatorError> {
        let trial = self.trial;
        let (input, output) = (mem::take(&mut self.input), mem::take(&mut self.output));
        let mut operands = trial.operands(check, input, output, &mut self.random);
        let poisoned = trial.poison(&mut operands);
        let kept = mem::take(&mut self.kept);
        let before = if trial.is_foreign() { kept.copied() } else { Kept::default() };
        let mut launched = match trial.launch(&operands, kept, how) {
            Ok(launched) => launched,
            Err(refusal) => {
                let outcome = Outcome::LaunchFailed { reason: refusal.to_string() };
                return Ok(Some(self.judgement(outcome, Vec::new())));
            }
        };
        let mut attempt = Attempt { check, operands, before, how };
        self.counters.get_or_insert(launched.report.counters);
        if trial.is_foreign() {
            verdict::forgive_wraps(&mut launched.report);
        }
        self.refuse_given_up(&mut launched.report, how)?;
        if let Some(outcome) = verdict::of_findings(&launched.report.findings) {
            return self.faulty(attempt, launched.report, outcome).map(Some);
        }
        let compared = self.compare(&mut attempt.operands, &mut launched.output, &poisoned)?;
        if let Some(element) = compared.spread {
            self.remark.get_or_insert_with(|| trial.spreads(element / trial.width));
            // For those who go on from it.
            let right = compared.reference.values.iter().map(|&value| D::from_f64(value));
            launched.output = right.collect();
        } else if !compared.comparison.passed() {
            return self.inexact(attempt, launched, &compared).map(Some);
        }
        if let Some(outcome) = trial.left_counting(&launched.kept.workspace) {
            let remarks = launched.report.remarks;
            let outcome = verdict::with_remarks(outcome, &remarks);
            return Ok(Some(self.judgement(outcome, remarks)));
        }
        self.was_launched = true;
        self.kept = launched.kept;
        (self.input, self.output) = (attempt.operands.input, launched.output);
        if compared.spread.is_none() {
            self.verified.checks += 1;
            let worst = self.verified.worst_ratio.max(compared.comparison.worst_ratio);
            self.verified.worst_ratio = worst;
        }
        Ok(None)
    }

    /// What is said of the kernel where nothing was wrong.
    pub(super) fn verified(mut self) -> Judgement {
        let remark = self.remark.take();
        Judgement { remark, ..self.judgement(Outcome::Verified(self.verified), Vec::new()) }
    }

    fn judgement(&self, outcome: Outcome, findings: Vec<Finding>) -> Judgement {
        Judgement {
            outcome,
            findings,
            counters: self.counters,
            ptx_instructions: Some(self.trial.kernel.code.len()),
            remark: None,
        }
    }

    /// Fails where the emulator gave the launch up and nothing is known of the kernel by that.
    fn refuse_given_up(&self, report: &mut Report, how: &Options) -> Result<(), EmulatorError> {
        let (budget, implied) = (how.budget, self.trial.implied_instructions());
        let Some(limit) = verdict::given_up(report, budget >= implied) else { return Ok(()) };
        Err(match (limit.kind, self.deadline) {
            (FindingKind::OverBudget, _) => EmulatorError::Budget { budget, implied },
            (_, Some(deadline)) if is_past(how.until) => EmulatorError::OutOfTime { deadline },
            _ => EmulatorError::GivenUp { why: limit.detail },
        })
    }

    /// What is said of a kernel whose launch has findings, which make that outcome.
    fn faulty(
        &self,
        attempt: Attempt<'_, D>,
        report: Report,
        outcome: Outcome,
    ) -> Result<Judgement, EmulatorError> {
        let relies = self.relies_on_state(&attempt)?;
        let Attempt { check, operands, before, how } = attempt;
        let outcome = match (relies, check.operands) {
            (true, _) => verdict::after_others(outcome),
            (false, Placement::Displaced) => verdict::displaced(outcome),
            (false, Placement::Here | Placement::There) => outcome,
        };
        let Report { mut findings, remarks, .. } = report;
        self.trial.tell_more(&mut findings, &operands, &before, (how, self.longest_warp()));
        if relies && let Some(failed) = self.trial.traced(&operands, before, how) {
            findings.extend(self.trial.state_findings(&failed, &operands, how));
        }
        findings.extend(remarks);
        Ok(self.judgement(outcome, findings))
    }

    /// Compares a result with the reference. What was put into `poisoned` rows of the input is
    /// taken out of both.
    fn compare(
        &self,
        operands: &mut Operands<D>,
        output: &mut [D],
        poisoned: &[bool],
    ) -> Result<Compared, EmulatorError> {
        let is_strange = operands.is_strange();
        if is_strange {
            self.trial.forgive(&mut operands.input, output, poisoned);
        }
        let reference = self.trial.reference(operands)?;
        let comparison = reference::compare(&reference, output);
        if comparison.unbounded > 0 {
            let elements = comparison.unbounded;
            return Err(EmulatorError::Range { elements, dtype: D::DTYPE });
        }
        let spread = first_spread(&reference, output, self.trial.is_foreign() && is_strange);
        Ok(Compared { reference, comparison, spread })
    }

    /// What is said of a kernel whose result is off.
    fn inexact(
        &self,
        attempt: Attempt<'_, D>,
        launched: Launched<D>,
        &Compared { ref reference, comparison, .. }: &Compared,
    ) -> Result<Judgement, EmulatorError> {
        let trial = self.trial;
        let relies = self.relies_on_state(&attempt)?;
        let Attempt { check, operands, before, how } = attempt;
        let adds_nothing = check.beta != Factor::Zero && !trial.takes(Parameter::Beta);
        let on = if adds_nothing { "on another input" } else { check.name };
        let factors = in_words(trial.prepared, [operands.alpha, operands.beta]);
        let results = (reference, launched.output.as_slice());
        let outcome = inexact(on, &factors, (trial.width, |row| row), results, comparison);
        let mut findings = Vec::new();
        if !operands.is_strange() {
            let of = (relies, self.longest_warp(), reference);
            findings = trial.diagnose(&operands, before, how, of);
        }
        let remarks = launched.report.remarks;
        let outcome = match relies {
            true => verdict::after_others(outcome),
            false => verdict::with_remarks(outcome, &remarks),
        };
        findings.extend(remarks);
        Ok(self.judgement(outcome, findings))
    }

    /// Whether a launch goes wrong only because of what launches before it have left.
    fn relies_on_state(
        &self,
        Attempt { operands, how, .. }: &Attempt<'_, D>,
    ) -> Result<bool, EmulatorError> {
        // Samples have no NaN where nothing is held: such a launch cannot be repeated.
        let may_rely = self.was_launched && !operands.is_strange();
        Ok(may_rely && self.trial.is_right_first(operands, how)?)
    }

    /// Instructions of the longest warp of the first launch.
    fn longest_warp(&self) -> u64 {
        self.counters.map_or(0, |counters| counters.longest_warp)
    }
}
