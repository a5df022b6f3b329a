//! Column-major operands: kernels take rows, and are given copies.

use std::num::NonZeroU32;

use sparserl_core::codegen::{CudaSource, Transposing};
use sparserl_core::kernel::Compiler as _;
use sparserl_core::task::{Operation, Task};
use sparserl_gpu::run::device::DeviceError;
use sparserl_gpu::run::operator::{DeviceMemory, ForeignStream, SmallKernel, WORKSPACE_ALIGNMENT};

use crate::context::Context;
use crate::operands::Operand;
use crate::options::DenseForm;
use crate::status::{Failure, Status};

/// What copies operands and holds the copies, for a plan of column-major ones on a GPU.
pub(crate) struct Copies {
    to_rows: SmallKernel,
    to_columns: SmallKernel,
    task: Task,
    /// The plan's own, in the place of which products may be given other memory.
    memory: DeviceMemory,
}

/// Addresses of the copies of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) input: u64,
    /// Of C until the kernel has run, and of D.
    pub(crate) output: u64,
}

/// Bytes of the copies of B and D, one behind the other, of a product with a matrix of so many rows
/// and columns or with its transpose: what the one needs, so does the other.
pub(crate) fn copies_bytes(dense: DenseForm, task: Task, (rows, cols): (usize, usize)) -> u64 {
    match dense {
        DenseForm::RowMajor | DenseForm::Strided => 0,
        DenseForm::ColumnMajor => copy_bytes(task, rows) + copy_bytes(task, cols),
    }
}

/// Bytes of the copy of a matrix of so many rows, with what aligns the next.
fn copy_bytes(task: Task, rows: usize) -> u64 {
    let row_bytes = u64::from(task.operation.columns()) * task.precision.dense().size() as u64;
    (rows as u64 * row_bytes).next_multiple_of(WORKSPACE_ALIGNMENT)
}

impl Copies {
    /// Compiles the kernels and takes the memory, where a plan needs them.
    pub(crate) fn new(
        context: &Context,
        dense: DenseForm,
        task: Task,
        size: (usize, usize),
    ) -> Result<Option<Self>, Failure> {
        let (DenseForm::ColumnMajor, Ok(gpu), Operation::SpMM { columns }) =
            (dense, &context.gpu, task.operation)
        else {
            return Ok(None);
        };
        let load = |source: CudaSource| {
            let compiled = context.compiler.compile(&source);
            let compiled = compiled.map_err(|error| Failure::new(Status::NoCompiler, error))?;
            let cubin = compiled.map_err(Failure::internal)?;
            Ok::<_, Failure>(SmallKernel::load(&gpu.device, &cubin)?)
        };
        let [to_rows, to_columns] = sources(task, columns);
        let (to_rows, to_columns) = (load(to_rows)?, load(to_columns)?);
        let bytes = copies_bytes(dense, task, size) as usize;
        let memory = DeviceMemory::new(&gpu.device, bytes)?;
        Ok(Some(Self { to_rows, to_columns, task, memory }))
    }

    /// Where the copies of a product lie: behind the kernel's part of a workspace of the caller's,
    /// or in the plan's own memory.
    pub(crate) fn place(&self, workspace: Option<u64>, input_rows: usize) -> Copied {
        let input = workspace.unwrap_or_else(|| self.memory.address());
        Copied { input, output: input + copy_bytes(self.task, input_rows) }
    }

    /// Asks a stream to copy an operand, if it is used, to rows without gaps.
    ///
    /// # Safety
    /// The operand is device memory of its size, and so is the copy, which no other launch uses.
    pub(crate) unsafe fn to_rows(
        &self,
        stream: ForeignStream,
        operand: &Operand,
        copy: u64,
    ) -> Result<(), DeviceError> {
        let from = operand.address.addr() as u64;
        // SAFETY: by the contract.
        unsafe { self.copy(&self.to_rows, stream, operand, (from, copy)) }
    }

    /// Asks a stream to copy rows without gaps to where an operand is, if it is used.
    ///
    /// # Safety
    /// As [`to_rows`](Self::to_rows).
    pub(crate) unsafe fn to_columns(
        &self,
        stream: ForeignStream,
        copy: u64,
        operand: &Operand,
    ) -> Result<(), DeviceError> {
        let to = operand.address.addr() as u64;
        // SAFETY: by the contract.
        unsafe { self.copy(&self.to_columns, stream, operand, (copy, to)) }
    }

    /// # Safety
    /// As [`to_rows`](Self::to_rows).
    unsafe fn copy(
        &self,
        kernel: &SmallKernel,
        stream: ForeignStream,
        operand: &Operand,
        (from, to): (u64, u64),
    ) -> Result<(), DeviceError> {
        let Operation::SpMM { columns } = self.task.operation else { return Ok(()) };
        if !operand.is_needed {
            return Ok(());
        }
        let rows = operand.rows as u64;
        let geometry = Transposing::geometry(rows, columns);
        let arguments = [from, to, rows, operand.leading.into()];
        // SAFETY: the kernel copies so many rows of the plan's columns, which the caller vouches
        // for.
        unsafe { kernel.enqueue(stream, geometry, arguments) }
    }
}

/// The kernels that copy operands of so many columns: to rows, and to columns.
pub(crate) fn sources(task: Task, columns: NonZeroU32) -> [CudaSource; 2] {
    let ways = [Transposing::ToRows, Transposing::ToColumns];
    ways.map(|way| way.source(task.precision.dense(), columns))
}

/// What a limit leaves when copies are made.
pub(crate) fn limit_left(limit: Option<u64>, copies: u64) -> Result<Option<u64>, Failure> {
    let Some(limit) = limit else { return Ok(None) };
    let left = limit.checked_sub(copies).ok_or_else(|| {
        Failure::new(
            Status::MemoryLimit,
            format_args!(
                "copies of column-major operands need {copies} bytes of device memory, and the plan \
                 may take {limit}"
            ),
        )
    })?;
    Ok(Some(left))
}
