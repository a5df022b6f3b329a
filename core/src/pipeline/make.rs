//! From programs to kernels: pack, emit, compile.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::PipelineError;
use crate::codegen::{CudaSource, EmitError, emit};
use crate::kernel::{Candidate, Compiler, Kernel};
use crate::language::Program;
use crate::layout::{PackError, Packed, Packer, Packing};
use crate::matrix::{CsrView, Scalar, tasks};
use crate::outcome::{Evaluation, Evaluator, Outcome};

/// Makes kernels of programs for one matrix. What they store alike is stored once.
pub struct Maker<'a, T, K: Compiler> {
    packer: Packer<'a, T>,
    compiler: Option<&'a K>,
    made: &'a [Kernel<K::Code>],
    clock: &'a (dyn Fn() -> Duration + Sync),
}

/// Why there is no kernel of a program.
#[derive(Debug)]
pub(super) enum Unmade {
    Pack(PackError),
    Refused { kernel: String, reason: String },
}

impl From<Unmade> for Outcome {
    fn from(unmade: Unmade) -> Self {
        let reason = match unmade {
            Unmade::Pack(error) => format!("it does not fit the matrix: {error}"),
            Unmade::Refused { reason, .. } => reason,
        };
        Self::CompileFailed { reason }
    }
}

/// A kernel, or why there is none.
type Attempt<C> = Result<Kernel<C>, Unmade>;

/// No kernels can be made: what is broken is not a program.
#[derive(Debug, thiserror::Error)]
pub enum MakeError<E> {
    /// A source could not be written down.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The compiler failed.
    #[error(transparent)]
    Compiler(E),
}

/// Kernels of some programs, in their order, or what became of those that have none.
#[derive(Debug)]
pub struct Made<C>(pub(super) Vec<Result<Kernel<C>, Outcome>>);

impl<C> Made<C> {
    /// Judges them: an outcome for each program.
    ///
    /// # Errors
    /// When the evaluator itself fails.
    pub fn judge<T: Scalar, E: Evaluator<Code = C>>(
        &self,
        matrix: CsrView<'_, T>,
        evaluator: &mut E,
    ) -> Result<Evaluation, E::Error> {
        let ready: Vec<_> = self.0.iter().flatten().map(Candidate::Kernel).collect();
        let judged = evaluator.judge_all(matrix, &ready)?;
        let mut judged_outcomes = judged.outcomes.into_iter();
        let outcome = |made: &Result<_, Outcome>| match made {
            Ok(_) => judged_outcomes.next(),
            Err(outcome) => Some(outcome.clone()),
        };
        let outcomes = self.0.iter().filter_map(outcome).collect();
        Ok(Evaluation { outcomes, ..judged })
    }
}

/// A program that is not compiled yet, unless its kernel was there already.
struct Emitted<C> {
    packed: Arc<Packed>,
    source: CudaSource,
    pack_time: Duration,
    /// Code, and how long compiling it took.
    code: Option<(C, Duration)>,
}

/// A program that is written down, or why it does not fit the matrix.
type Emission<C> = Result<Emitted<C>, PackError>;

impl<'a, T, K> Maker<'a, T, K>
where
    T: Scalar,
    K: Compiler<Code: Clone + Send + Sync, Error: Send> + Sync,
{
    /// For a matrix in the programs' precision. Without a compiler, kernels have no code; `clock`
    /// tells the time since some moment.
    pub fn new(
        matrix: CsrView<'a, T>,
        compiler: Option<&'a K>,
        clock: &'a (dyn Fn() -> Duration + Sync),
    ) -> Self {
        Self { packer: Packer::new(matrix, clock), compiler, made: &[], clock }
    }

    /// The same where some kernels for the matrix are there already.
    pub(super) fn with(self, made: &'a [Kernel<K::Code>]) -> Self {
        Self { made, ..self }
    }

    /// The matrix.
    pub(super) fn matrix(&self) -> CsrView<'a, T> {
        self.packer.matrix()
    }

    /// Time since some moment.
    pub(super) fn now(&self) -> Duration {
        (self.clock)()
    }

    /// Packs the matrix as a program says.
    pub(super) fn pack(&self, program: &Program) -> Result<Packed, PackError> {
        Ok(self.packer.pack(program)?.packed)
    }

    /// Makes a kernel of a program that must fit the matrix.
    pub(super) fn make<E, X>(
        &self,
        program: &Program,
    ) -> Result<Kernel<K::Code>, PipelineError<K::Error, E, X>> {
        let made = self.emit(program).and_then(|emitted| match emitted {
            Ok(emitted) => self.compiling().compile(emitted),
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
    ///
    /// # Errors
    /// When the compiler itself fails, or a source cannot be written down.
    pub fn make_all<'p>(
        &self,
        programs: impl IntoIterator<Item = &'p Program>,
    ) -> Result<Made<K::Code>, MakeError<K::Error>> {
        let emitted = programs.into_iter().map(|program| self.emit(program));
        let emitted = emitted.collect::<Result<Vec<_>, _>>()?;
        let compiling = self.compiling();
        let compile = |emitted: Emission<K::Code>| match emitted {
            Ok(emitted) => Ok(compiling.compile(emitted)?.map_err(Outcome::from)),
            Err(error) => Ok(Err(Unmade::Pack(error).into())),
        };
        let made: Result<_, MakeError<_>> = tasks::map(emitted, compile).into_iter().collect();
        Ok(Made(made?))
    }

    fn emit(&self, program: &Program) -> Result<Emission<K::Code>, MakeError<K::Error>> {
        if let Some(made) = self.made.iter().find(|made| made.packed.program == *program) {
            let Kernel { packed, source, code, pack_time, compile_time } = made.clone();
            let code = code.map(|code| (code, compile_time));
            return Ok(Ok(Emitted { packed, source, pack_time, code }));
        }
        let Packing { packed, time: pack_time } = match self.packer.pack(program) {
            Ok(packing) => packing,
            Err(error) => return Ok(Err(error)),
        };
        let source = emit(&packed.program, &packed.signature()).map_err(MakeError::Emit)?;
        Ok(Ok(Emitted { packed: Arc::new(packed), source, pack_time, code: None }))
    }

    fn compiling(&self) -> Compiling<'a, K> {
        Compiling { compiler: self.compiler, clock: self.clock }
    }
}

/// What compiling takes: threads share it, with `std` and without.
struct Compiling<'a, K> {
    compiler: Option<&'a K>,
    clock: &'a (dyn Fn() -> Duration + Sync),
}

impl<K: Compiler> Compiling<'_, K> {
    fn compile(
        &self,
        Emitted { packed, source, pack_time, code }: Emitted<K::Code>,
    ) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        if let Some((code, compile_time)) = code {
            return Ok(Ok(Kernel { packed, source, code: Some(code), pack_time, compile_time }));
        }
        let Some(compiler) = self.compiler else {
            let compile_time = Duration::ZERO;
            return Ok(Ok(Kernel { packed, source, code: None, pack_time, compile_time }));
        };
        let start = (self.clock)();
        match compiler.compile(&source).map_err(MakeError::Compiler)? {
            Ok(code) => {
                let compile_time = (self.clock)() - start;
                Ok(Ok(Kernel { packed, source, code: Some(code), pack_time, compile_time }))
            }
            Err(reason) => Ok(Err(Unmade::Refused { kernel: source.kernel, reason })),
        }
    }
}

impl<K, E, X> From<MakeError<K>> for PipelineError<K, E, X> {
    fn from(error: MakeError<K>) -> Self {
        match error {
            MakeError::Emit(error) => Self::Emit(error),
            MakeError::Compiler(error) => Self::Compiler(error),
        }
    }
}
