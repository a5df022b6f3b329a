//! `ppo`: improves a network by what becomes of its programs, on a GPU or as recorded.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::Model;
use sparserl_trainer::corpus::{RealMatrices, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::export::{network_of, was_read_back};
use sparserl_trainer::measured::MeasuredCase;
use sparserl_trainer::network::{Compute, ModelFile, on_device};
use sparserl_trainer::reinforcement::{
    Algorithm, DecodingMode, Improved, Known, MeasuredOutcomes, Outcomes, RecordedOutcomes,
    ReinforcementConfig, ReinforcementError, ReinforcementRun, Report, Tally,
};

use super::measuring::{Deadline, open_gpu};
use super::models::split;
use super::{open_recorder, real_matrices};
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

#[derive(clap::Args)]
pub(crate) struct Ppo {
    /// How to train (TOML): `trainer/configurations/grpo.toml` and `ppo.toml`, or without a GPU
    /// `ppo-recorded.toml`.
    configuration: PathBuf,
    /// The policy to begin with: a network, or the folder of an exported one, as
    /// `onnx-models/models/learned` is, with another algorithm than PPO.
    #[arg(long, value_name = "MODEL")]
    from: PathBuf,
    /// The cases.
    #[arg(short, long, value_name = "FILE")]
    dataset: PathBuf,
    /// Folder of the model, its checkpoint and its log; and of what is measured.
    #[arg(short, long)]
    output: PathBuf,
    /// Folders of recordings that answer instead of a GPU; with --measure-on, so that nothing that
    /// is in them is measured again.
    #[arg(long, value_name = "FOLDER", num_args = 1.., required_unless_present = "measure_on")]
    recordings: Vec<PathBuf>,
    #[command(flatten)]
    outcomes: OutcomeSource,
    /// Begin no iteration after so many minutes; started again, it goes on.
    #[arg(long = "minutes", value_name = "MINUTES")]
    deadline: Option<Deadline>,
    /// What is made of rewards, whatever the configuration says: `ppo`, `grpo`, `rloo` or
    /// `expert-iteration`.
    #[arg(long)]
    algorithm: Option<Algorithm>,
    /// Folder of the real matrices of the dataset, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
    /// What networks are trained on: `cpu` or `cuda`.
    #[arg(long, default_value_t = Compute::Cpu)]
    device: Compute,
}

/// What says what becomes of a program.
#[derive(clap::Args)]
pub(super) struct OutcomeSource {
    /// Number of the GPU to measure on what a policy writes, which nothing else may use meanwhile;
    /// without, what is recorded says what becomes of recorded programs.
    #[arg(long, value_name = "NUMBER")]
    pub(super) measure_on: Option<u32>,
    /// Cases for which kernels are made at the same time, while others are measured.
    #[arg(long, value_name = "CASES", default_value_t = AHEAD, requires = "measure_on")]
    ahead: NonZeroUsize,
}

/// Keeps a GPU at work, with sixteen cores.
const AHEAD: NonZeroUsize = NonZeroUsize::new(12).unwrap();

impl Ppo {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut config = ReinforcementConfig::read(&self.configuration)?;
        config.algorithm = self.algorithm.unwrap_or(config.algorithm);
        self.outcomes.check_decoding(&self.configuration, &config)?;
        let from = self.begin(config.algorithm)?;
        let named = || format!("`{}`", self.from.display());
        let learned_from = split(&from.provenance).with_context(named)?;
        let text = |split: &Split| serde_json::to_string(split).unwrap_or_default();
        anyhow::ensure!(
            learned_from == config.split,
            "`{}` has learned by the split {}, while `{}` says {}: let them agree, so that what \
             comes of it says what it has learned from",
            self.from.display(),
            text(&learned_from),
            self.configuration.display(),
            text(&config.split)
        );
        let dataset = Dataset::read(&self.dataset)?;
        let real = real_matrices(self.real.as_deref())?;
        let given = (&config, &dataset, &from, &real);
        let (recordings, deadline) = (&self.recordings, self.deadline.and_then(Deadline::instant));
        self.outcomes.improve(given, recordings, &self.output, self.device, deadline)?;
        Ok(())
    }

    /// The policy to begin with.
    fn begin(&self, algorithm: Algorithm) -> anyhow::Result<ModelFile> {
        let from = match self.from.is_dir() {
            true => network_of(&Model::read(&self.from)?)?,
            false => ModelFile::read(&self.from)?,
        };
        anyhow::ensure!(
            algorithm != Algorithm::Ppo || !was_read_back(&from),
            "`{}` is of an exported policy, without the speeds within reach by which PPO's critic \
             begins: name the network that was exported, or another `--algorithm`",
            self.from.display()
        );
        Ok(from)
    }
}

impl OutcomeSource {
    /// The GPU of this number, or what is recorded.
    pub(super) fn new(measure_on: Option<u32>) -> Self {
        Self { measure_on, ahead: AHEAD }
    }

    /// Refuses to answer by recordings for programs that a policy writes by itself.
    pub(super) fn check_decoding(
        &self,
        configuration: &Path,
        config: &ReinforcementConfig,
    ) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.measure_on.is_some() || config.decoding == DecodingMode::Measured,
            "`{}`: nearly nothing that a policy will write by itself is in recordings: name a GPU \
             that measures it (`--measure-on 0`), or choose `decoding = \"measured\"`, as \
             `trainer/configurations/ppo-recorded.toml` does",
            configuration.display()
        );
        Ok(())
    }

    /// Whether the GPU is there, before hours are spent on what comes first. One is refused where a
    /// configuration has no `part` that has anything measured.
    pub(super) fn check(
        &self,
        configuration: &Path,
        part: &str,
        has_part: bool,
    ) -> anyhow::Result<()> {
        let Some(number) = self.measure_on else { return Ok(()) };
        anyhow::ensure!(
            has_part,
            "`{}` has no `{part}`, for which alone something would be measured",
            configuration.display()
        );
        open_gpu(number).map(drop)
    }

    /// Improves a policy by what becomes of the programs that it writes, as measured or, without a
    /// GPU, as recorded.
    pub(super) fn improve(
        &self,
        given: (&ReinforcementConfig, &Dataset, &ModelFile, &RealMatrices),
        recordings: &[PathBuf],
        folder: &Path,
        device: Compute,
        deadline: Option<Instant>,
    ) -> anyhow::Result<Improved> {
        let mut recorded = Vec::new();
        for folder in recordings {
            recorded.extend(cases_of(folder)?);
        }
        let Some(number) = self.measure_on else {
            let outcomes = RecordedOutcomes::new(Known::of(&recorded));
            return improve(given, outcomes, folder, device, deadline);
        };
        let (evaluator, context) = open_gpu(number)?;
        let compiler = evaluator.compiler();
        // What an interrupted run has measured is known to the one that goes on.
        let own = folder.join("recordings");
        let recorder = open_recorder(&own)?;
        recorded.extend(cases_of(&own)?);
        let known = Known::of(&recorded);
        let outcomes =
            MeasuredOutcomes::new((evaluator, compiler), (recorder, context), known, self.ahead);
        improve(given, outcomes, folder, device, deadline)
    }
}

/// Improves a policy by what becomes of the programs that it writes, with the progress shown;
/// begins no iteration after the deadline.
pub(super) fn improve<O>(
    (config, dataset, from, real): (&ReinforcementConfig, &Dataset, &ModelFile, &RealMatrices),
    outcomes: O,
    folder: &Path,
    device: Compute,
    deadline: Option<Instant>,
) -> anyhow::Result<Improved>
where
    O: Outcomes,
    ReinforcementError<O::Error>: std::error::Error + Send + Sync + 'static,
{
    let interruption = Interruption::watch()?;
    let display = ProgressDisplay::new();
    let run = ReinforcementRun {
        config,
        dataset,
        real,
        outcomes,
        from,
        folder,
        go_on: || {
            !interruption.was_asked_for()
                && deadline.is_none_or(|deadline| Instant::now() < deadline)
        },
        observe: |report: &Report| {
            let Tally { reward, best, .. } = report.written;
            let message = format!("reward {reward:.3}, best {best:.3}");
            display.show(report.step, config.iterations, message);
        },
    };
    let improved = on_device(device, run);
    drop(display);
    let improved = improved??;
    let Improved { step, complete, last, validation, path } = &improved;
    let (algorithm, path) = (config.algorithm, path.display());
    match complete {
        true => say(&format!("{algorithm}: {step} iterations, `{path}`")),
        false => say(&format!(
            "{algorithm}: interrupted after {step} of {} iterations, goes on from `{path}`",
            config.iterations
        )),
    }
    if let Some(report) = last {
        say(&format!("  the last iteration: {}", line(&report.written)));
    }
    if let Some(validation) = validation {
        say(&format!("  other families: {}", line(validation)));
    }
    Ok(improved)
}

fn line(tally: &Tally) -> String {
    let Tally { reward, best, .. } = tally;
    let [right, unknown] = [tally.right, tally.missing].map(|share| 100.0 * share);
    format!(
        "reward {reward:.3}, {right:.1} % right, {unknown:.1} % unknown, the best of a case at \
         {best:.3} of the dataset's best"
    )
}

fn cases_of(folder: &Path) -> anyhow::Result<Vec<MeasuredCase>> {
    let recordings = Recordings::read(folder)?;
    MeasuredCase::all(&recordings).with_context(|| folder.display().to_string())
}
