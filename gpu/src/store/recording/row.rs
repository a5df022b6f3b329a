//! Recordings as rows of a table.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use parquet::errors::Result;
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::{
    Baseline, Evaluation, Measurement, NotSamples, Outcome, Samples, Timing, Verification,
    Violation,
};
use sparserl_core::results::ValueSource;
use sparserl_core::target::{ParseArchitectureError, Target};
use sparserl_core::task::{Operation, Task, Values};

use super::column::{self, Cell, Microseconds};
use super::{Context, RecordedLanguage, Recording};
use crate::compile::nvrtc::Version;
use crate::run::device::DeviceFacts;

/// A row type whose fields are the columns of a file, in their order.
macro_rules! table {
    ($(#[$attribute:meta])* $Row:ident { $($(#[$comment:meta])* $field:ident: $Cell:ty,)* }) => {
        $(#[$attribute])*
        pub(super) struct $Row { $($(#[$comment])* $field: $Cell,)* }

        impl $Row {
            /// As Parquet's message type. The number in its name is raised when a column changes
            /// its meaning.
            pub(super) fn schema() -> String {
                let fields = [$(<$Cell as Cell>::field(stringify!($field)),)*];
                format!("message sparserl_recordings_2 {{\n{}}}", fields.concat())
            }

            pub(super) fn write<W: std::io::Write + Send>(
                rows: &[Self],
                group: &mut SerializedRowGroupWriter<'_, W>,
            ) -> Result<()> {
                $(column::write(group, rows.iter().map(|row| &row.$field))?;)*
                Ok(())
            }

            pub(super) fn read(group: &dyn RowGroupReader) -> Result<Vec<Self>> {
                let mut index = 0..;
                let mut next = || index.next().unwrap_or(usize::MAX);
                $(let mut $field = column::read::<$Cell>(group, next())?.into_iter();)*
                let mut row = || Some(Self { $($field: $field.next()?,)* });
                Ok(std::iter::from_fn(&mut row).collect())
            }
        }
    };
}

table! {
    /// A program's outcome, or a baseline of the library.
    #[derive(Clone, Debug, Default)]
    Row {
        /// Random; the same in the rows of one evaluation, which follow each other.
        evaluation: String,
        time: Microseconds,
        matrix: String,
        matrix_name: String,
        rows: u64,
        cols: u64,
        nnz: u64,
        /// Where the values that were multiplied come from: `random` or `file`.
        value_source: String,
        operation: String,
        columns: u32,
        precision: String,
        values: String,
        language_version: u32,
        grammar_hash: String,
        protocol: String,
        device: String,
        architecture: String,
        driver: String,
        multiprocessors: u32,
        memory_bytes: u64,
        l2_bytes: u64,
        shared_memory_bytes: u32,
        registers: u32,
        bandwidth: u64,
        nvrtc: String,
        copy_bandwidth: Option<f64>,
        program: Option<String>,
        outcome: Option<String>,
        violation: Option<String>,
        /// Why an outcome is bad or a baseline did not run.
        reason: Option<String>,
        /// The time that a program had that did not end.
        seconds: Option<f64>,
        checks: Option<u32>,
        worst_ratio: Option<f64>,
        /// Name and version of a baseline's library.
        library: Option<String>,
        algorithm: Option<String>,
        is_default: Option<bool>,
        analysis_seconds: Option<f64>,
        buffer_bytes: Option<u64>,
        cold: Option<Vec<f64>>,
        /// In a chain, the time of what links it taken off.
        warm: Option<Vec<f64>>,
        back_to_back: Option<Vec<f64>>,
    }
}

/// The rows of one evaluation: its programs, then its baselines.
pub(super) fn rows(recording: &Recording) -> Vec<Row> {
    let Recording { time, matrix, task, language, programs, evaluation, context } = recording;
    let device = &context.device;
    let common = Row {
        evaluation: format!("{:016x}", RandomState::new().build_hasher().finish()),
        time: Microseconds(microseconds(*time)),
        matrix: matrix.fingerprint.to_string(),
        matrix_name: matrix.name.clone(),
        rows: matrix.rows as u64,
        cols: matrix.cols as u64,
        nnz: matrix.nnz as u64,
        value_source: context.value_source.name().into(),
        operation: operation_word(task.operation).into(),
        columns: task.operation.columns(),
        precision: task.precision.to_string(),
        values: task.values.name().into(),
        language_version: language.version,
        grammar_hash: format!("{:016x}", language.grammar_hash),
        protocol: context.protocol.clone(),
        device: device.name.clone(),
        architecture: device.target.architecture.to_string(),
        driver: format!("{}.{}", device.driver.0, device.driver.1),
        multiprocessors: device.target.multiprocessors,
        memory_bytes: device.memory_bytes,
        l2_bytes: device.target.l2_bytes,
        shared_memory_bytes: device.target.shared_memory_bytes,
        registers: device.target.registers,
        bandwidth: device.target.bandwidth,
        nvrtc: context.nvrtc.to_string(),
        copy_bandwidth: evaluation.copy_bandwidth,
        ..Row::default()
    };
    let programs = programs.iter().zip(&evaluation.outcomes).map(|(program, outcome)| {
        let row = Row { program: Some(program.clone()), ..common.clone() };
        with_outcome(row, outcome)
    });
    let baselines =
        evaluation.baselines.iter().map(|baseline| with_baseline(common.clone(), baseline));
    programs.chain(baselines).collect()
}

fn with_outcome(row: Row, outcome: &Outcome) -> Row {
    let row = Row { outcome: Some(outcome.word().into()), ..row };
    match outcome {
        Outcome::Measured(Measurement { checks, worst_ratio, timing }) => {
            let row = Row { checks: Some(*checks), worst_ratio: Some(*worst_ratio), ..row };
            with_timing(row, timing)
        }
        Outcome::Verified(Verification { checks, worst_ratio }) => {
            Row { checks: Some(*checks), worst_ratio: Some(*worst_ratio), ..row }
        }
        Outcome::CompileFailed { reason }
        | Outcome::LaunchFailed { reason }
        | Outcome::Faulted { reason } => Row { reason: Some(reason.clone()), ..row },
        Outcome::WrongResult { violation, reason } => Row {
            violation: Some(violation_word(*violation).into()),
            reason: Some(reason.clone()),
            ..row
        },
        Outcome::TimedOut { seconds } => Row { seconds: Some(*seconds), ..row },
    }
}

fn with_baseline(row: Row, baseline: &Baseline) -> Row {
    let row = Row {
        library: Some(baseline.library.clone()),
        algorithm: Some(baseline.algorithm.clone()),
        is_default: Some(baseline.is_default),
        analysis_seconds: Some(baseline.analysis_seconds),
        buffer_bytes: Some(baseline.buffer_bytes),
        ..row
    };
    match &baseline.timing {
        Ok(timing) => with_timing(row, timing),
        Err(reason) => Row { reason: Some(reason.clone()), ..row },
    }
}

fn with_timing(row: Row, timing: &Timing) -> Row {
    let seconds = |samples: &Samples| samples.seconds().to_vec();
    Row {
        cold: timing.cold.as_ref().map(seconds),
        warm: timing.warm.as_ref().map(seconds),
        back_to_back: timing.back_to_back.as_ref().map(seconds),
        ..row
    }
}

/// What [`rows`] made rows of.
pub(super) fn recordings(rows: Vec<Row>) -> Result<Vec<Recording>, RowError> {
    let mut recordings: Vec<Recording> = Vec::new();
    let mut current = None;
    for row in rows {
        if current.as_ref() != Some(&row.evaluation) {
            recordings.push(recording(&row)?);
            current = Some(row.evaluation.clone());
        }
        let Some(Recording { programs, evaluation, .. }) = recordings.last_mut() else { continue };
        if row.algorithm.is_some() {
            evaluation.baselines.push(baseline(row)?);
        } else {
            programs.push(row.program.clone().ok_or(RowError::Missing("program"))?);
            evaluation.outcomes.push(outcome(row)?);
        }
    }
    Ok(recordings)
}

/// What all rows of an evaluation share.
fn recording(row: &Row) -> Result<Recording, RowError> {
    let unreadable = |column, value: &str| RowError::Unreadable {
        column,
        value: value.escape_debug().to_string(),
    };
    let size = |column, size: u64| {
        usize::try_from(size).map_err(|_| unreadable(column, &size.to_string()))
    };
    let version = |column, text: &str| parse_version(text).ok_or_else(|| unreadable(column, text));
    Ok(Recording {
        time: moment(row.time.0).ok_or_else(|| unreadable("time", &row.time.0.to_string()))?,
        matrix: MatrixIdentity {
            name: row.matrix_name.clone(),
            rows: size("rows", row.rows)?,
            cols: size("cols", row.cols)?,
            nnz: size("nnz", row.nnz)?,
            fingerprint: row.matrix.parse().map_err(|_| unreadable("matrix", &row.matrix))?,
        },
        task: Task {
            operation: parse_operation(&row.operation, row.columns)
                .ok_or_else(|| unreadable("operation", &row.operation))?,
            precision: row
                .precision
                .parse()
                .map_err(|_| unreadable("precision", &row.precision))?,
            values: [Values::Fixed, Values::Variable]
                .into_iter()
                .find(|values| values.name() == row.values)
                .ok_or_else(|| unreadable("values", &row.values))?,
        },
        language: RecordedLanguage {
            version: row.language_version,
            grammar_hash: u64::from_str_radix(&row.grammar_hash, 16)
                .map_err(|_| unreadable("grammar_hash", &row.grammar_hash))?,
        },
        programs: Vec::new(),
        evaluation: Evaluation {
            outcomes: Vec::new(),
            baselines: Vec::new(),
            copy_bandwidth: row.copy_bandwidth,
        },
        context: Context {
            device: DeviceFacts {
                name: row.device.clone(),
                driver: version("driver", &row.driver)?,
                memory_bytes: row.memory_bytes,
                target: Target {
                    architecture: row.architecture.parse()?,
                    multiprocessors: row.multiprocessors,
                    l2_bytes: row.l2_bytes,
                    shared_memory_bytes: row.shared_memory_bytes,
                    registers: row.registers,
                    bandwidth: row.bandwidth,
                },
            },
            nvrtc: version("nvrtc", &row.nvrtc).map(|(major, minor)| Version { major, minor })?,
            protocol: row.protocol.clone(),
            value_source: [ValueSource::Random, ValueSource::File]
                .into_iter()
                .find(|source| source.name() == row.value_source)
                .ok_or_else(|| unreadable("value_source", &row.value_source))?,
        },
    })
}

fn outcome(row: Row) -> Result<Outcome, RowError> {
    let reason = row.reason.clone().ok_or(RowError::Missing("reason"));
    Ok(match row.outcome.as_deref().ok_or(RowError::Missing("outcome"))? {
        "measured" => Outcome::Measured(Measurement {
            checks: row.checks.ok_or(RowError::Missing("checks"))?,
            worst_ratio: row.worst_ratio.ok_or(RowError::Missing("worst_ratio"))?,
            timing: timing(row)?,
        }),
        "verified" => Outcome::Verified(Verification {
            checks: row.checks.ok_or(RowError::Missing("checks"))?,
            worst_ratio: row.worst_ratio.ok_or(RowError::Missing("worst_ratio"))?,
        }),
        "compile-failed" => Outcome::CompileFailed { reason: reason? },
        "launch-failed" => Outcome::LaunchFailed { reason: reason? },
        "faulted" => Outcome::Faulted { reason: reason? },
        "wrong-result" => {
            let word = row.violation.ok_or(RowError::Missing("violation"))?;
            let violation = VIOLATIONS.into_iter().find(|v| violation_word(*v) == word);
            let unreadable = || RowError::Unreadable { column: "violation", value: word.clone() };
            Outcome::WrongResult { violation: violation.ok_or_else(unreadable)?, reason: reason? }
        }
        "timed-out" => {
            Outcome::TimedOut { seconds: row.seconds.ok_or(RowError::Missing("seconds"))? }
        }
        word => return Err(RowError::Unreadable { column: "outcome", value: word.into() }),
    })
}

fn baseline(row: Row) -> Result<Baseline, RowError> {
    Ok(Baseline {
        library: row.library.clone().ok_or(RowError::Missing("library"))?,
        algorithm: row.algorithm.clone().ok_or(RowError::Missing("algorithm"))?,
        is_default: row.is_default.ok_or(RowError::Missing("is_default"))?,
        analysis_seconds: row.analysis_seconds.ok_or(RowError::Missing("analysis_seconds"))?,
        buffer_bytes: row.buffer_bytes.ok_or(RowError::Missing("buffer_bytes"))?,
        timing: match row.reason.clone() {
            Some(reason) => Err(reason),
            None => Ok(timing(row)?),
        },
    })
}

fn timing(row: Row) -> Result<Timing, RowError> {
    if [&row.cold, &row.warm, &row.back_to_back].into_iter().all(Option::is_none) {
        return Err(RowError::Missing("warm"));
    }
    let samples = |seconds: Option<Vec<f64>>| seconds.map(Samples::try_from).transpose();
    Ok(Timing {
        cold: samples(row.cold)?,
        warm: samples(row.warm)?,
        back_to_back: samples(row.back_to_back)?,
    })
}

const VIOLATIONS: [Violation; 5] = [
    Violation::Inexact,
    Violation::InputChanged,
    Violation::WroteOutside,
    Violation::KeepsState,
    Violation::TooFast,
];

fn violation_word(violation: Violation) -> &'static str {
    match violation {
        Violation::Inexact => "inexact",
        Violation::InputChanged => "input-changed",
        Violation::WroteOutside => "wrote-outside",
        Violation::KeepsState => "keeps-state",
        Violation::TooFast => "too-fast",
    }
}

fn operation_word(operation: Operation) -> &'static str {
    match operation {
        Operation::SpMV => "spmv",
        Operation::SpMM { .. } => "spmm",
    }
}

fn parse_operation(word: &str, columns: u32) -> Option<Operation> {
    match word {
        "spmv" => Some(Operation::SpMV),
        "spmm" => Some(Operation::SpMM { columns: NonZeroU32::new(columns)? }),
        _ => None,
    }
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Since 1970; times before it or out of range are those limits.
fn microseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(i64::MAX)
}

fn moment(microseconds: i64) -> Option<SystemTime> {
    let since = Duration::from_micros(microseconds.try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Rows that no recorder of this version writes.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error("a row lacks `{0}`")]
    Missing(&'static str),
    #[error("a row has the unknown {column} `{value}`")]
    Unreadable { column: &'static str, value: String },
    #[error(transparent)]
    Samples(#[from] NotSamples),
    #[error(transparent)]
    Architecture(#[from] ParseArchitectureError),
}

#[cfg(test)]
pub(super) mod tests {
    use sparserl_core::language::{LANGUAGE_VERSION, grammar_hash};

    use super::*;
    use sparserl_core::task::Dtype;

    pub(in crate::store::recording) fn recording() -> Recording {
        let timing = Timing { warm: Some(vec![1e-5].try_into().unwrap()), ..Timing::default() };
        let device = DeviceFacts {
            name: "d".into(),
            driver: (13, 0),
            memory_bytes: 1,
            target: Target::H200,
        };
        Recording {
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001),
            matrix: MatrixIdentity {
                name: "m".into(),
                rows: 1,
                cols: 1,
                nnz: 1,
                fingerprint: [7; 32].into(),
            },
            task: Task::new(Operation::SpMV, Dtype::F32),
            language: RecordedLanguage { version: LANGUAGE_VERSION, grammar_hash: grammar_hash() },
            programs: vec!["p".into()],
            evaluation: Evaluation {
                outcomes: vec![Outcome::Measured(Measurement {
                    checks: 1,
                    worst_ratio: 0.5,
                    timing,
                })],
                baselines: Vec::new(),
                copy_bandwidth: None,
            },
            context: Context {
                device,
                nvrtc: Version { major: 12, minor: 9 },
                protocol: "full".into(),
                value_source: ValueSource::File,
            },
        }
    }

    #[test]
    fn a_row_that_says_nothing_is_an_error_that_names_the_column() {
        let row = || rows(&recording()).remove(0);
        for (row, column) in [
            (Row { program: None, ..row() }, "program"),
            (Row { outcome: None, ..row() }, "outcome"),
            (Row { outcome: Some("fine".into()), ..row() }, "outcome"),
            (Row { outcome: Some("faulted".into()), ..row() }, "reason"),
            (Row { checks: None, ..row() }, "checks"),
            (Row { warm: None, ..row() }, "warm"),
            (Row { cold: Some(vec![-1.0]), ..row() }, "samples"),
            (Row { matrix: "12".into(), ..row() }, "matrix"),
            (Row { operation: "spmm".into(), columns: 0, ..row() }, "operation"),
            (Row { precision: "f8".into(), ..row() }, "precision"),
            (Row { values: "some".into(), ..row() }, "values"),
            (Row { driver: "13".into(), ..row() }, "driver"),
            (Row { architecture: "sm_1".into(), ..row() }, "architecture"),
            (Row { time: Microseconds(-1), ..row() }, "time"),
        ] {
            let error = recordings(vec![row]).unwrap_err().to_string();
            assert!(error.contains(column), "{error}");
        }
    }
}
