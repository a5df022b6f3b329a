//! `results.json`: everything that a benchmark measured, and what follows from it.
//!
//! The file is written anew after every case, under another name that is then changed, so that it
//! is whole at every moment. Times are seconds; every sample is kept.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Deserializer, Serialize};
use sparserl_core::matrix::{CsrView, Fingerprint, MatrixIdentity};
use sparserl_core::results::{CandidateResult, Chosen, Opponents, ValueSource};
use sparserl_core::structure::{Moments, RowLengths};
use sparserl_core::task::Task;
use sparserl_gpu::run::device::{Clocks, DeviceFacts};
use sparserl_gpu::store::fingerprint::identity;
use sparserl_onnx_models::OpenedPolicy;

use super::plausible;
use crate::software::Software;
use crate::whole_file;

/// Name of the file in the output folder.
pub(crate) const RESULTS: &str = "results.json";
/// What the file is; the number changes with the meaning of its fields.
const FORMAT: &str = "sparserl bench 2";
/// What a file that gzip compressed begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// All of a benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BenchResults {
    pub(crate) format: String,
    /// When the first run began: UTC, RFC 3339.
    pub(crate) started: String,
    /// When the last case was added: UTC, RFC 3339.
    pub(crate) updated: String,
    #[serde(rename = "software")]
    pub(crate) generator: Generator,
    pub(crate) host: Host,
    pub(crate) devices: Vec<DeviceFacts>,
    /// Of all runs: what any of them was asked for. Budget and source of values are those of the
    /// last; each case has its own.
    pub(crate) settings: Settings,
    /// In the order of measurement.
    pub(crate) cases: Vec<Case>,
    /// What could not be measured in the last run.
    pub(crate) skipped: Vec<Skipped>,
}

/// What made the programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generator {
    #[serde(flatten)]
    pub(crate) software: Software,
    pub(crate) policy: String,
    #[serde(deserialize_with = "version")]
    pub(crate) policy_version: String,
}

/// A version of a policy; earlier results have numbers.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Version {
        Number(u32),
        Text(String),
    }
    Ok(match Version::deserialize(deserializer)? {
        Version::Number(number) => number.to_string(),
        Version::Text(text) => text,
    })
}

impl Generator {
    /// This program with a policy.
    pub(crate) fn with(policy: &OpenedPolicy) -> Self {
        Self {
            software: Software::this(),
            policy: policy.chooser().name().to_owned(),
            policy_version: policy.version().to_owned(),
        }
    }
}

/// Where matrices were packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Threads that packing could use.
    pub(crate) threads: usize,
}

impl Host {
    pub(crate) fn this() -> Self {
        Self { threads: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Families as given, files and folders without those that they lie in.
    pub(crate) matrices: Vec<String>,
    pub(crate) tasks: Vec<Task>,
    /// Candidates for each case, at most.
    pub(crate) budget: usize,
    /// Where the values of the matrices come from.
    pub(crate) values: ValueSource,
}

impl Settings {
    /// These and what a later run is asked for.
    fn and(self, later: &Self) -> Self {
        let Self { mut matrices, mut tasks, .. } = self;
        add_new(&mut matrices, &later.matrices);
        add_new(&mut tasks, &later.tasks);
        Self { matrices, tasks, budget: later.budget, values: later.values }
    }
}

fn add_new<T: Clone + PartialEq>(known: &mut Vec<T>, others: &[T]) {
    for other in others {
        if !known.contains(other) {
            known.push(other.clone());
        }
    }
}

/// A matrix and a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) matrix: MatrixFacts,
    pub(crate) task: Task,
    /// Where the values that were multiplied come from.
    pub(crate) values: ValueSource,
    /// Candidates asked for.
    pub(crate) budget: usize,
    /// To find the candidates, and for the first task in a precision to look at the matrix, of
    /// which later ones know what it asked.
    pub(crate) search_seconds: f64,
    /// Best predicted first.
    pub(crate) candidates: Vec<CandidateResult<PredictedProgram>>,
    /// Measured in turn with the candidates.
    #[serde(flatten)]
    pub(crate) opponents: Opponents,
    /// Of the GPU, read after the last sample.
    pub(crate) clocks: Option<Clocks>,
    /// The fastest right candidate; absent where none is right.
    pub(crate) chosen: Option<Chosen>,
}

/// What a matrix is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MatrixFacts {
    #[serde(flatten, with = "Named")]
    pub(crate) identity: MatrixIdentity,
    /// Whether every entry of the file is 1, as where it lists a pattern only.
    pub(crate) pattern_only: bool,
    /// Mean entries of a row; 0 without rows.
    pub(crate) row_mean: f64,
    /// Standard deviation of the row lengths over their mean; 0 without entries.
    pub(crate) row_variation: f64,
    pub(crate) longest_row: usize,
}

/// An identity as this file has it: families have a name, but no file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "MatrixIdentity")]
struct Named {
    name: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    #[serde(rename = "blake3")]
    fingerprint: Fingerprint,
}

impl MatrixFacts {
    pub(crate) fn new(name: String, matrix: CsrView<'_, f64>) -> Self {
        let lengths = RowLengths::of(matrix);
        let Moments { mean, deviation, .. } = lengths.moments();
        Self {
            identity: identity(name, matrix),
            pattern_only: matrix.values().iter().all(|&value| value == 1.0),
            row_mean: mean,
            row_variation: if matrix.nnz() == 0 { 0.0 } else { deviation / mean },
            longest_row: lengths.longest() as usize,
        }
    }
}

/// A program, and what was expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PredictedProgram {
    /// In its text form.
    pub(crate) program: String,
    /// On the target, as the cost model has it.
    pub(crate) predicted_seconds: f64,
    /// Of the matrix arrays that one product reads, as the cost model has it.
    pub(crate) predicted_bytes: u64,
}

/// A matrix or a case that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Skipped {
    pub(crate) matrix: String,
    /// Absent where the matrix itself is at fault.
    pub(crate) task: Option<Task>,
    /// In one line.
    pub(crate) reason: String,
}

impl BenchResults {
    /// Nothing measured yet.
    pub(crate) fn new(generator: Generator, devices: Vec<DeviceFacts>, settings: Settings) -> Self {
        Self {
            format: FORMAT.to_owned(),
            started: now(),
            updated: now(),
            generator,
            host: Host::this(),
            devices,
            settings,
            cases: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Reads a file that a benchmark wrote.
    ///
    /// # Errors
    /// When it cannot be read, is no such file, compressed by gzip or not, or is of another
    /// version.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Marked {
            format: String,
        }
        let shown = path.display();
        let mut text =
            whole_file::read(path).with_context(|| format!("{shown}: cannot read the file"))?;
        if text.starts_with(&GZIP) {
            let compressed = std::mem::take(&mut text);
            let plain = MultiGzDecoder::new(compressed.as_slice());
            let read = plain.take(whole_file::MOST_BYTES + 1).read_to_end(&mut text);
            read.with_context(|| format!("{shown}: cannot decompress"))?;
            if text.len() as u64 > whole_file::MOST_BYTES {
                bail!("{shown}: decompresses to more than any results have");
            }
        }
        let Ok(Marked { format }) = serde_json::from_slice(&text) else {
            bail!("{shown}: expected the {RESULTS} of a bench run");
        };
        if format != FORMAT {
            bail!("{shown}: is `{format}`, expected `{FORMAT}`");
        }
        plausible::check(&text)
            .and_then(|()| serde_json::from_slice(&text))
            .with_context(|| format!("{shown}: damaged"))
    }

    /// The document, with a line break at its end.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// The case that was measured for a matrix and a task as `settings` say.
    pub(crate) fn find(
        &self,
        matrix: &MatrixFacts,
        task: Task,
        settings: &Settings,
    ) -> Option<&Case> {
        let &Settings { budget, values, .. } = settings;
        let same = |case: &&Case| {
            case.matrix.identity.fingerprint == matrix.identity.fingerprint
                && (case.task, case.budget, case.values) == (task, budget, values)
        };
        self.cases.iter().find(same)
    }

    /// Adds a case, in the place of one for the same matrix, task and source of values.
    fn add(&mut self, case: Case) {
        let key = |case: &Case| (case.matrix.identity.fingerprint, case.task, case.values);
        let same = |c: &Case| key(c) == key(&case);
        self.cases.retain(|c| !same(c));
        self.cases.push(case);
    }
}

/// Results in the making, and the file that holds them.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    results: BenchResults,
    /// What this run is to measure; the results may be of more.
    asked: Settings,
}

impl Store {
    /// Begins results in a folder, or goes on with those that are there.
    ///
    /// # Errors
    /// When the folder holds results that must not be replaced or cannot be continued.
    pub(crate) fn open(folder: &Path, fresh: BenchResults, resume: bool) -> anyhow::Result<Self> {
        let path = folder.join(RESULTS);
        let asked = fresh.settings.clone();
        if !resume {
            check_free(folder)?;
        }
        if !resume || !path.exists() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
            let store = Self { path, results: fresh, asked };
            store.write()?;
            return Ok(store);
        }
        let mut results = BenchResults::read(&path)?;
        let differs = |what, was: &str, is: &str| {
            anyhow::anyhow!(
                "{}: measured with another {what} ({was}; now {is}); choose another folder with \
                 --output",
                path.display()
            )
        };
        if results.generator != fresh.generator {
            let text = |generator: &Generator| {
                let Generator { software, policy, policy_version } = generator;
                let Software { version, grammar_hash, .. } = software;
                format!("SparseRL {version}, grammar {grammar_hash}, {policy} {policy_version}")
            };
            let (was, is) = (text(&results.generator), text(&fresh.generator));
            return Err(differs("version or policy", &was, &is));
        }
        if results.devices != fresh.devices {
            let text = |devices: &[DeviceFacts]| {
                let names: Vec<_> = devices
                    .iter()
                    .map(|d| format!("{}, driver {}.{}", d.name, d.driver.0, d.driver.1))
                    .collect();
                names.join(" and ")
            };
            return Err(differs("GPU", &text(&results.devices), &text(&fresh.devices)));
        }
        results.settings = results.settings.and(&asked);
        results.host = fresh.host;
        results.skipped.clear();
        Ok(Self { path, results, asked })
    }

    /// What this run is to measure.
    pub(crate) fn asked(&self) -> &Settings {
        &self.asked
    }

    pub(crate) fn results(&self) -> &BenchResults {
        &self.results
    }

    pub(crate) fn into_results(self) -> BenchResults {
        self.results
    }

    /// Adds a case and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add(&mut self, case: Case) -> anyhow::Result<()> {
        self.results.add(case);
        self.results.updated = now();
        self.write()
    }

    /// Notes what could not be measured and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn skip(&mut self, skipped: Skipped) -> anyhow::Result<()> {
        self.results.skipped.push(skipped);
        self.write()
    }

    fn write(&self) -> anyhow::Result<()> {
        whole_file::write(&self.path, self.results.json()?.as_bytes())
    }
}

/// Refuses a folder with results that would be lost.
///
/// # Errors
/// When there are any.
pub(crate) fn check_free(folder: &Path) -> anyhow::Result<()> {
    if folder.join(RESULTS).exists() {
        bail!(
            "{}: holds the {RESULTS} of an earlier run; continue it with --resume or choose another \
             folder with --output",
            folder.display()
        );
    }
    Ok(())
}

fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
