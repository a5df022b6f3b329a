//! The product.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use sparserl_core::task::Dtype;
use sparserl_gpu::run::operator::{ForeignStream, Operands};

use crate::matrix::check_memory;
use crate::plan::{Op, Plan};
use crate::status::Failure;

/// The arguments of a product, as they were given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) op: Op,
    pub(crate) stream: *mut c_void,
    pub(crate) alpha: *const c_void,
    pub(crate) x: *const c_void,
    pub(crate) beta: *const c_void,
    pub(crate) y: *const c_void,
    pub(crate) z: *mut c_void,
    pub(crate) user: *const c_void,
}

impl Plan {
    /// Asks a stream for z = αop(A)x + βy, or for what the epilogue makes of it.
    ///
    /// # Safety
    /// α and β are numbers of the matrix's type on the host; x, y and z are vectors of the matrix's
    /// sizes in device memory, which stay until the stream has come past the call; `user` points to
    /// the values that the epilogue declares.
    pub(crate) unsafe fn execute(&self, product: &Product) -> Result<(), Failure> {
        let &Product { op, stream, alpha, x, beta, y, z, user } = product;
        let gpu = self.context.gpu()?;
        let side = self.side(op)?;
        for (what, pointer) in [("alpha", alpha), ("beta", beta)] {
            if pointer.is_null() {
                return Err(Failure::null(what));
            }
        }
        // SAFETY: by the contract.
        let (alpha, (beta, is_zero)) =
            unsafe { (number(alpha, self.dtype).0, number(beta, self.dtype)) };
        let (rows, cols) = match op {
            Op::None => (self.rows, self.cols),
            Op::Transpose => (self.cols, self.rows),
        };
        let has_user = self.epilogue.as_ref().is_some_and(|epilogue| !epilogue.user.is_empty());
        let needed = [("x", x, cols > 0), ("y", y, rows > 0 && !is_zero), ("z", z, rows > 0)];
        for (what, pointer, is_needed) in needed.into_iter().chain([("user", user, has_user)]) {
            if is_needed && pointer.is_null() {
                return Err(Failure::null(what));
            }
        }
        if std::ptr::eq(x, z) && rows > 0 && cols > 0 {
            return Err(Failure::argument("x and z are the same vector: z may be y, but not x"));
        }
        // SAFETY: by the contract.
        let stream = unsafe { ForeignStream::new(stream) };
        self.check_stream(stream)?;
        // The driver is asked for the device's memory, and told of a launch on it.
        let _entered = gpu.device.enter_unless_current()?;
        if self.options.check_pointers {
            let size = self.dtype.size();
            for (what, pointer, is_needed) in needed {
                if is_needed {
                    let length = if what == "x" { cols } else { rows };
                    check_memory(&gpu.device, what, pointer, length * size)?;
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
            Some(plain) if is_zero || std::ptr::eq(y, z) => plain,
            _ => &loaded.ending,
        };
        let address = |pointer: *const c_void| pointer.addr() as u64;
        let operands =
            Operands { input: address(x), output: address(z), old: address(y), alpha, beta, user };
        // SAFETY: by the contract, and the arrays are those of the kernel.
        unsafe { operator.enqueue(stream, &operands) }?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The bits of α or β for vectors of a type, and whether it is 0.
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
