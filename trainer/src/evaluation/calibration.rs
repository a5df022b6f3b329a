//! How good predicted speeds are: by how much they are off and where, and whether the members of an
//! ensemble disagree where they are.
//!
//! A residual is the predicted minus the measured log2 of a program's speed relative to the
//! reference program. The mean residual of a case does not change which of its programs is chosen;
//! what is left without it does. Over all programs the mean square is the sum of three parts, as in
//! a one-way analysis of variance:
//!
//! ```text
//! rms² = bias² + between² + within²
//! ```

#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sparserl_core::language::Word;
use sparserl_core::outcome::Regime;
use sparserl_core::results::rank_correlation;
use sparserl_core::task::Task;
use sparserl_onnx_models::speeds::{ENSEMBLE, MemberSpeeds, REGIMES};

pub use written::CalibrationTable;

/// Groups of equally many programs.
const TENTHS: usize = 10;
/// Programs that are predicted at most so many doublings below the fastest of their case, by a
/// sixth of its speed, are near it.
const NEAR: f64 = 0.25;
/// Matrices by nonzeros: names, and the least number that is above.
const SIZES: [(&str, u64); 3] =
    [("nnz < 10^5", 100_000), ("10^5 <= nnz < 10^6", 1_000_000), ("10^6 <= nnz", u64::MAX)];

/// The speeds of a case's programs, as one chooser predicts them and as they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedCase {
    /// Who predicts.
    pub chooser: String,
    /// What was computed.
    pub task: Task,
    /// Nonzeros of the matrix.
    pub nnz: u64,
    /// The programs.
    pub programs: Vec<PredictedProgram>,
}

/// A program, with its speeds in each of [`REGIMES`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedProgram {
    /// The layout of its first part.
    pub layout: Word,
    /// Whether it has other parts.
    pub is_split: bool,
    /// Its speeds.
    pub speeds: [PredictedSpeed; REGIMES.len()],
}

/// log2 of a program's speed relative to the reference program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedSpeed {
    /// The mean of what the members of an ensemble predict.
    pub mean: f32,
    /// The standard deviation over the members; 0 where there is only one.
    pub deviation: f32,
    /// What was measured.
    pub measured: f32,
}

/// How good a chooser's predicted speeds are for one task in one regime.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Who predicts.
    pub chooser: String,
    /// The task, as programs state it.
    pub task: String,
    /// The regime.
    pub regime: Regime,
    /// The errors of all programs.
    pub all: Errors,
    /// Spearman's rank correlation of the members' standard deviation with the size of the residual
    /// within its case; absent where no members disagree.
    pub deviation_and_error: Option<f64>,
    /// The errors of tenths of the programs by the members' standard deviation, the least first;
    /// none where no members disagree.
    pub by_deviation: Vec<Errors>,
    /// The errors of tenths of the programs by how far they are predicted below their case's
    /// fastest, the nearest first.
    pub by_speed: Vec<Errors>,
    /// The errors by layout of the first part, programs of several parts apart.
    pub by_layout: Vec<Errors>,
    /// The errors of programs that are predicted near the fastest of their case, among which it
    /// is chosen.
    pub near_fastest: Vec<Errors>,
    /// The errors by nonzeros of the matrix.
    pub by_size: Vec<Errors>,
}

/// The errors of the predicted speeds of some programs, in doublings of speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Which programs.
    pub of: String,
    /// How many.
    pub programs: usize,
    /// Cases that have some of them.
    pub cases: usize,
    /// Root mean square of the residuals.
    pub rms: f64,
    /// Mean of the residuals: above 0, programs are slower than predicted.
    pub bias: f64,
    /// Standard deviation, over the programs, of the mean residual of their case.
    pub between: f64,
    /// Root mean square of the residuals within their cases: without the mean of all of a case's.
    pub within: f64,
    /// Mean of the residuals within their cases: above 0, these programs are predicted too fast
    /// beside others.
    pub within_bias: f64,
    /// Root mean square of the members' standard deviations. Members that erred independently of
    /// each other, and of nothing else, would have it as large as `rms`.
    pub deviation: f64,
    /// Mean of how far they are predicted below the program of their case that is predicted
    /// fastest.
    pub below_predicted: f64,
    /// Mean of how far they were measured below the fastest of their case.
    pub below_measured: f64,
}

/// A program in one regime, beside the others of its case.
struct Entry {
    case: usize,
    group: (Word, bool),
    nnz: u64,
    residual: f64,
    /// The mean residual of its case.
    of_case: f64,
    deviation: f64,
    below_predicted: f64,
    below_measured: f64,
}

impl PredictedSpeed {
    /// What an ensemble predicts for a place in [`REGIMES`].
    #[must_use]
    pub fn of_members(members: &MemberSpeeds, place: usize, measured: f32) -> Self {
        // In double precision, in which the mean of equal ones is the same to the last bit.
        let speeds = members.map(|member| member.get(place).map_or(f64::NAN, |&x| f64::from(x)));
        let mean = speeds.iter().sum::<f64>() / ENSEMBLE as f64;
        let variance = speeds.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        let deviation = (variance / ENSEMBLE as f64).sqrt();
        Self { mean: mean as f32, deviation: deviation as f32, measured }
    }
}

impl Calibration {
    /// How good predicted speeds are, for each chooser, task and regime, in the order of the cases.
    #[must_use]
    pub fn all<'c>(cases: impl IntoIterator<Item = &'c PredictedCase>) -> Vec<Self> {
        let mut groups: Vec<Vec<&PredictedCase>> = Vec::new();
        for case in cases {
            let is_same = |group: &&mut Vec<&PredictedCase>| {
                group.first().is_some_and(|f| (&f.chooser, f.task) == (&case.chooser, case.task))
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.push(case),
                None => groups.push(vec![case]),
            }
        }
        let mut tasks: Vec<Task> = Vec::new();
        for task in groups.iter().filter_map(|group| group.first()).map(|first| first.task) {
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        // One task after the other, and of a task one regime after the other, as tables have them.
        let mut all = Vec::new();
        for task in tasks {
            for place in 0..REGIMES.len() {
                let of_task = |group: &&Vec<&PredictedCase>| {
                    group.first().is_some_and(|first| first.task == task)
                };
                let groups = groups.iter().filter(of_task);
                all.extend(groups.filter_map(|group| Self::of(group, place)));
            }
        }
        all
    }

    /// That of one chooser and task, in a regime by its place; absent where there are no programs.
    fn of(cases: &[&PredictedCase], place: usize) -> Option<Self> {
        let first = cases.first()?;
        let entries: Vec<Entry> = cases
            .iter()
            .enumerate()
            .flat_map(|(number, case)| entries(number, case, place))
            .collect();
        let all: Vec<&Entry> = entries.iter().collect();
        let disagrees = all.iter().any(|entry| entry.deviation > 0.0);
        let pairs: Vec<(f64, f64)> =
            all.iter().map(|entry| (entry.deviation, entry.within().abs())).collect();
        let mut above = 0;
        let by_size = SIZES.map(|(name, below)| {
            let least = std::mem::replace(&mut above, below);
            let of_size = |entry: &&Entry| least <= entry.nnz && entry.nnz < below;
            Errors::of(name, &all.iter().copied().filter(of_size).collect::<Vec<_>>())
        });
        Some(Self {
            chooser: first.chooser.clone(),
            task: first.task.to_string(),
            regime: *REGIMES.get(place)?,
            all: Errors::of("all", &all)?,
            deviation_and_error: rank_correlation(&pairs).filter(|_| disagrees),
            by_deviation: match disagrees {
                true => tenths(all.clone(), |entry| entry.deviation),
                false => Vec::new(),
            },
            by_speed: tenths(all.clone(), |entry| entry.below_predicted),
            by_layout: by_layout(all.iter().copied()),
            near_fastest: by_layout(all.into_iter().filter(|entry| entry.below_predicted <= NEAR)),
            by_size: by_size.into_iter().flatten().collect(),
        })
    }
}

/// The programs of a case, which is one of some number, in a regime.
fn entries(number: usize, case: &PredictedCase, place: usize) -> Vec<Entry> {
    let speeds: Vec<(&PredictedProgram, PredictedSpeed)> = case
        .programs
        .iter()
        .filter_map(|program| Some((program, *program.speeds.get(place)?)))
        .filter(|(_, speed)| speed.mean.is_finite() && speed.measured.is_finite())
        .collect();
    let highest = |of: fn(&PredictedSpeed) -> f32| {
        f64::from(speeds.iter().map(|(_, speed)| of(speed)).fold(f32::NEG_INFINITY, f32::max))
    };
    let (predicted, measured) = (highest(|speed| speed.mean), highest(|speed| speed.measured));
    let residual = |speed: &PredictedSpeed| f64::from(speed.mean) - f64::from(speed.measured);
    let of_case = mean(speeds.iter().map(|(_, speed)| residual(speed)));
    let entry = |(program, speed): &(&PredictedProgram, PredictedSpeed)| Entry {
        case: number,
        group: (program.layout, program.is_split),
        nnz: case.nnz,
        residual: residual(speed),
        of_case,
        deviation: f64::from(speed.deviation),
        below_predicted: predicted - f64::from(speed.mean),
        below_measured: measured - f64::from(speed.measured),
    };
    speeds.iter().map(entry).collect()
}

/// The errors of tenths by some number, the least first.
fn tenths(mut entries: Vec<&Entry>, by: fn(&Entry) -> f64) -> Vec<Errors> {
    entries.sort_by(|a, b| by(a).total_cmp(&by(b)));
    let end = |tenth: usize| tenth * entries.len() / TENTHS;
    let of_tenth = |tenth: usize| {
        let part = entries.get(end(tenth)..end(tenth + 1))?;
        Errors::of(&format!("tenth {}", tenth + 1), part)
    };
    (0..TENTHS).filter_map(of_tenth).collect()
}

/// The errors of programs by layout.
fn by_layout<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<Errors> {
    let mut groups: BTreeMap<String, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        let (layout, is_split) = entry.group;
        let name = format!("{}{}", layout.text(), if is_split { ", split" } else { "" });
        groups.entry(name).or_default().push(entry);
    }
    groups.iter().filter_map(|(name, group)| Errors::of(name, group)).collect()
}

impl Entry {
    fn within(&self) -> f64 {
        self.residual - self.of_case
    }
}

impl Errors {
    /// Those of some programs; absent where there are none.
    fn of(name: &str, entries: &[&Entry]) -> Option<Self> {
        if entries.is_empty() {
            return None;
        }
        let mean = |of: &dyn Fn(&Entry) -> f64| mean(entries.iter().map(|entry| of(entry)));
        let of_cases = mean(&|entry| entry.of_case);
        Some(Self {
            of: name.to_owned(),
            programs: entries.len(),
            cases: entries.iter().map(|entry| entry.case).collect::<BTreeSet<_>>().len(),
            rms: mean(&|entry| entry.residual.powi(2)).sqrt(),
            bias: mean(&|entry| entry.residual),
            between: mean(&|entry| (entry.of_case - of_cases).powi(2)).sqrt(),
            within: mean(&|entry| entry.within().powi(2)).sqrt(),
            within_bias: mean(&Entry::within),
            deviation: mean(&|entry| entry.deviation.powi(2)).sqrt(),
            below_predicted: mean(&|entry| entry.below_predicted),
            below_measured: mean(&|entry| entry.below_measured),
        })
    }
}

/// The mean of some numbers; NaN of none.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.fold((0.0, 0_usize), |(sum, n), number| (sum + number, n + 1));
    sum / count as f64
}
