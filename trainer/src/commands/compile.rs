//! `compile`: compiles measured programs for their resource usage. No GPU has to be there.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Compiler as _;
use sparserl_core::plan::MachineCode;
use sparserl_core::target::Architecture;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::pool::PoolCompileError;
use sparserl_gpu::evaluator::compile_pool;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_trainer::compiled::{Code, CompiledPrograms, Compiling, RecordedCases, compile};
use sparserl_trainer::measured::MeasuredCase;

use super::measuring::SERVE;
use super::train::INTERRUPTED;
use super::{read_recordings, real_matrices};
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

#[derive(clap::Args)]
pub(crate) struct Compile {
    /// Folders of recordings, each once.
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    /// Compile so many programs, those that were measured on most matrices and GPUs.
    #[arg(long, value_name = "PROGRAMS", default_value = "20000")]
    most: NonZeroUsize,
    /// Folder of the real matrices that were collected on, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
}

impl Compile {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let real = real_matrices(self.real.as_deref())?;
        let (mut folders, mut places) = (Vec::new(), BTreeSet::new());
        for folder in &self.recordings {
            let cases = MeasuredCase::all(&read_recordings(folder)?)?;
            folders.push(RecordedCases { cases, compiled: CompiledPrograms::read(folder)? });
            // What is written for one of two names would be lost by what is written for the other.
            let place = fs::canonicalize(folder).with_context(|| folder.display().to_string())?;
            anyhow::ensure!(places.insert(place), "`{}` is named twice", folder.display());
        }
        let pool = Arc::new(compile_pool(ServerCommand::this_program([SERVE])?)?);
        let code = |source: &CudaSource, architecture: Architecture| {
            let cubin =
                CubinCompiler::new(Arc::clone(&pool), architecture, None).compile(source)?;
            Ok::<_, PoolCompileError>(cubin.map(|cubin| Code {
                machine_code: MachineCode::from(&cubin),
                cubin_bytes: cubin.bytes().len() as u64,
            }))
        };
        let interruption = Interruption::watch()?;
        let display = ProgressDisplay::new();
        let compiled = compile(
            folders,
            self.most.get(),
            &real,
            code,
            || !interruption.was_asked_for(),
            |Compiling { programs, compiled, refused }| {
                display.show((compiled + refused) as u64, programs as u64, String::new());
            },
            |compiled| {
                let with_folders = self.recordings.iter().zip(compiled);
                let mut some = with_folders.filter(|(_, compiled)| !compiled.is_empty());
                some.try_for_each(|(folder, compiled)| compiled.write(folder))
            },
        );
        drop(display);
        let (_, Compiling { programs, compiled, refused }) = compiled?;
        say(&format!("{compiled} of {programs} programs are compiled, {refused} are refused"));
        anyhow::ensure!(compiled + refused == programs, INTERRUPTED);
        Ok(())
    }
}
