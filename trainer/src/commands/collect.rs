//! `collect`: measures programs on the matrices of a corpus.

use std::path::PathBuf;

use sparserl_trainer::configuration::{self, Collection};
use sparserl_trainer::corpus::Recipes;
use sparserl_trainer::proposals::Stratified;

use super::Measuring;
use super::portfolio::read_list;

#[derive(clap::Args)]
pub(crate) struct Collect {
    /// What to collect (TOML): matrices, tasks, programs.
    configuration: PathBuf,
    #[command(flatten)]
    measuring: Measuring,
}

impl Collect {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let collection: Collection =
            configuration::read_checked(&self.configuration, Collection::wrong)?;
        let real = self.measuring.real()?;
        let recipes = Recipes::of_corpus(collection.corpus, collection.matrices, &real);
        let folder = self.configuration.with_file_name("");
        let list = collection.list.as_ref().map(|file| read_list(&folder.join(file)));
        let experiment = Stratified::new(&collection, list.transpose()?.unwrap_or_default());
        self.measuring.run(&recipes, &collection.tasks, experiment, &collection).map(|_| ())
    }
}
