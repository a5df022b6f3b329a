//! Trying epilogues before they are used: what one does outside of its arrays on a GPU, the
//! caller's CUDA context does not survive.

use std::sync::{Arc, PoisonError};

use sparserl_core::codegen::{CudaSource, Ending, Epilogue};
use sparserl_core::language::Program;
use sparserl_core::layout::{PackError, Packed, pack};
use sparserl_core::matrix::{
    Csr, CsrView, Scalar, generate, middle_rows, sample_rows, without_empty_columns,
};
use sparserl_gpu::emulated::found_right::TrialKey;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError, EmulatorEvaluator, Judgement};

use crate::context::Context;
use crate::epilogue::ready_name;
use crate::plain::all_plain_csr;
use crate::status::{Failure, Status, panicked};

/// Entries that an epilogue is tried on within its kernel, about; fewer where each is multiplied by
/// a row of many columns.
const SAMPLE: usize = 2_000;
/// Columns up to which it is that many.
const SAMPLE_COLUMNS: usize = 16;
/// Entries, at least.
const LEAST_SAMPLE: usize = 100;
/// Rows that it is tried on ahead, as an exponent of 2.
const AHEAD_SCALE: u32 = 7;

/// Tries an epilogue in two ways at once: within the kernel of a program, on some rows of the
/// matrix; and by itself, at places all over the result. Each is done once for all plans of the
/// context, and not where the same trial has found nothing wrong in an earlier one, nor in the
/// kernel where it was tried in that ahead.
pub(crate) fn try_epilogue<T: Scalar>(
    context: &Context,
    matrix: CsrView<'_, T>,
    program: &Program,
    (epilogue, source): (&Epilogue, &CudaSource),
) -> Result<(), Failure> {
    let (task, emulator) = (program.task, &emulator(context)?);
    let size = (matrix.rows(), matrix.cols());
    // What those that are ready reach, no matrix changes.
    let foreign = Some(epilogue).filter(|_| ready_name(epilogue, task.operation).is_none());
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
            // What plans do not begin with may not fit the rows that are the same for all.
            let is_plain = || all_plain_csr(task).any(|plain| plain == *program);
            let is_kept =
                || WithinKernel::ahead::<T>(emulator, program, epilogue)?.is_kept(context);
            if context.found_right.is_some() && is_plain() && is_kept()? {
                return Ok(());
            }
            WithinKernel::of(emulator, matrix, program, epilogue)?.make(context)
        });
        let reach = reach.map(|thread| thread.join().map_err(panicked));
        // Where both find something, the same is reported in every run.
        fused?;
        reach.transpose()?.transpose()?;
        Ok(())
    })
}

/// Tries an epilogue within the kernel of a program that plans may begin with, so that none of them
/// has to, whatever its matrix. By itself it is for each of them to try: what it reaches depends on
/// the sizes.
pub(crate) fn try_ahead<T: Scalar>(
    context: &Context,
    program: &Program,
    epilogue: &Epilogue,
) -> Result<(), Failure> {
    WithinKernel::ahead::<T>(&emulator(context)?, program, epilogue)?.make(context)
}

fn emulator(context: &Context) -> Result<EmulatorEvaluator, Failure> {
    let options = EmulationOptions::default();
    let emulator = EmulatorEvaluator::with_compiler(context.compiler.clone(), options);
    emulator.map_err(|error| Failure::new(Status::NoCompiler, error))
}

/// The trial of an epilogue within the kernel of a program, on some rows of a matrix.
struct WithinKernel<'a> {
    emulator: &'a EmulatorEvaluator,
    packed: Arc<Packed>,
    ending: Ending,
}

impl<'a> WithinKernel<'a> {
    fn of<T: Scalar>(
        emulator: &'a EmulatorEvaluator,
        matrix: CsrView<'_, T>,
        program: &Program,
        epilogue: &Epilogue,
    ) -> Result<Self, Failure> {
        let columns = program.task.operation.columns() as usize;
        let entries = (SAMPLE * SAMPLE_COLUMNS / columns).clamp(LEAST_SAMPLE, SAMPLE);
        let pack = |sample: Csr<T>| pack(without_empty_columns(sample.view()).view(), program);
        // Few programs fit one run of rows only.
        let packed = pack(sample_rows(matrix, entries).matrix)
            .or_else(|_| pack(middle_rows(matrix, entries).matrix))
            .map_err(|error| misfit(&error))?;
        let ending = Ending::Fused(epilogue.clone());
        Ok(Self { emulator, packed: Arc::new(packed), ending })
    }

    /// The one that is made ahead: on the same rows always, some of which are long, short or empty.
    fn ahead<T: Scalar>(
        emulator: &'a EmulatorEvaluator,
        program: &Program,
        epilogue: &Epilogue,
    ) -> Result<Self, Failure> {
        let rows = generate::rmat(AHEAD_SCALE, SAMPLE >> AHEAD_SCALE, 1);
        let rows = rows.cast::<T>().map_err(Failure::internal)?;
        Self::of(emulator, rows.view(), program, epilogue)
    }

    /// Whether it has found nothing wrong before.
    fn is_kept(&self, context: &Context) -> Result<bool, Failure> {
        let Some(kept) = &context.found_right else { return Ok(false) };
        let key = self.emulator.key_of_ending(&self.packed, &self.ending);
        Ok(kept.contains(key.map_err(unknown)?))
    }

    fn make(&self, context: &Context) -> Result<(), Failure> {
        let Self { emulator, packed, ending } = self;
        let key = emulator.key_of_ending(packed, ending);
        unless_kept(context, key, || emulator.judge_ending(packed, ending))
    }
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

#[allow(clippy::needless_pass_by_value, reason = "what maps errors gives them away")]
fn unknown(error: EmulatorError) -> Failure {
    epilogue_failure(&format!("it cannot be checked: {error}"))
}

/// Why an epilogue is not used.
pub(crate) fn epilogue_failure(reason: &str) -> Failure {
    Failure::new(Status::Epilogue, format_args!("the epilogue is refused: {reason}"))
}

/// Why a program is not used.
pub(crate) fn misfit(error: &PackError) -> Failure {
    Failure::new(Status::Unsupported, format_args!("the program does not fit the matrix: {error}"))
}
