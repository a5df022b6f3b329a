//! `evaluate`: compares on a GPU what chooses programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sparserl_core::decode::{Chooser, CostChooser};
use sparserl_core::language::Program;
use sparserl_core::outcome::Objective;
use sparserl_core::task::Task;
use sparserl_onnx_models::Engine;
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_trainer::configuration::{self, Contests};
use sparserl_trainer::corpus::{Corpus, Recipes, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{
    CaseResult, Contest, Contestants, Experience, ExtraTrees, FixedPortfolio, NearestWinners,
    ONE_REGIME, Table, read_cases,
};
use sparserl_trainer::measured::MeasuredCase;

use super::models::NamedModel;
use super::portfolio::read_list;
use super::{Measuring, models, read_recordings, write_json};
use crate::console::print;

#[derive(clap::Args)]
pub(crate) struct Evaluate {
    /// How to compare (TOML): tasks, picks, search.
    configuration: PathBuf,
    /// What the choosers learn from; real matrices in it are left out.
    #[arg(long)]
    dataset: PathBuf,
    /// Networks to compare, or folders of exported ones; each is called by its file's name. One
    /// that has learned from real matrices is refused.
    #[arg(long, value_name = "MODEL")]
    model: Vec<PathBuf>,
    /// The programs that fixed choices and trees choose among, as `portfolio` writes them: of the
    /// dataset's cases, those in which at least half of them were measured are learned from, the
    /// others' matrices cannot have them. Without a list they choose among all programs, of which
    /// most were measured only where they were proposed.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Folders of recordings of the same matrices: their fastest programs take part in the search.
    #[arg(long, num_args = 1.., value_name = "FOLDER")]
    recorded: Vec<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
}

/// What results are of.
#[derive(Serialize)]
struct Asked<'a> {
    settings: &'a Contests,
    /// The fingerprint of what the choosers learn from.
    dataset: String,
    policies: Vec<[&'a str; 2]>,
    /// The texts of the list.
    list: Vec<String>,
    recorded: &'a [PathBuf],
    real: Vec<&'a str>,
}

impl Evaluate {
    /// Networks beside all else that has learned from a dataset.
    pub(super) fn of(
        configuration: PathBuf,
        dataset: PathBuf,
        model: Vec<PathBuf>,
        measuring: Measuring,
    ) -> Self {
        Self { configuration, dataset, model, list: None, recorded: Vec::new(), measuring }
    }

    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.evaluate().map(|_| ())
    }

    /// Whether all matrices are done.
    pub(super) fn evaluate(&self) -> anyhow::Result<bool> {
        let settings: Contests = configuration::read_checked(&self.configuration, Contests::wrong)?;
        let real = self.measuring.real()?;
        anyhow::ensure!(!real.all().is_empty(), "nothing to evaluate on: name a folder by --real");
        let corpus =
            Corpus { seed: settings.seed, largest_nnz: settings.largest_nnz, ..Corpus::default() };
        let recipes = Recipes::of_real_first(&real, corpus, settings.matrices);
        let recipes = recipes.changed_by(&settings.steps);
        let models = models::open(&self.model, &Engine::Embedded)?;
        for model in &models {
            models::ensure_no_real(&model.name, &model.provenance)?;
        }
        let dataset = Dataset::read(&self.dataset)?;
        let list = self.list.as_ref().map(|file| read_list(file)).transpose()?;
        let contestants = ONE_REGIME.into_iter().map(|(objective, _)| {
            Ok((objective, choosers(&settings, objective, &dataset, list.as_deref(), &models)?))
        });
        let contestants = contestants.collect::<anyhow::Result<Contestants<'_>>>()?;
        let recordings = self.recorded.iter().map(|folder| read_recordings(folder));
        let recordings = recordings.collect::<anyhow::Result<Vec<_>>>()?;
        let recorded = MeasuredCase::all(recordings.iter().flatten())?;
        let asked = Asked {
            settings: &settings,
            dataset: dataset.fingerprint(),
            policies: models.iter().map(|m| [m.name.as_str(), m.version.as_str()]).collect(),
            list: list.iter().flatten().map(ToString::to_string).collect(),
            recorded: &self.recorded,
            real: real.all().iter().map(|matrix| matrix.name.as_str()).collect(),
        };
        let results = self.measuring.output.join("results");
        let contest = Contest::new(&settings, contestants, &recorded, results.clone());
        let complete = self.measuring.run(&recipes, &settings.tasks, contest, &asked)?;

        let table = Table::new(&read_cases::<CaseResult>(&results)?);
        write_json(&self.measuring.output.join("table.json"), &table)?;
        print(&table.to_string())?;
        Ok(complete)
    }
}

/// All that is compared by an objective.
fn choosers<'m>(
    settings: &Contests,
    objective: Objective,
    dataset: &Dataset,
    list: Option<&[Program]>,
    models: &'m [NamedModel],
) -> anyhow::Result<Vec<Box<dyn Chooser + 'm>>> {
    let all = Experience::of(dataset, &Split::NoReal, objective)?;
    let of_list = |(&task, experience): (&Task, &Experience)| {
        let listed = list.iter().copied().flatten().filter(|program| program.task == task);
        let listed: Vec<Program> = listed.cloned().collect();
        let fair =
            if list.is_some() { experience.of_programs(&listed) } else { experience.clone() };
        (task, fair)
    };
    let fair: BTreeMap<Task, Experience> = all.iter().map(of_list).collect();
    if let Some((task, _)) = fair.iter().find(|(_, experience)| experience.cases.is_empty()) {
        anyhow::bail!("the dataset has no case of {task} in which half of the list was measured");
    }
    let mut choosers: Vec<Box<dyn Chooser + 'm>> = vec![
        Box::new(FixedPortfolio::new(&fair, settings.picks)),
        Box::new(NearestWinners::new(&all, 1)),
        Box::new(NearestWinners::new(&all, 5)),
        Box::new(ExtraTrees::new(&fair, settings.seed)?),
        Box::new(CostChooser),
    ];
    for model in models {
        for picking in Picking::ALL {
            let name = format!("{}, {}", model.name, in_words(picking));
            choosers.push(Box::new(LearnedChooser::new(name, Arc::clone(&model.policy), picking)));
        }
    }
    Ok(choosers)
}

fn in_words(picking: Picking) -> &'static str {
    match picking {
        Picking::Likeliest => "likeliest",
        Picking::Reranked => "re-ranked",
        Picking::RerankedWithCostModel => "re-ranked with the cost model's",
    }
}
