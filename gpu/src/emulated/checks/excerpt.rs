//! The blocks of a launch by which it goes wrong first: what changes of a kernel leave wrong there
//! need not be launched as a whole.

use sparserl_core::matrix::Scalar;
use sparserl_core::reference::{self, Reference};
use sparserl_emulator::code::Kernel;
use sparserl_emulator::finding::FindingKind;
use sparserl_emulator::launch::{Launch, Options, Sample};
use sparserl_emulator::machine::run_sample;
use sparserl_emulator::memory::Memory;

use super::super::diagnosis::{Failure, number, position};
use super::super::verdict;
use super::{Kept, Operands, Trial};

/// Blocks that begin with it are run along with one up to here: it may wait for them.
const FIRST: u32 = 8;
/// How many times as many blocks a launch has to have at least.
const PART: u64 = 4;

/// Some blocks of a launch, and what these do wrong by themselves.
pub(super) struct Excerpt {
    sample: Sample,
    /// Elements that they leave wrong; none where they have findings.
    wrong: Vec<usize>,
}

impl Excerpt {
    /// The blocks up to one of a grid, or that one, if these are a small part of it.
    fn sample_of(grid: [u32; 3], block: [u32; 3]) -> Option<Sample> {
        let number = number(block, grid);
        let first = if number < FIRST { 0 } else { number };
        let blocks = (first..=number).map(|number| position(number, grid));
        let blocks: Vec<[u32; 3]> = blocks.collect();
        let all: u64 = grid.into_iter().map(u64::from).product();
        let is_part = blocks.len() as u64 * PART <= all;
        is_part.then_some(Sample { blocks, instructions: u64::MAX >> 2 })
    }
}

impl<A: Scalar, D: Scalar> Trial<'_, A, D> {
    /// The first blocks of a launch that went wrong, if they do likewise by themselves. Elements
    /// that they leave as the whole launch does are all theirs.
    pub(super) fn excerpt(
        &self,
        failure: &Failure<'_, A, D>,
        found_in: Option<[u32; 3]>,
        operands: &Operands<D>,
        before: &Kept,
        how: &Options,
    ) -> Option<Excerpt> {
        let (block, wrong) = match found_in {
            Some(block) => (block, Vec::new()),
            None => failure.first_wrong_block()?,
        };
        let sample = Excerpt::sample_of(self.prepared.launch.geometry.grid, block)?;
        let mut excerpt = Excerpt { sample, wrong };
        let how = Options { until_fault: true, ..how.clone() };
        let kept = before.copied();
        let (findings, output, _) =
            self.run_excerpt(&excerpt, self.kernel, operands, kept, &how)?;
        if found_in.is_some() {
            return (!findings.is_empty() && !findings.iter().copied().any(may_be_for_others))
                .then_some(excerpt);
        }
        let bits = |of: &[D], at: usize| of.get(at).map(|one| bytemuck::bytes_of(one).to_vec());
        excerpt.wrong.retain(|&at| bits(&output, at) == bits(failure.output, at));
        (findings.is_empty() && !excerpt.wrong.is_empty()).then_some(excerpt)
    }

    /// Whether a changed kernel may be right as a whole, and how many instructions it took to see
    /// that.
    pub(super) fn may_be_right(
        &self,
        excerpt: &Excerpt,
        kernel: &Kernel,
        reference: &Reference,
        (operands, kept): (&Operands<D>, Kept),
        how: &Options,
    ) -> (bool, u64) {
        let Some((findings, output, executed)) =
            self.run_excerpt(excerpt, kernel, operands, kept, how)
        else {
            return (true, 0);
        };
        if !findings.is_empty() {
            return (findings.into_iter().any(may_be_for_others), executed);
        }
        let last = excerpt.wrong.last().copied().unwrap_or(0);
        let mut still =
            reference::violations(reference, &output).take_while(|&element| element <= last);
        (!still.any(|element| excerpt.wrong.contains(&element)), executed)
    }

    /// What the blocks alone find, give and execute.
    fn run_excerpt(
        &self,
        excerpt: &Excerpt,
        kernel: &Kernel,
        operands: &Operands<D>,
        kept: Kept,
        how: &Options,
    ) -> Option<(Vec<FindingKind>, Vec<D>, u64)> {
        let by = |launch: &Launch, memory: &mut Memory| {
            run_sample(kernel, launch, memory, how, &excerpt.sample)
        };
        let mut launched = self.launch_by(by, operands, kept).ok()?;
        verdict::forgive_wraps(&mut launched.report);
        let findings = launched.report.findings.iter().map(|finding| finding.kind).collect();
        Some((findings, launched.output, launched.report.counters.instructions))
    }
}

/// Whether blocks may be found to do that because others have not begun.
fn may_be_for_others(kind: FindingKind) -> bool {
    use FindingKind::{AbsentBlock, Deadlock, Endless, GivenUp, OverBudget};
    matches!(kind, AbsentBlock | Deadlock | Endless | GivenUp | OverBudget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_up_to_one_are_run_along_with_it() {
        let blocks = |grid, block| Excerpt::sample_of(grid, block).map(|sample| sample.blocks);
        assert_eq!(blocks([5, 2, 1], [1, 0, 0]), Some(vec![[0, 0, 0], [1, 0, 0]]));
        assert_eq!(blocks([5, 9, 1], [1, 3, 0]), Some(vec![[1, 3, 0]]));
        assert_eq!(blocks([3, 1, 1], [0, 0, 0]), None);
    }
}
