//! The product.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use sparserl_core::task::Dtype;
use sparserl_gpu::run::operator::{ForeignStream, Operands};

use crate::epilogue::check_arrays;
use crate::kernel::Operators;
use crate::matrix::check_memory;
use crate::op::Op;
use crate::operands::{Form, Operand, check_form, check_overlap, has_aligned_rows};
use crate::plan::Plan;
use crate::status::Failure;
use crate::workspace::is_legacy;

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

impl Plan {
    /// Asks a stream for z = αop(A)x + βy or D = αop(A)B + βC, or for what the epilogue makes of
    /// it.
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
        // Each side has its own: the block is that of this one.
        let epilogue = side.epilogue.as_ref().filter(|epilogue| !epilogue.user.is_empty());
        let columns = self.task.operation.columns();
        let operand = |name, address, rows, is_used| Operand {
            name,
            address,
            rows,
            is_needed: is_used && rows > 0,
            leading: columns,
        };
        let mut operands = [
            operand(input_name, input, cols, true),
            operand(old_name, old, rows, !is_zero),
            operand(output_name, output.cast_const(), rows, true),
        ];
        check_form(self.task, self.options.dense, form, &mut operands)?;
        for Operand { name, address, is_needed, .. } in &operands {
            if *is_needed && address.is_null() {
                return Err(Failure::null(name));
            }
        }
        if epilogue.is_some() && user.is_null() {
            return Err(Failure::null("user"));
        }
        check_overlap(self.task, self.options.dense, &operands)?;
        // SAFETY: by the contract.
        let stream = unsafe { ForeignStream::new(stream) };
        gpu.check_stream(stream)?;
        // The driver is asked for the device's memory, and told of a launch on it.
        let _entered = gpu.device.enter_unless_current()?;
        if self.options.check_pointers {
            for operand in operands.iter().filter(|operand| operand.is_needed) {
                let bytes = operand.bytes(self.options.dense, columns, dtype.size());
                check_memory(&gpu.device, operand.name, operand.address, bytes)?;
            }
            if let Some(epilogue) = epilogue {
                // SAFETY: by the contract, and `user` is not NULL.
                unsafe { check_arrays(&gpu.device, epilogue, self.task, (rows, cols), user) }?;
            }
        }
        // A launch that would make the default stream wait for a capture invalidates the capture;
        // the question does not.
        let asks = self.options.values_variable || is_legacy(product.stream);
        let is_capturing = asks && gpu.device.is_capturing(stream)?;
        let kernel = if self.options.values_variable && is_capturing {
            side.current_for_graph()
        } else {
            side.current()
        };
        let Some(loaded) = &kernel.loaded else {
            return Err(Failure::internal("the kernel is not on the device"));
        };
        let leading = operands.each_ref().map(|operand| operand.leading);
        // Plans of strided operands have a kernel for rows that are not aligned to vectors.
        let Operators { plain, ending, strided } = &loaded.operators;
        let is_aligned = strided.is_empty() || has_aligned_rows(self.task, &operands);
        let mut strided = strided.iter();
        let strided = if is_aligned { strided.next() } else { strided.next_back() };
        // Copies of C and D are one.
        let is_in_place = std::ptr::eq(old, output) || self.copies.is_some();
        let operator = match (plain, strided) {
            (_, Some(strided)) if !is_aligned || leading != [columns; 3] => strided,
            (Some(plain), _) if is_zero || is_in_place => plain,
            _ => ending,
        };
        let own_bytes = operator.workspace_bytes();
        let workspace = self.workspaces.of(product.stream, own_bytes + self.copies_bytes())?;
        let [input, old, output] = operands;
        let mut given = Operands {
            input: input.address.addr() as u64,
            output: output.address.addr() as u64,
            old: old.address.addr() as u64,
            leading,
            alpha,
            beta,
            user,
            workspace,
        };
        match &self.copies {
            // SAFETY: by the contract, and the arrays are those of the kernel.
            None => unsafe { operator.enqueue(stream, &given) }?,
            Some(copies) => {
                let copied = copies.place(workspace.map(|own| own + own_bytes), cols);
                given.input = copied.input;
                (given.old, given.output) = (copied.output, copied.output);
                // SAFETY: as above; the copies are as large as the operands, and no other product
                // has them at the same time.
                unsafe {
                    copies.to_rows(stream, &input, copied.input)?;
                    copies.to_rows(stream, &old, copied.output)?;
                    operator.enqueue(stream, &given)?;
                    copies.to_columns(stream, copied.output, &output)?;
                }
            }
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
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
