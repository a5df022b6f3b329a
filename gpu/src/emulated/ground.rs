//! Judging kernels without a GPU: on all rows of a matrix where they are few, else on a sample of
//! them.
//!
//! A program is generated anew for the rows that it is emulated on: same layouts, same device code,
//! but other array lengths, and a smaller grid. Whoever is told of a result is told of the rows,
//! too.

use std::fmt;

use serde::{Deserialize, Serialize};
use sparserl_core::kernel::{Kernel, WriteError};
use sparserl_core::language::{Derivation, Mask, Program};
use sparserl_core::layout::{EmulatedCost, PackError, pack};
use sparserl_core::matrix::{CsrView, RowSample, Scalar, middle_rows, sample_rows};
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::Operation;

use super::{Counters, EmulatorError, EmulatorEvaluator, Judgement};
use crate::candidate::Candidate;
use crate::compile::nvrtc::Cubin;

/// Entries that are emulated unless asked otherwise, each counted once for each column of the dense
/// operand: a second or so a candidate.
pub const DEFAULT_SAMPLE: usize = 100_000;
/// Rows that are emulated at least, however many columns there are.
const FEWEST: usize = 64;

/// What kernels are emulated on.
pub struct Ground<'m, T> {
    whole: CsrView<'m, T>,
    /// Tried in this order; the whole where there are none.
    samples: Vec<RowSample<T>>,
}

/// A judgement, and what it is about.
#[derive(Debug)]
pub struct Emulated {
    /// What was found out.
    pub judgement: Judgement,
    /// The rows that it was emulated on.
    pub extent: Extent,
}

/// A kernel cannot be judged on these rows.
#[derive(Debug, thiserror::Error)]
pub enum GroundError {
    /// The emulator failed.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// The program does not fit any of the samples.
    #[error("the program does not fit a sample of the rows: {0}")]
    Misfit(PackError),
}

/// The rows that a kernel was emulated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// All of the matrix.
    whole: bool,
    rows: usize,
    entries: usize,
    /// Rows that lost entries, because they alone have too many.
    shortened: usize,
}

impl<'m, T: Scalar> Ground<'m, T> {
    /// Emulates kernels on all rows of a matrix.
    pub fn whole(matrix: CsrView<'m, T>) -> Self {
        Self { whole: matrix, samples: Vec::new() }
    }

    /// To emulate rows with at most so many entries, each counted once for each column of the dense
    /// operand; all rows where they have no more.
    pub fn sampled(matrix: CsrView<'m, T>, most: usize, operation: Operation) -> Self {
        let most = (most / operation.columns() as usize).max(FEWEST);
        let sample = sample_rows(matrix, most);
        if sample.matrix.rows() == matrix.rows() && sample.shortened == 0 {
            return Self::whole(matrix);
        }
        // Few programs fit one run of rows only: diagonals do not survive gaps.
        Self { whole: matrix, samples: vec![sample, middle_rows(matrix, most)] }
    }

    /// All rows.
    pub fn extent(&self) -> Extent {
        let (rows, entries) = (self.whole.rows(), self.whole.nnz());
        Extent { whole: true, rows, entries, shortened: 0 }
    }

    /// Judges a kernel of the whole matrix: itself where all rows are emulated, and else what its
    /// program is on fewer of them.
    ///
    /// # Errors
    /// When the emulator fails, or when the program does not fit what it is emulated on.
    pub fn judge(
        &self,
        emulator: &EmulatorEvaluator,
        candidate: Candidate<'_>,
    ) -> Result<Emulated, GroundError> {
        if let (Candidate::Kernel(kernel), false) = (candidate, self.samples.is_empty()) {
            return self.judge_program(emulator, &kernel.packed.program);
        }
        let (rows, extent) = self.samples.first().map_or((self.whole, self.extent()), sampled);
        Ok(Emulated { judgement: emulator.judge(rows, candidate)?, extent })
    }

    /// Judges the kernel of a program on what is emulated; it is made for these rows only.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn judge_program(
        &self,
        emulator: &EmulatorEvaluator,
        program: &Program,
    ) -> Result<Emulated, GroundError> {
        let Some(Sampled { rows, kernel, extent }) = self.sample_for(program)? else {
            let judgement = emulator.judge_program(self.whole, program)?;
            return Ok(Emulated { judgement, extent: self.extent() });
        };
        let judgement = emulator.judge(rows, Candidate::Kernel(&kernel))?;
        Ok(Emulated { judgement, extent })
    }

    /// The first sample that a program fits, with its kernel; nothing where all rows are emulated.
    fn sample_for(&self, program: &Program) -> Result<Option<Sampled<'_, T>>, GroundError> {
        let mut misfit = None;
        for (rows, extent) in self.samples.iter().map(sampled) {
            match Kernel::for_matrix(rows, program) {
                Ok(kernel) => return Ok(Some(Sampled { rows, kernel, extent })),
                Err(WriteError::Pack(error)) => misfit = misfit.or(Some(error)),
                Err(WriteError::Emit(error)) => return Err(EmulatorError::from(error).into()),
            }
        }
        misfit.map_or(Ok(None), |error| Err(GroundError::Misfit(error)))
    }
}

/// Some rows, and what a program is on them.
struct Sampled<'g, T> {
    rows: CsrView<'g, T>,
    kernel: Kernel<Cubin>,
    extent: Extent,
}

/// Rows of a sample, and what they are.
fn sampled<T: Scalar>(sample: &RowSample<T>) -> (CsrView<'_, T>, Extent) {
    let RowSample { matrix, shortened, .. } = sample;
    let (rows, entries, shortened) = (matrix.rows(), matrix.nnz(), *shortened);
    (matrix.view(), Extent { whole: false, rows, entries, shortened })
}

/// Whether a program fits a matrix with these statistics. Every legal program does, and legality is
/// a matter of statistics; the matrix is packed only for programs that no search would write.
pub fn fits<T: Scalar>(matrix: CsrView<'_, T>, stats: &MatrixStats<'_>, program: &Program) -> bool {
    is_legal::<T>(stats, program) || pack(matrix, program).is_ok()
}

fn is_legal<T: Scalar>(stats: &MatrixStats<'_>, program: &Program) -> bool {
    if program.task.precision.matrix() != T::DTYPE {
        return false;
    }
    let mut derivation = Derivation::start(Mask::legal(stats, program.task));
    let tokens = program.tokens();
    tokens.into_iter().all(|token| derivation.push(token).is_ok()) && derivation.is_complete()
}

impl Extent {
    /// Whether they are all of the matrix.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The counters of a launch on these rows, for a dense operand of so many columns.
    pub fn cost(&self, columns: u64, counters: &Counters) -> EmulatedCost {
        EmulatedCost {
            products: self.entries as u64 * columns,
            warps: counters.warps,
            warp_instructions: counters.warp_instructions,
            longest_warp: counters.longest_warp,
            longest_warp_loads: counters.longest_warp_loads,
            loads: counters.global_loads,
            load_sectors: counters.global_load_sectors,
            store_sectors: counters.global_store_sectors,
            atomics: counters.global_atomics,
            shared_cycles: counters.shared_accesses + counters.bank_conflicts,
            barrier_waits: counters.barrier_waits,
            divergent_branches: counters.divergent_branches,
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.whole {
            return f.write_str("the whole matrix");
        }
        write!(
            f,
            "a sample of {} rows with {} entries",
            grouped(self.rows),
            grouped(self.entries)
        )?;
        match self.shortened {
            0 => Ok(()),
            1 => f.write_str(", the longest row shortened"),
            more => write!(f, ", {more} long rows shortened"),
        }
    }
}

/// A number with its digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::{Csr, generate};

    use super::*;

    fn program(body: &str) -> Program {
        Program::parse(&format!("sparserl 3\nspmv f64\nblock 128\n{body}\n")).unwrap()
    }

    fn extent(ground: &Ground<'_, f64>, body: &str) -> Result<Extent, GroundError> {
        let sample = ground.sample_for(&program(body))?;
        Ok(sample.map_or(ground.extent(), |sample| sample.extent))
    }

    #[test]
    fn few_rows_are_emulated_all() {
        let matrix = generate::stencil5(20, 20);
        let ground = Ground::sampled(matrix.view(), 2_000, Operation::SpMV);
        let extent = extent(
            &ground,
            "keep csr index=u32 values=plain cache=cached vector=1 lanes=16 unroll=4",
        )
        .unwrap();
        assert_eq!(extent.to_string(), "the whole matrix");
        assert_eq!((extent.rows, extent.entries), (400, matrix.nnz()));
    }

    #[test]
    fn diagonals_are_emulated_in_one_run() {
        let matrix = generate::stencil5(100, 100);
        let ground = Ground::sampled(matrix.view(), 5_000, Operation::SpMV);
        let csr = extent(
            &ground,
            "keep csr index=u32 values=plain cache=cached vector=1 lanes=16 unroll=4",
        )
        .unwrap();
        let dia =
            extent(&ground, "keep dia values=plain cache=cached vector=1 rows=1 unroll=4").unwrap();
        assert!(!csr.whole && !dia.whole);
        assert!(csr.entries <= 5_000 && dia.entries <= 5_000);
        assert_ne!(csr, dia);
        let text = dia.to_string();
        assert!(text.starts_with("a sample of ") && text.ends_with(" entries"), "{text}");
    }

    #[test]
    fn legality_says_what_fits_without_packing() {
        let matrix = generate::stencil5(100, 100);
        let csr =
            program("keep csr index=u32 values=plain cache=cached vector=1 lanes=16 unroll=4");
        let stats = MatrixStats::new(matrix.view());
        assert!(is_legal::<f64>(&stats, &csr) && fits(matrix.view(), &stats, &csr));
        let wide = generate::uniform(10_000, 100_000, 4, 1);
        let narrow =
            program("keep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4");
        let stats = MatrixStats::new(wide.view());
        assert!(!is_legal::<f64>(&stats, &narrow) && !fits(wide.view(), &stats, &narrow));
        let single: Csr<f32> = matrix.cast().unwrap();
        let stats = MatrixStats::new(single.view());
        assert!(!fits(single.view(), &stats, &csr));
    }

    #[test]
    fn what_fits_no_sample_is_said() {
        let matrix = generate::uniform(10_000, 100_000, 4, 1);
        let ground = Ground::sampled(matrix.view(), 5_000, Operation::SpMV);
        let error = extent(
            &ground,
            "keep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
        )
        .unwrap_err()
        .to_string();
        assert!(error.starts_with("the program does not fit a sample of the rows: "), "{error}");
    }
}
