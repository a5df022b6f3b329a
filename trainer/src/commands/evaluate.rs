use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sparserl_core::decode::{Chooser, CostChooser};
use sparserl_onnx_models::Engine;
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_trainer::configuration::{self, Contests};
use sparserl_trainer::corpus::{Recipes, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{
    CaseResult, Contest, Experience, ExtraTrees, FixedPortfolio, NearestWinners, Table, read_cases,
};

use super::{Measuring, models, write_json};
use crate::console::print;

#[derive(clap::Args)]
pub(crate) struct Evaluate {
    /// How to compare (TOML): tasks, picks, search.
    configuration: PathBuf,
    /// What the choosers learn from; real matrices in it are left out.
    #[arg(long)]
    dataset: PathBuf,
    /// Networks to compare, or folders of exported ones; each is called by its file's name. One that
    /// has learned from real matrices is refused.
    #[arg(long, value_name = "MODEL")]
    model: Vec<PathBuf>,
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
    real: Vec<&'a str>,
}

impl Evaluate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let settings: Contests = configuration::read_checked(&self.configuration, Contests::wrong)?;
        let real = self.measuring.real()?;
        anyhow::ensure!(!real.all().is_empty(), "nothing to evaluate on: name a folder by --real");
        let recipes = Recipes::of_real(&real, settings.seed).changed_by(&settings.steps);
        let models = models::open(&self.model, &Engine::Embedded)?;
        for model in &models {
            models::ensure_no_real(&model.name, &model.provenance)?;
        }
        let dataset = Dataset::read(&self.dataset)?;
        let experience = Experience::of(&dataset, &Split::NoReal)?;
        let mut choosers: Vec<Box<dyn Chooser>> = vec![
            Box::new(FixedPortfolio::new(&experience, settings.picks)),
            Box::new(NearestWinners::new(&experience, 1)),
            Box::new(NearestWinners::new(&experience, 5)),
            Box::new(ExtraTrees::new(&experience, settings.seed)?),
            Box::new(CostChooser),
        ];
        for model in &models {
            for picking in Picking::ALL {
                let name = format!("{}, {}", model.name, in_words(picking));
                choosers.push(Box::new(LearnedChooser::new(
                    name,
                    Arc::clone(&model.policy),
                    picking,
                )));
            }
        }
        let asked = Asked {
            settings: &settings,
            dataset: dataset.fingerprint(),
            policies: models.iter().map(|m| [m.name.as_str(), m.version.as_str()]).collect(),
            real: real.all().iter().map(|matrix| matrix.name.as_str()).collect(),
        };
        let results = self.measuring.output.join("results");
        let contest = Contest::new(&settings, choosers, results.clone());
        self.measuring.run(&recipes, &settings.tasks, contest, &asked)?;

        let table = Table::new(&read_cases::<CaseResult>(&results)?);
        write_json(&self.measuring.output.join("table.json"), &table)?;
        print(&table.to_string());
        Ok(())
    }
}

fn in_words(picking: Picking) -> &'static str {
    match picking {
        Picking::Likeliest => "likeliest",
        Picking::Reranked => "re-ranked",
        Picking::RerankedWithCostModel => "re-ranked with the cost model's",
    }
}
