//! The command line.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use sparserl_core::language::{LANGUAGE_VERSION, vocabulary_hash};
use sparserl_core::matrix::Duplicates;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::worker::Protocol;

use crate::measure::Budget;

/// More than anyone looks at; the search keeps a beam of twice as many programs.
const MOST_CANDIDATES: i64 = 1000;
/// More than any dense operand has in practice.
const MOST_COLUMNS: i64 = 65_536;
/// Longer than any kernel is worth waiting for.
const MOST_SECONDS: f64 = 86_400.0;

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
            | Command::Inspect(InspectArgs { task, .. })
            | Command::Eval(EvalArgs { task, .. }) => {
                matches!(task.op, OperationArg::Spmv) && task.cols.is_some()
            }
            Command::Verify(VerifyArgs { asked, .. }) => {
                !matches!(asked.op, Some(OperationArg::Spmm)) && asked.cols.is_some()
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
    /// Judge one kernel on a GPU: is it right, and how fast is it beside cuSPARSE? Exits with 1 when
    /// it is not right
    Verify(VerifyArgs),
    /// Judge a folder of candidates on a GPU: how many compile and are right, pass@k, and how fast
    /// the best of each matrix is beside cuSPARSE
    Eval(EvalArgs),
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

#[cfg(test)]
impl MatrixArgs {
    /// A matrix file as it is read unless asked otherwise.
    pub(crate) fn of(path: &str) -> Self {
        Self { matrix: path.into(), duplicates: DuplicatesArg::Sum }
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
        Task { operation: operation(self.op, self.cols), dtype: self.dtype.into() }
    }
}

fn operation(op: OperationArg, cols: Option<u32>) -> Operation {
    match (op, cols.and_then(NonZeroU32::new)) {
        (OperationArg::Spmm, Some(columns)) => Operation::SpMM { columns },
        _ => Operation::SpMV,
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

/// How kernels are judged.
#[derive(Args, Debug)]
pub(crate) struct JudgingArgs {
    /// Number of the GPU
    #[arg(long, value_name = "D", default_value_t = 0)]
    pub(crate) device: u32,
    /// How long a kernel may take for its checks, before an allowance for the size of the matrix
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    deadline: Duration,
    /// Measure no cuSPARSE algorithms beside it
    #[arg(long)]
    no_baselines: bool,
}

impl JudgingArgs {
    /// The full protocol, as far as it was asked for.
    pub(crate) fn protocol(&self) -> Protocol {
        Protocol { deadline: self.deadline, baselines: !self.no_baselines, ..Protocol::full() }
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected seconds, above 0 and at most {MOST_SECONDS}");
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    if !(seconds > 0.0 && seconds <= MOST_SECONDS) {
        return Err(expected());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| expected())
}

/// What a kernel is expected to compute, as far as anyone said.
#[derive(Args, Debug)]
pub(crate) struct AskedTaskArgs {
    /// Product that the kernel computes [default: the program's own; for CUDA, spmv]
    #[arg(long, value_enum)]
    op: Option<OperationArg>,
    /// Columns of B and C (spmm only)
    #[arg(
        long, value_name = "N", required_if_eq("op", "spmm"),
        value_parser = clap::value_parser!(u32).range(1..=MOST_COLUMNS)
    )]
    cols: Option<u32>,
    /// Element type of the matrix and of the dense operands [default: the program's own; for CUDA,
    /// f32]
    #[arg(long, value_enum)]
    dtype: Option<DtypeArg>,
}

impl AskedTaskArgs {
    /// The task, where what was not said is as in `default`.
    pub(crate) fn task_or(&self, default: Task) -> Task {
        Task {
            operation: self.op.map_or(default.operation, |op| operation(op, self.cols)),
            dtype: self.dtype.map_or(default.dtype, Dtype::from),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Kernel to judge: a program (.skl), or CUDA (.cu) whose launch is said by a `// launch:`
    /// comment or by a .json file of the same name beside it
    #[arg(value_name = "KERNEL")]
    pub(crate) kernel: PathBuf,
    /// Matrix to judge it on: .mtx (Matrix Market) or .smtx (DLMC), plain or compressed (.gz)
    #[arg(long, value_name = "FILE")]
    matrix: PathBuf,
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
    #[command(flatten)]
    pub(crate) asked: AskedTaskArgs,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl VerifyArgs {
    /// What is read.
    pub(crate) fn matrix(&self) -> MatrixArgs {
        MatrixArgs { matrix: self.matrix.clone(), duplicates: self.duplicates }
    }
}

#[derive(Args, Debug)]
pub(crate) struct EvalArgs {
    /// Folder of candidates: programs (.skl) and CUDA sources (.cu), found in its subfolders too.
    /// Those for M.mtx lie in the subfolder M; with one matrix and no such subfolder, all are for it
    #[arg(long, value_name = "FOLDER")]
    pub(crate) candidates: PathBuf,
    /// Matrices to judge them on: .mtx (Matrix Market) or .smtx (DLMC), plain or compressed (.gz)
    #[arg(long = "matrix", value_name = "FILE", required = true, num_args = 1..)]
    matrices: Vec<PathBuf>,
    /// What becomes of several entries at one position
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = DuplicatesArg::Sum)]
    duplicates: DuplicatesArg,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Sizes k of pass@k, separated by commas
    #[arg(
        short, value_name = "K", value_delimiter = ',', default_value = "1,2,5,10",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    k: Vec<u32>,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    /// File to write with all results, as JSON; it is written after every matrix
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on with the results in the file: a matrix whose candidates are still the same is not
    /// measured again
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
}

impl EvalArgs {
    /// What is read.
    pub(crate) fn matrices(&self) -> Vec<MatrixArgs> {
        let args =
            |path: &PathBuf| MatrixArgs { matrix: path.clone(), duplicates: self.duplicates };
        self.matrices.iter().map(args).collect()
    }

    /// The sizes k, ascending, each once.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let mut sizes = self.k.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
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
        for arguments in
            ["x verify k.skl --matrix a.mtx --cols 3", "x verify k.skl --matrix a --op spmm"]
        {
            assert!(Cli::try_parse_from(arguments.split(' ')).and_then(Cli::checked).is_err());
        }
    }

    #[test]
    fn what_is_not_asked_of_a_kernel_is_its_own() {
        let own = Task {
            operation: Operation::SpMM { columns: NonZeroU32::new(8).unwrap() },
            dtype: Dtype::F64,
        };
        let task = |arguments: &str| {
            let words = "x verify k --matrix a.mtx".split(' ').chain(arguments.split_whitespace());
            match Cli::try_parse_from(words).unwrap().command {
                Command::Verify(args) => args.asked.task_or(own).to_string(),
                _ => unreachable!("asked for verify"),
            }
        };
        assert_eq!(task(""), "spmm 8 f64");
        assert_eq!(task("--dtype f32"), "spmm 8 f32");
        assert_eq!(task("--op spmv"), "spmv f64");
        assert_eq!(task("--op spmm --cols 4"), "spmm 4 f64");
    }

    #[test]
    fn a_deadline_is_a_time() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "-1", "inf", "NaN", "1e99", "soon", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
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
