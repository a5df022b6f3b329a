//! From a fuzzer's bytes to a matrix, a task and a program: a byte for each choice, so that a
//! change of one byte is a change of one choice. Where the bytes end, every choice is the first.

use std::num::NonZeroU32;

use sparserl_core::arbitrary::{COLUMNS, filled};
use sparserl_core::language::{Derivation, Mask, Program, Token};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Task};

/// A matrix and a program.
#[derive(Clone, Debug)]
pub struct Case<T> {
    /// The matrix.
    pub matrix: Csr<T>,
    /// The program; its task has the element type of the matrix.
    pub program: Program,
    /// Whether the program is legal for the matrix. Others may be, but need not.
    pub is_legal: bool,
}

/// Bytes for a program's choices. They come before those of the matrix, so that a program meets
/// many matrices.
const PROGRAM: usize = 64;

/// The bytes that are left.
#[derive(Debug)]
pub struct Bytes<'b>(pub &'b [u8]);

impl Bytes<'_> {
    /// A matrix and a program for it: a legal one, one of the whole language, or what tokens in any
    /// order happen to make. None where they make none.
    pub fn case<T: Scalar>(mut self) -> Option<Case<T>> {
        let task = self.task(T::DTYPE);
        let kind = self.choose(4);
        let (program, matrix) = self.0.split_at(self.0.len().min(PROGRAM));
        let (mut choices, matrix) = (Self(program), Self(matrix).matrix());
        let program = match kind {
            0 | 1 => choices.program(Mask::legal(&MatrixStats::new(matrix.view()), task)),
            2 => choices.program(Mask::free(task)),
            _ => Program::from_tokens(task, &choices.tokens()).ok()?,
        };
        Some(Case { matrix, program, is_legal: kind < 2 })
    }

    /// The next byte; 0 after the last.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// One of `count` choices.
    pub fn choose(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// An operation, for an element type.
    pub fn task(&mut self, dtype: Dtype) -> Task {
        let operation = match self.choose(COLUMNS.len() + 1).checked_sub(1) {
            None => Operation::SpMV,
            Some(at) => Operation::SpMM { columns: NonZeroU32::new(COLUMNS[at]).unwrap() },
        };
        Task::new(operation, dtype)
    }

    /// A program that a mask allows.
    pub fn program(&mut self, mask: Mask<'_>) -> Program {
        let mut derivation = Derivation::start(mask);
        while !derivation.is_complete() {
            let legal = derivation.legal();
            assert!(!legal.is_empty(), "nothing may follow {:?}", derivation.tokens());
            derivation.push(legal[self.choose(legal.len())].token).unwrap();
        }
        derivation.finish().unwrap()
    }

    /// Any tokens, up to the most that fit a program and some more.
    pub fn tokens(&mut self) -> Vec<Token> {
        let count = self.choose(96);
        let next = |_| Token::from_id(self.choose(Token::VOCABULARY)).unwrap();
        (0..count).map(next).collect()
    }

    /// A matrix of up to 255 × 255, or rarely of up to 65,280 rows or columns; all bytes that are
    /// left are entries.
    pub fn matrix<T: Scalar>(mut self) -> Csr<T> {
        let (rows, cols) = (usize::from(self.byte()), usize::from(self.byte()));
        let sizes = match self.choose(16) {
            0 => (rows << 8, cols),
            1 => (rows, cols << 8),
            _ => (rows, cols),
        };
        let kinds = (usize::from(self.byte()), usize::from(self.byte()));
        // Patterns look at the upper bits too.
        let spread = |low, high| u32::from(u16::from_le_bytes([low, high])) * 0x1_0001;
        let entries = self.0.chunks_exact(5).map(|chunk| match *chunk {
            [a, b, c, d, value] => (spread(a, b), spread(c, d), u16::from(value) * 0x101),
            _ => (0, 0, 0),
        });
        filled(sizes, kinds, &entries.collect::<Vec<_>>())
    }
}
