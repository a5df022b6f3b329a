//! What a network is given of a matrix, a task and a GPU, as arrays of fixed shape.

use sparserl_core::decode::PolicyInput;
use sparserl_core::structure::{DensityGrids, EmbeddingConfig, Features};
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task, Values};

/// Numbers that say what is computed.
const TASK_SCALARS: usize = 13;
/// Numbers that say on which GPU.
const TARGET_SCALARS: usize = 6;
/// Numbers that follow from matrix, task and GPU together.
const DERIVED_SCALARS: usize = 4;
/// Length of [`Inputs::scalars`].
pub const SCALARS: usize = Features::COUNT + TASK_SCALARS + TARGET_SCALARS + DERIVED_SCALARS;

/// The inputs of a network's encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// [`SCALARS`] numbers; see [`scalars`].
    pub scalars: Vec<f32>,
    /// [`DensityGrids::CELLS`] numbers: 8×8, 16×16 and 32×32 cells, row by row, in [0, 1].
    pub grids: Vec<f32>,
    /// Embedded nonzeros, each of `config.token_width()` numbers in [−1, 1] (except where indices
    /// are raw), at most `config.max_tokens`.
    pub tokens: Vec<f32>,
    /// How the nonzeros are embedded.
    pub config: EmbeddingConfig,
}

/// How large a matrix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixSize {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Entries.
    pub nnz: u64,
}

impl Inputs {
    /// What a network that was made with this embedding is given.
    #[must_use]
    pub fn new(input: &PolicyInput<'_>, config: &EmbeddingConfig) -> Self {
        let (embedding, stats) = (&input.embedding, &input.stats);
        let tokens = if embedding.config == *config {
            embedding.tokens.clone()
        } else {
            stats.sampled_positions(config.max_tokens).embed(config)
        };
        Self {
            scalars: Self::scalars(input).to_vec(),
            grids: embedding.grids.cells().to_vec(),
            tokens,
            config: *config,
        }
    }

    /// The [`scalars`] of an input alone, for whoever looks at no pictures.
    #[must_use]
    pub fn scalars(input: &PolicyInput<'_>) -> [f32; SCALARS] {
        let stats = &input.stats;
        let (rows, cols, nnz) = (stats.rows_count(), stats.cols(), stats.nnz());
        let size = MatrixSize { rows: rows as u64, cols: cols as u64, nnz: nnz as u64 };
        scalars(&input.embedding.features, size, input.task, &input.target)
    }

    /// Embedded nonzeros.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.tokens.len() / self.config.token_width().max(1)
    }
}

const _: () = assert!(DensityGrids::CELLS == 1344, "the documentation of `grids` says so");

/// What is known of a matrix, a task and a GPU beside pictures, each number within about [−4, 4]
/// (features within [−8, 8]):
///
/// * the [`Features`] of the matrix;
/// * the task: SpMM or not, log2(columns of the dense operand) / 4, one of three for the types of
///   matrix, dense operands and sums (32 bits, 64, 16), and one of two for values (fixed,
///   variable). Of the types of 16 bits, in which the same programs take the same time, no more is
///   said;
/// * the GPU: log2 of multiprocessors / 128, of L2 / 64 MiB, of shared memory / 128 KiB, of
///   registers / 65536, of bandwidth / 2 TB/s, and the architecture's number / 100;
/// * log2 / 4 of what decides the regime: bytes of plain CSR ÷ L2, bytes of the dense operands ÷
///   L2, rows ÷ warps and entries ÷ threads that the GPU holds.
#[must_use]
pub fn scalars(
    features: &Features,
    size: MatrixSize,
    task: Task,
    target: &Target,
) -> [f32; SCALARS] {
    let is = |condition: bool| f32::from(u8::from(condition));
    let dtype = |dtype: Dtype| [4, 8, 2].map(|size| is(dtype.size() == size));
    let (precision, columns) = (task.precision, f64::from(task.operation.columns()));
    let is_spmm = is(matches!(task.operation, Operation::SpMM { .. }));
    let operation = [is_spmm, ratio_log(columns, 1.0) / 4.0];
    let dtypes = [precision.matrix(), precision.dense(), precision.accumulator()].map(dtype);
    let values = [Values::Fixed, Values::Variable].map(|values| is(task.values == values));
    let of_task = operation.into_iter().chain(dtypes.into_iter().flatten()).chain(values);
    let multiprocessors = f64::from(target.multiprocessors);
    let l2 = target.l2_bytes as f64;
    let of_target: [f32; TARGET_SCALARS] = [
        ratio_log(multiprocessors, 128.0),
        ratio_log(l2, 67_108_864.0),
        ratio_log(f64::from(target.shared_memory_bytes), 131_072.0),
        ratio_log(f64::from(target.registers), 65_536.0),
        ratio_log(target.bandwidth as f64, 2e12),
        target.architecture.number() as f32 / 100.0,
    ];
    let (rows, cols, nnz) = (size.rows as f64, size.cols as f64, size.nnz as f64);
    // The offsets of 64 bits that more than 2³² entries need make no difference to a logarithm.
    let csr = nnz * (4.0 + precision.matrix().size() as f64) + 4.0 * (rows + 1.0);
    let dense = (rows + cols) * columns * precision.dense().size() as f64;
    let derived: [f32; DERIVED_SCALARS] = [
        ratio_log(csr, l2) / 4.0,
        ratio_log(dense, l2) / 4.0,
        ratio_log(rows, 64.0 * multiprocessors) / 4.0,
        ratio_log(nnz, 2048.0 * multiprocessors) / 4.0,
    ];
    let mut scalars = [0.0; SCALARS];
    let all = features.to_array().into_iter().chain(of_task).chain(of_target).chain(derived);
    for (place, number) in scalars.iter_mut().zip(all) {
        *place = number;
    }
    scalars
}

/// log2(x ÷ unit), within [−16, 16] also where one is 0.
fn ratio_log(x: f64, unit: f64) -> f32 {
    (libm::log2(x.max(f64::MIN_POSITIVE) / unit.max(f64::MIN_POSITIVE)) as f32).clamp(-16.0, 16.0)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Arc;

    use proptest::prelude::*;
    use sparserl_core::arbitrary;
    use sparserl_core::matrix::{Csr, generate};
    use sparserl_core::structure::{IndexScaling, MatrixStats};
    use sparserl_core::task::Precision;

    use super::*;

    fn inputs(matrix: &Csr<f32>, task: Task, target: Target, config: &EmbeddingConfig) -> Inputs {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        Inputs::new(&PolicyInput::new(stats, task, target), config)
    }

    #[test]
    fn other_embeddings_of_positions_are_made_from_the_same_positions() {
        let matrix = generate::uniform(500, 700, 9, 1).cast::<f32>().unwrap();
        let task = Task::new(Operation::SpMV, Dtype::F32);
        let usual = EmbeddingConfig::default();
        let of = |config: &EmbeddingConfig| inputs(&matrix, task, Target::H200, config);
        let (scaled, few) = (of(&usual), of(&EmbeddingConfig { max_tokens: 64, ..usual }));
        assert_eq!(scaled.n_tokens(), scaled.tokens.len() / 128);
        assert!(few.n_tokens() <= 64 && few.n_tokens() > 50);
        let max_min = of(&EmbeddingConfig { scaling: IndexScaling::MaxMin, ..usual });
        assert_eq!(max_min.n_tokens(), scaled.n_tokens());
        assert_eq!(max_min.tokens.len(), 2 * max_min.n_tokens());
        assert_eq!((&max_min.scalars, &max_min.grids), (&scaled.scalars, &scaled.grids));
    }

    #[test]
    fn tasks_and_targets_are_told_apart() {
        let matrix = generate::stencil5(20, 20).cast::<f32>().unwrap();
        let config = EmbeddingConfig::default();
        let columns = NonZeroU32::new(32).unwrap();
        let mut seen: Vec<Vec<f32>> = Vec::new();
        for operation in [Operation::SpMV, Operation::SpMM { columns }] {
            // What costs the same in both types of 16 bits is said alike.
            let told = Precision::ALL.into_iter().filter(|p| p.matrix() != Dtype::BF16);
            for precision in told {
                for values in [Values::Fixed, Values::Variable] {
                    for (_, target) in Target::PRESETS {
                        let task = Task { operation, precision, values };
                        seen.push(inputs(&matrix, task, target, &config).scalars);
                    }
                }
            }
        }
        for (i, scalars) in seen.iter().enumerate() {
            assert!(seen[..i].iter().all(|other| other != scalars));
        }
    }

    proptest! {
        #[test]
        fn scalars_are_of_moderate_size(
            matrix in arbitrary::csr::<f32>(60, 60, 300),
            task in arbitrary::task(Dtype::F32),
            preset in 0..Target::PRESETS.len(),
        ) {
            let (_, target) = Target::PRESETS[preset];
            let inputs = inputs(&matrix, task, target, &EmbeddingConfig::default());
            prop_assert_eq!(inputs.scalars.len(), SCALARS);
            prop_assert!(inputs.scalars.iter().all(|x| x.is_finite() && x.abs() <= 8.0));
        }
    }
}
