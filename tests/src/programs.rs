//! Programs drawn at random, the same for the same seed.

use std::num::NonZeroU32;

use sparserl_core::arbitrary::{COLUMNS, legal_program, random_bits};
use sparserl_core::language::{Derivation, Mask, Program};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Precision, Task, Values};

/// Rows and entries up to which programs are drawn evenly. Beyond it the facts of every way to
/// split and sort the rows, which even drawing has to know, take longer than the rest of a test.
const EVEN: usize = 3_000;

/// SpMV (0 columns) or SpMM.
#[must_use]
pub fn task(columns: u32, precision: impl Into<Precision>) -> Task {
    let operation =
        NonZeroU32::new(columns).map_or(Operation::SpMV, |columns| Operation::SpMM { columns });
    Task { operation, precision: precision.into(), values: Values::Fixed }
}

/// The task number `index` of a cycle through SpMV and SpMM of all widths, in all precisions.
#[must_use]
pub fn nth_task(index: usize) -> Task {
    let precision = match index % 8 {
        0 | 4 => Precision::uniform(Dtype::F32),
        1 | 5 => Precision::uniform(Dtype::F64),
        2 => Precision::uniform(Dtype::F16),
        6 => Precision::uniform(Dtype::BF16),
        _ => Precision::F32_IN_F64,
    };
    // SpMV each third time: it is what most kernels are for.
    if index.is_multiple_of(3) {
        return task(0, precision);
    }
    task(COLUMNS[(index - index / 3) % COLUMNS.len()], precision)
}

/// A program that is legal for a matrix: for even seeds and small matrices drawn evenly from all of
/// them, else with an even choice at each token. Nearly all programs have as many parts as can be,
/// so that the first alone would seldom meet a short one.
#[must_use]
pub fn legal<T: Scalar>(matrix: CsrView<'_, T>, task: Task, seed: u64) -> Program {
    let is_small = matrix.rows() + matrix.nnz() <= EVEN;
    if is_small && seed.is_multiple_of(2) {
        legal_program(matrix, task, seed)
    } else {
        token_by_token(matrix, task, seed)
    }
}

fn token_by_token<T: Scalar>(matrix: CsrView<'_, T>, task: Task, seed: u64) -> Program {
    let stats = MatrixStats::new(matrix);
    let mut random = random_bits(seed);
    loop {
        let mut derivation = Derivation::start(Mask::legal(&stats, task));
        while let Some(choice) = {
            let legal = derivation.legal();
            let choice = (random() as usize).checked_rem(legal.len());
            choice.and_then(|choice| legal.get(choice).map(|alternative| alternative.token))
        } {
            // One of the legal tokens.
            let _ = derivation.push(choice);
        }
        if let Ok(program) = derivation.finish() {
            return program;
        }
    }
}
