//! From programs to kernels: pack, emit, compile.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::PipelineError;
use super::measure::Kept;
use crate::codegen::{CudaSource, EmitError, emit};
use crate::kernel::{Compiler, Kernel};
use crate::language::Program;
use crate::layout::{PackError, Packed, pack};
use crate::matrix::{CsrView, Scalar};

/// Makes kernels of programs for one matrix.
pub struct Maker<'a, T, K> {
    /// In the programs' precision.
    pub matrix: CsrView<'a, T>,
    /// Without one, kernels have no code.
    pub compiler: Option<&'a K>,
    /// Time since some moment.
    pub clock: &'a (dyn Fn() -> Duration + Sync),
}

/// Why there is no kernel of a program.
#[derive(Debug)]
pub(super) enum Unmade {
    Pack(PackError),
    Refused { kernel: String, reason: String },
}

/// A kernel, or why there is none.
pub(super) type Made<K> = Result<Kernel<<K as Compiler>::Code>, Unmade>;

/// What broke.
#[derive(Debug)]
pub(super) enum Broken<E> {
    Emit(EmitError),
    Compiler(E),
}

/// A program that is not compiled yet.
struct Emitted {
    packed: Arc<Packed>,
    source: CudaSource,
    pack_time: Duration,
}

impl<T, K> Maker<'_, T, K>
where
    T: Scalar,
    K: Compiler<Code: Clone + Send + Sync, Error: Send> + Sync,
{
    /// Makes a kernel of a program that must fit the matrix.
    pub(super) fn make<E, X>(
        &self,
        program: &Program,
    ) -> Result<Kernel<K::Code>, PipelineError<K::Error, E, X>> {
        let made = self.emit(program).and_then(|emitted| match emitted {
            Ok(emitted) => self.compile(emitted),
            Err(error) => Ok(Err(Unmade::Pack(error))),
        });
        match made {
            Ok(Ok(kernel)) => Ok(kernel),
            Ok(Err(Unmade::Pack(error))) => Err(PipelineError::Pack(error)),
            Ok(Err(Unmade::Refused { kernel, reason })) => {
                Err(PipelineError::Refused { kernel, reason })
            }
            Err(broken) => Err(broken.into()),
        }
    }

    /// Makes kernels of several programs. They are packed one after the other, each on all cores,
    /// so that the times are those of packing alone, and compiled at once.
    pub(super) fn make_all<'p>(
        &self,
        programs: impl Iterator<Item = &'p Program>,
    ) -> Result<Vec<Made<K>>, Broken<K::Error>> {
        let emitted = programs.map(|program| self.emit(program));
        let emitted = emitted.collect::<Result<Vec<_>, _>>()?;
        let compile = |emitted: Result<Emitted, PackError>| match emitted {
            Ok(emitted) => self.compile(emitted),
            Err(error) => Ok(Err(Unmade::Pack(error))),
        };
        #[cfg(feature = "std")]
        {
            use rayon::prelude::*;
            emitted.into_par_iter().map(compile).collect()
        }
        #[cfg(not(feature = "std"))]
        emitted.into_iter().map(compile).collect()
    }

    /// A kernel that was measured, with its arrays again where they were given up.
    pub(super) fn restore<E, X>(
        &self,
        kept: Kept<K::Code>,
        program: &Program,
    ) -> Result<Kernel<K::Code>, PipelineError<K::Error, E, X>> {
        let Kept { packed, source, code, pack_time, compile_time } = kept;
        let packed = match packed {
            Some(packed) => packed,
            None => Arc::new(pack(self.matrix, program)?),
        };
        Ok(Kernel { packed, source, code, pack_time, compile_time })
    }

    fn emit(&self, program: &Program) -> Result<Result<Emitted, PackError>, Broken<K::Error>> {
        let start = (self.clock)();
        let packed = match pack(self.matrix, program) {
            Ok(packed) => packed,
            Err(error) => return Ok(Err(error)),
        };
        let pack_time = (self.clock)() - start;
        let source = emit(&packed.program, &packed.signature()).map_err(Broken::Emit)?;
        Ok(Ok(Emitted { packed: Arc::new(packed), source, pack_time }))
    }

    fn compile(
        &self,
        Emitted { packed, source, pack_time }: Emitted,
    ) -> Result<Made<K>, Broken<K::Error>> {
        let Some(compiler) = self.compiler else {
            let compile_time = Duration::ZERO;
            return Ok(Ok(Kernel { packed, source, code: None, pack_time, compile_time }));
        };
        let start = (self.clock)();
        match compiler.compile(&source).map_err(Broken::Compiler)? {
            Ok(code) => {
                let compile_time = (self.clock)() - start;
                Ok(Ok(Kernel { packed, source, code: Some(code), pack_time, compile_time }))
            }
            Err(reason) => Ok(Err(Unmade::Refused { kernel: source.kernel, reason })),
        }
    }
}

impl<K, E, X> From<Broken<K>> for PipelineError<K, E, X> {
    fn from(broken: Broken<K>) -> Self {
        match broken {
            Broken::Emit(error) => Self::Emit(error),
            Broken::Compiler(error) => Self::Compiler(error),
        }
    }
}
