//! `compile`: has the compiler say what measured programs need of a GPU. None has to be there.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use sparserl_core::codegen::CudaSource;
use sparserl_core::kernel::Compiler as _;
use sparserl_core::plan::MachineCode;
use sparserl_core::target::Architecture;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::pool::PoolCompileError;
use sparserl_gpu::evaluator::compile_pool;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_trainer::compiled::{CompiledPrograms, Compiling, compile};
use sparserl_trainer::measured::MeasuredCase;

use super::measuring::SERVE;
use super::{read_recordings, real_matrices};
use crate::console::{ProgressDisplay, say};
use crate::interruption::Interruption;

#[derive(clap::Args)]
pub(crate) struct Compile {
    /// Folders of recordings.
    #[arg(required = true)]
    recordings: Vec<PathBuf>,
    /// Compile the programs that were measured on most matrices, so many of them.
    #[arg(long, value_name = "PROGRAMS", default_value = "20000")]
    most: NonZeroUsize,
    /// Folder of the real matrices that were collected on, with their `MANIFEST.tsv`.
    #[arg(long)]
    real: Option<PathBuf>,
}

impl Compile {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let real = real_matrices(self.real.as_deref())?;
        let (mut folders, mut known) = (Vec::new(), Vec::new());
        for folder in &self.recordings {
            folders.push(MeasuredCase::all(&read_recordings(folder)?)?);
            known.push(CompiledPrograms::read(folder)?);
        }
        let pool = Arc::new(compile_pool(ServerCommand::this_program([SERVE])?)?);
        let machine_code = |source: &CudaSource, architecture: Architecture| {
            let compiler = CubinCompiler::new(Arc::clone(&pool), architecture, None);
            let cubin = compiler.compile(source)?;
            Ok::<_, PoolCompileError>(
                cubin.map(|cubin| (MachineCode::from(&cubin), cubin.bytes().len() as u64)),
            )
        };
        let interruption = Interruption::watch()?;
        let display = ProgressDisplay::new();
        let save = |known: &[CompiledPrograms]| {
            let with_folders = self.recordings.iter().zip(known);
            with_folders
                .filter(|(_, known)| !known.is_empty())
                .try_for_each(|(folder, known)| known.write(folder))
        };
        let compiled = compile(
            &folders,
            known,
            self.most.get(),
            &real,
            machine_code,
            || !interruption.was_asked_for(),
            |Compiling { programs, compiled, refused }| {
                display.show((compiled + refused) as u64, programs as u64, String::new());
            },
            save,
        );
        drop(display);
        let (_, Compiling { programs, compiled, refused }) = compiled?;
        say(&format!("{compiled} of {programs} programs are compiled, {refused} are refused"));
        anyhow::ensure!(compiled + refused == programs, super::train::INTERRUPTED);
        Ok(())
    }
}
