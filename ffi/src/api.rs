//! The functions of `sparserl.h`.
//!
//! Everything documented here is documentation of the header.
#![allow(non_camel_case_types, reason = "the names of C")]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::context::Context;
use crate::execute::Product;
use crate::handle::Handles;
use crate::matrix::Matrix;
use crate::options::Options;
use crate::plan::{Op, Plan};
use crate::status::{self, Failure, Status, call};
use crate::verbose;

static CONTEXTS: Handles<Context> = Handles::new(0);
static OPTIONS: Handles<Options> = Handles::new(1);
static MATRICES: Handles<Matrix> = Handles::new(2);
pub(crate) static PLANS: Handles<Plan> = Handles::new(3);

/// What a call returns: SPARSERL_SUCCESS or why not. sparserl_last_error() says more.
pub type sparserl_status = i32;

/// It did what it was asked to.
pub const SPARSERL_SUCCESS: sparserl_status = 0;
/// A pointer is NULL that must not be.
pub const SPARSERL_NULL_POINTER: sparserl_status = 1;
/// A handle was destroyed, is of another kind, or is none at all.
pub const SPARSERL_INVALID_HANDLE: sparserl_status = 2;
/// A number, text or pointer is not one of those that are allowed.
pub const SPARSERL_INVALID_ARGUMENT: sparserl_status = 3;
/// The arrays are no CSR matrix: a column out of range, unsorted or repeated, a value not finite.
pub const SPARSERL_INVALID_MATRIX: sparserl_status = 4;
/// There are no kernels for what is asked for, or the plan was not made for it.
pub const SPARSERL_UNSUPPORTED: sparserl_status = 5;
/// There is no GPU: plans are made, checked and saved, and cannot be executed.
pub const SPARSERL_NO_DEVICE: sparserl_status = 6;
/// The stream, or what is asked for, is of another device than the context's.
pub const SPARSERL_WRONG_DEVICE: sparserl_status = 7;
/// The device's memory does not suffice.
pub const SPARSERL_OUT_OF_MEMORY: sparserl_status = 8;
/// The plan needs more than SPARSERL_OPTION_MEMORY_LIMIT.
pub const SPARSERL_MEMORY_LIMIT: sparserl_status = 9;
/// The stream is being captured, and what is asked for cannot be.
pub const SPARSERL_CAPTURING: sparserl_status = 10;
/// Nothing can be compiled: NVRTC or the program sparserl-server is missing.
pub const SPARSERL_NO_COMPILER: sparserl_status = 11;
/// The epilogue does not compile, or does what it must not.
pub const SPARSERL_EPILOGUE: sparserl_status = 12;
/// A file cannot be read or written, or is damaged.
pub const SPARSERL_FILE: sparserl_status = 13;
/// A saved plan is for another pattern, type, GPU or version.
pub const SPARSERL_MISMATCH: sparserl_status = 14;
/// What is asked for is not known, or not yet.
pub const SPARSERL_NOT_KNOWN: sparserl_status = 15;
/// The buffer is too small; how large it has to be is in the length. Nothing was written.
pub const SPARSERL_BUFFER_TOO_SMALL: sparserl_status = 16;
/// CUDA's driver reports an error, perhaps of an earlier call of somebody else.
pub const SPARSERL_DEVICE_FAILED: sparserl_status = 17;
/// A defect of SparseRL.
pub const SPARSERL_INTERNAL: sparserl_status = 18;

/// A policy, compilers and a GPU, shared by plans.
pub struct sparserl_context {
    _private: [u8; 0],
}

/// Options of a context or of a plan.
pub struct sparserl_options {
    _private: [u8; 0],
}

/// A matrix, copied.
pub struct sparserl_matrix {
    _private: [u8; 0],
}

/// The kernels of a matrix.
pub struct sparserl_plan {
    _private: [u8; 0],
}

/// Text: "learned" (default), "cost", or the folder of an exported policy. For contexts.
pub const SPARSERL_OPTION_POLICY: i32 = 1;
/// Text: folder for compiled kernels, instead of the user's cache folder. For contexts.
pub const SPARSERL_OPTION_CACHE_FOLDER: i32 = 2;
/// int32_t: number of the device, or -1 for none; by default the first, if there is one. For
/// contexts.
pub const SPARSERL_OPTION_DEVICE: i32 = 3;
/// Text: the GPU to plan for where there is none: "h200" (default), "sm_90", ... For contexts.
pub const SPARSERL_OPTION_TARGET: i32 = 4;
/// sparserl_log: where messages go. For contexts.
pub const SPARSERL_OPTION_LOG: i32 = 5;
/// Text: the program sparserl-server, where it is not installed beside the library. For contexts.
pub const SPARSERL_OPTION_SERVER: i32 = 6;
/// uint64_t: products that are expected; they decide what planning may cost. 0 is plain CSR at
/// once, and nothing else. Default 100000. For plans, like all that follow.
pub const SPARSERL_OPTION_EXPECTED_CALLS: i32 = 100;
/// int32_t: 1 measures programs on the GPU, 0 never does, -1 (default) where the expected calls are
/// worth it.
pub const SPARSERL_OPTION_MEASURE: i32 = 101;
/// double: seconds after which nothing better is searched for.
pub const SPARSERL_OPTION_DEADLINE: i32 = 102;
/// uint64_t: bytes of device memory that the plan may take.
pub const SPARSERL_OPTION_MEMORY_LIMIT: i32 = 103;
/// int32_t: 1 gives the same bits in every run: no kernel is swapped, and nothing depends on
/// times. Planning then waits for the policy.
pub const SPARSERL_OPTION_DETERMINISTIC: i32 = 104;
/// int32_t: 1 if values will change by sparserl_plan_update_values().
pub const SPARSERL_OPTION_VALUES_VARIABLE: i32 = 105;
/// int32_t: 1 makes kernels for A and for its transpose.
pub const SPARSERL_OPTION_TRANSPOSE_TOO: i32 = 106;
/// Text: an epilogue that is ready, applied to v = alpha op(A) x + beta y before it is stored:
/// "relu": max(v, 0). "bias": v + bias[row], user { const T *bias; }.
/// "clamp": v between bounds, user { const T *lower, *upper; }.
/// "axpy": v + factor * vector[row], user { const T *vector; T factor; }.
pub const SPARSERL_OPTION_EPILOGUE: i32 = 107;
/// Text: an epilogue in CUDA C, which is fused into the kernel:
/// __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user)
/// where Scalar is the type of the vectors, product is alpha op(A) x and old is beta y (0 if beta
/// is 0). It is emulated on rows of the matrix before it is used: one that reads or writes outside
/// of the declared arrays is refused.
pub const SPARSERL_OPTION_EPILOGUE_SOURCE: i32 = 108;
/// Text: the members of User, in order: "const Scalar a[rows]; const Scalar b[columns]; Scalar c;
/// Scalar d[rows];". The user block is the C struct { const T *a, *b; T c; T *d; }; rows and
/// columns are those of op(A). Arrays that are not const are written, each element by its own row.
pub const SPARSERL_OPTION_EPILOGUE_USER: i32 = 109;
/// int32_t: 0 takes vectors as they are given; 1 (default) asks the driver whether they are device
/// memory that is large enough.
pub const SPARSERL_OPTION_CHECK_POINTERS: i32 = 110;

/// Receives a line of text. It may be called from any thread until the context is destroyed.
#[repr(C)]
pub struct sparserl_log {
    /// The function, or NULL for none.
    pub function: Option<unsafe extern "C" fn(line: *const c_char, user: *mut c_void)>,
    /// What it is given.
    pub user: *mut c_void,
}

/// 32-bit signed integers.
pub const SPARSERL_I32: i32 = 0;
/// 64-bit signed integers.
pub const SPARSERL_I64: i32 = 1;
/// IEEE 754 binary32.
pub const SPARSERL_F32: i32 = 0;
/// IEEE 754 binary64.
pub const SPARSERL_F64: i32 = 1;
/// IEEE 754 binary16; not supported.
pub const SPARSERL_F16: i32 = 2;
/// bfloat16; not supported.
pub const SPARSERL_BF16: i32 = 3;
/// Memory of the host.
pub const SPARSERL_HOST: i32 = 0;
/// Memory of the context's device.
pub const SPARSERL_DEVICE: i32 = 1;

/// The product with A.
pub const SPARSERL_OP_NONE: i32 = 0;
/// The product with the transpose of A.
pub const SPARSERL_OP_TRANSPOSE: i32 = 1;

/// A matrix in CSR. Columns increase within each row. Zero it before it is filled in.
#[repr(C)]
pub struct sparserl_csr {
    /// Rows, below 2^32 - 1.
    pub rows: i64,
    /// Columns, below 2^32 - 1.
    pub cols: i64,
    /// Stored entries.
    pub nnz: i64,
    /// rows + 1 of them.
    pub row_offsets: *const c_void,
    /// nnz of them.
    pub column_indices: *const c_void,
    /// nnz of them, all finite.
    pub values: *const c_void,
    /// SPARSERL_I32 or SPARSERL_I64.
    pub offset_type: i32,
    /// SPARSERL_I32 or SPARSERL_I64.
    pub index_type: i32,
    /// SPARSERL_F32 or SPARSERL_F64; the vectors have it, too.
    pub value_type: i32,
    /// What the first row offset and the first column are: 0 or 1.
    pub index_base: i32,
    /// SPARSERL_HOST or SPARSERL_DEVICE, for all three arrays. What was asked of any stream for
    /// arrays on a device must be done.
    pub location: i32,
    /// 0.
    pub reserved: [i32; 3],
}

/// Why the plan has the kernel that it has, in a sentence.
pub const SPARSERL_TEXT_WHY: i32 = 1;
/// The program in the kernel language.
pub const SPARSERL_TEXT_PROGRAM: i32 = 2;
/// The kernel in CUDA C++.
pub const SPARSERL_TEXT_SOURCE: i32 = 3;
/// The kernel in machine code: bytes of a cubin.
pub const SPARSERL_TEXT_CUBIN: i32 = 4;

/// Bytes of the packed matrix with its workspace.
pub const SPARSERL_NUMBER_PACKED_BYTES: i32 = 1;
/// Seconds of a product that the cost model predicts.
pub const SPARSERL_NUMBER_PREDICTED_SECONDS: i32 = 2;
/// Seconds of a product as measured, back to back.
pub const SPARSERL_NUMBER_MEASURED_SECONDS: i32 = 3;
/// The same of plain CSR, measured in turn with it.
pub const SPARSERL_NUMBER_CSR_SECONDS: i32 = 4;
/// The same of cuSPARSE's fastest algorithm.
pub const SPARSERL_NUMBER_CUSPARSE_SECONDS: i32 = 5;
/// Seconds that planning took, in the background too.
pub const SPARSERL_NUMBER_PLANNING_SECONDS: i32 = 6;
/// Products that were asked for; replays of graphs are not seen.
pub const SPARSERL_NUMBER_CALLS: i32 = 7;
/// Products after which planning has paid, against plain CSR, by what was measured, else predicted.
pub const SPARSERL_NUMBER_CALLS_TO_PAY: i32 = 8;

/// The version of the library, as MAJOR * 1000000 + MINOR * 1000 + PATCH.
#[unsafe(no_mangle)]
pub extern "C" fn sparserl_version() -> i32 {
    1_000 * part(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000
        + part(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}

fn part(text: &str) -> i32 {
    text.parse().unwrap_or(0)
}

/// A status in words; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn sparserl_status_text(status: sparserl_status) -> *const c_char {
    let known = Status::ALL.iter().find(|(known, _)| *known as i32 == status);
    known.map_or(c"unknown status", |(_, text)| *text).as_ptr()
}

/// What went wrong in the last call of this thread that failed, in one line; empty before one did.
/// It stays until the next call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn sparserl_last_error() -> *const c_char {
    status::last()
}

/// Makes options without any set.
///
/// # Safety
/// `options` points to a place for a handle, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_options_create(
    options: *mut *mut sparserl_options,
) -> sparserl_status {
    call(|| {
        // SAFETY: by the contract.
        unsafe { give("options", options, || Ok(OPTIONS.insert(Arc::new(Options::default())))) }
    })
}

/// Sets an option to the `size` bytes at `value`: a number of the type that the option says, or a
/// text of that length. What is refused changes nothing.
///
/// # Safety
/// `size` bytes at `value` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_options_set(
    options: *mut sparserl_options,
    option: i32,
    value: *const c_void,
    size: usize,
) -> sparserl_status {
    // SAFETY: by the contract.
    call(|| unsafe { OPTIONS.get(options)?.set(option, value, size) })
}

/// Destroys options. What was made with them stays as it is. NULL is ignored.
///
/// # Safety
/// None: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_options_destroy(
    options: *mut sparserl_options,
) -> sparserl_status {
    destroy(&OPTIONS, options, drop)
}

/// Makes a context. Without a GPU it plans for SPARSERL_OPTION_TARGET, checks kernels by emulation,
/// and executes nothing. `options` may be NULL.
///
/// # Safety
/// `context` points to a place for a handle, or is NULL; a log that was set is what it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_context_create(
    options: *const sparserl_options,
    context: *mut *mut sparserl_context,
) -> sparserl_status {
    call(|| {
        let make = || {
            let options = if options.is_null() {
                Default::default()
            } else {
                OPTIONS.get(options)?.context()?
            };
            Ok(CONTEXTS.insert(Arc::new(Context::open(options)?)))
        };
        // SAFETY: by the contract.
        unsafe { give("context", context, make) }
    })
}

/// Destroys a context, after what is searched for in the background has ended, which may take
/// seconds. Its plans go on. NULL is ignored.
///
/// # Safety
/// None: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_context_destroy(
    context: *mut sparserl_context,
) -> sparserl_status {
    destroy(&CONTEXTS, context, |context| context.wait())
}

/// Copies a matrix and checks it. The arrays are not needed any more when this returns.
///
/// # Safety
/// `csr` points to a description whose pointers are what it says; `matrix` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_matrix_create(
    context: *mut sparserl_context,
    csr: *const sparserl_csr,
    matrix: *mut *mut sparserl_matrix,
) -> sparserl_status {
    call(|| {
        let make = || {
            let context = CONTEXTS.get(context)?;
            // SAFETY: by the contract.
            let csr = unsafe { csr.as_ref() }.ok_or_else(|| Failure::null("csr"))?;
            // SAFETY: by the contract.
            let copied = unsafe { Matrix::copy(&context, csr) }?;
            Ok(MATRICES.insert(Arc::new(copied)))
        };
        // SAFETY: by the contract.
        unsafe { give("matrix", matrix, make) }
    })
}

/// Destroys a matrix. Plans of it go on. NULL is ignored.
///
/// # Safety
/// None: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_matrix_destroy(matrix: *mut sparserl_matrix) -> sparserl_status {
    destroy(&MATRICES, matrix, drop)
}

/// Makes a plan. With a GPU this returns as soon as there is a kernel for plain CSR, compiled, and
/// its epilogue checked: tenths of a second when it is compiled for the first time. A better one takes its place when it has been found in the background (never with
/// SPARSERL_OPTION_DETERMINISTIC; with SPARSERL_OPTION_VALUES_VARIABLE, once values were updated,
/// at the next update). Without a GPU this returns when all is done. `options` may be NULL.
///
/// # Safety
/// `plan` points to a place for a handle, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_create(
    context: *mut sparserl_context,
    matrix: *mut sparserl_matrix,
    options: *const sparserl_options,
    plan: *mut *mut sparserl_plan,
) -> sparserl_status {
    call(|| {
        let make = || {
            let (context, matrix) = (CONTEXTS.get(context)?, MATRICES.get(matrix)?);
            let options = if options.is_null() {
                Default::default()
            } else {
                OPTIONS.get(options)?.plan()?
            };
            Ok(PLANS.insert(Plan::create(&context, &matrix, options)?))
        };
        // SAFETY: by the contract.
        unsafe { give("plan", plan, make) }
    })
}

/// Waits until nothing better is searched for any more.
///
/// # Safety
/// None: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_wait(plan: *mut sparserl_plan) -> sparserl_status {
    call(|| {
        PLANS.get(plan)?.wait();
        Ok(())
    })
}

/// Destroys a plan, whose launches must be done, as must be graphs that were captured of it. What is
/// searched for in the background is given up. NULL is ignored.
///
/// # Safety
/// None but what is said: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_destroy(plan: *mut sparserl_plan) -> sparserl_status {
    destroy(&PLANS, plan, |plan| {
        plan.is_abandoned.store(true, Ordering::Relaxed);
        verbose::remember(&plan);
    })
}

/// z = alpha A x + beta y, or what the plan's epilogue makes of it, in the order of `stream` (a
/// CUstream or cudaStream_t). It returns at once, allocates nothing, and may be captured into a
/// graph, which keeps the kernel that the plan had then. z may be y, and must not overlap x. y is
/// not read where beta is 0, and may be NULL then. Calls of one plan must not overlap on the device.
///
/// # Safety
/// `alpha` and `beta` point to numbers of the matrix's type on the host; the vectors are device
/// memory of the matrix's sizes, which stays until the stream has come past the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_execute(
    plan: *mut sparserl_plan,
    stream: *mut c_void,
    alpha: *const c_void,
    x: *const c_void,
    beta: *const c_void,
    y: *const c_void,
    z: *mut c_void,
) -> sparserl_status {
    let user = std::ptr::null();
    call(|| {
        let product = Product { op: Op::None, stream, alpha, x, beta, y, z, user };
        // SAFETY: by the contract.
        unsafe { PLANS.get(plan)?.execute(&product) }
    })
}

/// sparserl_execute() with A or its transpose (SPARSERL_OP_NONE, SPARSERL_OP_TRANSPOSE), and with
/// the user block of an epilogue, which is read before this returns; NULL where it has none.
///
/// # Safety
/// As sparserl_execute(); `user` points to the struct that the epilogue declares.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_execute_op(
    plan: *mut sparserl_plan,
    op: i32,
    stream: *mut c_void,
    alpha: *const c_void,
    x: *const c_void,
    beta: *const c_void,
    y: *const c_void,
    z: *mut c_void,
    user: *const c_void,
) -> sparserl_status {
    call(|| {
        let product = Product { op: read_op(op)?, stream, alpha, x, beta, y, z, user };
        // SAFETY: by the contract.
        unsafe { PLANS.get(plan)?.execute(&product) }
    })
}

/// Gives a plan made with SPARSERL_OPTION_VALUES_VARIABLE other values, in the order of the entries
/// of the matrix it was made of, and in the order of `stream`. From the host (SPARSERL_HOST) it
/// waits for the stream; from the device (SPARSERL_DEVICE) it returns at once and may be captured.
/// Values must be finite: that is not checked.
///
/// # Safety
/// `values` points to as many values as the matrix has entries, which stay until the stream has come
/// past the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_update_values(
    plan: *mut sparserl_plan,
    stream: *mut c_void,
    values: *const c_void,
    location: i32,
) -> sparserl_status {
    // SAFETY: by the contract.
    call(|| unsafe { PLANS.get(plan)?.update_values(stream, values, location) })
}

/// Copies a text of a plan (SPARSERL_TEXT_WHY, ...) with a NUL at its end, and puts its length
/// without the NUL into `length`. With `buffer` NULL and `size` 0 it only tells the length.
///
/// # Safety
/// `size` bytes at `buffer` can be written, and so can `length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_text(
    plan: *mut sparserl_plan,
    op: i32,
    text: i32,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> sparserl_status {
    call(|| {
        if length.is_null() {
            return Err(Failure::null("length"));
        }
        let bytes = PLANS.get(plan)?.text(read_op(op)?, text)?;
        // SAFETY: by the contract.
        unsafe { length.write(bytes.len()) };
        if buffer.is_null() {
            return if size == 0 { Ok(()) } else { Err(Failure::null("buffer")) };
        }
        if size <= bytes.len() {
            let needed = bytes.len() + 1;
            let text = format!("the buffer has {size} bytes, and {needed} are needed");
            return Err(Failure::new(Status::BufferTooSmall, text));
        }
        // SAFETY: by the contract, there is room for the bytes and a NUL.
        unsafe {
            buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            buffer.add(bytes.len()).write(0);
        }
        Ok(())
    })
}

/// Puts a number of a plan (SPARSERL_NUMBER_PACKED_BYTES, ...) into `value`.
///
/// # Safety
/// `value` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_number(
    plan: *mut sparserl_plan,
    op: i32,
    number: i32,
    value: *mut f64,
) -> sparserl_status {
    call(|| {
        if value.is_null() {
            return Err(Failure::null("value"));
        }
        let found = PLANS.get(plan)?.number(read_op(op)?, number)?;
        // SAFETY: by the contract.
        unsafe { value.write(found) };
        Ok(())
    })
}

/// Writes a plan to a file, once nothing is searched for any more. The file appears whole or not at
/// all. It holds no matrix.
///
/// # Safety
/// `path` points to a text that ends in NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_save(
    plan: *mut sparserl_plan,
    path: *const c_char,
) -> sparserl_status {
    // SAFETY: by the contract.
    call(|| PLANS.get(plan)?.save(unsafe { read_path(path) }?))
}

/// Reads a plan from a file, for a matrix of the same pattern and a GPU of the same architecture.
///
/// # Safety
/// `path` points to a text that ends in NUL, and `plan` to a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_load(
    context: *mut sparserl_context,
    matrix: *mut sparserl_matrix,
    path: *const c_char,
    plan: *mut *mut sparserl_plan,
) -> sparserl_status {
    call(|| {
        let make = || {
            let (context, matrix) = (CONTEXTS.get(context)?, MATRICES.get(matrix)?);
            // SAFETY: by the contract.
            let path = unsafe { read_path(path) }?;
            Ok(PLANS.insert(Arc::new(Plan::load(&context, &matrix, path)?)))
        };
        // SAFETY: by the contract.
        unsafe { give("plan", plan, make) }
    })
}

/// Makes what a handle is for and writes the handle, or nothing.
///
/// # Safety
/// `place` can be written, or is NULL.
unsafe fn give<H>(
    what: &str,
    place: *mut *mut H,
    make: impl FnOnce() -> Result<*mut H, Failure>,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::null(what));
    }
    let handle = make()?;
    // SAFETY: by the contract.
    unsafe { place.write(handle) };
    Ok(())
}

fn destroy<T, H>(
    handles: &Handles<T>,
    handle: *mut H,
    last: impl FnOnce(Arc<T>),
) -> sparserl_status {
    call(|| {
        if !handle.is_null() {
            last(handles.remove(handle)?);
        }
        Ok(())
    })
}

fn read_op(op: i32) -> Result<Op, Failure> {
    match op {
        SPARSERL_OP_NONE => Ok(Op::None),
        SPARSERL_OP_TRANSPOSE => Ok(Op::Transpose),
        _ => Err(Failure::argument(format_args!(
            "op is {op}: expected SPARSERL_OP_NONE or SPARSERL_OP_TRANSPOSE"
        ))),
    }
}

/// # Safety
/// A text that ends in NUL, or NULL.
unsafe fn read_path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    use std::os::unix::ffi::OsStrExt as _;
    if path.is_null() {
        return Err(Failure::null("path"));
    }
    // SAFETY: by the contract.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    if bytes.is_empty() {
        return Err(Failure::argument("path is empty"));
    }
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}
