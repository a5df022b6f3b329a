//! The search itself: what it asks for is measured, recorded, and told to it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use sparserl_core::language::Program;
use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Evaluation, Outcome, Regime};
use sparserl_core::pipeline::Maker;
use sparserl_core::results::ValueSource;
use sparserl_core::search::Search;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_gpu::worker::Protocol;

use super::folder::TuneFolder;
use super::record::{CurvePoint, TuneRecord, seconds};
use crate::instrument::Instrument;
use crate::interrupt;

/// Samples of a screening; each round of a generation takes several times as many as the one
/// before.
const SCREENING_SAMPLES: u32 = 3;
/// What was measured is written after so long: a run that is killed loses no more.
const SAVE_AFTER: Duration = Duration::from_secs(10);

/// Measures programs of one case, and keeps what comes of it.
pub(super) struct Laboratory<'a, T, E> {
    pub(super) maker: Maker<'a, T, CubinCompiler>,
    pub(super) evaluator: &'a mut E,
    pub(super) recorder: Recorder,
    pub(super) folder: &'a TuneFolder,
    pub(super) record: TuneRecord,
}

/// Where the search stands, for whoever shows it.
pub(super) struct Standing {
    /// Different programs that were measured.
    pub(super) programs: usize,
    /// Of the fastest.
    pub(super) best_seconds: Option<f64>,
    /// Of cuSPARSE's default algorithm, when the run began; absent where it did not run.
    pub(super) reference_seconds: Option<f64>,
}

/// How much a search's round looks at its programs.
fn protocol(regime: Regime, effort: u32, baselines: bool) -> Protocol {
    let samples = SCREENING_SAMPLES.saturating_mul(effort);
    let of = |own| if own == regime { samples } else { 0 };
    let screening = Protocol::screening();
    Protocol {
        // At least one is taken anyway.
        warm_samples: of(Regime::Warm).max(1),
        cold_samples: of(Regime::Cold),
        patience: screening.patience.saturating_mul(effort),
        baselines,
        ..screening
    }
}

impl<T: Scalar, E: Instrument> Laboratory<'_, T, E> {
    fn regime(&self) -> Regime {
        self.record.case.regime
    }

    /// Tells a search what earlier runs have measured.
    pub(super) fn recall(&self, search: &mut Search<'_>) -> anyhow::Result<()> {
        let path = self.folder.recordings();
        let full = Protocol::full();
        for recording in &Recordings::read(&path)? {
            if recording.matrix.fingerprint != self.record.case.matrix.fingerprint
                || recording.task != self.record.case.task
            {
                continue;
            }
            let programs = recording.programs.iter().map(|text| Program::parse(text));
            let programs = programs.collect::<Result<Vec<_>, _>>();
            let programs = programs.with_context(|| path.display().to_string())?;
            let outcomes = &recording.evaluation.outcomes;
            if recording.context.protocol == full.name() {
                // Of finalists, which the search goes on without; but what is wrong is wrong.
                refuse_wrong(search, &programs, outcomes);
            } else {
                self.tell(search, &programs, outcomes);
            }
        }
        Ok(())
    }

    /// Goes on with a search until `is_over` says so, or nothing is left to measure; one round is
    /// done in any case where nothing was measured before. The last rounds are on the disk when
    /// they are [saved](Self::save).
    pub(super) fn search(
        &mut self,
        search: &mut Search<'_>,
        mut is_over: impl FnMut() -> bool,
        mut observe: impl FnMut(&Standing),
    ) -> anyhow::Result<()> {
        let (start, before) = (Instant::now(), self.record.seconds);
        let mut saved = Instant::now();
        let mut reference_seconds = None;
        self.record.runs += 1;
        let mut is_first = true;
        while search.measured() == 0 || !is_over() {
            let Some(round) = search.ask() else { break };
            self.evaluator.set_protocol(protocol(self.regime(), round.effort, is_first));
            let evaluation = self.measure(&round.programs)?;
            if is_first {
                reference_seconds = reference(&evaluation, self.regime());
                is_first = false;
            }
            self.tell(search, &round.programs, &evaluation.outcomes);
            self.record.seconds = before + start.elapsed().as_secs_f64();
            self.record.measurements += round.programs.len() as u64;
            let best_seconds = self.note(search, false);
            let programs = search.measured();
            observe(&Standing { programs, best_seconds, reference_seconds });
            if saved.elapsed() >= SAVE_AFTER {
                self.save()?;
                saved = Instant::now();
            }
        }
        self.note(search, true);
        Ok(())
    }

    /// Measures programs, and records what comes of it.
    pub(super) fn measure(&mut self, programs: &[Program]) -> anyhow::Result<Evaluation> {
        let evaluation = self
            .maker
            .judge(programs, &mut *self.evaluator)
            .map_err(|error| anyhow!("the evaluation failed: {error}"))?;
        self.keep(programs, &evaluation)?;
        Ok(evaluation)
    }

    /// Records what was measured; it is on the disk when this run [saves](Self::save).
    pub(super) fn keep(
        &mut self,
        programs: &[Program],
        evaluation: &Evaluation,
    ) -> anyhow::Result<()> {
        let _uninterrupted = interrupt::watch();
        let context = self.evaluator.context(ValueSource::File)?;
        let matrix = &self.record.case.matrix;
        self.recorder.record::<T>(matrix, programs, evaluation, &context)?;
        Ok(())
    }

    /// Writes what was recorded and how far the search is.
    pub(super) fn save(&mut self) -> anyhow::Result<()> {
        {
            let _uninterrupted = interrupt::watch();
            self.recorder.flush()?;
        }
        self.folder.save(&self.record)
    }

    fn tell(&self, search: &mut Search<'_>, programs: &[Program], outcomes: &[Outcome]) {
        let times = outcomes.iter().map(|outcome| seconds(outcome, self.regime()));
        search.tell(programs, &times.collect::<Vec<_>>());
    }

    /// Notes how far a search is, and on the curve where it got further, or in any case; gives its
    /// best time.
    fn note(&mut self, search: &Search<'_>, always: bool) -> Option<f64> {
        let record = &mut self.record;
        (record.programs, record.right) = (search.measured(), search.right());
        let best_seconds = search.best(1).first().map(|(seconds, _)| *seconds)?;
        let point = CurvePoint { programs: record.programs, seconds: record.seconds, best_seconds };
        let last = record.curve.last();
        if last != Some(&point)
            && (always || last.is_none_or(|last| last.best_seconds != best_seconds))
        {
            record.curve.push(point);
        }
        Some(best_seconds)
    }
}

/// Takes back what is not right.
pub(super) fn refuse_wrong(search: &mut Search<'_>, programs: &[Program], outcomes: &[Outcome]) {
    for (program, outcome) in programs.iter().zip(outcomes) {
        if !outcome.is_right() {
            search.refuse(program);
        }
    }
}

/// Seconds of cuSPARSE's default algorithm; nothing where it did not run.
fn reference(evaluation: &Evaluation, regime: Regime) -> Option<f64> {
    let default = evaluation.baselines.iter().find(|baseline| baseline.is_default);
    default.and_then(|baseline| baseline.median(regime))
}
