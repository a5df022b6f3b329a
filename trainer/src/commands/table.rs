//! `table`: makes the table of an evaluation again.

use std::path::PathBuf;

use sparserl_trainer::evaluation::{self, CaseResult, read_archived, read_cases};

use super::write_json;
use crate::console::print;

#[derive(clap::Args)]
pub(crate) struct Table {
    /// The folder `results` within the output of `evaluate`, or the `cases.json.gz` that `archive`
    /// made of it.
    results: PathBuf,
    /// The table as JSON.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Table {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cases: Vec<CaseResult> = match self.results.is_file() {
            true => read_archived(&self.results)?,
            false => read_cases(&self.results)?,
        };
        anyhow::ensure!(!cases.is_empty(), "no results in `{}`", self.results.display());
        let table = evaluation::Table::new(&cases);
        print(&table.to_string())?;
        if let Some(path) = &self.output {
            write_json(path, &table)?;
        }
        Ok(())
    }
}
