//! From programs to kernels: pack, emit, compile.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{PipelineError, ahead};
use crate::codegen::EmitError;
use crate::kernel::{Candidate, Compiler, CudaCompiler, Kernel, Refusal, SharedCompiler};
use crate::language::Program;
use crate::layout::{PackError, Packed, Packer, Packing};
use crate::matrix::{CsrView, Scalar, tasks};
use crate::outcome::{Evaluation, Evaluator, Outcome};
use crate::task::Task;

/// Makes kernels of programs for one matrix. What they store alike is stored once.
pub struct Maker<'a, T, K: Compiler> {
    packer: Packer<'a, T>,
    compiler: Option<&'a K>,
    made: &'a [Kernel<K::Code>],
    clock: &'a (dyn Fn() -> Duration + Sync),
}

/// Kernels that are timed in turn where many are judged: as many as have their arrays in a device's
/// memory at once.
pub const TOGETHER: usize = 32;
/// Kernels that are made ahead of those being judged, at most.
const MOST_AHEAD: usize = 4 * TOGETHER;
/// What their arrays may take, in bytes.
const AHEAD_BYTES: usize = 4 << 30;

/// Why there is no kernel of a program.
#[derive(Debug)]
pub(super) enum Unmade {
    Pack(PackError),
    Refused(Refusal),
}

impl From<Unmade> for Outcome {
    fn from(unmade: Unmade) -> Self {
        let reason = match unmade {
            Unmade::Pack(error) => format!("it does not fit the matrix: {error}"),
            Unmade::Refused(Refusal { reason, .. }) => reason,
        };
        Self::CompileFailed { reason }
    }
}

/// A kernel, or why there is none.
pub(super) type Attempt<C> = Result<Kernel<C>, Unmade>;

/// Code of CUDA from anywhere, nothing without a compiler; or what becomes of what it refuses.
type CudaCode<C> = Result<Option<C>, Outcome>;

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

/// Programs could not be judged: what is broken is not one of them.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError<K, E> {
    /// No kernels can be made.
    #[error(transparent)]
    Make(MakeError<K>),
    /// The evaluator failed.
    #[error(transparent)]
    Evaluator(E),
}

/// Kernels of some programs, in their order, or what became of those that have none.
#[derive(Debug)]
pub struct Made<C>(pub(super) Vec<Result<Kernel<C>, Outcome>>);

impl<C> Made<C> {
    /// The kernels, nothing where there is none of a program.
    pub fn kernels(&self) -> impl Iterator<Item = Option<&Kernel<C>>> {
        self.0.iter().map(|made| made.as_ref().ok())
    }

    /// Gives up the kernels, to be kept; nothing where there is none of a program.
    pub fn into_kernels(self) -> impl Iterator<Item = Option<Kernel<C>>> {
        self.0.into_iter().map(Result::ok)
    }

    /// Judges them: an outcome for each program.
    ///
    /// # Errors
    /// When the evaluator itself fails.
    pub fn judge<T: Scalar, E: Evaluator<Code = C>>(
        &self,
        matrix: CsrView<'_, T>,
        evaluator: &mut E,
    ) -> Result<Evaluation, E::Error> {
        let made = self.0.iter().map(|made| made.as_ref().map(Candidate::Kernel));
        judge_made(made, matrix, evaluator)
    }
}

/// What is to be judged: programs, of which kernels are made, and CUDA from anywhere.
#[derive(Debug)]
pub enum Asked<'a, F> {
    /// A program.
    Program(&'a Program),
    /// CUDA from anywhere, for a task.
    Cuda(&'a F, Task),
}

/// What an evaluator can be given.
enum Ready<'a, C, F> {
    Kernel(Kernel<C>),
    Cuda { kernel: &'a F, task: Task, code: Option<C> },
}

impl<C, F> Ready<'_, C, F> {
    fn candidate(&self) -> Candidate<'_, C, F> {
        match self {
            Self::Kernel(kernel) => Candidate::Kernel(kernel),
            &Self::Cuda { kernel, task, ref code } => {
                Candidate::Cuda { kernel, task, code: code.as_ref() }
            }
        }
    }
}

/// Judges candidates in turn; what has no kernel keeps its outcome.
fn judge_made<'m, T: Scalar, E: Evaluator<Code: 'm, Cuda: 'm>>(
    made: impl Iterator<Item = Result<Candidate<'m, E::Code, E::Cuda>, &'m Outcome>> + Clone,
    matrix: CsrView<'_, T>,
    evaluator: &mut E,
) -> Result<Evaluation, E::Error> {
    let ready: Vec<_> = made.clone().flatten().collect();
    let judged = evaluator.judge_all(matrix, &ready)?;
    Ok(judged.among(made.map(|made| made.err().cloned())))
}

impl<'a, T: Scalar, K: SharedCompiler> Maker<'a, T, K> {
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
    #[must_use]
    pub fn matrix(&self) -> CsrView<'a, T> {
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

    /// Makes a kernel of a program.
    pub(super) fn make(&self, program: &Program) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        match self.write(program)? {
            Ok(kernel) => self.compiling().compile(kernel),
            Err(unmade) => Ok(Err(unmade)),
        }
    }

    /// Makes a kernel for the sizes of the matrix alone of one that is given them.
    pub(super) fn specialised(
        &self,
        general: &Kernel<K::Code>,
    ) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        let packed = Arc::clone(&general.packed);
        self.compiling().compile(Kernel::specialised(packed, general.pack_time)?)
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
        let written = programs.into_iter().map(|program| self.write(program));
        let written = written.collect::<Result<Vec<_>, _>>()?;
        let compiling = self.compiling();
        let compile = |written: Attempt<K::Code>| match written {
            Ok(kernel) => Ok(compiling.compile(kernel)?.map_err(Outcome::from)),
            Err(unmade) => Ok(Err(unmade.into())),
        };
        let made: Result<_, MakeError<_>> = tasks::map(written, compile).into_iter().collect();
        Ok(Made(made?))
    }

    /// Makes kernels of programs and has them judged: as [`judge_each`](Self::judge_each), but all
    /// is told at the end, with the samples of an opponent's algorithm pooled.
    ///
    /// # Errors
    /// As [`judge_each`](Self::judge_each).
    pub fn judge<E>(
        &self,
        programs: &[Program],
        evaluator: &mut E,
    ) -> Result<Evaluation, JudgeError<K::Error, E::Error>>
    where
        E: Evaluator<Code = <K as Compiler>::Code, Cuda: Sync>,
        K: CudaCompiler<E::Cuda>,
    {
        let asked: Vec<_> = programs.iter().map(Asked::Program).collect();
        let mut whole = Evaluation::default();
        self.judge_each(&asked, evaluator, |judged| whole.append(judged))?;
        Ok(whole)
    }

    /// Makes kernels of programs and has them judged, with CUDA from anywhere between them, in turn
    /// with each other [`TOGETHER`] at a time; `each` is told what was found out about so many, in
    /// their order. With `std`, all of these are made and compiled on all cores while others are
    /// judged, so that the evaluator waits for none but the first. A kernel that was judged gives
    /// its arrays up.
    ///
    /// # Errors
    /// When the compiler or the evaluator itself fails, or a source cannot be written down.
    pub fn judge_each<'c, E>(
        &self,
        asked: &[Asked<'c, E::Cuda>],
        evaluator: &mut E,
        mut each: impl FnMut(Evaluation),
    ) -> Result<(), JudgeError<K::Error, E::Error>>
    where
        E: Evaluator<Code = <K as Compiler>::Code, Cuda: Sync + 'c>,
        K: CudaCompiler<E::Cuda>,
    {
        let make = |asked: &Asked<'c, E::Cuda>| match *asked {
            Asked::Program(program) => {
                Ok(self.make(program)?.map(Ready::Kernel).map_err(Outcome::from))
            }
            Asked::Cuda(kernel, task) => {
                let code = self.compiling().compile_cuda(kernel)?;
                Ok(code.map(|code| Ready::Cuda { kernel, task, code }))
            }
        };
        ahead::in_order(asked, self.most_ahead(), make, |made| {
            loop {
                let together = (&mut *made).take(TOGETHER).collect::<Result<Vec<_>, _>>();
                let together = together.map_err(JudgeError::Make)?;
                if together.is_empty() {
                    return Ok(());
                }
                let made = together.iter().map(|made| made.as_ref().map(Ready::candidate));
                let judged = judge_made(made, self.matrix(), evaluator);
                each(judged.map_err(JudgeError::Evaluator)?);
            }
        })
    }

    /// Kernels that are made ahead of those being judged: as many as memory has room for, if the
    /// arrays of each are about as large as the matrix.
    fn most_ahead(&self) -> usize {
        let bytes = (self.matrix().nnz() * (size_of::<u32>() + size_of::<T>())).max(1);
        (AHEAD_BYTES / bytes).clamp(2, MOST_AHEAD)
    }

    /// The kernel of a program, which is not compiled yet unless it was there already; or why it
    /// does not fit the matrix.
    fn write(&self, program: &Program) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        if let Some(made) = self.made.iter().find(|made| made.packed.program == *program) {
            return Ok(Ok(made.clone()));
        }
        let Packing { packed, time } = match self.packer.pack(program) {
            Ok(packing) => packing,
            Err(error) => return Ok(Err(Unmade::Pack(error))),
        };
        Ok(Ok(Kernel::written(Arc::new(packed), None, time)?))
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
    /// The kernel with code, where there is a compiler.
    fn compile(&self, kernel: Kernel<K::Code>) -> Result<Attempt<K::Code>, MakeError<K::Error>> {
        match self.compiler {
            Some(compiler) if kernel.code.is_none() => {
                let compiled = kernel.compiled(compiler, self.clock);
                Ok(compiled.map_err(MakeError::Compiler)?.map_err(Unmade::Refused))
            }
            _ => Ok(Ok(kernel)),
        }
    }

    /// Compiles CUDA from anywhere, where there is a compiler.
    fn compile_cuda<F>(&self, cuda: &F) -> Result<CudaCode<K::Code>, MakeError<K::Error>>
    where
        K: CudaCompiler<F>,
    {
        let compiled = self.compiler.map(|compiler| compiler.compile_cuda(cuda)).transpose();
        let code = compiled.map_err(MakeError::Compiler)?.transpose();
        Ok(code.map_err(|reason| Outcome::CompileFailed { reason }))
    }
}

impl<K, E, X> From<Unmade> for PipelineError<K, E, X> {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Pack(error) => Self::Pack(error),
            Unmade::Refused(refusal) => Self::Refused(refusal),
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
