//! `tune.json`: what was searched for, how it went, and what came out.

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::{Outcome, Regime};
use sparserl_core::results::Opponents;
use sparserl_core::target::Target;
use sparserl_core::task::Task;

use crate::software::Software;

/// What `tune.json` is; the number changes with the meaning of its fields.
pub(super) const FORMAT: &str = "sparserl tune 1";

/// What is searched for, and on what: times can be compared within one case only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) matrix: MatrixIdentity,
    pub(super) task: Task,
    /// The GPU's name.
    pub(super) device: String,
    pub(super) target: Target,
    /// The times that decide.
    pub(super) regime: Regime,
}

/// Everything but what was measured, which is in the recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TuneRecord {
    pub(super) format: String,
    pub(super) software: Software,
    #[serde(flatten)]
    pub(super) case: Case,
    /// Of the last run.
    pub(super) seed: u64,
    /// Runs that searched, the present one included.
    pub(super) runs: u32,
    /// Seconds that all runs searched, without the measuring of finalists.
    pub(super) seconds: f64,
    /// Different programs that were measured.
    pub(super) programs: usize,
    /// Those of them that are right.
    pub(super) right: usize,
    /// Measurements in rounds of the search: a program counts once for each round that it took
    /// part in, and finals do not count.
    pub(super) measurements: u64,
    /// Where the best time changed, as the search saw it, and where the last run ended.
    pub(super) curve: Vec<CurvePoint>,
    /// Of the last run that came to its end.
    pub(super) result: Option<TuneResult>,
}

/// How far the search was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CurvePoint {
    pub(super) programs: usize,
    pub(super) seconds: f64,
    /// Of the program that the search found fastest then.
    pub(super) best_seconds: f64,
}

/// What the kernel that was written is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TuneResult {
    /// Folder of its files, beside this file.
    pub(super) kernel: String,
    /// It, measured by a process of its own after it was chosen.
    pub(super) winner: TimedProgram,
    /// What the policy would have had, nothing measured: in turn with the winner.
    pub(super) first_pick: TimedProgram,
    /// In turn with the winner.
    #[serde(flatten)]
    pub(super) opponents: Opponents,
    /// The programs that the winner was chosen from, all in turn, by an earlier process than the
    /// one that measured the winner: who was lucky in it gains nothing by that.
    pub(super) finalists: Vec<TimedProgram>,
}

/// A program and all its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TimedProgram {
    pub(super) program: String,
    pub(super) outcome: Outcome,
}

impl TimedProgram {
    /// Its median; absent where it is not right.
    pub(super) fn seconds(&self, regime: Regime) -> Option<f64> {
        seconds(&self.outcome, regime)
    }
}

/// The median of a right kernel.
pub(super) fn seconds(outcome: &Outcome, regime: Regime) -> Option<f64> {
    outcome.measurement()?.timing.median(regime)
}

impl TuneRecord {
    /// Before anything was measured.
    pub(super) fn new(case: Case, seed: u64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            software: Software::this(),
            case,
            seed,
            runs: 0,
            seconds: 0.0,
            programs: 0,
            right: 0,
            measurements: 0,
            curve: Vec::new(),
            result: None,
        }
    }

    /// What this is of in other words than a case is; `None` where it can be gone on with.
    pub(super) fn difference(&self, case: &Case) -> Option<String> {
        let Case { matrix, task, device, target, regime } = &self.case;
        let (own, asked) = (&self.software, Software::this());
        if matrix.fingerprint != case.matrix.fingerprint {
            Some(format!("another matrix, {}", matrix.name))
        } else if *task != case.task {
            Some(format!("`{task}`, not `{}`", case.task))
        } else if (device, target) != (&case.device, &case.target) {
            Some(format!("{device}, not {}", case.device))
        } else if *regime != case.regime {
            Some(format!("{} times, not {}", regime.name(), case.regime.name()))
        } else if own.grammar_hash != asked.grammar_hash {
            Some(format!("the kernel language of version {}", own.version))
        } else {
            None
        }
    }
}
