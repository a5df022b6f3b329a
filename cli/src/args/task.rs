//! Which product is computed.

use std::num::NonZeroU32;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use sparserl_core::task::{Operation, Precision, Task, Values};

use super::Mistake;
use crate::kernel_file::MOST_COLUMNS;

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
    /// Element types: one for matrix and dense operands, or those of the matrix, the dense operands
    /// and the sums
    #[arg(long, value_parser = precision_parser(), default_value = "f32")]
    dtype: Precision,
    /// Whether the matrix's values may change after the kernel was made; a kernel for variable
    /// values depends on the pattern only, one for fixed values may hold them [default: fixed, but
    /// variable where the file has none]
    #[arg(long, value_enum)]
    values: Option<ValuesArg>,
}

impl TaskArgs {
    /// The product and its element types, whatever matrix it is of.
    pub(super) fn product(&self) -> (Operation, Precision) {
        (operation(self.op, self.cols), self.dtype)
    }

    /// The task for a matrix which is a pattern, whose entries are all 1 because its file has no
    /// values, or has values.
    pub(crate) fn task_for(&self, is_pattern: bool) -> Task {
        let (operation, precision) = self.product();
        let usual = if is_pattern { Values::Variable } else { Values::Fixed };
        Task { operation, precision, values: self.values.map_or(usual, Values::from) }
    }

    pub(super) fn check(&self) -> Result<(), Mistake> {
        check_columns(self.op == OperationArg::Spmm, self.cols.is_some())
    }
}

/// What a kernel is expected to compute, as far as anyone said.
#[derive(Args, Debug, Default)]
pub(crate) struct AskedTaskArgs {
    /// Product that the kernel computes [default: the programs' own; for CUDA, spmv]
    #[arg(long, value_enum)]
    op: Option<OperationArg>,
    /// Columns of B and C (spmm only)
    #[arg(
        long, value_name = "N", required_if_eq("op", "spmm"),
        value_parser = clap::value_parser!(u32).range(1..=MOST_COLUMNS)
    )]
    cols: Option<u32>,
    /// Element types: one for matrix and dense operands, or those of the matrix, the dense operands
    /// and the sums [default: the programs' own; for CUDA, f32]
    #[arg(long, value_parser = precision_parser())]
    dtype: Option<Precision>,
    /// Whether the matrix's values may change [default: the programs' own; for CUDA, fixed]
    #[arg(long, value_enum)]
    values: Option<ValuesArg>,
}

impl AskedTaskArgs {
    /// The task, where what was not said is as in `default`.
    pub(crate) fn task_or(&self, default: Task) -> Task {
        Task {
            operation: self.op.map_or(default.operation, |op| operation(op, self.cols)),
            precision: self.dtype.unwrap_or(default.precision),
            values: self.values.map_or(default.values, Values::from),
        }
    }

    pub(super) fn check(&self) -> Result<(), Mistake> {
        check_columns(self.op == Some(OperationArg::Spmm), self.cols.is_some())
    }
}

/// Refuses columns where no product has any.
pub(super) fn check_columns(has_spmm: bool, has_columns: bool) -> Result<(), Mistake> {
    if has_columns && !has_spmm {
        return Err((ErrorKind::ArgumentConflict, "--cols goes with --op spmm"));
    }
    Ok(())
}

fn operation(op: OperationArg, cols: Option<u32>) -> Operation {
    match (op, cols.and_then(NonZeroU32::new)) {
        (OperationArg::Spmm, Some(columns)) => Operation::SpMM { columns },
        _ => Operation::SpMV,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OperationArg {
    /// Sparse matrix times vector
    Spmv,
    /// Sparse matrix times dense matrix
    Spmm,
}

/// The precisions as they are written, and what they are for.
const PRECISIONS: [(&str, &str); 5] = [
    ("f32", "Single precision"),
    ("f64", "Double precision"),
    ("f32/f64/f64", "Double precision, but for the matrix, which is rounded to single precision"),
    ("f16", "Half precision, with sums, α and β in single precision; numbers up to 65504"),
    ("bf16", "The same with 8 bits of precision and the range of single precision"),
];

/// Reads a precision as programs and results write it.
pub(super) fn precision_parser() -> impl TypedValueParser<Value = Precision> {
    let values = PRECISIONS.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Precision>())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ValuesArg {
    /// They stay as they are
    Fixed,
    /// They may change; the pattern does not
    Variable,
}

impl From<ValuesArg> for Values {
    fn from(values: ValuesArg) -> Self {
        match values {
            ValuesArg::Fixed => Self::Fixed,
            ValuesArg::Variable => Self::Variable,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sparserl_core::task::Dtype;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn every_precision_can_be_asked_for_and_no_other() {
        assert_eq!(PRECISIONS.map(|(name, _)| name), Precision::ALL.map(|p| p.to_string()));
        let asked = |dtype: &str| {
            let words = ["x", "gen", "a.mtx", "--dtype", dtype];
            Cli::try_parse_from(words).map(|cli| match cli.command {
                Command::Gen(args) => args.task.product().1,
                _ => unreachable!("asked for gen"),
            })
        };
        for precision in Precision::ALL {
            assert_eq!(asked(&precision.to_string()).unwrap(), precision);
        }
        let error = asked("f64/f32/f32").unwrap_err().to_string();
        assert!(error.contains("[possible values: f32, f64, f32/f64/f64, f16, bf16]"), "{error}");
    }

    #[test]
    fn what_is_not_asked_of_a_kernel_is_its_own() {
        let own = Task::new(Operation::SpMM { columns: NonZeroU32::new(8).unwrap() }, Dtype::F64);
        let task = |arguments: &str| {
            let words = "x verify k --matrix a.mtx".split(' ').chain(arguments.split_whitespace());
            match Cli::try_parse_from(words).unwrap().command {
                Command::Verify(args) => args.asked.task_or(own).to_string(),
                _ => unreachable!("asked for verify"),
            }
        };
        assert_eq!(task(""), "spmm 8 f64");
        assert_eq!(task("--dtype f32"), "spmm 8 f32");
        assert_eq!(task("--dtype f32/f64/f64"), "spmm 8 f32/f64/f64");
        assert_eq!(task("--op spmv"), "spmv f64");
        assert_eq!(task("--values variable"), "spmm 8 f64 variable");
        assert_eq!(task("--op spmm --cols 4"), "spmm 4 f64");
    }
}
