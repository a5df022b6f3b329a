//! The results of `eval`: everything that was measured, as it is kept in a file.
//!
//! The file is written anew after every matrix. Times are seconds; every sample is kept.

use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sparserl_core::outcome::{Baseline, Outcome};
use sparserl_core::plan::MatrixPlan;
use sparserl_core::task::Task;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::worker::Protocol;

use super::candidates::Candidate;
use super::summary::Summary;

use crate::software::Software;
use crate::verify::kernel::Kind;
use crate::whole_file;

/// What the file is; the number changes with the meaning of its fields.
const FORMAT: &str = "sparserl eval 2";

/// All of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    format: String,
    #[serde(flatten)]
    pub(crate) settings: Settings,
    device: DeviceFacts,
    /// In the order of measurement.
    pub(crate) matrices: Vec<MatrixResult>,
}

/// What results must share to be comparable, besides the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    software: Software,
    pub(crate) task: Task,
    pub(crate) protocol: Protocol,
}

/// What became of the candidates for one matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MatrixResult {
    pub(crate) matrix: MatrixPlan,
    /// By name.
    pub(crate) candidates: Vec<CandidateResult>,
    /// What was measured in turn with candidates.
    pub(crate) rounds: Vec<Round>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CandidateResult {
    /// Path below the folder of all candidates.
    pub(crate) file: String,
    kind: Kind,
    /// Of source and launch.
    blake3: String,
    /// Which of the rounds it was measured in, from 0; absent where it was not tried.
    pub(crate) round: Option<usize>,
    pub(crate) outcome: Outcome,
}

impl CandidateResult {
    pub(crate) fn new(candidate: &Candidate, round: Option<usize>, outcome: Outcome) -> Self {
        let Candidate { file, kind, blake3, .. } = candidate;
        Self { file: file.clone(), kind: *kind, blake3: blake3.clone(), round, outcome }
    }
}

/// The library beside the candidates that it was measured in turn with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) baselines: Vec<Baseline>,
    /// Bytes a second, read and written, of a device-to-device copy.
    pub(crate) copy_bandwidth: Option<f64>,
}

impl Settings {
    pub(crate) fn new(task: Task, protocol: Protocol) -> Self {
        Self { software: Software::this(), task, protocol }
    }

    /// What differs from earlier results, if anything.
    fn difference(&self, earlier: &Self) -> Option<&'static str> {
        match earlier {
            Self { task, .. } if *task != self.task => Some("task"),
            Self { protocol, .. } if *protocol != self.protocol => Some("protocol"),
            Self { software, .. } if *software != self.software => Some("version of this program"),
            _ => None,
        }
    }
}

impl Results {
    pub(crate) fn new(settings: Settings, device: DeviceFacts) -> Self {
        Self { format: FORMAT.to_owned(), settings, device, matrices: Vec::new() }
    }

    /// The results in a file to be continued, where there is one.
    ///
    /// # Errors
    /// When the file cannot be read, or is from other settings.
    pub(crate) fn read(path: &Path, settings: &Settings) -> anyhow::Result<Option<Self>> {
        let at = || path.display().to_string();
        if !path.try_exists().with_context(at)? {
            return Ok(None);
        }
        let text = std::fs::read_to_string(path).with_context(at)?;
        let results: Self = serde_json::from_str(&text)
            .with_context(|| format!("{}: is not a results file of eval", path.display()))?;
        if results.format != FORMAT {
            bail!("{}: is `{}`; expected `{FORMAT}`", path.display(), results.format);
        }
        let is_whole = |matrix: &MatrixResult| {
            let known = |round: usize| round < matrix.rounds.len();
            matrix.candidates.iter().all(|candidate| candidate.round.is_none_or(known))
        };
        if !results.matrices.iter().all(is_whole) {
            bail!("{}: a candidate names a round that is not there", path.display());
        }
        if let Some(what) = settings.difference(&results.settings) {
            return Err(other(path, what));
        }
        Ok(Some(results))
    }

    /// Refuses to continue on another device.
    ///
    /// # Errors
    /// When it is another.
    pub(crate) fn check_device(&self, path: &Path, device: &DeviceFacts) -> anyhow::Result<()> {
        if self.device == *device { Ok(()) } else { Err(other(path, "GPU or driver")) }
    }

    /// Whether there are results for this matrix and these candidates.
    pub(crate) fn has(&self, matrix: &MatrixPlan, candidates: &[Candidate]) -> bool {
        let same = |one: &CandidateResult, other: &Candidate| {
            one.file == other.file && one.blake3 == other.blake3
        };
        self.matrices.iter().filter(|result| result.matrix == *matrix).any(|result| {
            result.candidates.len() == candidates.len()
                && result.candidates.iter().zip(candidates).all(|(one, other)| same(one, other))
        })
    }

    /// Adds a matrix, in place of earlier results for its name.
    pub(crate) fn add(&mut self, result: MatrixResult) {
        self.matrices.retain(|earlier| earlier.matrix.file != result.matrix.file);
        self.matrices.push(result);
    }

    /// Writes them into a file, with what follows from them.
    ///
    /// # Errors
    /// When it cannot be written; then what was there is still there.
    pub(crate) fn write(&self, path: &Path, sizes: &[u32]) -> anyhow::Result<()> {
        let document = Document { results: self, summary: Summary::new(self, sizes) };
        let text = serde_json::to_string(&document)? + "\n";
        whole_file::write(path, text.as_bytes())
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    results: &'a Results,
    /// Not read back.
    summary: Summary,
}

/// Refuses a file that would be lost.
///
/// # Errors
/// When it is there.
pub(crate) fn check_free(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        bail!(
            "{}: is there already; continue it with --resume or name another file",
            path.display()
        );
    }
    Ok(())
}

/// Refuses a file that could not be written once all is measured.
///
/// # Errors
/// When its folder is not there.
pub(crate) fn check_folder(path: &Path) -> anyhow::Result<()> {
    if !path.parent().unwrap_or(Path::new("")).join(".").is_dir() {
        bail!("{}: its folder does not exist", path.display());
    }
    Ok(())
}

fn other(path: &Path, what: &str) -> anyhow::Error {
    anyhow::anyhow!("{}: was measured with another {what}; name another file", path.display())
}
