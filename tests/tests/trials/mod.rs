//! Which kernels the device suite runs.

mod awkward;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use sparserl_core::decode::{CostRanker, Policy as _, PolicyInput, beam_search};
use sparserl_core::language::{Mask, Program};
use sparserl_core::matrix::{Csr, Duplicates, Scalar, file};
use sparserl_core::pipeline::Maker;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_tests::golden::{self, Golden};
use sparserl_tests::programs::{self, task};
use sparserl_tests::{matrices, root};

/// Beams that the ranker's program is searched with.
const BEAMS: usize = 4;
/// Columns of the SpMM tasks of files, one program after the other; 0 is SpMV.
const COLUMNS: [(u32, Dtype); 10] = [
    (8, Dtype::F64),
    (32, Dtype::F32),
    (0, Dtype::F64),
    (33, Dtype::F32),
    (1, Dtype::F64),
    (128, Dtype::F32),
    (3, Dtype::F64),
    (0, Dtype::F32),
    (130, Dtype::F32),
    (4, Dtype::F64),
];

/// A trial that can be run.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) name: String,
    seed: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Golden(Golden),
    /// A program for a matrix from a file: the ranker's for index 0, else a random one.
    File {
        path: PathBuf,
        index: usize,
    },
    /// A random program for a described matrix.
    Awkward {
        matrix: String,
        task: Task,
    },
}

/// A kernel that was run, or should have been.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) matrix: String,
    pub(crate) program: String,
    /// Results found right.
    pub(crate) checks: u32,
}

/// What became of a trial. The last kernel is the one that the error is about.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) result: Result<()>,
}

/// All trials.
///
/// # Errors
/// When golden programs or matrices cannot be found, or a variable is no number.
pub(crate) fn plan() -> Result<Vec<Planned>> {
    let seed = crate::number("SPARSERL_SEED", 1)? as u64;
    let mut planned = Vec::new();
    for golden in golden::load()? {
        let name = format!("golden::{}", golden.name);
        planned.push(Planned { name, seed, kind: Kind::Golden(golden) });
    }
    let programs = crate::number("SPARSERL_PROGRAMS_PER_MATRIX", 3)?;
    for path in matrix_files()? {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        for index in 0..programs {
            let name = format!("file::{file}::{index}");
            planned.push(Planned { name, seed, kind: Kind::File { path: path.clone(), index } });
        }
    }
    for index in 0..crate::number("SPARSERL_RANDOM_PROGRAMS", 300)? {
        let matrix = awkward::MATRICES[index % awkward::MATRICES.len()].to_owned();
        let task = programs::nth_task(index + index / awkward::MATRICES.len());
        let name = format!("random::{index:03}::{}::{task}", matrix.replace(' ', "_"));
        let seed = seed.wrapping_mul(1 << 20).wrapping_add(index as u64);
        planned.push(Planned {
            name: name.replace(' ', "_"),
            seed,
            kind: Kind::Awkward { matrix, task },
        });
    }
    Ok(planned)
}

fn matrix_files() -> Result<Vec<PathBuf>> {
    let folder = std::env::var_os("SPARSERL_MATRICES").filter(|folder| !folder.is_empty());
    let folder = folder.map_or_else(|| root().join("tests/matrices"), PathBuf::from);
    let files = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let paths = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    let is_matrix = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        name.ends_with(".mtx") || name.ends_with(".smtx")
    };
    let mut paths: Vec<_> = paths.into_iter().filter(is_matrix).collect();
    paths.sort();
    Ok(paths)
}

/// Runs a trial. A panic in it is an error like others.
pub(crate) fn run(planned: &Planned, gpu: &mut GpuEvaluator) -> Outcome {
    let mut runner = Runner { gpu, seed: planned.seed, kernels: Vec::new() };
    let result = catch_unwind(AssertUnwindSafe(|| match &planned.kind {
        Kind::Golden(golden) => {
            with_scalar!(golden.program.task.precision.matrix(), T => runner.golden::<T>(golden))
        }
        Kind::File { path, index } => runner.file(path, *index),
        Kind::Awkward { matrix, task } => {
            with_scalar!(task.precision.matrix(), T => runner.awkward::<T>(matrix, *task))
        }
    }));
    let panicked = || Err(Error::msg("the host's side panicked; its message is above"));
    Outcome { kernels: runner.kernels, result: result.unwrap_or_else(|_| panicked()) }
}

struct Runner<'g> {
    gpu: &'g mut GpuEvaluator,
    seed: u64,
    /// Kernels so far.
    kernels: Vec<Kernel>,
}

impl Runner<'_> {
    fn golden<T: Scalar>(&mut self, golden: &Golden) -> Result<()> {
        self.check(&golden.matrix, &golden.build::<T>()?, &golden.program)
    }

    fn awkward<T: Scalar>(&mut self, description: &str, task: Task) -> Result<()> {
        let matrix = matrices::build::<T>(description)?;
        self.check(description, &matrix, &programs::legal(matrix.view(), task, self.seed))
    }

    /// The ranker's program for SpMV in f32, or a random one.
    fn file(&mut self, path: &Path, index: usize) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (columns, dtype) = match index {
            0 => (0, Dtype::F32),
            _ => COLUMNS[(index - 1) % COLUMNS.len()],
        };
        let double: Csr<f64> = file::load(path, Duplicates::Sum)?;
        // Values that f32 does not hold would be infinite: such a matrix has f64 programs only.
        match double.cast::<f32>() {
            Ok(single) if dtype == Dtype::F32 => {
                self.file_program(&name, &single, task(columns, dtype), index)
            }
            _ => self.file_program(&name, &double, task(columns, Dtype::F64), index),
        }
    }

    fn file_program<T: Scalar>(
        &mut self,
        name: &str,
        matrix: &Csr<T>,
        task: Task,
        index: usize,
    ) -> Result<()> {
        let program = match index {
            0 => ranked(matrix, task)?,
            _ => programs::legal(matrix.view(), task, self.seed.wrapping_add(index as u64)),
        };
        self.check(name, matrix, &program)
    }

    fn check<T: Scalar>(&mut self, name: &str, matrix: &Csr<T>, program: &Program) -> Result<()> {
        let (matrix_name, text) = (name.to_owned(), program.to_string());
        let compiler = self.gpu.compiler();
        let maker = Maker::new(matrix.view(), Some(&compiler), &|| Duration::ZERO);
        let judged = maker.judge(std::slice::from_ref(program), self.gpu)?;
        let outcome = judged.outcomes.first().context("no outcome")?;
        let checks = outcome.measurement().map_or(0, |measurement| measurement.checks);
        self.kernels.push(Kernel { matrix: matrix_name, program: text, checks });
        ensure!(checks > 0, "{outcome}");
        Ok(())
    }
}

/// The program that the cost ranker finds best.
fn ranked<T: Scalar>(matrix: &Csr<T>, task: Task) -> Result<Program> {
    let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), task, Target::H200);
    let mask = Mask::legal(&input.stats, task);
    let found = beam_search(&mut *CostRanker.read(&input)?, mask, BEAMS)?;
    let best = found.into_iter().next().context("the ranker found no program")?;
    Ok(best.program)
}
