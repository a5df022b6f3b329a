//! Dense operands as callers give them.

use std::ffi::c_void;

use sparserl_core::codegen::row_alignment;
use sparserl_core::task::{Operation, Task};

use crate::options::DenseForm;
use crate::status::{Failure, Status};

/// What a product is asked of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Vectors.
    Vectors,
    /// Matrices, with leading dimensions of B, C and D.
    Matrices([i64; 3]),
}

/// A dense operand.
pub(crate) struct Operand {
    pub(crate) name: &'static str,
    pub(crate) address: *const c_void,
    /// Of op(A), by which it has its own.
    pub(crate) rows: usize,
    /// Whether it is used at all.
    pub(crate) is_needed: bool,
    /// Elements from the beginning of a row to that of the next, or of a column; those of a row
    /// where it is not used.
    pub(crate) leading: u32,
}

impl Operand {
    /// Bytes from its beginning to its end, where a row has so many elements of a size.
    pub(crate) fn bytes(&self, dense: DenseForm, columns: u32, size: usize) -> usize {
        let columns = columns as usize;
        let (lines, length) = match dense {
            DenseForm::RowMajor | DenseForm::Strided => (self.rows, columns),
            DenseForm::ColumnMajor => (columns, self.rows),
        };
        let before_last = lines.saturating_sub(1).saturating_mul(self.leading as usize);
        before_last.saturating_add(length).saturating_mul(size)
    }

    /// Whether it fills the memory from its beginning to its end.
    fn has_no_gaps(&self, dense: DenseForm, columns: u32) -> bool {
        match dense {
            DenseForm::RowMajor | DenseForm::Strided => self.leading == columns,
            DenseForm::ColumnMajor => self.leading as usize == self.rows,
        }
    }
}

/// Refuses operands that lie otherwise than the plan's kernels take them, and notes their leading
/// dimensions.
pub(crate) fn check_form(
    task: Task,
    dense: DenseForm,
    form: Form,
    operands: &mut [Operand; 3],
) -> Result<(), Failure> {
    let refused = |text: &str| Err(Failure::new(Status::Unsupported, text));
    let (leading, columns) = match (form, task.operation) {
        (Form::Vectors, Operation::SpMV) => {
            for operand in operands.iter().filter(|operand| operand.is_needed) {
                check_alignment(operand.name, operand.address, task.precision.dense().size())?;
            }
            return Ok(());
        }
        (Form::Vectors, Operation::SpMM { .. }) => {
            return refused(
                "the plan is for matrices: call sparserl_execute_matrices(), or make it without \
                 SPARSERL_OPTION_COLUMNS",
            );
        }
        (Form::Matrices(_), Operation::SpMV) => {
            return refused(
                "the plan is for vectors: call sparserl_execute(), or make it with \
                 SPARSERL_OPTION_COLUMNS",
            );
        }
        (Form::Matrices(leading), Operation::SpMM { columns }) => (leading, columns.get()),
    };
    let alignment = match dense {
        DenseForm::RowMajor => row_alignment(task),
        // There is a kernel that takes such element by element.
        DenseForm::Strided | DenseForm::ColumnMajor => task.precision.dense().size(),
    };
    for (operand, given) in operands.iter_mut().zip(leading) {
        if !operand.is_needed {
            continue;
        }
        operand.leading = leading_of(operand, given, dense, columns)?;
        check_alignment(operand.name, operand.address, alignment)?;
    }
    let [_, old, output] = operands;
    let is_in_place = old.is_needed && std::ptr::eq(old.address, output.address);
    if is_in_place && old.leading != output.leading {
        return Err(Failure::argument(format_args!(
            "c and d are the same, and ldc is {} and ldd is {}: expected one leading dimension",
            old.leading, output.leading
        )));
    }
    Ok(())
}

/// Refuses a result that lies where an operand is read that it is not.
pub(crate) fn check_overlap(
    task: Task,
    dense: DenseForm,
    operands: &[Operand; 3],
) -> Result<(), Failure> {
    let [input, old, output] = operands;
    let columns = task.operation.columns();
    let bytes = |operand: &Operand| operand.bytes(dense, columns, task.precision.dense().size());
    let begin = |operand: &Operand| operand.address.addr();
    for (read, may_be_same) in [(input, false), (old, true)] {
        if !read.is_needed || !output.is_needed {
            continue;
        }
        let is_same = begin(read) == begin(output);
        // Between the rows of the one there may lie those of the other, where there are gaps.
        let overlaps = [read, output].iter().all(|operand| operand.has_no_gaps(dense, columns))
            && begin(read) < begin(output).saturating_add(bytes(output))
            && begin(output) < begin(read).saturating_add(bytes(read));
        let is_refused = if is_same { !may_be_same } else { overlaps };
        if !is_refused {
            continue;
        }
        let how = if is_same { "are the same" } else { "overlap" };
        let Operand { name: output, .. } = output;
        return Err(Failure::argument(format_args!(
            "{} and {output} {how}: {output} may be {}, and must not overlap it or {} otherwise",
            read.name, old.name, input.name
        )));
    }
    Ok(())
}

/// Refuses a pointer to elements that are not aligned as kernels need them.
pub(crate) fn check_alignment(
    what: &str,
    pointer: *const c_void,
    alignment: usize,
) -> Result<(), Failure> {
    if pointer.addr().is_multiple_of(alignment) {
        return Ok(());
    }
    Err(Failure::argument(format_args!("{what} is not aligned to {alignment} bytes")))
}

/// Whether every row of the operands that are used is aligned to vectors.
pub(crate) fn has_aligned_rows(task: Task, operands: &[Operand; 3]) -> bool {
    let (alignment, size) = (row_alignment(task), task.precision.dense().size());
    operands.iter().filter(|operand| operand.is_needed).all(|operand| {
        operand.address.addr().is_multiple_of(alignment)
            && (operand.leading as usize * size).is_multiple_of(alignment)
    })
}

/// A leading dimension that the plan's kernels take.
fn leading_of(
    &Operand { name, rows, .. }: &Operand,
    given: i64,
    dense: DenseForm,
    columns: u32,
) -> Result<u32, Failure> {
    match (dense, u32::try_from(given)) {
        (DenseForm::ColumnMajor, Ok(leading)) if leading as usize >= rows => Ok(leading),
        (DenseForm::ColumnMajor, _) => Err(Failure::argument(format_args!(
            "ld{name} is {given}: expected at least {rows}, the rows of {name}, which is \
             column-major, and below 4294967296"
        ))),
        (_, Ok(leading)) if leading == columns => Ok(leading),
        (DenseForm::RowMajor, _) => Err(Failure::new(
            Status::Unsupported,
            format_args!(
                "ld{name} is {given}: expected {columns}, since rows follow each other without \
                 gaps, or a plan with SPARSERL_OPTION_DENSE = SPARSERL_DENSE_STRIDED or \
                 _COLUMN_MAJOR"
            ),
        )),
        (DenseForm::Strided, Ok(leading)) if leading > columns => Ok(leading),
        (DenseForm::Strided, _) => Err(Failure::argument(format_args!(
            "ld{name} is {given}: expected at least {columns}, the columns of {name}, and below \
             4294967296"
        ))),
    }
}
