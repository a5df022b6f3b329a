use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use sparserl_trainer::configuration::{self, Contests};
use sparserl_trainer::corpus::{Recipes, Split};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{
    CaseResult, Chooser, Contest, CostChooser, Experience, ExtraTrees, FixedPortfolio,
    LearnedChooser, NearestWinners, Picking, Table,
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
    /// Networks to compare; each is called by its file's name.
    #[arg(long, value_name = "FILE")]
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
            let file = ModelFile::read(path)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            for picking in Picking::ALL {
                let device = Default::default();
                let policy = NetworkPolicy::<Processor>::new(&file, Modalities::ALL, device);
                choosers.push(Box::new(LearnedChooser::new(&name, policy, picking)));
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
