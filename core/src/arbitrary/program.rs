//! Tasks and programs, and matrices together with programs for them.

use std::num::NonZeroU32;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::csr;
use crate::language::{Mask, Program, Space, Token};
use crate::matrix::{Csr, CsrView, Scalar};
use crate::random::SplitMix64;
use crate::structure::MatrixStats;
use crate::task::{Operation, Precision, Task, Values};

/// Columns of the dense operand worth meeting: below, at and above the width of a vector and of a
/// warp, powers of two and not.
pub const COLUMNS: [u32; 14] = [1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 128, 130, 256];

/// A matrix, and a program for it.
#[derive(Clone, Debug)]
pub struct Case<T> {
    /// The matrix.
    pub matrix: Csr<T>,
    /// The program; its task's precision has the element type of the matrix.
    pub program: Program,
}

/// Tasks in a precision: SpMV, and SpMM with [`COLUMNS`].
pub fn task(precision: impl Into<Precision>) -> impl Strategy<Value = Task> + Clone {
    let precision = precision.into();
    let spmm = select(&COLUMNS[..]).prop_filter_map("not 0", |columns| {
        Some(Operation::SpMM { columns: NonZeroU32::new(columns)? })
    });
    let operation = prop_oneof![Just(Operation::SpMV), spmm];
    operation.prop_map(move |operation| Task { operation, precision, values: Values::Fixed })
}

/// A matrix as of [`csr`] and a program that is legal for it, drawn evenly from all of them.
///
/// Shrinking changes the matrix, and with it the program that the same random numbers give.
pub fn case<T: Scalar>(
    max_rows: usize,
    max_cols: usize,
    max_nnz: usize,
) -> impl Strategy<Value = Case<T>> {
    case_in(T::DTYPE, max_rows, max_cols, max_nnz)
}

/// A matrix in type `T` and a program that is legal for it, as [`case`] draws them; the task has
/// `precision`, whose matrix must be of type `T`.
pub fn case_in<T: Scalar>(
    precision: impl Into<Precision>,
    max_rows: usize,
    max_cols: usize,
    max_nnz: usize,
) -> impl Strategy<Value = Case<T>> {
    let matrix = csr::<T>(max_rows, max_cols, max_nnz);
    (matrix, task(precision), any::<u64>()).prop_map(|(matrix, task, seed)| {
        let program = legal_program(matrix.view(), task, seed);
        Case { matrix, program }
    })
}

/// A matrix as of [`csr`] and a program drawn evenly from the whole language, which need not fit.
pub fn free_case<T: Scalar>(
    max_rows: usize,
    max_cols: usize,
    max_nnz: usize,
) -> impl Strategy<Value = Case<T>> {
    let matrix = csr::<T>(max_rows, max_cols, max_nnz);
    (matrix, task(T::DTYPE), any::<u64>())
        .prop_map(|(matrix, task, seed)| Case { matrix, program: free_program(task, seed) })
}

/// Any tokens of the vocabulary, up to `most`, in any order.
pub fn tokens(most: usize) -> impl Strategy<Value = Vec<Token>> {
    let vocabulary: Vec<Token> = Token::all().collect();
    proptest::collection::vec(select(vocabulary), 0..=most)
}

/// The tokens of a program of the whole language after one or two edits: a token replaced, removed,
/// inserted or swapped with another.
pub fn mutated_tokens(task: Task) -> impl Strategy<Value = Vec<Token>> {
    let vocabulary: Vec<Token> = Token::all().collect();
    let edit = (0..4_u8, any::<Index>(), any::<Index>(), select(vocabulary));
    (any::<u64>(), proptest::collection::vec(edit, 1..=2)).prop_map(move |(seed, edits)| {
        let mut tokens = free_program(task, seed).tokens();
        for (kind, at, other, token) in edits {
            let (here, there) = (at.index(tokens.len()), other.index(tokens.len()));
            match kind {
                0 => tokens[here] = token,
                // Never down to nothing, so that the next edit finds a place.
                1 if tokens.len() > 1 => drop(tokens.remove(here)),
                2 => tokens.swap(here, there),
                _ => tokens.insert(here, token),
            }
        }
        tokens
    })
}

/// A program that is legal for a matrix, drawn evenly from all of them: the same for the same seed.
#[must_use]
pub fn legal_program<T: Scalar>(matrix: CsrView<'_, T>, task: Task, seed: u64) -> Program {
    let stats = MatrixStats::new(matrix);
    Space::new(Mask::legal(&stats, task)).sample(random_bits(seed))
}

/// A program drawn evenly from the whole language: the same for the same seed.
#[must_use]
pub fn free_program(task: Task, seed: u64) -> Program {
    Space::new(Mask::free(task)).sample(random_bits(seed))
}

/// Random 64-bit numbers, the same for the same seed on every machine.
pub fn random_bits(seed: u64) -> impl FnMut() -> u64 {
    let mut random = SplitMix64::new(seed);
    move || random.bits()
}
