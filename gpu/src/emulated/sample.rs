//! Launches that are too large to emulate: some blocks of them, in which much that is wrong shows.
//!
//! Blocks may run in any order, so that those that are run may be the first. What is found of them
//! is true, but for waiting. Blocks do not say which rows they compute; most compute rows in the
//! order of their numbers. Those are chosen that then write where numbers of 32 bits wrap, elements
//! or bytes, and around the beginning and the end of the output.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::time::Instant;

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::Outcome;
use sparserl_core::reference;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::finding::FindingKind;
use sparserl_emulator::launch::{Options, Sample};
use sparserl_emulator::machine::run_sample;
use sparserl_emulator::memory::{BufferId, MOST_BYTES, Memory};

use super::checks::{check_size, fresh_workspace, give, in_words, inexact, launch_of};
use super::named_columns::{NamedColumns, number, words};
use super::{EmulatorError, Judgement, verdict};
use crate::candidate::executable::Prepared;

/// Instructions of warps after which no more blocks begin: some seconds.
const INSTRUCTIONS: u64 = 20_000_000;
/// Blocks at most.
const MOST_BLOCKS: usize = 4096;
/// Of each part of the output of so many bytes the first is written by blocks that are chosen: a
/// signed byte offset wraps there.
const PART: u64 = 1 << 31;
/// Parts at least.
const FEWEST_PARTS: u64 = 8;
/// Places at each end of a grid's shorter axes.
const AT_ENDS: u64 = 8;

/// A kernel and what it is tried on, as in a trial.
pub(super) struct Sampling<'a, A, D> {
    kernel: &'a Kernel,
    prepared: &'a Prepared,
    matrix: CsrView<'a, A>,
    /// Columns of the dense operands.
    width: usize,
    dense: PhantomData<D>,
}

impl<'a, A: Scalar, D: Scalar> Sampling<'a, A, D> {
    pub(super) fn new(
        kernel: &'a Kernel,
        prepared: &'a Prepared,
        matrix: CsrView<'a, A>,
        width: usize,
    ) -> Result<Self, EmulatorError> {
        for rows in [matrix.rows(), matrix.cols()] {
            check_size(rows, width, MOST_BYTES / size_of::<D>())?;
        }
        Ok(Self { kernel, prepared, matrix, width, dense: PhantomData })
    }

    /// What is wrong with some of the blocks.
    ///
    /// # Errors
    /// When nothing is.
    pub(super) fn judge(&self, until: Option<Instant>) -> Result<Judgement, EmulatorError> {
        let grid = self.prepared.launch.geometry.grid;
        let [rows, cols] = [self.matrix.rows(), self.matrix.cols()].map(|n| n * self.width);
        let refusal = |ran, remark| EmulatorError::Launch {
            blocks: grid.iter().fold(1, |n: u64, &size| n.saturating_mul(size.into())),
            elements: rows as u64,
            ran,
            remark,
        };
        if self.kernel.cluster.is_some() {
            return Err(refusal(0, None));
        }
        let mut memory = Memory::new();
        let input = |memory: &mut Memory, name: &str| {
            memory.computed(name, cols * size_of::<D>(), words(number::<D>))
        };
        let output = |memory: &mut Memory, name: &str| {
            memory.uninitialised_pages(name, rows * size_of::<D>())
        };
        let workspace = fresh_workspace(self.prepared);
        let given = give::<D>(self.prepared, &mut memory, input, output, self.factors(), workspace);
        let launch = launch_of(self.prepared, given.arguments);
        let blocks = chosen(grid, (rows * size_of::<D>()) as u64);
        let sample = Sample { blocks, instructions: INSTRUCTIONS };
        let options = Options { budget: INSTRUCTIONS, until, ..Options::default() };
        let judgement = |outcome, findings| Judgement {
            outcome,
            findings,
            counters: None,
            ptx_instructions: Some(self.kernel.code.len()),
            remark: None,
        };
        let mut report = match run_sample(self.kernel, &launch, &mut memory, &options, &sample) {
            Ok(report) => report,
            Err(error) => {
                let outcome = Outcome::LaunchFailed { reason: error.to_string() };
                return Ok(judgement(outcome, Vec::new()));
            }
        };
        verdict::forgive_wraps(&mut report);
        let found = report.findings.len();
        // Blocks that have not begun may be waited for.
        let is_limit = |kind| {
            matches!(kind, FindingKind::Endless | FindingKind::OverBudget | FindingKind::GivenUp)
        };
        report.findings.retain(|finding| !is_limit(finding.kind));
        let has_ended = report.findings.len() == found;
        if let Some(outcome) = verdict::of_findings(&report.findings) {
            report.findings.extend(report.remarks);
            return Ok(judgement(outcome, report.findings));
        }
        // Of what several blocks add up or hand on, some blocks do a part.
        if has_ended
            && !self.kernel.has_strong_accesses()
            && let Some(outcome) =
                given.output.map(|output| self.compare(&memory, output)).transpose()?.flatten()
        {
            let outcome = verdict::with_remarks(outcome, &report.remarks);
            return Ok(judgement(outcome, report.remarks));
        }
        let warps = launch.block.iter().product::<u32>().div_ceil(32).max(1);
        let ran = if has_ended { report.counters.warps / u64::from(warps) } else { 0 };
        Err(refusal(ran, report.remarks.into_iter().next().map(Box::new)))
    }

    /// α and β.
    fn factors(&self) -> [D::Accumulator; 2] {
        [1.0, 0.0].map(D::Accumulator::from_f64)
    }

    /// What is wrong with elements that were written.
    fn compare(&self, memory: &Memory, output: BufferId) -> Result<Option<Outcome>, EmulatorError> {
        let size = size_of::<D>();
        let row_bytes = self.width * size;
        let touched = memory.touched(output);
        let rows_of =
            touched.iter().map(|range| range.start / row_bytes..range.end.div_ceil(row_bytes));
        let rows: BTreeSet<usize> = rows_of.flatten().collect();
        let rows: Vec<usize> = rows.into_iter().collect();
        let named = NamedColumns::of_rows(self.matrix, rows.iter().copied())?;
        let input = named.numbers::<D>(self.width);
        let [alpha, beta] = self.factors();
        let reference = reference::multiply(named.matrix(), &input, self.width, alpha, beta, &[])?;
        let places =
            rows.iter().flat_map(|row| (0..self.width).map(move |place| row * self.width + place));
        let elements = places.zip(&reference.values).map(|(place, &expected)| {
            match memory.element(output, place * size, size as u32) {
                Some(bits) => D::from_bits(bits),
                // Other blocks write it.
                None => D::from_f64(expected),
            }
        });
        let found: Vec<D> = elements.collect();
        let comparison = reference::compare(&reference, &found);
        if comparison.passed() || comparison.unbounded > 0 {
            return Ok(None);
        }
        let row_of = |row: usize| rows.get(row).copied().unwrap_or_default();
        let how = "of those that some blocks write";
        let results = (&reference, found.as_slice());
        let factors = in_words(self.prepared, [alpha, beta]);
        Ok(Some(inexact(how, &factors, (self.width, row_of), results, comparison)))
    }
}

/// Blocks of a grid that writes so many bytes, in the order in which they begin.
fn chosen(grid: [u32; 3], bytes: u64) -> Vec<[u32; 3]> {
    let axis = (0..3).max_by_key(|&axis| grid[axis]).unwrap_or(0);
    let [long, a, b] = [0, 1, 2].map(|step| u64::from(grid[(axis + step) % 3]));
    let others = a * b;
    let others: Vec<u64> =
        (0..others).filter(|&at| at < AT_ENDS || at + AT_ENDS >= others).collect();
    let mut part = PART;
    while part > 1 && bytes / part < FEWEST_PARTS {
        part /= 2;
    }
    let last = long.saturating_sub(1);
    let starts: Vec<u64> = (0..=bytes.div_ceil(part))
        .map(|number| {
            let at = u128::from(number * part) * u128::from(long) / u128::from(bytes.max(1));
            u64::try_from(at).unwrap_or(last).min(last)
        })
        .collect();
    let mut places = BTreeSet::new();
    let mut blocks = Vec::new();
    let around = MOST_BLOCKS / (starts.len() * others.len()).max(1);
    for step in 0..=around as u64 {
        for start in &starts {
            // From there in both directions, in turn.
            let at = match step % 2 {
                0 => start + step / 2,
                _ => start.wrapping_sub(step.div_ceil(2)),
            };
            if at > last || !places.insert(at) {
                continue;
            }
            for other in &others {
                let mut block = [0; 3];
                for (step, at) in [at, other % a, other / a].into_iter().enumerate() {
                    block[(axis + step) % 3] = at as u32;
                }
                blocks.push(block);
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_chosen_where_numbers_wrap() {
        // A block for each row of 128 single-precision numbers.
        let rows = 40_000_000_u32;
        let blocks = chosen([rows, 1, 1], u64::from(rows) * 512);
        assert!((1000..=MOST_BLOCKS + 20).contains(&blocks.len()), "{}", blocks.len());
        let first = &blocks[..11];
        let wraps = [0, 1, 4, 8].map(|parts| [parts << 22, 0, 0]);
        assert!(wraps.iter().all(|block| first.contains(block)), "{first:?}");
        assert!(first.contains(&[rows - 1, 0, 0]));
        assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len());
        assert!(blocks.contains(&[(8 << 22) + 100, 0, 0]) && blocks.contains(&[100, 0, 0]));
        assert!(blocks.iter().all(|&[x, ..]| x < rows));
    }

    #[test]
    fn shorter_axes_are_covered() {
        let blocks = chosen([4, 1 << 24, 1], 1 << 33);
        let of_row = |row: u32| blocks.iter().filter(|[_, y, _]| *y == row).count();
        assert_eq!([0, 1 << 22, (1 << 24) - 1].map(of_row), [4; 3]);
        let blocks = chosen([1 << 20, 1000, 3], 1 << 33);
        assert!(blocks.contains(&[0, 0, 0]) && blocks.contains(&[(1 << 20) - 1, 999, 2]));
        assert!(blocks.len() <= 2 * MOST_BLOCKS);
    }

    #[test]
    fn small_grids_are_chosen_as_a_whole() {
        for (grid, bytes) in [([132, 1, 1], 1 << 33), ([1, 1, 1], 7), ([3, 1, 2], 0)] {
            let count = grid.iter().product::<u32>() as usize;
            assert_eq!(chosen(grid, bytes).len(), count, "{grid:?}");
        }
    }
}
