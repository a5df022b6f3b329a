//! `pass-at-k`: samples programs from policies and says how many are right.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use sparserl_core::target::Target;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_gpu::evaluator::compile_pool;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_onnx_models::{Engine, EngineError, ExecutionProvider};
use sparserl_trainer::collect::{Collected, check};
use sparserl_trainer::configuration::{self, Samples};
use sparserl_trainer::corpus::Recipes;
use sparserl_trainer::evaluation::{NamedPolicy, SampledCase, SampledTable, Sampling, read_cases};
use sparserl_trainer::shards::Shards;

use super::measuring::duration;
use super::models::{self, NamedModel};
use super::{Measuring, SERVE, results_folder, write_json};
use crate::console::{ProgressDisplay, print, say};
use crate::interruption::Interruption;

#[derive(clap::Args)]
pub(crate) struct PassAtK {
    /// What to sample (TOML); `trainer/configurations/pass-at-k.toml` is one.
    configuration: PathBuf,
    /// Networks to sample from, or folders of exported ones, each called by its file's name;
    /// without any, the policy that is compiled in, which has learned from all families.
    #[arg(long, value_name = "MODEL")]
    model: Vec<PathBuf>,
    /// Judge by emulation, without a GPU.
    #[arg(long)]
    emulate: bool,
    /// Run exported policies in this library, libonnxruntime.so of version 1.24 or newer, instead
    /// of within this program [default: $ORT_DYLIB_PATH where that is set]
    #[arg(long, value_name = "LIBRARY")]
    onnxruntime: Option<PathBuf>,
    /// Where ONNX Runtime runs them.
    #[arg(long, value_name = "EP", default_value_t, value_parser = provider())]
    ep: ExecutionProvider,
    #[command(flatten)]
    measuring: Measuring,
}

/// Reads an execution provider of ONNX Runtime; messages list them.
fn provider() -> impl TypedValueParser<Value = ExecutionProvider> {
    let names = ExecutionProvider::ALL.map(ExecutionProvider::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<ExecutionProvider>())
}

/// What results are of.
#[derive(Serialize)]
struct Asked<'a> {
    settings: &'a Samples,
    policies: Vec<[&'a str; 2]>,
    real: Vec<&'a str>,
    emulated: bool,
}

impl PassAtK {
    /// What networks write, judged on a GPU.
    pub(super) fn of(configuration: PathBuf, model: Vec<PathBuf>, measuring: Measuring) -> Self {
        let ep = ExecutionProvider::default();
        Self { configuration, model, emulate: false, onnxruntime: None, ep, measuring }
    }

    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.sample().map(|_| ())
    }

    /// Whether all matrices are done.
    pub(super) fn sample(&self) -> anyhow::Result<bool> {
        let settings: Samples = configuration::read_checked(&self.configuration, Samples::wrong)?;
        let engine = self.engine()?;
        let models = match self.model.is_empty() {
            true => vec![models::shipped(&engine)?],
            false => models::open(&self.model, &engine)?,
        };
        let real = self.measuring.real()?;
        let recipes = match real.all().is_empty() {
            true => Recipes::of_corpus(settings.corpus, settings.matrices, &real),
            false => Recipes::of_real_first(&real, settings.corpus, settings.matrices),
        };
        let asked = Asked {
            settings: &settings,
            policies: models.iter().map(|m| [m.name.as_str(), m.version.as_str()]).collect(),
            real: real.all().iter().map(|matrix| matrix.name.as_str()).collect(),
            emulated: self.emulate,
        };
        let results = self.measuring.output.join("results");
        let policies = models.iter().map(|model| -> NamedPolicy {
            let NamedModel { name, policy, .. } = model;
            (name.clone(), Arc::new(Arc::clone(policy)))
        });
        let sampling = Sampling::new(&settings, policies.collect(), results.clone());
        let complete = match self.emulate {
            true => self.emulate(&recipes, &sampling, &asked)?,
            false => self.measuring.run(&recipes, &settings.tasks, sampling, &asked)?,
        };
        let table = SampledTable::new(&read_cases::<SampledCase>(&results)?, &settings.tries);
        write_json(&self.measuring.output.join("table.json"), &table)?;
        print(&table.to_string())?;
        Ok(complete)
    }

    fn engine(&self) -> anyhow::Result<Engine> {
        let engine = Engine::choose(self.onnxruntime.as_deref(), self.ep);
        engine.map_err(|error| match error {
            EngineError::Unnamed { .. } => anyhow!("{error}; --onnxruntime LIBRARY names it"),
            error => anyhow!(error),
        })
    }

    /// Samples for one matrix after the other, for the GPU that policies are trained for; whether
    /// all are done.
    fn emulate(
        &self,
        recipes: &Recipes<'_>,
        sampling: &Sampling<'_>,
        asked: &Asked<'_>,
    ) -> anyhow::Result<bool> {
        let target = Target::H200;
        let compilers = Arc::new(compile_pool(ServerCommand::this_program([SERVE])?)?);
        let options = EmulationOptions::default();
        let mut emulator = EmulatorEvaluator::open(compilers, target.architecture, options)?;
        results_folder(&self.measuring.output, asked)?;
        let lease = duration(self.measuring.lease);
        let mut shards =
            Shards::open(&self.measuring.output.join("shards"), recipes.count(), lease)?;
        let interruption = Interruption::watch()?;
        let (display, before) = (ProgressDisplay::new(), shards.done()?);
        display.show(before, recipes.count(), String::new());
        let deadline = self.measuring.deadline();
        let go_on = || {
            !interruption.was_asked_for()
                && deadline.is_none_or(|deadline| Instant::now() < deadline)
        };
        let (tasks, emulator) = (&asked.settings.tasks[..], &mut emulator);
        let checked =
            check(sampling, (recipes, tasks), target, emulator, &mut shards, go_on, |progress| {
                let Collected { matrices, programs, .. } = progress.collected;
                let message = format!("{programs} programs, last {}", progress.recipe.family());
                display.show(before + matrices, recipes.count(), message);
            });
        drop(display);
        checked?;
        let done = shards.done()?;
        say(&format!("{done} of {} matrices are done", recipes.count()));
        Ok(done == recipes.count())
    }
}
