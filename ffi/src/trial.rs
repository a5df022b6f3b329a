//! Trying epilogues before they are used: what one does outside of its arrays on a GPU, the
//! caller's CUDA context does not survive.

use std::sync::{Arc, PoisonError};

use sparserl_core::codegen::{CudaSource, Ending};
use sparserl_core::language::Program;
use sparserl_core::layout::{PackError, pack};
use sparserl_core::matrix::{
    Csr, CsrView, Scalar, middle_rows, sample_rows, without_empty_columns,
};
use sparserl_gpu::emulated::found_right::TrialKey;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError, EmulatorEvaluator, Judgement};

use crate::context::Context;
use crate::epilogue::ready_name;
use crate::status::{Failure, Status, panicked};

/// Entries that an epilogue is tried on within its kernel, about; fewer where each is multiplied by
/// a row of many columns.
const SAMPLE: usize = 2_000;
/// Columns up to which it is that many.
const SAMPLE_COLUMNS: usize = 16;
/// Entries, at least.
const LEAST_SAMPLE: usize = 100;

/// Tries an epilogue in two ways at once: within the kernel of a program, on some rows of the
/// matrix; and by itself, at places all over the result. Each is done once for all plans of the
/// context, and not where the same trial has found nothing wrong in an earlier one.
pub(crate) fn try_epilogue<T: Scalar>(
    context: &Context,
    matrix: CsrView<'_, T>,
    program: &Program,
    (ending, source): (&Ending, &CudaSource),
) -> Result<(), Failure> {
    let options = EmulationOptions::default();
    let emulator = EmulatorEvaluator::with_compiler(context.compiler.clone(), options);
    let emulator = emulator.map_err(|error| Failure::new(Status::NoCompiler, error))?;
    let (task, emulator) = (program.task, &emulator);
    let size = (matrix.rows(), matrix.cols());
    // What those that are ready reach, no matrix changes.
    let foreign = ending.epilogue().filter(|one| ready_name(one, task.operation).is_none());
    std::thread::scope(|scope| {
        let reach = foreign.map(|epilogue| {
            scope.spawn(move || {
                let known = format!("{size:?}\n{task}\n{epilogue:?}");
                once(context, &known, || {
                    let key = emulator.key_of_epilogue(epilogue, task, size);
                    unless_kept(context, key, || emulator.judge_epilogue(epilogue, task, size))
                })
            })
        });
        let known = format!("{program}\n{}", source.text);
        let fused = once(context, &known, || {
            let columns = task.operation.columns() as usize;
            let entries = (SAMPLE * SAMPLE_COLUMNS / columns).clamp(LEAST_SAMPLE, SAMPLE);
            let pack = |sample: Csr<T>| pack(without_empty_columns(sample.view()).view(), program);
            // Few programs fit one run of rows only.
            let packed = pack(sample_rows(matrix, entries).matrix)
                .or_else(|_| pack(middle_rows(matrix, entries).matrix))
                .map_err(|error| misfit(&error))?;
            let packed = Arc::new(packed);
            let key = emulator.key_of_ending(&packed, ending);
            unless_kept(context, key, || emulator.judge_ending(&packed, ending))
        });
        let reach = reach.map(|thread| thread.join().map_err(panicked));
        // Where both find something, the same is reported in every run.
        fused?;
        reach.transpose()?.transpose()?;
        Ok(())
    })
}

/// Makes the trial that `known` names, unless it has found nothing wrong in this context.
fn once(
    context: &Context,
    known: &str,
    trial: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let known = blake3::hash(known.as_bytes());
    let right = || context.right_epilogues.lock().unwrap_or_else(PoisonError::into_inner);
    if right().contains(&known) {
        return Ok(());
    }
    trial()?;
    right().insert(known);
    Ok(())
}

/// Judges what a key stands for, unless it is kept that nothing is wrong with it.
fn unless_kept(
    context: &Context,
    key: Result<TrialKey, EmulatorError>,
    judge: impl FnOnce() -> Result<Judgement, EmulatorError>,
) -> Result<(), Failure> {
    let unknown = |error| epilogue_failure(&format!("it cannot be checked: {error}"));
    let key = key.map_err(unknown)?;
    let kept = context.found_right.as_ref();
    if kept.is_some_and(|kept| kept.contains(key)) {
        return Ok(());
    }
    let judged = judge().map_err(unknown)?;
    if !judged.outcome.is_right() {
        return Err(epilogue_failure(&judged.outcome.to_string()));
    }
    // What was tried in part may be tried elsewhere another time.
    if let Some(kept) = kept.filter(|_| judged.remark.is_none()) {
        kept.keep(key);
    }
    Ok(())
}

/// Why an epilogue is not used.
pub(crate) fn epilogue_failure(reason: &str) -> Failure {
    Failure::new(Status::Epilogue, format_args!("the epilogue is refused: {reason}"))
}

/// Why a program is not used.
pub(crate) fn misfit(error: &PackError) -> Failure {
    Failure::new(Status::Unsupported, format_args!("the program does not fit the matrix: {error}"))
}
