//! Programs as the emulator runs their kernels: a legal one compiles, computes the product within
//! the error bound and does nothing that a GPU would hide; so does any other that fits the matrix.

use std::sync::{Arc, LazyLock};

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::Outcome;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::Compilers;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorError, EmulatorEvaluator};

use crate::bytes::{Bytes, Case};

/// Elements of a dense operand that are emulated in milliseconds.
const MOST_ELEMENTS: usize = 1 << 14;

static EVALUATOR: LazyLock<EmulatorEvaluator> = LazyLock::new(|| {
    let compilers = Compilers::discover().expect("install NVRTC first: tests/install-nvrtc.sh");
    let options = EmulationOptions {
        seeds: 2,
        checks: 2,
        budget: Some(1_000_000),
        ..EmulationOptions::default()
    };
    // Blocks of panels and bins have room on this one.
    EmulatorEvaluator::in_process(Arc::new(compilers), Architecture::Sm90, options).unwrap()
});

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    match bytes.choose(2) {
        0 => judge::<f32>(bytes),
        _ => judge::<f64>(bytes),
    }
}

fn judge<T: Scalar>(bytes: Bytes<'_>) {
    let Some(Case { matrix, program, is_legal }) = bytes.case::<T>() else { return };
    let columns = program.task.operation.columns() as usize;
    if matrix.rows().max(matrix.cols()) * columns > MOST_ELEMENTS {
        return;
    }
    let judgement = match EVALUATOR.judge_program(matrix.view(), &program) {
        Ok(judgement) => judgement,
        // Values as large as that show nothing.
        Err(EmulatorError::Range { .. }) => return,
        Err(error) => panic!("{error}\n{program}"),
    };
    let outcome = &judgement.outcome;
    assert_eq!(outcome.to_string().lines().count(), 1, "{outcome}");
    let unfit = !is_legal && matches!(outcome, Outcome::CompileFailed { .. });
    assert!(outcome.is_right() || unfit, "{outcome}\n{:?}\n{program}", judgement.findings);
}
