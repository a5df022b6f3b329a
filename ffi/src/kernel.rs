//! A kernel of a plan: a program for A or for Aᵀ, made, and loaded where there is a GPU.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use sparserl_core::codegen::EmitError;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::layout::{Packed, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::task::Values;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::run::operator::{DeviceArrays, EndingArguments, Operator, OperatorError};

use crate::code::{Code, Compiled, Recipe};
use crate::context::Gpu;
use crate::map::Map;
use crate::status::{Failure, Status, panicked};
use crate::trial::misfit;

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
}

impl From<OperatorError> for Failure {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Device(error) => error.into(),
            error => Self::internal(error),
        }
    }
}
