//! A kernel of a plan: a program for A or for Aᵀ, made, and loaded where there is a GPU.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use sparserl_core::codegen::{
    Alignment, CudaSource, EmitError, Ending, Epilogue, Launch, row_alignment,
};
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::layout::{Packed, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::task::Values;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::run::operator::{DeviceArrays, EndingArguments, Operator, OperatorError};

use crate::context::{Context, Gpu};
use crate::map::Map;
use crate::options::DenseForm;
use crate::status::{Failure, Status, panicked};
use crate::trial::{epilogue_failure, misfit, try_epilogue};

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

/// Sources, launches and machine code.
#[derive(Clone)]
pub(crate) struct Code {
    /// z = αAx + βy where z is y or β is 0; absent with an epilogue.
    pub(crate) plain: Option<Compiled>,
    /// The same for any z, or with an epilogue.
    pub(crate) ending: Compiled,
    /// The same for matrices with leading dimensions, where the plan is for such: for rows that are
    /// aligned to vectors, and last for all.
    pub(crate) strided: Vec<Compiled>,
}

/// What is left of a kernel that was compiled, besides the arrays that all have in common.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) source: CudaSource,
    pub(crate) launch: Launch,
    pub(crate) cubin: Cubin,
}

/// What was found out about a kernel.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Known {
    /// Predicted seconds of a product.
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

/// The kernels of code, on a GPU.
pub(crate) struct Operators {
    pub(crate) plain: Option<Operator>,
    pub(crate) ending: Operator,
    pub(crate) strided: Vec<Operator>,
}

/// A kernel on a GPU.
pub(crate) struct Loaded {
    pub(crate) operators: Operators,
    pub(crate) arrays: Arc<DeviceArrays>,
    /// How values get into the arrays, where they may change.
    pub(crate) map: Option<Map>,
    /// Whether a graph may have it.
    pub(crate) captured: AtomicBool,
}

impl PlanKernel {
    /// The kernel that updates y, as it is measured: not compiled yet where the plan has an
    /// epilogue.
    pub(crate) fn without_ending(&self) -> Result<Kernel<Cubin>, EmitError> {
        let packed = Arc::clone(&self.packed);
        match &self.code.plain {
            Some(plain) => {
                let Compiled { source, launch, cubin } = plain.clone();
                let (pack_time, compile_time) = (Duration::ZERO, Duration::ZERO);
                Ok(Kernel { packed, source, launch, code: Some(cubin), pack_time, compile_time })
            }
            None => Kernel::written(packed, None, Duration::ZERO),
        }
    }

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
        let packed = Arc::new(pack(matrix, program).map_err(|error| misfit(&error))?);
        self.finish(matrix, packed, None, known)
    }

    /// The same of a kernel that was judged: what was judged is what is used. Its arrays are those
    /// of every kernel of its program; its code is that of the kernel without an ending only.
    pub(crate) fn make_of<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        judged: Kernel<Cubin>,
        known: Known,
    ) -> Result<PlanKernel, Failure> {
        let Kernel { packed, source, launch, code, .. } = judged;
        let plain = code.map(|cubin| Compiled { source, launch, cubin });
        self.finish(matrix, packed, plain, known)
    }

    /// Compiles what is not there yet, and loads all of it.
    fn finish<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: Arc<Packed>,
        plain: Option<Compiled>,
        known: Known,
    ) -> Result<PlanKernel, Failure> {
        let code = |packed: &Arc<Packed>| match self.epilogue {
            None => self.compile(packed, plain),
            // The epilogue is fused into the kernel: without it nothing is launched.
            Some(epilogue) => self.compile_fused(matrix, packed, epilogue),
        };
        self.load(matrix, packed, known, code)
    }

    /// The same with code that is there.
    pub(crate) fn restore<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: Arc<Packed>,
        code: Code,
        known: Known,
    ) -> Result<PlanKernel, Failure> {
        self.load(matrix, packed, known, |_| Ok(code))
    }

    /// Gets code, and loads it where there is a GPU, while the arrays are copied there.
    fn load<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: Arc<Packed>,
        known: Known,
        code: impl FnOnce(&Arc<Packed>) -> Result<Code, Failure>,
    ) -> Result<PlanKernel, Failure> {
        self.check_memory(&packed)?;
        let (code, loaded) = match &self.context.gpu {
            Ok(gpu) => {
                let (code, loaded) = self.load_to(gpu, matrix, &packed, code)?;
                (code, Some(loaded))
            }
            Err(_) => (code(&packed)?, None),
        };
        Ok(PlanKernel { packed, code, known, settled: Mutex::new(None), loaded })
    }

    fn load_to<T: Scalar>(
        &self,
        gpu: &Gpu,
        matrix: CsrView<'_, T>,
        packed: &Arc<Packed>,
        code: impl FnOnce(&Arc<Packed>) -> Result<Code, Failure>,
    ) -> Result<(Code, Loaded), Failure> {
        let arrays = DeviceArrays::allocate(&gpu.device, packed).map(Arc::new);
        thread::scope(|scope| {
            let fill = |arrays: &Arc<DeviceArrays>| {
                let arrays = Arc::clone(arrays);
                scope.spawn(move || arrays.fill(packed))
            };
            let filling = arrays.as_ref().ok().map(fill);
            let code = code(packed)?;
            let arrays = arrays?;
            let operators = self.operators(&arrays, packed, &code);
            let filled = filling.map(ScopedJoinHandle::join);
            // Whichever fails first, the same failure is reported.
            filled.transpose().map_err(panicked)?.transpose()?;
            let operators = operators?;
            let map = self.origins.map(|origins| Map::new(&gpu.device, matrix, packed, origins));
            let map = map.transpose()?;
            let captured = AtomicBool::new(false);
            Ok((code, Loaded { operators, arrays, map, captured }))
        })
    }

    /// Loads all kernels of the code.
    fn operators(
        &self,
        arrays: &Arc<DeviceArrays>,
        packed: &Packed,
        code: &Code,
    ) -> Result<Operators, Failure> {
        let operator = |Compiled { source, launch, cubin }: &Compiled, ending| {
            Operator::load(arrays, packed, (source, launch), cubin, ending)
        };
        let dense = packed.program.task.precision.dense();
        let user_bytes = self.epilogue.map_or(0, |epilogue| epilogue.user_bytes(dense));
        let ending = EndingArguments { has_old: true, has_leading: false, user_bytes };
        let leading = EndingArguments { has_leading: true, ..ending };
        let plain = code.plain.as_ref();
        let plain = plain.map(|code| operator(code, EndingArguments::default())).transpose()?;
        let strided = code.strided.iter().map(|code| operator(code, leading));
        Ok(Operators {
            plain,
            strided: strided.collect::<Result<_, _>>()?,
            ending: operator(&code.ending, ending)?,
        })
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

    /// Compiles what a plan without an epilogue runs, all at once. The plain kernel may be there
    /// already; the others have parameters for another result, and for leading dimensions, which
    /// those that are judged have not: their sources are others.
    fn compile(&self, packed: &Arc<Packed>, plain: Option<Compiled>) -> Result<Code, Failure> {
        let ending = written(packed, Some(&Ending::Apart))?;
        let strided = self.strided(packed)?;
        let make_plain = || self.compiled(written(packed, None)?);
        std::thread::scope(|scope| {
            let plain = scope.spawn(|| plain.map_or_else(make_plain, Ok));
            let spawn = |kernel| scope.spawn(|| self.compiled(kernel));
            let strided: Vec<_> = strided.into_iter().map(spawn).collect();
            let ending = self.compiled(ending)?;
            let strided = strided.into_iter().map(joined).collect::<Result<_, _>>()?;
            Ok(Code { plain: Some(joined(plain)?), ending, strided })
        })
    }

    /// Compiles a kernel with its epilogue, and tries it meanwhile: both take most of their time in
    /// the compiler's processes.
    fn compile_fused<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: &Arc<Packed>,
        epilogue: &Epilogue,
    ) -> Result<Code, Failure> {
        let ending = Ending::Fused(epilogue.clone());
        let fused = written(packed, Some(&ending))?;
        let (program, source) = (&packed.program, &fused.source.clone());
        let strided = self.strided(packed)?;
        std::thread::scope(|scope| {
            let try_it = || try_epilogue(self.context, matrix, program, (&ending, source));
            let tried = scope.spawn(try_it);
            let spawn = |kernel| scope.spawn(|| self.compiled(kernel));
            let strided: Vec<_> = strided.into_iter().map(spawn).collect();
            let ending = self.compiled(fused);
            let tried = tried.join().map_err(panicked);
            let ending = ending?;
            tried??;
            let strided = strided.into_iter().map(joined).collect::<Result<_, _>>()?;
            Ok(Code { plain: None, ending, strided })
        })
    }

    /// The kernels for matrices with leading dimensions, where the plan is for such: not compiled
    /// yet.
    pub(crate) fn strided(&self, packed: &Arc<Packed>) -> Result<Vec<Kernel<Cubin>>, Failure> {
        if self.dense != DenseForm::Strided {
            return Ok(Vec::new());
        }
        let task = packed.program.task;
        let alignments = [Alignment::Vectors, Alignment::Elements];
        // Vectors of one element are aligned wherever it is.
        let kinds = if row_alignment(task) > task.precision.dense().size() { 2 } else { 1 };
        let kernels = alignments.into_iter().take(kinds).map(|alignment| {
            let ending = Ending::Strided { epilogue: self.epilogue.cloned(), alignment };
            written(packed, Some(&ending))
        });
        kernels.collect()
    }

    fn compiled(&self, kernel: Kernel<Cubin>) -> Result<Compiled, Failure> {
        let compiled = kernel.compiled(&self.context.compiler, &|| Duration::ZERO);
        match compiled.map_err(|error| Failure::new(Status::NoCompiler, error))? {
            Ok(Kernel { source, launch, code: Some(cubin), .. }) => {
                Ok(Compiled { source, launch, cubin })
            }
            Ok(kernel) => Err(Failure::internal(format_args!(
                "the generated {} has no code",
                kernel.source.kernel
            ))),
            Err(refusal) if self.epilogue.is_some() => Err(epilogue_failure(&refusal.reason)),
            Err(refusal) => Err(Failure::internal(refusal)),
        }
    }
}

/// The kernel of a matrix that is packed, plain or with another ending; it is not compiled yet.
pub(crate) fn written(
    packed: &Arc<Packed>,
    ending: Option<&Ending>,
) -> Result<Kernel<Cubin>, Failure> {
    Kernel::written(Arc::clone(packed), ending, Duration::ZERO).map_err(Failure::internal)
}

/// What a thread compiled.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().map_err(panicked)?
}

impl From<OperatorError> for Failure {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Device(error) => error.into(),
            error => Self::internal(error),
        }
    }
}
