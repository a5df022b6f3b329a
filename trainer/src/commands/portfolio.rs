//! `portfolio`: lists the programs that are fastest on average, and reads such lists for other
//! commands.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sparserl_core::language::Program;
use sparserl_core::outcome::Objective;
use sparserl_core::regular_file;
use sparserl_trainer::corpus::Split;
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::evaluation::{Experience, FixedPortfolio};

use super::write_json;
use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Portfolio {
    /// What was measured; real matrices in it are left out.
    #[arg(short, long, value_name = "FILE")]
    dataset: PathBuf,
    /// Programs of each task.
    #[arg(short, long, default_value_t = 50)]
    count: usize,
    /// File for the list (JSON): the texts of the programs.
    #[arg(short, long)]
    output: PathBuf,
}

impl Portfolio {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let dataset = Dataset::read(&self.dataset)?;
        let experience = Experience::of(&dataset, &Split::NoReal, Objective::Both)?;
        let portfolio = FixedPortfolio::new(&experience, self.count);
        let list: Vec<String> = portfolio.programs().map(ToString::to_string).collect();
        anyhow::ensure!(
            !list.is_empty(),
            "`{}` has no program that was measured often enough: prepare it of recordings of `collect`",
            self.dataset.display()
        );
        write_json(&self.output, &list)?;
        say(&format!("{} programs of {} tasks", list.len(), experience.len()));
        Ok(())
    }
}

/// Bytes of a list, at most: nobody has so many programs measured.
const MOST_BYTES: u64 = 64 << 20;

/// The programs of a list.
///
/// # Errors
/// When the file is no list of programs.
pub(super) fn read_list(path: &Path) -> anyhow::Result<Vec<Program>> {
    let at = || format!("`{}` is no list of programs, as `portfolio` writes it", path.display());
    let text = regular_file::read(path, MOST_BYTES).with_context(at)?;
    let texts: Vec<String> = serde_json::from_slice(&text).with_context(at)?;
    texts.iter().map(|text| Program::parse(text).with_context(at)).collect()
}
