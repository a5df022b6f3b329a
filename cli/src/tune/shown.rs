//! What `tune` shows: how far it is, and what came out.

use std::fmt;
use std::time::Duration;

use humantime::format_duration;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Stage;
use super::record::{TuneRecord, TuneResult};
use super::rounds::Standing;
use crate::summary::Summary;
use crate::text::{time, times};

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// One line on standard error that goes away at the end. Where that is no terminal, nothing is
/// shown.
pub(super) struct SearchLine {
    bar: ProgressBar,
    budget: Duration,
}

impl SearchLine {
    pub(super) fn new(budget: Duration, shown: bool) -> Self {
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(budget.as_secs().max(1)), target);
        // The template is constant; the default style would do as well.
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:20}] {msg}") {
            bar.set_style(style);
        }
        bar.set_message("looking for programs");
        bar.enable_steady_tick(TICK);
        Self { bar, budget }
    }

    /// Shows how far a run is.
    pub(super) fn show(&self, stage: &Stage<'_>) {
        match stage {
            Stage::Search(standing, spent) => {
                self.bar.set_position(spent.as_secs());
                let left = HumanDuration(self.budget.saturating_sub(*spent));
                self.bar.set_message(format!("{standing}, {left} left"));
            }
            Stage::Finals => self.bar.set_message("measuring the best once more"),
        }
    }
}

impl Drop for SearchLine {
    /// Takes the line away, whether the work succeeded or not, so that nothing is printed into it.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.programs == 1 { "program" } else { "programs" };
        write!(f, "{} {noun}", HumanCount(self.programs as u64))?;
        let Some(best) = self.best_seconds else { return write!(f, ", none right") };
        write!(f, ", best {}", time(best))?;
        match self.reference_seconds {
            Some(reference) => write!(f, ", {} cuSPARSE", times(reference / best)),
            None => Ok(()),
        }
    }
}

/// One run of `tune`.
pub(crate) struct TuneSummary {
    pub(super) summary: Summary,
    pub(super) record: TuneRecord,
}

impl fmt::Display for TuneSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, record } = self;
        write!(f, "{summary}")?;
        let noun = if record.runs == 1 { "run" } else { "runs" };
        writeln!(
            f,
            "searched   {} programs, {} right, in {} of {} {noun}",
            HumanCount(record.programs as u64),
            HumanCount(record.right as u64),
            // Whole seconds are enough for people.
            format_duration(Duration::from_secs(record.seconds.round() as u64)),
            record.runs,
        )?;
        let Some(TuneResult { winner, first_pick, .. }) = &record.result else { return Ok(()) };
        let regime = record.case.regime;
        let Some(seconds) = winner.seconds(regime) else { return Ok(()) };
        match first_pick.seconds(regime) {
            _ if first_pick.program == winner.program => {
                writeln!(f, "gain       none: the policy's first pick is the fastest")
            }
            Some(first) => writeln!(
                f,
                "gain       {} the policy's first pick ({} {})",
                times(first / seconds),
                time(first),
                regime.name()
            ),
            None => writeln!(f, "gain       the policy's first pick is not right"),
        }
    }
}
