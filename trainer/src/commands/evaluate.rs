use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_core::decode::{Chooser, CostChooser};
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};
use sparserl_trainer::configuration::{self, Contests};
use sparserl_trainer::corpus::{Recipes, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{
    CaseResult, Contest, Experience, ExtraTrees, FixedPortfolio, NearestWinners, Table,
};
use sparserl_trainer::network::{Modalities, ModelFile, NetworkPolicy, Processor};

use super::{Measuring, write_json};
use crate::console::print;

#[derive(clap::Args)]
pub(crate) struct Evaluate {
    /// How to compare (TOML): tasks, picks, search.
    configuration: PathBuf,
    /// What the choosers learn from; real matrices in it are left out.
    #[arg(long)]
    dataset: PathBuf,
    /// Networks to compare, or folders of exported ones; each is called by its file's name. Only one
    /// that was trained by the split `no_real` has not learned from the real matrices.
    #[arg(long, value_name = "MODEL")]
    model: Vec<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
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
        for path in &self.model {
            for chooser in learned(path)? {
                let name = chooser.name();
                let is_new = choosers.iter().all(|known| known.name() != name);
                anyhow::ensure!(is_new, "two models are called `{name}`: rename one");
                choosers.push(chooser);
            }
        }
        let results = self.measuring.output.join("results");
        fs::create_dir_all(&results).with_context(|| results.display().to_string())?;
        let contest = Contest::new(&settings, choosers, results.clone());
        self.measuring.run(&recipes, &settings.tasks, contest)?;

        let table = Table::new(&CaseResult::read_all(&results)?);
        write_json(&self.measuring.output.join("table.json"), &table)?;
        print(&table.to_string());
        Ok(())
    }
}

/// All ways in which a model picks.
fn learned(path: &Path) -> anyhow::Result<Vec<Box<dyn Chooser>>> {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let stem = name.unwrap_or_default().to_string_lossy();
    let mut choosers: Vec<Box<dyn Chooser>> = Vec::new();
    if path.is_dir() {
        let model = Model::read(path)?;
        for (picking, name) in names(&stem) {
            let policy = OnnxPolicy::open(&model, &Engine::Embedded)?;
            choosers.push(Box::new(LearnedChooser::new(name, policy, picking)));
        }
        return Ok(choosers);
    }
    let file = ModelFile::read(path)?;
    for (picking, name) in names(&stem) {
        let device = Default::default();
        let policy = NetworkPolicy::<Processor>::new(&file, Modalities::ALL, device);
        choosers.push(Box::new(LearnedChooser::new(name, policy, picking)));
    }
    Ok(choosers)
}

fn names(model: &str) -> [(Picking, String); 3] {
    Picking::ALL.map(|picking| match picking {
        Picking::Likeliest => (picking, format!("{model}, likeliest")),
        Picking::Reranked => (picking, format!("{model}, re-ranked")),
        Picking::RerankedWithCostModel => {
            (picking, format!("{model}, re-ranked with the cost model's"))
        }
    })
}
