//! The GPUs that kernels are measured on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sparserl_core::message;
use sparserl_gpu::Architecture;
use sparserl_gpu::compare::Opponents;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::pool::{CompilePool, PoolError};
use sparserl_gpu::evaluator::{GpuError, GpuEvaluator, compile_pool};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device;
use sparserl_gpu::worker::Protocol;

use crate::args::JudgingArgs;

/// The hidden command that this program starts its own processes with.
const SERVE: &str = "serve";

/// Processes of this program that compile for GPUs, as many as there are cores. Where both are
/// missing, it is a GPU that is asked for: without one, a compiler does not help.
pub(crate) fn compilers() -> anyhow::Result<Arc<CompilePool>> {
    device::count().context("no GPU to measure on")?;
    pool()
}

/// Processes of this program that compile, as many as there are cores, whether there is a GPU or
/// not.
pub(crate) fn pool() -> anyhow::Result<Arc<CompilePool>> {
    pool_within(None)
}

/// The same, which take so long for a source at most.
pub(crate) fn pool_within(deadline: Option<Duration>) -> anyhow::Result<Arc<CompilePool>> {
    let pool: Result<_, PoolError> = compile_pool(server_command()?);
    let pool = pool?;
    Ok(Arc::new(match deadline {
        Some(deadline) => pool.with_deadline(deadline),
        None => pool,
    }))
}

/// A compiler for GPUs of an architecture that are not there; else why there is none and how to get
/// one, in a line.
pub(crate) fn compiler(architecture: Architecture) -> Result<CubinCompiler, String> {
    let compiler = pool().map(|pool| CubinCompiler::new(pool, architecture, None));
    let compiler = compiler.map_err(|error| message::with_causes(error.as_ref()))?;
    compiler.version().map_err(|error| error.to_string())?;
    Ok(compiler)
}

/// Opens a device by its number, to measure these opponents on it.
pub(crate) fn open(
    compilers: &Arc<CompilePool>,
    ordinal: u32,
    protocol: Protocol,
    opponents: Opponents,
) -> anyhow::Result<GpuEvaluator> {
    let opened: Result<_, GpuError> =
        GpuEvaluator::open(server_command()?, Arc::clone(compilers), ordinal, protocol);
    let mut opened = opened?;
    opened.set_opponents(opponents);
    Ok(opened)
}

/// Opens the device that was asked for, to judge kernels from files on it.
pub(crate) fn open_asked(args: &JudgingArgs) -> anyhow::Result<GpuEvaluator> {
    open(&compilers()?, args.device, args.protocol(), args.opponents.opponents()?)
}

/// What measuring lacks on this machine, and why in one line.
pub(crate) enum Lack {
    /// A GPU, or its driver.
    Gpu(String),
    /// A compiler, though there is a GPU.
    Compiler(String),
}

/// Opens a device for `gen`, or says what is missing.
pub(crate) fn find(
    ordinal: u32,
    opponents: Opponents,
) -> anyhow::Result<Result<GpuEvaluator, Lack>> {
    match device::count() {
        Err(error) if error.is_absence() => return Ok(Err(Lack::Gpu(error.to_string()))),
        count => count?,
    };
    let compilers = match compile_pool(server_command()?) {
        Err(PoolError::NoCompiler(error)) => return Ok(Err(Lack::Compiler(error.to_string()))),
        pool => Arc::new(pool?),
    };
    open(&compilers, ordinal, Protocol::full(), opponents).map(Ok)
}

fn server_command() -> anyhow::Result<ServerCommand> {
    Ok(ServerCommand::this_program([SERVE])?)
}
