//! What a plan runs of a packed matrix: sources, and what they are compiled to.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use sparserl_core::codegen::{Alignment, CudaSource, Ending, Epilogue, Launch, row_alignment};
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::Packed;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_gpu::compile::nvrtc::Cubin;

use crate::context::Context;
use crate::options::DenseForm;
use crate::status::{Failure, Status, panicked};
use crate::trial::{epilogue_failure, try_epilogue};

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

/// The same, written down and not compiled yet.
pub(crate) struct Written {
    pub(crate) plain: Option<Kernel<Cubin>>,
    pub(crate) ending: Kernel<Cubin>,
    pub(crate) strided: Vec<Kernel<Cubin>>,
}

/// What is left of a kernel that was compiled, besides the arrays that all have in common.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) source: CudaSource,
    pub(crate) launch: Launch,
    pub(crate) cubin: Cubin,
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

impl Written {
    /// All sources.
    pub(crate) fn sources(self) -> impl Iterator<Item = CudaSource> {
        let kernels = self.plain.into_iter().chain([self.ending]).chain(self.strided);
        kernels.map(|kernel| kernel.source)
    }
}

impl Recipe<'_> {
    /// Writes down all that a plan runs of a packed matrix: whoever compiles, compiles ahead or
    /// restores goes by this. The kernels for another result and for leading dimensions have
    /// parameters for these: their sources are others than that of the plain one.
    pub(crate) fn written(&self, packed: &Arc<Packed>) -> Result<Written, Failure> {
        let plain = self.epilogue.is_none().then(|| written(packed, None)).transpose()?;
        let ending = written(packed, Some(&self.ending()))?;
        Ok(Written { plain, ending, strided: self.strided(packed)? })
    }

    /// How the kernel for any z ends: the epilogue is fused into it, where there is one.
    pub(crate) fn ending(&self) -> Ending {
        match self.epilogue {
            Some(epilogue) => Ending::Fused(epilogue.clone()),
            None => Ending::Apart,
        }
    }

    /// The kernels for matrices with leading dimensions, where the plan is for such.
    fn strided(&self, packed: &Arc<Packed>) -> Result<Vec<Kernel<Cubin>>, Failure> {
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

    /// Compiles what a plan without an epilogue runs, all at once. The plain kernel may be there
    /// already.
    pub(crate) fn compile(
        &self,
        packed: &Arc<Packed>,
        judged: Option<Compiled>,
    ) -> Result<Code, Failure> {
        let Written { plain, ending, strided } = self.written(packed)?;
        std::thread::scope(|scope| {
            let spawn = |kernel| scope.spawn(|| self.compiled(kernel));
            let plain = plain.filter(|_| judged.is_none()).map(spawn);
            let strided: Vec<_> = strided.into_iter().map(spawn).collect();
            let ending = self.compiled(ending)?;
            let strided = strided.into_iter().map(joined).collect::<Result<_, _>>()?;
            let plain = plain.map(joined).transpose()?.or(judged);
            Ok(Code { plain, ending, strided })
        })
    }

    /// Compiles a kernel with its epilogue, and tries it meanwhile: both take most of their time in
    /// the compiler's processes.
    pub(crate) fn compile_fused<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        packed: &Arc<Packed>,
        epilogue: &Epilogue,
    ) -> Result<Code, Failure> {
        let Written { ending: fused, strided, .. } = self.written(packed)?;
        let (program, source) = (&packed.program, &fused.source.clone());
        std::thread::scope(|scope| {
            let try_it = || try_epilogue(self.context, matrix, program, (epilogue, source));
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

/// The kernel of a matrix that is packed, plain or with another ending.
fn written(packed: &Arc<Packed>, ending: Option<&Ending>) -> Result<Kernel<Cubin>, Failure> {
    Kernel::written(Arc::clone(packed), ending, Duration::ZERO).map_err(Failure::internal)
}

/// What a thread compiled.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().map_err(panicked)?
}
