//! The loop of a stage: batches, optimizer steps, validations and checkpoints.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Log, Sampler, StageConfig, Validation, validate};
use crate::configuration::Stage;
use crate::corpus::RecipeError;
use crate::dataset::Dataset;
use crate::network::{AutodiffBackend, Learner, Losses, ModelError, ModelFile, OnDevice};

/// What a network goes on with when its stage is interrupted.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
/// What comes of a stage.
pub const MODEL: &str = "model.safetensors";
/// A line of JSON for every so many steps.
pub(crate) const LOG: &str = "log.jsonl";

/// A stage could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A model cannot be read or written.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The dataset has a matrix without a recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// Nothing of the dataset is trained on.
    #[error("the split trains on none of the dataset's {matrices} matrices: choose another one")]
    NoCases {
        /// Matrices of the dataset.
        matrices: usize,
    },
    /// Nothing of the dataset is improved on.
    #[error(
        "none of the dataset's cases is of a matrix that the split trains on, of at most \
         `largest_nnz` entries and, where a GPU measures, of this one: change these, or `collect` \
         on it first"
    )]
    NoneFits,
    /// What is in the folder is of another stage, configuration or dataset.
    #[error(
        "`{}` is of another {what}: name a folder of its own for each", path.display()
    )]
    Other {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// The log or the folder cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The losses or the parameters are no numbers any more. They would be the same in what goes on
    /// from the last checkpoint with this configuration, and another one is of another folder.
    #[error(
        "training has diverged by step {step}, its losses or parameters are no finite numbers any \
         more: lower `{key}`, and name another folder"
    )]
    Diverged {
        /// Steps made.
        step: u64,
        /// What is too large in the configuration.
        key: &'static str,
    },
}

impl StageError {
    /// After so many steps.
    pub(crate) fn diverged(step: u64) -> Self {
        Self::Diverged { step, key: "learning_rate" }
    }

    /// Why a model was not kept after so many steps.
    pub(crate) fn not_kept(error: ModelError, step: u64) -> Self {
        match error {
            ModelError::NotFinite { .. } => Self::diverged(step),
            error => Self::Model(error),
        }
    }
}

/// A stage, ready to run on some device: [`on_device`](crate::network::on_device) runs it.
pub struct StageRun<'a, G, O> {
    /// What is learned.
    pub stage: Stage,
    /// How.
    pub config: &'a StageConfig,
    /// From what.
    pub dataset: &'a Dataset,
    /// The network that goes on; without, a new one begins.
    pub from: Option<&'a ModelFile>,
    /// Where its files are.
    pub folder: &'a Path,
    /// Whether to go on, asked before every step.
    pub go_on: G,
    /// Told after every step.
    pub observe: O,
}

/// Where a stage stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'p> {
    /// Steps made, in this run and before.
    pub step: u64,
    /// Steps to make.
    pub steps: u64,
    /// The losses when they were last logged.
    pub losses: Option<&'p Losses>,
    /// The last validation.
    pub validation: Option<&'p Validation>,
}

/// What a run of a stage came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Steps made, in this run and before.
    pub step: u64,
    /// True when all were made and the model is there.
    pub complete: bool,
    /// The validation at the end; `None` when there is nothing to validate on, or more to do.
    pub validation: Option<Validation>,
    /// Where the model is, or the checkpoint.
    pub path: PathBuf,
}

/// What a checkpoint was made by, kept in it.
#[derive(PartialEq, Serialize, Deserialize)]
struct Provenance {
    stage: Stage,
    config: StageConfig,
    /// Its fingerprint.
    dataset: String,
    /// Hash of the parameters that it began with, in hexadecimal.
    from: Option<String>,
}

#[derive(Serialize)]
struct Line<'l> {
    step: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    learning_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_norm: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<&'l Losses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<&'l Validation>,
    /// Since the run began.
    seconds: f64,
}

impl Line<'_> {
    /// That of a step, with nothing in it yet.
    fn of(step: u64, log: &Log) -> Self {
        let seconds = log.seconds();
        Self {
            step,
            learning_rate: None,
            gradient_norm: None,
            training: None,
            validation: None,
            seconds,
        }
    }
}

impl<G: Fn() -> bool, O: FnMut(&Progress<'_>)> OnDevice for StageRun<'_, G, O> {
    type Output = Result<Finished, StageError>;

    fn run<B: AutodiffBackend>(mut self, device: B::Device) -> Self::Output {
        // A network that goes on keeps its sizes.
        let mut config = self.config.clone();
        if let Some(from) = self.from {
            config.network = from.config.clone();
        }
        let mut sampler = Sampler::new(self.dataset, self.stage, &config)?;
        if sampler.training_cases() == 0 {
            return Err(StageError::NoCases { matrices: self.dataset.matrices.len() });
        }
        let folder = self.folder;
        let failed = |name: &str| {
            let path = folder.join(name);
            move |source| StageError::Write { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(""))?;
        let provenance = self.provenance(&config);
        let text = serde_json::to_string(&provenance).map_err(|e| failed(CHECKPOINT)(e.into()))?;
        let mut learner = self.begin::<B>(&provenance, &text, device)?;
        let started = learner.optimizer().steps();
        let mut log = Log::open(&folder.join(LOG), started).map_err(failed(LOG))?;
        let keep = |learner: &Learner<B>, name: &str, whole: bool| {
            let file = ModelFile::of(learner, &config.network, text.clone(), whole);
            let written = file.write(&folder.join(name));
            written.map_err(|error| StageError::not_kept(error, file.steps))
        };
        let (mut losses, mut validation) = (None, None);
        for step in started..config.steps {
            if !(self.go_on)() {
                keep(&learner, CHECKPOINT, true)?;
                let path = folder.join(CHECKPOINT);
                return Ok(Finished { step, complete: false, validation: None, path });
            }
            let batch = sampler.batch(step);
            let rate = config.learning_rate(step);
            let learned = learner.learn(&batch, &config.weights, rate);
            let made = step + 1;
            let last = made == config.steps;
            if made.is_multiple_of(config.log_every) || last {
                let (found, norm) = learned();
                if !found.total.is_finite() {
                    return Err(StageError::diverged(made));
                }
                let line = Line {
                    learning_rate: Some(rate),
                    gradient_norm: Some(norm),
                    training: Some(&found),
                    ..Line::of(made, &log)
                };
                log.write(&line).map_err(failed(LOG))?;
                losses = Some(found);
            }
            let has_validation = !sampler.validation_cases().is_empty();
            if has_validation && (made.is_multiple_of(config.validate_every) || last) {
                let found = validate(&learner, &sampler, &config.weights, config.cases);
                if !found.losses.total.is_finite() {
                    return Err(StageError::diverged(made));
                }
                let line = Line { validation: Some(&found), ..Line::of(made, &log) };
                log.write(&line).map_err(failed(LOG))?;
                validation = Some(found);
            }
            if made.is_multiple_of(config.keep_every) || last {
                keep(&learner, CHECKPOINT, true)?;
            }
            (self.observe)(&Progress {
                step: made,
                steps: config.steps,
                losses: losses.as_ref(),
                validation: validation.as_ref(),
            });
        }
        keep(&learner, MODEL, false)?;
        if validation.is_none() && !sampler.validation_cases().is_empty() {
            validation = Some(validate(&learner, &sampler, &config.weights, config.cases));
        }
        let path = folder.join(MODEL);
        Ok(Finished { step: config.steps, complete: true, validation, path })
    }
}

impl<G, O> StageRun<'_, G, O> {
    fn provenance(&self, config: &StageConfig) -> Provenance {
        let from = self.from.map(ModelFile::fingerprint);
        Provenance {
            stage: self.stage,
            config: config.clone(),
            dataset: self.dataset.fingerprint(),
            from,
        }
    }

    /// The network of the checkpoint, if there is one, or else the one to begin with.
    fn begin<B: AutodiffBackend>(
        &self,
        provenance: &Provenance,
        text: &str,
        device: B::Device,
    ) -> Result<Learner<B>, StageError> {
        let config = &provenance.config;
        let path = self.folder.join(CHECKPOINT);
        if path.exists() {
            let kept = ModelFile::read(&path)?;
            // By its text, which numbers keep better than they do when they are read back.
            if kept.provenance == text {
                return Ok(kept.go_on(config.optimizer, device));
            }
            let of: Option<Provenance> = serde_json::from_str(&kept.provenance).ok();
            let what = match of {
                Some(of) if of.stage != provenance.stage => "stage",
                Some(of) if of.dataset != provenance.dataset => "dataset",
                Some(of) if of.from != provenance.from => "network to begin with",
                _ => "configuration",
            };
            return Err(StageError::Other { path, what });
        }
        Ok(match self.from {
            Some(from) => from.begin(config.optimizer, device),
            None => Learner::new(&config.network, config.optimizer, config.seed, device),
        })
    }
}
