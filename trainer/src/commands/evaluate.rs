use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
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

use super::{Measuring, models, results_folder, write_json};
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
    policies: Vec<[&'a str; 2]>,
    real: Vec<&'a str>,
}

impl Evaluate {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let settings: Contests = configuration::read(&self.configuration)?;
        let real = self.measuring.real()?;
        anyhow::ensure!(!real.all().is_empty(), "nothing to evaluate on: name a folder by --real");
        let recipes = Recipes::of_real(&real, settings.seed);
        let dataset = Dataset::read(&self.dataset)?;
        let experience = Experience::of(&dataset, &Split::NoReal)?;
        let mut choosers: Vec<Box<dyn Chooser>> = vec![
            Box::new(FixedPortfolio::new(&experience, settings.picks)),
            Box::new(NearestWinners::new(&experience, 1)),
            Box::new(NearestWinners::new(&experience, 5)),
            Box::new(ExtraTrees::new(&experience, settings.seed)?),
            Box::new(CostChooser),
        ];
        let models = models::open(&self.model, &Engine::Embedded)?;
        for model in &models {
            models::ensure_no_real(&model.name, &model.provenance)?;
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
            policies: models.iter().map(|m| [m.name.as_str(), m.version.as_str()]).collect(),
            real: real.all().iter().map(|matrix| matrix.name.as_str()).collect(),
        };
        results_folder(&self.measuring.output, &asked)?;
        let results = self.measuring.output.join("results");
        fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
        let contest = Contest::new(&settings, choosers, results.clone());
        self.measuring.run(&recipes, &settings.tasks, contest)?;

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
