//! A kernel of a plan: a program for A or for Aᵀ, made, and loaded where there is a GPU.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use sparserl_core::codegen::{CudaSource, Ending, Epilogue, emit, emit_ending};
use sparserl_core::kernel::Compiler as _;
use sparserl_core::language::{LANGUAGE_VERSION, Program};
use sparserl_core::layout::{CostModel, PackError, Packed, pack};
use sparserl_core::matrix::{CsrView, Scalar, middle_rows, sample_rows};
use sparserl_core::task::{Task, Values};
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_gpu::run::operator::{DeviceArrays, EndingArguments, Operator, OperatorError};

use crate::context::Context;
use crate::map::Map;
use crate::status::{Failure, Status};

/// Entries that an epilogue is tried on, about; fewer where each is multiplied by a row of many
/// columns.
const EPILOGUE_SAMPLE: usize = 2_000;
/// Columns up to which it is that many.
const SAMPLE_COLUMNS: usize = 16;
/// Entries, at least.
const LEAST_SAMPLE: usize = 100;

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
        let code = self.compile(&packed)?;
        if let Some(epilogue) = self.epilogue {
            self.try_epilogue(matrix, program, epilogue)?;
        }
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
                let ending = match user {
                    0 => EndingArguments::Old,
                    bytes => EndingArguments::OldAndUser(bytes),
                };
                let plain = code.plain.as_ref();
                let plain = plain.map(|code| operator(code, EndingArguments::None)).transpose()?;
                let ending = operator(&code.ending, ending)?;
                let map =
                    self.origins.map(|origins| Map::new(&gpu.device, matrix, &packed, origins));
                let map = map.transpose()?;
                Some(Loaded { plain, ending, arrays, map, captured: AtomicBool::new(false) })
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

    /// Compiles what the plan runs, all at once.
    pub(crate) fn compile(&self, packed: &Packed) -> Result<Code, Failure> {
        let signature = packed.signature();
        let ending = match self.epilogue {
            Some(epilogue) => Ending::Fused(epilogue.clone()),
            None => Ending::Apart,
        };
        let ending =
            emit_ending(&packed.program, &signature, &ending).map_err(Failure::internal)?;
        if self.epilogue.is_some() {
            return Ok(Code { plain: None, ending: self.compiled(ending)? });
        }
        let plain = emit(&packed.program, &signature).map_err(Failure::internal)?;
        std::thread::scope(|scope| {
            let plain = scope.spawn(|| self.compiled(plain));
            let ending = self.compiled(ending)?;
            let plain = plain.join().map_err(|_| Failure::internal("compiling panicked"))??;
            Ok(Code { plain: Some(plain), ending })
        })
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

    /// Emulates the kernel with its epilogue on some rows of the matrix.
    fn try_epilogue<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        program: &Program,
        epilogue: &Epilogue,
    ) -> Result<(), Failure> {
        let context = self.context;
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
            .judge_ending(&Arc::new(packed), &Ending::Fused(epilogue.clone()))
            .map_err(|error| epilogue_failure(&format!("it cannot be checked: {error}")))?;
        if judged.outcome.is_right() {
            return Ok(());
        }
        Err(epilogue_failure(&judged.outcome.to_string()))
    }
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

/// Plain CSR, with as many threads for a row, and of matrices as many columns for a thread, as the
/// cost model finds best: the kernel that is there at once. Its predicted seconds come with it.
pub(crate) fn plain_csr(costs: &CostModel<'_>, task: Task) -> Result<(Program, f64), Failure> {
    let program = |vector: u32, lanes: u32, unroll: u32| {
        Program::parse(&format!(
            "sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\nkeep csr index=u32 values=plain \
             cache=cached vector={vector} lanes={lanes} unroll={unroll}\n"
        ))
    };
    let mut best: Option<(Program, f64)> = None;
    for vector in [1, 2, 4, 8] {
        for lanes in [1, 2, 4, 8, 16, 32] {
            for unroll in [1, 4] {
                // Not every task has every vector.
                let Ok(program) = program(vector, lanes, unroll) else { continue };
                let seconds = costs.cost(&program).seconds;
                if best.as_ref().is_none_or(|(_, least)| seconds < *least) {
                    best = Some((program, seconds));
                }
            }
        }
    }
    best.ok_or_else(|| Failure::internal("there is no plain CSR"))
}
