//! What the cost model knows of a finished program.

use std::sync::Arc;

use sparserl_core::language::{Program, TextError};
use sparserl_core::layout::{CostModel, PartCost};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::Task;

use crate::reference::reference;

/// Numbers of a program's terms.
pub const TERMS: usize = 20;

/// Computes the terms of programs for one matrix, task and GPU.
#[derive(Debug)]
pub struct ProgramTerms<'m> {
    model: CostModel<'m>,
    target: Target,
    /// Predicted seconds of the reference program.
    reference_seconds: f64,
}

impl<'m> ProgramTerms<'m> {
    /// Place of the logarithm of the predicted speed relative to the reference program: where a
    /// network's own prediction of the speed starts from.
    pub const PREDICTED: usize = 0;

    /// Terms of programs for a task on a matrix with these statistics, as the cost model has them.
    ///
    /// # Errors
    /// When the language lacks the reference program.
    pub fn new(stats: Arc<MatrixStats<'m>>, task: Task, target: Target) -> Result<Self, TextError> {
        let model = CostModel::new(stats, task, target);
        let reference = reference(task)?;
        let reference_seconds = model.cost(&reference).seconds;
        Ok(Self { model, target, reference_seconds })
    }

    /// The terms of a program of the model's task, each within [−4, 4] or close to it but
    /// for the first, which is within [−16, 16]:
    ///
    /// * log2 of the predicted speed relative to the reference program, not scaled down;
    /// * log2 / 4 of microseconds: predicted, of these the memory system's and the longest chain's,
    ///   and those in which the bytes that memory moves ([`PartCost::moved_bytes`]) pass through at
    ///   the GPU's bandwidth;
    /// * log2 / 4 of bytes, once for each column panel, ÷ bytes of plain CSR;
    /// * for each multiprocessor, log2 / 4: transactions ÷ 1024, steps of warps ÷ 1024, warps ÷ 64;
    /// * log2 / 4 of the steps of the warp with most, and of those that wait for each other;
    /// * log2 / 8 of 1 + bytes of workspace; a quarter of the number of parts, and of those
    ///   with lists of rows;
    /// * of the part that is predicted to take longest: its share of all parts' times, and as above
    ///   its chain, bytes ÷ plain CSR's, transactions, warps and steps that wait for each other.
    #[must_use]
    pub fn of(&self, program: &Program) -> [f32; TERMS] {
        let parts = self.model.parts(program);
        let constants = self.model.constants();
        let time = |part: &PartCost| part.time(constants, &self.target);
        let together = constants.time(&parts, &self.target);
        let seconds = together.seconds();
        let all = Sum::of(&parts);
        let slowest = parts.iter().max_by(|a, b| time(a).seconds().total_cmp(&time(b).seconds()));
        let each: f64 = parts.iter().map(|part| time(part).seconds()).sum();
        let longest = slowest.map_or(0.0, |part| time(part).seconds());
        let delay = slowest.map_or(0.0, |part| time(part).delay);
        let slowest = Sum::of(slowest);
        let multiprocessors = f64::from(self.target.multiprocessors.max(1));
        let bandwidth = self.target.bandwidth.max(1) as f64;
        let csr = self.model.csr_bytes() as f64;
        let relative = libm::log2(self.reference_seconds.max(1e-12) / seconds.max(1e-12));
        [
            (relative as f32).clamp(-16.0, 16.0),
            quarter_log(seconds * 1e6),
            quarter_log(together.busy * 1e6),
            quarter_log(together.delay * 1e6),
            quarter_log(all.moved_bytes / bandwidth * 1e6),
            quarter_log(all.matrix_bytes / csr),
            quarter_log(all.transactions / multiprocessors / 1024.0),
            quarter_log(all.total_steps / multiprocessors / 1024.0),
            quarter_log(all.warps / multiprocessors / 64.0),
            quarter_log(all.longest_steps),
            quarter_log(all.critical_steps),
            (libm::log2(1.0 + all.workspace_bytes) / 8.0) as f32,
            parts.len() as f32 / 4.0,
            parts.iter().filter(|part| part.listed).count() as f32 / 4.0,
            (longest / each.max(1e-12)) as f32,
            quarter_log(delay * 1e6),
            quarter_log(slowest.matrix_bytes / csr),
            quarter_log(slowest.transactions / multiprocessors / 1024.0),
            quarter_log(slowest.warps / multiprocessors / 64.0),
            quarter_log(slowest.critical_steps),
        ]
    }
}

/// Terms of several parts that run side by side.
#[derive(Default)]
struct Sum {
    matrix_bytes: f64,
    workspace_bytes: f64,
    moved_bytes: f64,
    transactions: f64,
    warps: f64,
    total_steps: f64,
    longest_steps: f64,
    critical_steps: f64,
}

impl Sum {
    fn of<'p>(parts: impl IntoIterator<Item = &'p PartCost>) -> Self {
        let mut sum = Self::default();
        for part in parts {
            sum.matrix_bytes += part.read_bytes() as f64;
            sum.workspace_bytes += part.workspace_bytes as f64;
            sum.moved_bytes += part.moved_bytes() as f64;
            sum.transactions += part.transactions;
            sum.warps += part.warps;
            sum.total_steps += part.total_steps;
            sum.longest_steps = sum.longest_steps.max(part.longest_steps);
            sum.critical_steps = sum.critical_steps.max(part.critical_steps);
        }
        sum
    }
}

/// log2(x) / 4, within [−4, 4] also where x is 0.
fn quarter_log(x: f64) -> f32 {
    (libm::log2(x.max(f64::MIN_POSITIVE)) as f32 / 4.0).clamp(-4.0, 4.0)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;
    use sparserl_core::arbitrary;
    use sparserl_core::decode::random_walk;
    use sparserl_core::language::Mask;
    use sparserl_core::language::Space;
    use sparserl_core::matrix::{Csr, generate};
    use sparserl_core::random::SplitMix64;
    use sparserl_core::task::{Dtype, Operation};

    use super::*;
    use crate::signature::INPUTS_VERSION;

    fn terms(matrix: &Csr<f32>, program: &Program, target: Target) -> [f32; TERMS] {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        ProgramTerms::new(stats, program.task, target).unwrap().of(program)
    }

    #[test]
    fn the_reference_is_as_fast_as_itself_and_others_are_as_the_model_says() {
        let matrix = generate::uniform(3000, 3000, 40, 1).cast::<f32>().unwrap();
        let task = Task::new(Operation::SpMV, Dtype::F32);
        let reference = reference(task).unwrap();
        assert_eq!(terms(&matrix, &reference, Target::H200)[ProgramTerms::PREDICTED], 0.0);
        let text = reference.to_string().replace("lanes=4", "lanes=32");
        let other = Program::parse(&text).unwrap();
        let model = CostModel::new(Arc::new(MatrixStats::new(matrix.view())), task, Target::H200);
        let ratio = model.cost(&reference).seconds / model.cost(&other).seconds;
        let found = terms(&matrix, &other, Target::H200)[ProgramTerms::PREDICTED];
        assert!((f64::from(found) - ratio.log2()).abs() < 1e-6 && found != 0.0);
    }

    /// FNV-1a hash of the terms of some programs, in thousandths.
    fn hash() -> u64 {
        let matrix = generate::rmat(9, 12, 1);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let spmm = Operation::SpMM { columns: NonZeroU32::new(32).unwrap() };
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut random = SplitMix64::new(1);
        for operation in [Operation::SpMV, spmm] {
            let task = Task::new(operation, Dtype::F64);
            let terms = ProgramTerms::new(Arc::clone(&stats), task, Target::H200).unwrap();
            for _ in 0..64 {
                let program = random_walk(Mask::legal(&stats, task), &mut random).unwrap();
                for number in terms.of(&program) {
                    let thousandths = f64::from(number * 1000.0).round() as i64;
                    for byte in thousandths.to_le_bytes() {
                        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                    }
                }
            }
        }
        hash
    }

    /// A change here is a change of what models were trained on, as of the cost model's constants:
    /// raise `INPUTS_VERSION`. Only where the language has grown, others are drawn and have to be
    /// written down.
    #[test]
    fn terms_are_those_of_the_version() {
        assert_eq!((INPUTS_VERSION, hash()), (6, 5_009_702_154_179_183_480));
    }

    proptest! {
        #[test]
        fn terms_of_legal_and_of_free_programs_are_of_moderate_size(
            case in arbitrary::case::<f32>(60, 60, 300),
            seed in any::<u64>(),
        ) {
            let mut random = SplitMix64::new(seed);
            let free = Space::new(Mask::free(case.program.task)).sample(|| random.bits());
            // Not all have room for what programs hold in shared memory.
            let targets = [Target::H200, Target::T4];
            let both = [&case.program, &free].map(|program| targets.map(|target| (program, target)));
            for &(program, target) in both.as_flattened() {
                let terms = terms(&case.matrix, program, target);
                prop_assert!(terms.iter().all(|x| x.is_finite() && x.abs() <= 16.0), "{terms:?}");
            }
        }
    }
}
