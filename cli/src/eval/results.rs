//! The results of `eval`: everything that was measured, as it is kept in a file.
//!
//! The file is written anew after every matrix. Times are seconds; every sample is kept.

use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sparserl_core::matrix::MatrixIdentity;
use sparserl_core::outcome::Outcome;
use sparserl_core::results::{CandidateResult, Opponents};
use sparserl_core::target::Architecture;
use sparserl_core::task::Task;
use sparserl_gpu::compile::nvrtc::Version;
use sparserl_gpu::emulated::EmulationOptions;
use sparserl_gpu::emulated::ground::Extent;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::worker::Protocol;

use super::candidates::Candidate;
use crate::args::EvalArgs;
use crate::kernel_file::Kind;
use crate::software::Software;
use crate::whole_file;

/// What the file is; the number changes with the meaning of its fields.
const FORMAT: &str = "sparserl eval 2";

/// All of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EvalResults {
    format: String,
    #[serde(flatten)]
    pub(crate) settings: Settings,
    #[serde(flatten)]
    instrument: JudgedOn,
    /// In the order of measurement.
    pub(crate) matrices: Vec<MatrixResult>,
}

/// What candidates are judged on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JudgedOn {
    /// A GPU.
    Device(DeviceFacts),
    /// The CPU.
    Emulator(Emulator),
}

/// What PTX is made for, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Emulator {
    pub(crate) architecture: Architecture,
    pub(crate) nvrtc: Version,
}

/// What results must share to be comparable, besides the instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    software: Software,
    pub(crate) task: Task,
    #[serde(flatten)]
    method: Method,
}

/// How thoroughly candidates are judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// On a GPU.
    Protocol(Protocol),
    /// Emulated.
    Emulation {
        /// Orders in which threads take turns.
        seeds: u32,
        /// Launches in each.
        checks: u32,
        /// Entries of the rows that programs are emulated on, at most; absent for all.
        programs: Option<usize>,
        /// Likewise of CUDA.
        cuda: Option<usize>,
    },
}

impl Method {
    pub(crate) fn of(args: &EvalArgs) -> Self {
        if !args.emulation.emulate {
            return Self::Protocol(args.judging.protocol());
        }
        let EmulationOptions { seeds, checks, .. } = args.emulation.options();
        let [programs, cuda] = [Kind::Program, Kind::Cuda].map(|kind| args.emulation.sample(kind));
        Self::Emulation { seeds, checks, programs, cuda }
    }

    /// Whether opponents are measured beside the candidates.
    pub(crate) fn has_baselines(&self) -> bool {
        match self {
            Self::Protocol(protocol) => protocol.baselines,
            Self::Emulation { .. } => false,
        }
    }
}

/// What became of the candidates for one matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MatrixResult {
    pub(crate) matrix: MatrixIdentity,
    /// By name.
    pub(crate) candidates: Vec<CandidateResult<JudgedFile>>,
    /// What was measured in turn with candidates: of each round.
    pub(crate) rounds: Vec<Opponents>,
}

/// The file of a candidate, and where it was judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JudgedFile {
    /// Path below the folder of all candidates.
    pub(crate) file: String,
    kind: Kind,
    /// Of source and launch.
    blake3: String,
    /// Which of the rounds it was measured in, from 0; absent where it was not tried.
    pub(crate) round: Option<usize>,
    /// The rows that it was emulated on; absent where it was not emulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) emulated: Option<Extent>,
}

impl JudgedFile {
    /// What became of a candidate in a round.
    pub(crate) fn measured(
        candidate: &Candidate,
        round: usize,
        outcome: Outcome,
    ) -> CandidateResult<Self> {
        let candidate = Self { round: Some(round), ..Self::untried(candidate) };
        CandidateResult { candidate, outcome }
    }

    /// What became of a candidate on these rows.
    pub(crate) fn emulated(
        candidate: &Candidate,
        extent: Extent,
        outcome: Outcome,
    ) -> CandidateResult<Self> {
        let candidate = Self { emulated: Some(extent), ..Self::untried(candidate) };
        CandidateResult { candidate, outcome }
    }

    /// A candidate that is no kernel, and why.
    pub(crate) fn unreadable(candidate: &Candidate, reason: &str) -> CandidateResult<Self> {
        let outcome = Outcome::CompileFailed { reason: reason.to_owned() };
        CandidateResult { candidate: Self::untried(candidate), outcome }
    }

    fn untried(Candidate { file, kind, blake3, .. }: &Candidate) -> Self {
        let (file, blake3) = (file.clone(), blake3.clone());
        Self { file, kind: *kind, blake3, round: None, emulated: None }
    }
}

impl Settings {
    pub(crate) fn new(task: Task, method: Method) -> Self {
        Self { software: Software::this(), task, method }
    }

    /// Whether opponents are measured beside the candidates.
    pub(crate) fn has_baselines(&self) -> bool {
        self.method.has_baselines()
    }

    /// What differs from earlier results, if anything.
    fn difference(&self, earlier: &Self) -> Option<&'static str> {
        match earlier {
            Self { task, .. } if *task != self.task => Some("task"),
            Self { method, .. } if *method != self.method => Some("protocol"),
            Self { software, .. } if *software != self.software => Some("version of this program"),
            _ => None,
        }
    }
}

impl EvalResults {
    pub(crate) fn new(settings: Settings, instrument: JudgedOn) -> Self {
        Self { format: FORMAT.to_owned(), settings, instrument, matrices: Vec::new() }
    }

    /// What emulated the candidates, if they were not measured.
    pub(crate) fn emulator(&self) -> Option<&Emulator> {
        match &self.instrument {
            JudgedOn::Device(_) => None,
            JudgedOn::Emulator(emulator) => Some(emulator),
        }
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
        let text = whole_file::read(path).with_context(at)?;
        let results: Self = serde_json::from_slice(&text)
            .with_context(|| format!("{}: is not a results file of eval", path.display()))?;
        if results.format != FORMAT {
            bail!("{}: is `{}`; expected `{FORMAT}`", path.display(), results.format);
        }
        let is_whole = |matrix: &MatrixResult| {
            let known = |round: usize| round < matrix.rounds.len();
            matrix.candidates.iter().all(|candidate| candidate.candidate.round.is_none_or(known))
        };
        if !results.matrices.iter().all(is_whole) {
            bail!("{}: a candidate names a round that is not there", path.display());
        }
        if let Some(what) = settings.difference(&results.settings) {
            return Err(other(path, what));
        }
        Ok(Some(results))
    }

    /// Refuses to continue on another instrument.
    ///
    /// # Errors
    /// When it is another.
    pub(crate) fn check_instrument(
        &self,
        path: &Path,
        instrument: &JudgedOn,
    ) -> anyhow::Result<()> {
        match instrument {
            same if self.instrument == *same => Ok(()),
            JudgedOn::Device(_) => Err(other(path, "GPU or driver")),
            JudgedOn::Emulator(_) => Err(other(path, "architecture or compiler")),
        }
    }

    /// Whether there are results for this matrix and these candidates.
    pub(crate) fn has(&self, matrix: &MatrixIdentity, candidates: &[Candidate]) -> bool {
        let same = |one: &CandidateResult<JudgedFile>, other: &Candidate| {
            let JudgedFile { file, blake3, .. } = &one.candidate;
            (file, blake3) == (&other.file, &other.blake3)
        };
        self.matrices.iter().filter(|result| result.matrix == *matrix).any(|result| {
            result.candidates.len() == candidates.len()
                && result.candidates.iter().zip(candidates).all(|(one, other)| same(one, other))
        })
    }

    /// Adds a matrix, in place of earlier results for its name.
    pub(crate) fn add(&mut self, result: MatrixResult) {
        self.matrices.retain(|earlier| earlier.matrix.name != result.matrix.name);
        self.matrices.push(result);
    }
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
