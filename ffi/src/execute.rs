//! The product.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use sparserl_core::task::{Dtype, Operation};
use sparserl_gpu::run::operator::{ForeignStream, Operands};

use crate::matrix::check_memory;
use crate::plan::Plan;
use crate::side::Op;
use crate::status::{Failure, Status};

/// Bytes that a thread loads at once of a row of a dense matrix, at most.
const WIDEST_LOAD: usize = 16;

/// The arguments of a product, as they were given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) op: Op,
    pub(crate) stream: *mut c_void,
    pub(crate) alpha: *const c_void,
    pub(crate) input: *const c_void,
    pub(crate) beta: *const c_void,
    pub(crate) old: *const c_void,
    pub(crate) output: *mut c_void,
    pub(crate) user: *const c_void,
    pub(crate) form: Form,
}

/// How dense operands lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Vectors.
    Vectors,
    /// Matrices, row-major, with the elements from the beginning of a row to that of the next, for
    /// B, C and D.
    Matrices([i64; 3]),
}

/// A dense operand.
struct Dense {
    name: &'static str,
    address: *const c_void,
    /// Of op(A), by which it has its own.
    rows: usize,
    /// Whether it is used at all.
    is_needed: bool,
}

impl Plan {
    /// Asks a stream for z = αop(A)x + βy or D = αop(A)B + βC, or for what the epilogue makes of it.
    ///
    /// # Safety
    /// α and β are numbers of the type of sums on the host; the operands are device memory of the
    /// matrix's sizes, which stays until the stream has come past the call; `user` points to the
    /// values that the epilogue declares.
    pub(crate) unsafe fn execute(&self, product: &Product) -> Result<(), Failure> {
        let &Product { op, stream, alpha, input, beta, old, output, user, form } = product;
        let gpu = self.context.gpu()?;
        let side = self.side(op)?;
        for (what, pointer) in [("alpha", alpha), ("beta", beta)] {
            if pointer.is_null() {
                return Err(Failure::null(what));
            }
        }
        let dtype = self.task.precision.dense();
        // SAFETY: by the contract.
        let (alpha, (beta, is_zero)) = unsafe { (number(alpha, dtype).0, number(beta, dtype)) };
        let (rows, cols) = match op {
            Op::None => (self.rows, self.cols),
            Op::Transpose => (self.cols, self.rows),
        };
        let names = match form {
            Form::Vectors => ["x", "y", "z"],
            Form::Matrices(_) => ["b", "c", "d"],
        };
        let [input_name, old_name, output_name] = names;
        let has_user = self.epilogue.as_ref().is_some_and(|epilogue| !epilogue.user.is_empty());
        let dense = |name, address, rows, is_used| Dense {
            name,
            address,
            rows,
            is_needed: is_used && rows > 0,
        };
        let operands = [
            dense(input_name, input, cols, true),
            dense(old_name, old, rows, !is_zero),
            dense(output_name, output.cast_const(), rows, true),
        ];
        self.check_form(form, &operands)?;
        for Dense { name, address, is_needed, .. } in &operands {
            if *is_needed && address.is_null() {
                return Err(Failure::null(name));
            }
        }
        if has_user && user.is_null() {
            return Err(Failure::null("user"));
        }
        if std::ptr::eq(input, output) && rows > 0 && cols > 0 {
            return Err(Failure::argument(format_args!(
                "{input_name} and {output_name} are the same: {output_name} may be {old_name}, but \
                 not {input_name}"
            )));
        }
        // SAFETY: by the contract.
        let stream = unsafe { ForeignStream::new(stream) };
        gpu.check_stream(stream)?;
        // The driver is asked for the device's memory, and told of a launch on it.
        let _entered = gpu.device.enter_unless_current()?;
        if self.options.check_pointers {
            let row_bytes = self.task.operation.columns() as usize * dtype.size();
            for Dense { name, address, rows, is_needed } in operands {
                if is_needed {
                    check_memory(&gpu.device, name, address, rows * row_bytes)?;
                }
            }
        }
        let kernel = if self.options.values_variable && gpu.device.is_capturing(stream)? {
            side.current_for_graph()
        } else {
            side.current()
        };
        let Some(loaded) = &kernel.loaded else {
            return Err(Failure::internal("the kernel is not on the device"));
        };
        let operator = match &loaded.plain {
            Some(plain) if is_zero || std::ptr::eq(old, output) => plain,
            _ => &loaded.ending,
        };
        let workspace = self.workspaces.of(product.stream, operator.workspace_bytes())?;
        let address = |pointer: *const c_void| pointer.addr() as u64;
        let operands = Operands {
            input: address(input),
            output: address(output),
            old: address(old),
            alpha,
            beta,
            user,
            workspace,
        };
        // SAFETY: by the contract, and the arrays are those of the kernel.
        unsafe { operator.enqueue(stream, &operands) }?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses operands that lie otherwise than the plan's kernels take them.
    fn check_form(&self, form: Form, operands: &[Dense; 3]) -> Result<(), Failure> {
        let refused = |text: &str| Err(Failure::new(Status::Unsupported, text));
        let (leading, columns) = match (form, self.task.operation) {
            (Form::Vectors, Operation::SpMV) => return Ok(()),
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
        let row_bytes = columns as usize * self.task.precision.dense().size();
        // What divides a row: vectors never reach from one into the next.
        let alignment = (1 << row_bytes.trailing_zeros()).min(WIDEST_LOAD);
        for (Dense { name, address, is_needed, .. }, leading) in operands.iter().zip(leading) {
            if !is_needed {
                continue;
            }
            if leading != i64::from(columns) {
                return Err(Failure::new(
                    Status::Unsupported,
                    format_args!(
                        "ld{name} is {leading}: expected {columns}, since rows follow each other \
                         without gaps"
                    ),
                ));
            }
            if address.addr() % alignment != 0 {
                return Err(Failure::argument(format_args!(
                    "{name} is not aligned to {alignment} bytes"
                )));
            }
        }
        Ok(())
    }
}

/// The bits of α or β for dense operands of a type, and whether it is 0.
///
/// # Safety
/// There is a number of the type's accumulator.
unsafe fn number(pointer: *const c_void, dtype: Dtype) -> (u64, bool) {
    match dtype {
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => {
            // SAFETY: by the contract.
            let number = unsafe { pointer.cast::<f32>().read_unaligned() };
            (number.to_bits().into(), number == 0.0)
        }
        Dtype::F64 => {
            // SAFETY: by the contract.
            let number = unsafe { pointer.cast::<f64>().read_unaligned() };
            (number.to_bits(), number == 0.0)
        }
    }
}
