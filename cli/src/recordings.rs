//! Keeps what was found out about programs, for training, which then needs no GPU.

use std::path::Path;

use sparserl_core::language::Program;
use sparserl_core::matrix::{MatrixIdentity, Scalar};
use sparserl_core::outcome::Evaluation;
use sparserl_gpu::store::recording::{Context, Recorder};

use crate::interrupt;

/// Opens the store in a folder, if one was named.
pub(crate) fn open(folder: Option<&Path>) -> anyhow::Result<Option<Recorder>> {
    Ok(folder.map(Recorder::append_to).transpose()?)
}

/// Adds an evaluation to a store. When this returns, it is on the disk: a run may be ended at any
/// time.
pub(crate) fn record<T: Scalar>(
    recorder: &mut Recorder,
    matrix: &MatrixIdentity,
    programs: &[Program],
    evaluation: &Evaluation,
    context: &Context,
) -> anyhow::Result<()> {
    let _uninterrupted = interrupt::watch();
    recorder.record::<T>(matrix, programs, evaluation, context)?;
    Ok(recorder.flush()?)
}
