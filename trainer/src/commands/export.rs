//! `export`: writes a network as the files that a policy is used as.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use sparserl_onnx_models::{DECODER, ENCODER, Engine, OnnxPolicy};
use sparserl_trainer::export::export;
use sparserl_trainer::network::ModelFile;
use sparserl_trainer::whole_file::write_whole;

use crate::console::say;

#[derive(clap::Args)]
pub(crate) struct Export {
    /// The network.
    pub(super) model: PathBuf,
    /// Folder of the two files; what it has of these names is replaced.
    #[arg(short, long)]
    pub(super) output: PathBuf,
    /// What the policy is called; the name of the folder without.
    #[arg(long)]
    pub(super) name: Option<String>,
}

impl Export {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let file = ModelFile::read(&self.model)?;
        let folder = self.output.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = self.name.clone().or(folder).unwrap_or_else(|| "policy".to_owned());
        let model = export(&file, &name)?;
        // What no engine runs is not written.
        OnnxPolicy::open(&model, &Engine::Embedded)?;
        fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make `{}`", self.output.display()))?;
        for (name, bytes) in [(ENCODER, model.encoder()), (DECODER, model.decoder())] {
            let path = self.output.join(name);
            write_whole(&path, |file| file.write_all(bytes))
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        let bytes = model.encoder().len() + model.decoder().len();
        let version = model.description().version();
        say(&format!("{name} {version}: {bytes} bytes in `{}`", self.output.display()));
        Ok(())
    }
}
