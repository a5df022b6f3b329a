//! `bench` and `report`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use sparserl_core::results::ValueSource;
use sparserl_core::task::{Operation, Precision, Task, Values};

use super::task::{OperationArg, check_columns, precision_parser};
use super::{MOST_CANDIDATES, Mistake, OpponentArgs, PolicyArgs};
use crate::kernel_file::MOST_COLUMNS;

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
    /// Element types, separated by commas; each product is measured in each: one for all operands,
    /// or those of the matrix, the dense operands and the sums
    #[arg(
        long, value_delimiter = ',', value_parser = precision_parser(), default_value = "f32"
    )]
    dtype: Vec<Precision>,
    /// Candidates to judge for each matrix and task, best predicted first
    #[arg(
        long, value_name = "K", default_value = "8",
        value_parser = clap::value_parser!(i64).range(1..=MOST_CANDIDATES)
    )]
    budget: i64,
    /// Values of the matrices: drawn at random, the same in every run, or those of the files.
    /// Kernels may hold a file's values in a dictionary, or not at all where it lists a pattern
    /// only
    #[arg(long, value_enum, default_value_t = ValueSourceArg::Random)]
    pub(crate) values: ValueSourceArg,
    #[command(flatten)]
    pub(crate) opponents: OpponentArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Numbers of the GPUs to use, separated by commas
    #[arg(long, value_name = "D", value_delimiter = ',', default_value = "0")]
    pub(crate) devices: Vec<u32>,
    /// Folder for results.json, written after every case, and report.html
    #[arg(short, long, value_name = "FOLDER", default_value = "bench")]
    pub(crate) output: PathBuf,
    /// Folder of recordings (Parquet) to add every candidate to, with what became of it, all its
    /// samples and those of its opponents, for training, which then needs no GPU
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with the results in the folder: what was measured with the same budget is kept, and
    /// what is asked for now is added to what was asked for before
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print what results.json holds, at the end, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchArgs {
    /// The tasks, each once: products in the order given, in each precision.
    pub(crate) fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for &precision in &self.dtype {
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
                    let task = Task { operation, precision, values: Values::Fixed };
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

    pub(super) fn check(&self) -> Result<(), Mistake> {
        if self.devices.iter().enumerate().any(|(i, device)| self.devices[..i].contains(device)) {
            return Err((ErrorKind::ValueValidation, "--devices names a GPU more than once"));
        }
        let has_spmm = self.op.contains(&OperationArg::Spmm);
        check_columns(has_spmm, !self.cols.is_empty())?;
        if has_spmm && self.cols.is_empty() {
            return Err((ErrorKind::MissingRequiredArgument, "--op spmm needs --cols"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ValueSourceArg {
    /// Drawn at random, away from 0
    Random,
    /// As the files and families have them
    File,
}

impl From<ValueSourceArg> for ValueSource {
    fn from(values: ValueSourceArg) -> Self {
        match values {
            ValueSourceArg::Random => Self::Random,
            ValueSourceArg::File => Self::File,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The results.json of a bench run, also compressed (.gz)
    #[arg(value_name = "RESULTS.json")]
    pub(crate) results: PathBuf,
    /// File to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Print the tables as Markdown instead: a table for each source of values and kind of matrix,
    /// with every loss
    #[arg(long, conflicts_with = "output")]
    pub(crate) markdown: bool,
    /// Print the totals as JSON instead: of each task and source of values, of all matrices and of
    /// each kind, with every loss
    #[arg(long, conflicts_with_all = ["output", "markdown"])]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

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
        assert_eq!(tasks("--dtype f32/f64/f64,f64"), ["spmv f32/f64/f64", "spmv f64"]);
        assert_eq!(tasks("--cols 8"), ["refused"]);
        assert_eq!(tasks("--op spmm"), ["refused"]);
    }
}
