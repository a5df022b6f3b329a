//! The command line.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use sparserl_core::language::{LANGUAGE_VERSION, vocabulary_hash};
use sparserl_core::matrix::Duplicates;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::Architecture;

use crate::measure::Budget;

/// More than anyone looks at; the search keeps a beam of twice as many programs.
const MOST_CANDIDATES: i64 = 1000;
/// More than any dense operand has in practice.
const MOST_COLUMNS: i64 = 65_536;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{} (kernel language {LANGUAGE_VERSION}, vocabulary {:016x})",
        env!("CARGO_PKG_VERSION"),
        vocabulary_hash()
    )
});

/// Writes a CUDA kernel for one sparse matrix.
#[derive(Debug, Parser)]
#[command(name = "sparserl-cli", version = VERSION.as_str(), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the command line; what is wrong with it ends the program, with exit code 2.
    pub(crate) fn parse_or_exit() -> Self {
        Self::try_parse().and_then(Self::checked).unwrap_or_else(|error| error.exit())
    }

    /// Refuses what the declarations below cannot.
    fn checked(self) -> Result<Self, clap::Error> {
        let lonely_columns = match &self.command {
            Command::Gen(GenerateArgs { task, .. })
            | Command::Inspect(InspectArgs { task, .. }) => {
                matches!(task.op, OperationArg::Spmv) && task.cols.is_some()
            }
            Command::Bench(args) => !args.op.contains(&OperationArg::Spmm) && !args.cols.is_empty(),
            Command::Report(_) | Command::Serve { .. } => false,
        };
        if lonely_columns {
            let message = "--cols goes with --op spmm";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        if let Command::Bench(args) = &self.command
            && args.op.contains(&OperationArg::Spmm)
            && args.cols.is_empty()
        {
            let message = "--op spmm needs --cols";
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, message));
        }
        Ok(self)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a kernel for a matrix and write it, with all that a caller needs, into a folder
    Gen(GenerateArgs),
    /// Show what a policy sees of a matrix, as text, JSON or a spy plot
    Inspect(InspectArgs),
    /// Compile or run kernels for the process that started this one
    #[command(hide = true)]
    Serve {
        /// What to serve
        role: Vec<String>,
    },
    /// Measure on a GPU how much faster than cuSPARSE the best of several candidates is, on many
    /// matrices; exits with 1 when one had to be skipped
    Bench(BenchArgs),
    /// Make the report of a benchmark anew from its results
    Report(ReportArgs),
}

/// What is read.
#[derive(Args, Debug)]
pub(crate) struct MatrixArgs {
    /// Matrix file: .mtx (Matrix Market) or .smtx (DLMC), plain or compressed (.gz)
    pub(crate) matrix: PathBuf,
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
}

impl MatrixArgs {
    pub(crate) fn duplicates(&self) -> Duplicates {
        match self.duplicates {
            DuplicatesArg::Sum => Duplicates::Sum,
            DuplicatesArg::Refuse => Duplicates::Refuse,
        }
    }

    /// The file's name without its folder.
    pub(crate) fn file_name(&self) -> String {
        self.matrix.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The file's name without folder and extensions: `graph` for `data/graph.mtx.gz`.
    pub(crate) fn stem(&self) -> String {
        let stem = Path::new(&self.file_name()).with_extension("");
        let is_format = |extension: &str| matches!(extension, "mtx" | "smtx");
        let inner = stem.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let stem =
            if inner.as_deref().is_some_and(is_format) { stem.with_extension("") } else { stem };
        stem.to_string_lossy().into_owned()
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DuplicatesArg {
    /// Their values are added
    Sum,
    /// They are an error
    Refuse,
}

/// What the kernel computes.
#[derive(Args, Debug)]
pub(crate) struct TaskArgs {
    /// Product to compute: y = αAx + βy, or C = αAB + βC with row-major B and C
    #[arg(long, value_enum, default_value_t = OperationArg::Spmv)]
    op: OperationArg,
    /// Columns of B and C (spmm only)
    #[arg(
        long, value_name = "N", required_if_eq("op", "spmm"),
        value_parser = clap::value_parser!(u32).range(1..=MOST_COLUMNS)
    )]
    cols: Option<u32>,
    /// Element type of the matrix and of the dense operands
    #[arg(long, value_enum, default_value_t = DtypeArg::F32)]
    dtype: DtypeArg,
}

impl TaskArgs {
    /// The task.
    pub(crate) fn task(&self) -> Task {
        let operation = match (self.op, self.cols.and_then(NonZeroU32::new)) {
            (OperationArg::Spmm, Some(columns)) => Operation::SpMM { columns },
            _ => Operation::SpMV,
        };
        Task { operation, dtype: self.dtype.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OperationArg {
    /// Sparse matrix times vector
    Spmv,
    /// Sparse matrix times dense matrix
    Spmm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DtypeArg {
    /// Single precision
    F32,
    /// Double precision
    F64,
}

impl From<DtypeArg> for Dtype {
    fn from(dtype: DtypeArg) -> Self {
        match dtype {
            DtypeArg::F32 => Self::F32,
            DtypeArg::F64 => Self::F64,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// GPU architecture to compile for, sm_70 to sm_120 [default: that of the GPU, else sm_90]
    #[arg(long, value_name = "SM")]
    pub(crate) arch: Option<Architecture>,
    /// Folder to write [default: MATRIX.spmv.DTYPE or MATRIX.spmmN.DTYPE in the current folder]; a
    /// folder that holds nothing but what an earlier run wrote is replaced
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Candidates to measure on the GPU, or seconds to spend on that (10s); the fastest right one
    /// is written. Without a GPU for --arch nothing is measured
    #[arg(long, value_name = "BUDGET", default_value = "8")]
    pub(crate) budget: Budget,
    /// Number of the GPU to measure on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: u32,
    /// Measure nothing: take the candidate that the cost model finds best
    #[arg(long, conflicts_with = "budget")]
    pub(crate) no_measure: bool,
    /// Kernels to write, best first; more than one go into subfolders 1, 2, …
    #[arg(
        long, value_name = "K", default_value = "1",
        value_parser = clap::value_parser!(i64).range(1..=MOST_CANDIDATES)
    )]
    candidates: i64,
    /// Also write the packed arrays that the kernel reads, as packed.safetensors
    #[arg(long)]
    pub(crate) packed: bool,
    /// Write no machine code
    #[arg(long)]
    pub(crate) no_compile: bool,
    /// Print the summary as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

impl GenerateArgs {
    pub(crate) fn candidates(&self) -> NonZeroUsize {
        usize::try_from(self.candidates)
            .ok()
            .and_then(NonZeroUsize::new)
            .unwrap_or(NonZeroUsize::MIN)
    }

    /// The folder to write.
    pub(crate) fn output(&self, task: Task) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let operation = match task.operation {
                Operation::SpMV => "spmv".to_owned(),
                Operation::SpMM { columns } => format!("spmm{columns}"),
            };
            format!("{}.{operation}.{}", self.matrix.stem(), task.dtype).into()
        })
    }
}

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) matrix: MatrixArgs,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Draw a spy plot into this .svg or .png; without it, no file is written
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Count the legal programs of a large matrix too, which can take minutes
    #[arg(long)]
    pub(crate) count: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Put the whole embedding into the JSON document: every sampled nonzero, grid and feature
    #[arg(long, requires = "json")]
    pub(crate) embedding: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Matrix files, folders of them (with the folders in them), or generated matrices:
    /// stencil5:NXxNY, stencil7:NXxNYxNZ, stencil27:NXxNYxNZ, banded:ROWS,HALF_WIDTH,
    /// uniform:ROWS,COLS,PER_ROW, rmat:SCALE,EDGE_FACTOR, fem:NODES,DOF, hyper:ROWS,COLS,NNZ,
    /// dense-row:ROWS,COLS, pruned:ROWS,COLS,BLOCK,PERCENT, each with an optional @SEED
    #[arg(required = true)]
    pub(crate) matrices: Vec<String>,
    /// Products to measure, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "spmv")]
    op: Vec<OperationArg>,
    /// Columns of B and C, separated by commas (spmm only): each is a task of its own
    #[arg(
        long, value_name = "N", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=MOST_COLUMNS)
    )]
    cols: Vec<u32>,
    /// Element types, separated by commas; each product is measured in each
    #[arg(long, value_enum, value_delimiter = ',', default_value = "f32")]
    dtype: Vec<DtypeArg>,
    /// Candidates to judge for each matrix and task, best predicted first
    #[arg(
        long, value_name = "K", default_value = "8",
        value_parser = clap::value_parser!(i64).range(1..=MOST_CANDIDATES)
    )]
    budget: i64,
    /// Numbers of the GPUs to use, separated by commas
    #[arg(long, value_name = "D", value_delimiter = ',', default_value = "0")]
    pub(crate) devices: Vec<u32>,
    /// Folder for results.json, written after every case, and report.html
    #[arg(short, long, value_name = "FOLDER", default_value = "bench")]
    pub(crate) output: PathBuf,
    /// Go on with the results in the folder: what was measured with the same budget is kept
    #[arg(long)]
    pub(crate) resume: bool,
}

impl BenchArgs {
    /// The tasks, each once: products in the order given, in each element type.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for &dtype in &self.dtype {
            for op in &self.op {
                let operations: Vec<Operation> = match op {
                    OperationArg::Spmv => vec![Operation::SpMV],
                    OperationArg::Spmm => self
                        .cols
                        .iter()
                        .filter_map(|&cols| NonZeroU32::new(cols))
                        .map(|columns| Operation::SpMM { columns })
                        .collect(),
                };
                for operation in operations {
                    let task = Task { operation, dtype: dtype.into() };
                    if !tasks.contains(&task) {
                        tasks.push(task);
                    }
                }
            }
        }
        tasks
    }

    pub(crate) fn budget(&self) -> usize {
        usize::try_from(self.budget).unwrap_or(1)
    }
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The results.json of a bench run
    #[arg(value_name = "RESULTS.json")]
    pub(crate) results: PathBuf,
    /// File to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate(arguments: &str) -> GenerateArgs {
        let words = ["sparserl-cli", "gen"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Gen(args) => args,
            _ => unreachable!("asked for gen"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_folder_is_named_after_matrix_and_task() {
        let output = |arguments| {
            let args = generate(arguments);
            args.output(args.task.task())
        };
        assert_eq!(output("a/bcsstk17.mtx"), Path::new("bcsstk17.spmv.f32"));
        assert_eq!(
            output("dlmc_0.7_conv.v2.SMTX.gz --op spmm --cols 32 --dtype f64"),
            Path::new("dlmc_0.7_conv.v2.spmm32.f64")
        );
        assert_eq!(output("x.mtx -o out/here"), Path::new("out/here"));
    }

    #[test]
    fn columns_go_with_spmm() {
        assert!(Cli::try_parse_from("x gen a.mtx --op spmm".split(' ')).is_err());
        let spmv = Cli::try_parse_from("x gen a.mtx --cols 3".split(' ')).unwrap();
        assert!(spmv.checked().is_err());
    }

    #[test]
    fn a_benchmark_has_each_task_once() {
        let tasks = |arguments: &str| {
            let words = ["x", "bench", "a.mtx"].into_iter().chain(arguments.split_whitespace());
            match Cli::try_parse_from(words).unwrap().checked().map(|cli| cli.command) {
                Ok(Command::Bench(args)) => args.tasks().iter().map(Task::to_string).collect(),
                _ => vec!["refused".to_owned()],
            }
        };
        assert_eq!(tasks(""), ["spmv f32"]);
        assert_eq!(
            tasks("--op spmm,spmv --cols 8,32,8 --dtype f64,f32"),
            ["spmm 8 f64", "spmm 32 f64", "spmv f64", "spmm 8 f32", "spmm 32 f32", "spmv f32"]
        );
        assert_eq!(tasks("--cols 8"), ["refused"]);
        assert_eq!(tasks("--op spmm"), ["refused"]);
    }
}
