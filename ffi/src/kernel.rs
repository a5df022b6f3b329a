//! A kernel of a plan: a program for A or for Aᵀ, made, and loaded where there is a GPU.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use sparserl_core::codegen::{
    Alignment, CudaSource, Ending, Epilogue, emit, emit_ending, row_alignment,
};
use sparserl_core::kernel::Compiler as _;
use sparserl_core::language::{LANGUAGE_VERSION, Program};
use sparserl_core::layout::{CostModel, PackError, Packed, pack};
use sparserl_core::matrix::{CsrView, Scalar, middle_rows, sample_rows};
use sparserl_core::task::{Operation, Task, Values};
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_gpu::run::operator::{DeviceArrays, EndingArguments, Operator, OperatorError};

use crate::context::Context;
use crate::map::Map;
use crate::options::DenseForm;
use crate::status::{Failure, Status};

/// Entries that an epilogue is tried on, about; fewer where each is multiplied by a row of many
/// columns.
const EPILOGUE_SAMPLE: usize = 2_000;
/// Columns up to which it is that many.
const SAMPLE_COLUMNS: usize = 16;
/// Entries, at least.
const LEAST_SAMPLE: usize = 100;
/// How many times as fast plain CSR by merge path has to be predicted to be taken: it has a workspace, and the cost
/// model is not that exact.
const MERGE_GAIN: f64 = 1.5;
/// Indices and values as they are.
const PLAIN: &str = "index=u32 values=plain cache=cached";

/// A kernel, and what is known of it.
pub(crate) struct PlanKernel {
    pub(crate) packed: Arc<Packed>,
    pub(crate) code: Code,
    pub(crate) known: Known,
    /// The same at the end of a search that found nothing better.
    pub(crate) settled: Mutex<Option<Known>>,
    /// On the GPU; absent without one.
    pub(crate) loaded: Option<Loaded>,
}

/// Sources and machine code.
#[derive(Clone)]
pub(crate) struct Code {
    /// z = αAx + βy where z is y or β is 0; absent with an epilogue.
    pub(crate) plain: Option<(CudaSource, Cubin)>,
    /// The same for any z, or with an epilogue.
    pub(crate) ending: (CudaSource, Cubin),
    /// The same for matrices with leading dimensions, where the plan is for such: for rows that are
    /// aligned to vectors, and last for all.
    pub(crate) strided: Vec<(CudaSource, Cubin)>,
}

/// What was found out about a kernel.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Known {
    /// Seconds that the cost model expects of a product.
    pub(crate) predicted: f64,
    /// The same of plain CSR.
    pub(crate) csr_predicted: f64,
    /// Measured seconds of a product in a chain of them, with a warm cache.
    pub(crate) measured: Option<f64>,
    /// The same of plain CSR and of the best of cuSPARSE, measured in turn with it.
    pub(crate) csr: Option<f64>,
    pub(crate) cusparse: Option<f64>,
    /// Why it is this one, in a sentence.
    pub(crate) why: String,
}

/// A kernel on a GPU.
pub(crate) struct Loaded {
    pub(crate) plain: Option<Operator>,
    pub(crate) ending: Operator,
    pub(crate) strided: Vec<Operator>,
    pub(crate) arrays: Arc<DeviceArrays>,
    /// How values get into the arrays, where they may change.
    pub(crate) map: Option<Map>,
    /// Whether a graph may have it.
    pub(crate) captured: AtomicBool,
}

impl PlanKernel {
    /// Bytes of device memory that it takes, or would take.
    pub(crate) fn device_bytes(&self) -> u64 {
        device_bytes(&self.packed, self.packed.program.task.values == Values::Variable)
    }
}

fn device_bytes(packed: &Packed, is_variable: bool) -> u64 {
    let arrays: u64 = packed.arguments().map(|(_, array)| array.data.bytes().len() as u64).sum();
    // Where values may change, where each of them goes is kept, too.
    arrays + if is_variable { Map::bytes(packed) } else { 0 }
}

/// What a kernel is made of besides the matrix and the program.
pub(crate) struct Recipe<'a> {
    pub(crate) context: &'a Context,
    pub(crate) epilogue: Option<&'a Epilogue>,
    pub(crate) dense: DenseForm,
    /// Whether values may change, and for Aᵀ which entry of A each entry is.
    pub(crate) origins: Option<Option<&'a [u64]>>,
    /// Bytes of device memory that it may take.
    pub(crate) memory_limit: Option<u64>,
}

impl Recipe<'_> {
    /// Makes the kernel of a program: packed, compiled, its epilogue tried, loaded.
    pub(crate) fn make<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        program: &Program,
        known: Known,
    ) -> Result<PlanKernel, Failure> {
        let packed = pack(matrix, program).map_err(|error| misfit(&error))?;
        self.check_memory(&packed)?;
        let code = match self.epilogue {
            None => self.compile(&packed)?,
            Some(epilogue) => self.compile_fused(matrix, &packed, epilogue)?,
        };
        self.load(matrix, Arc::new(packed), code, known)
    }

    /// Loads what was compiled already.
    pub(crate) fn load<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: Arc<Packed>,
        code: Code,
        known: Known,
    ) -> Result<PlanKernel, Failure> {
        self.check_memory(&packed)?;
        let loaded = match &self.context.gpu {
            Err(_) => None,
            Ok(gpu) => {
                let arrays = Arc::new(DeviceArrays::upload(&gpu.device, &packed)?);
                let operator = |(source, cubin): &(CudaSource, Cubin), ending| {
                    Operator::load(&arrays, &packed, source, cubin, ending)
                };
                let user = self.epilogue.map_or(0, |epilogue| {
                    epilogue.user_bytes(packed.program.task.precision.dense())
                });
                let ending =
                    EndingArguments { has_old: true, has_leading: false, user_bytes: user };
                let leading = EndingArguments { has_leading: true, ..ending };
                let plain = code.plain.as_ref();
                let plain = plain.map(|code| operator(code, EndingArguments::default()));
                let plain = plain.transpose()?;
                let strided = code.strided.iter().map(|code| operator(code, leading));
                let strided = strided.collect::<Result<_, _>>()?;
                let ending = operator(&code.ending, ending)?;
                let map =
                    self.origins.map(|origins| Map::new(&gpu.device, matrix, &packed, origins));
                let map = map.transpose()?;
                let captured = AtomicBool::new(false);
                Some(Loaded { plain, ending, strided, arrays, map, captured })
            }
        };
        Ok(PlanKernel { packed, code, known, settled: Mutex::new(None), loaded })
    }

    fn check_memory(&self, packed: &Packed) -> Result<(), Failure> {
        let bytes = device_bytes(packed, self.origins.is_some());
        match self.memory_limit {
            Some(limit) if bytes > limit => {
                let text =
                    format!("the plan needs {bytes} bytes of device memory, and may take {limit}");
                Err(Failure::new(Status::MemoryLimit, text))
            }
            _ => Ok(()),
        }
    }

    /// Compiles what a plan without an epilogue runs, all at once.
    fn compile(&self, packed: &Packed) -> Result<Code, Failure> {
        let (program, signature) = (&packed.program, packed.signature());
        let ending = emit_ending(program, &signature, &Ending::Apart).map_err(Failure::internal)?;
        let plain = emit(program, &signature).map_err(Failure::internal)?;
        let strided = self.strided_sources(packed)?;
        std::thread::scope(|scope| {
            let plain = scope.spawn(|| self.compiled(plain));
            let spawn = |source| scope.spawn(|| self.compiled(source));
            let strided: Vec<_> = strided.into_iter().map(spawn).collect();
            let ending = self.compiled(ending)?;
            let strided = strided.into_iter().map(joined).collect::<Result<_, _>>()?;
            Ok(Code { plain: Some(joined(plain)?), ending, strided })
        })
    }

    /// Compiles a kernel with its epilogue, and tries it meanwhile: both take most of their time in the compiler's
    /// processes.
    fn compile_fused<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: &Packed,
        epilogue: &Epilogue,
    ) -> Result<Code, Failure> {
        let (program, ending) = (&packed.program, Ending::Fused(epilogue.clone()));
        let source =
            emit_ending(program, &packed.signature(), &ending).map_err(Failure::internal)?;
        let strided = self.strided_sources(packed)?;
        std::thread::scope(|scope| {
            let tried = scope.spawn(|| self.try_epilogue(matrix, program, &ending, &source));
            let spawn = |source| scope.spawn(|| self.compiled(source));
            let strided: Vec<_> = strided.into_iter().map(spawn).collect();
            let ending = self.compiled(source.clone());
            let tried = tried.join().map_err(|_| Failure::internal("emulating panicked"));
            let ending = ending?;
            tried??;
            let strided = strided.into_iter().map(joined).collect::<Result<_, _>>()?;
            Ok(Code { plain: None, ending, strided })
        })
    }

    /// The kernels for matrices with leading dimensions, where the plan is for such.
    pub(crate) fn strided_sources(&self, packed: &Packed) -> Result<Vec<CudaSource>, Failure> {
        if self.dense != DenseForm::Strided {
            return Ok(Vec::new());
        }
        let task = packed.program.task;
        let alignments = [Alignment::Vectors, Alignment::Elements];
        // Vectors of one element are aligned wherever it is.
        let kinds = if row_alignment(task) > task.precision.dense().size() { 2 } else { 1 };
        let sources = alignments.into_iter().take(kinds).map(|alignment| {
            let ending = Ending::Strided { epilogue: self.epilogue.cloned(), alignment };
            emit_ending(&packed.program, &packed.signature(), &ending).map_err(Failure::internal)
        });
        sources.collect()
    }

    fn compiled(&self, source: CudaSource) -> Result<(CudaSource, Cubin), Failure> {
        let compiled = self.context.compiler.compile(&source);
        match compiled.map_err(|error| Failure::new(Status::NoCompiler, error))? {
            Ok(cubin) => Ok((source, cubin)),
            Err(reason) if self.epilogue.is_some() => Err(epilogue_failure(&reason)),
            Err(reason) => Err(Failure::internal(format_args!(
                "the generated {} is refused: {reason}",
                source.kernel
            ))),
        }
    }

    /// Emulates the kernel of a program with its epilogue on some rows of the matrix, once for all plans of the
    /// context.
    fn try_epilogue<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        program: &Program,
        ending: &Ending,
        source: &CudaSource,
    ) -> Result<(), Failure> {
        let context = self.context;
        let known = blake3::hash(format!("{program}\n{}", source.text).as_bytes());
        let right = || context.right_epilogues.lock().unwrap_or_else(PoisonError::into_inner);
        if right().contains(&known) {
            return Ok(());
        }
        let pool = Arc::clone(&context.pool);
        let options = EmulationOptions::default();
        let emulator = EmulatorEvaluator::open(pool, context.target.architecture, options);
        let emulator = emulator.map_err(|error| Failure::new(Status::NoCompiler, error))?;
        let columns = program.task.operation.columns() as usize;
        let entries =
            (EPILOGUE_SAMPLE * SAMPLE_COLUMNS / columns).clamp(LEAST_SAMPLE, EPILOGUE_SAMPLE);
        let sample = sample_rows(matrix, entries).matrix;
        // Few programs fit one run of rows only.
        let packed = match pack(sample.view(), program) {
            Ok(packed) => packed,
            Err(_) => {
                let sample = middle_rows(matrix, entries).matrix;
                pack(sample.view(), program).map_err(|error| misfit(&error))?
            }
        };
        let judged = emulator
            .judge_ending(&Arc::new(packed), ending)
            .map_err(|error| epilogue_failure(&format!("it cannot be checked: {error}")))?;
        if judged.outcome.is_right() {
            right().insert(known);
            return Ok(());
        }
        Err(epilogue_failure(&judged.outcome.to_string()))
    }
}

/// What a thread compiled.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().map_err(|_| Failure::internal("compiling panicked"))?
}

fn epilogue_failure(reason: &str) -> Failure {
    Failure::new(Status::Epilogue, format_args!("the epilogue is refused: {reason}"))
}

fn misfit(error: &PackError) -> Failure {
    Failure::new(Status::Mismatch, format_args!("the program does not fit the matrix: {error}"))
}

impl From<OperatorError> for Failure {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Device(error) => error.into(),
            error => Self::internal(error),
        }
    }
}

/// Plain CSR, the kernel that is there at once: with as many threads for a row, and of matrices as many columns for
/// a thread, as the cost model finds best; or, where rows are so long or so uneven that it is by far better, by merge
/// path (Merrill and Garland, SC 2016), for which little is to be computed. Predicted seconds come with the programs:
/// the best, and what may take less memory.
pub(crate) fn plain_csr(costs: &CostModel<'_>, task: Task) -> impl Iterator<Item = (Program, f64)> {
    let by_rows = by_rows(costs, task);
    let least = by_rows.as_ref().map_or(f64::INFINITY, |(_, seconds)| *seconds);
    let by_path = by_merge_path(costs, task);
    by_path.filter(|(_, seconds)| MERGE_GAIN * seconds <= least).into_iter().chain(by_rows)
}

fn by_rows(costs: &CostModel<'_>, task: Task) -> Option<(Program, f64)> {
    let mut layouts = Vec::new();
    for vector in [1, 2, 4, 8] {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for unroll in [1, 4] {
                layouts.push(format!("csr {PLAIN} vector={vector} lanes={lanes} unroll={unroll}"));
            }
        }
    }
    fastest(costs, task, layouts)
}

fn by_merge_path(costs: &CostModel<'_>, task: Task) -> Option<(Program, f64)> {
    let (items, vectors, reductions): (&[u32], &[u32], &[&str]) = match task.operation {
        Operation::SpMV => (&[4, 8], &[1], &["scan", "4", "32"]),
        Operation::SpMM { .. } => (&[32, 128], &[1, 2, 4], &["scan"]),
    };
    let mut layouts = Vec::new();
    for items in items {
        for vector in vectors {
            for reduction in reductions {
                layouts.push(format!(
                    "merge items={items} {PLAIN} vector={vector} reduction={reduction}"
                ));
            }
        }
    }
    fastest(costs, task, layouts)
}

/// The fastest of some layouts, as programs write them, by the cost model.
fn fastest(costs: &CostModel<'_>, task: Task, layouts: Vec<String>) -> Option<(Program, f64)> {
    // Not every task has every one of them.
    let programs = layouts.into_iter().filter_map(|layout| {
        let text = format!("sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\nkeep {layout}\n");
        Program::parse(&text).ok()
    });
    let timed = programs.map(|program| {
        let seconds = costs.cost(&program).seconds;
        (program, seconds)
    });
    timed.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use sparserl_core::matrix::{Csr, generate};
    use sparserl_core::structure::MatrixStats;
    use sparserl_core::target::Target;
    use sparserl_core::task::Dtype;

    use super::*;

    #[test]
    fn rows_of_very_different_lengths_are_cut_by_merge_path() {
        let layout = |matrix: &Csr<f64>, operation| {
            let task = Task::new(operation, Dtype::F64);
            let stats = Arc::new(MatrixStats::new(matrix.view()));
            let costs = CostModel::new(stats, task, Target::H200);
            let (program, _) = plain_csr(&costs, task).next().unwrap();
            program
                .to_string()
                .lines()
                .last()
                .unwrap()
                .split_whitespace()
                .nth(1)
                .unwrap()
                .to_owned()
        };
        let (uneven, even) =
            (generate::one_dense_row(20_000, 20_000, 1), generate::stencil5(300, 300));
        let columns = NonZero::new(8).unwrap();
        for operation in [Operation::SpMV, Operation::SpMM { columns }] {
            assert_eq!(layout(&uneven, operation), "merge", "{operation:?}");
            assert_eq!(layout(&even, operation), "csr", "{operation:?}");
        }
    }
}
