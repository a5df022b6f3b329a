//! The functions of `sparserl.h`.
//!
//! Everything documented here is documentation of the header.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::ahead::compile_ahead;
use crate::context::Context;
use crate::execute::Product;
use crate::handle::{Handles, Kind};
use crate::matrix::{self, Matrix};
use crate::op::Op;
use crate::operands::Form;
use crate::options::{Options, PlanOptions};
use crate::plan::{PLANS, Plan};
use crate::status::{self, Failure, Status, call};
use crate::verbose;

pub use crate::types::*;

static CONTEXTS: Handles<Context> = Handles::new(Kind::Context);
static OPTIONS: Handles<Options> = Handles::new(Kind::Options);
static MATRICES: Handles<Matrix> = Handles::new(Kind::Matrix);

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

/// Destroys a context. What is searched for in the background ends with the kernels that are being
/// made or measured, which may take seconds, and goes no further: call sparserl_plan_wait() before
/// for the best. So does sparserl_compile_ahead() in another thread. Its plans go on. NULL is
/// ignored.
///
/// # Safety
/// None: whatever is no handle is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_context_destroy(
    context: *mut sparserl_context,
) -> sparserl_status {
    destroy(&CONTEXTS, context, |context| context.close())
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

/// Compiles, into the cache folder, every kernel that sparserl_plan_create() may begin with for
/// matrices of `value_type` (SPARSERL_F32, ...) with these options, whatever the matrix, and puts
/// their number into `num_kernels`, those that were there among it: plans of this context, and of
/// later ones with that folder, do not wait for a compiler then. For installers and prologues of
/// jobs, also where there is no GPU, for SPARSERL_OPTION_TARGET. It uses all cores for seconds, and
/// for tenths of a second when all is there. Of the options those count that say what is computed:
/// SPARSERL_OPTION_VALUES_VARIABLE, the epilogues', with SPARSERL_OPTION_TRANSPOSE_TOO for those of
/// the transpose, SPARSERL_OPTION_COLUMNS and SPARSERL_OPTION_DENSE; a transposed matrix has the
/// same kernels, unless it has another epilogue. Epilogues are tried in all of them, too; one in
/// CUDA C is tried by itself, and compiled for that once more, by the first plan for each size of a
/// matrix. Better kernels than these are compiled in the background, as ever. What is compiled
/// counts where the same compiler would be taken, on a machine with a GPU the newest NVRTC whose
/// machine code its driver loads. SPARSERL_FILE is returned where there is no cache folder or it
/// cannot be written. `options` may be NULL.
///
/// # Safety
/// `num_kernels` can be written, or is NULL, which is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_compile_ahead(
    context: *mut sparserl_context,
    value_type: i32,
    options: *const sparserl_options,
    num_kernels: *mut i64,
) -> sparserl_status {
    call(|| {
        if num_kernels.is_null() {
            return Err(Failure::null("num_kernels"));
        }
        let context = CONTEXTS.get(context)?;
        // Whoever destroys the context waits for what still uses its compilers.
        let _compiling = context.search()?;
        let options = plan_options(options)?;
        let kernels = compile_ahead(&context, matrix::value_type(value_type)?, &options)?;
        // SAFETY: by the contract.
        unsafe { num_kernels.write(kernels as i64) };
        Ok(())
    })
}

/// Makes a plan. With a GPU this returns as soon as there is a kernel for plain CSR (by rows, or by
/// merge path where they are of very different lengths), compiled, and its epilogue checked, once
/// for each context: tenths of a second when it is compiled for the first time, none of them after
/// sparserl_compile_ahead(). A better one takes its place when it has been found in the background
/// (never with SPARSERL_OPTION_DETERMINISTIC; with SPARSERL_OPTION_VALUES_VARIABLE, once values
/// were updated, at the next update). Without a GPU this returns when all is done. `options` may be
/// NULL.
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
            // From here on, whoever destroys the context waits for what may still use its log.
            let searching = context.search()?;
            let options = plan_options(options)?;
            Ok(PLANS.insert(Plan::create(&context, &matrix, options, searching)?))
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
        PLANS.get(plan)?.progress.wait();
        Ok(())
    })
}

/// Destroys a plan, whose launches must be done, as must be graphs that were captured of it. What
/// is searched for in the background is given up. NULL is ignored.
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
/// CUstream or cudaStream_t). The vectors have the matrix's type, and are aligned to their
/// elements; alpha and beta have the type of sums, which is float where the matrix is in half
/// precision. It returns at once, allocates nothing, and may be captured into a graph, which keeps
/// the kernel that the plan had then. z may be y; it must not overlap y otherwise, and x not at
/// all. y is not read where beta is 0, and may be NULL then. Products of one plan must not run on
/// the device at the same time, unless each has a workspace of its own
/// (sparserl_plan_set_workspace()), or SPARSERL_NUMBER_WORKSPACE_BYTES is 0 and stays so, as it
/// does after sparserl_plan_wait().
///
/// # Safety
/// `alpha` and `beta` point to numbers of the type of sums on the host; the vectors are device
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
    call(|| {
        let product = Product {
            op: Op::None,
            stream,
            alpha,
            input: x,
            beta,
            old: y,
            output: z,
            user: std::ptr::null(),
            form: Form::Vectors,
        };
        // SAFETY: by the contract.
        unsafe { PLANS.get(plan)?.execute(&product) }
    })
}

/// sparserl_execute() with A or its transpose (SPARSERL_OP_NONE, SPARSERL_OP_TRANSPOSE), and with
/// the user block of that product's epilogue, which is read before this returns; NULL where it has
/// none.
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
        let product = Product {
            op: Op::read(op)?,
            stream,
            alpha,
            input: x,
            beta,
            old: y,
            output: z,
            user,
            form: Form::Vectors,
        };
        // SAFETY: by the contract.
        unsafe { PLANS.get(plan)?.execute(&product) }
    })
}

/// D = alpha op(A) B + beta C, or what the plan's epilogue makes of it, for plans made with
/// SPARSERL_OPTION_COLUMNS = N: all else is as for sparserl_execute_op(). B, C and D have N
/// columns; B has as many rows as op(A) has columns, C and D as many as op(A) has rows. They lie as
/// SPARSERL_OPTION_DENSE says. Row-major, `ldb`, `ldc` and `ldd` are the elements from the
/// beginning of a row to that of the next: N, or with SPARSERL_DENSE_STRIDED any number from N to
/// 2^32 - 1. Every row is aligned to 16 bytes, or to the largest power of 2 that divides the bytes
/// of N elements, where that is less: the matrices are, and the bytes of leading dimensions are
/// multiples of it. With SPARSERL_DENSE_STRIDED they need be aligned to their elements only; where
/// a row is not aligned as said, elements are loaded and stored one by one, which is slower. With
/// SPARSERL_DENSE_COLUMN_MAJOR they are the elements from the beginning of a column to that of the
/// next, from the matrix's rows to 2^32 - 1, and matrices are aligned to their elements. D may be
/// C, with the same leading dimension; otherwise no element of D is one of B or C. What lies
/// between rows, or columns, is neither used nor written.
///
/// # Safety
/// As sparserl_execute_op(), with matrices in the place of vectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_execute_matrices(
    plan: *mut sparserl_plan,
    op: i32,
    stream: *mut c_void,
    alpha: *const c_void,
    b: *const c_void,
    ldb: i64,
    beta: *const c_void,
    c: *const c_void,
    ldc: i64,
    d: *mut c_void,
    ldd: i64,
    user: *const c_void,
) -> sparserl_status {
    call(|| {
        let product = Product {
            op: Op::read(op)?,
            stream,
            alpha,
            input: b,
            beta,
            old: c,
            output: d,
            user,
            form: Form::Matrices([ldb, ldc, ldd]),
        };
        // SAFETY: by the contract.
        unsafe { PLANS.get(plan)?.execute(&product) }
    })
}

/// Lets products of a plan on `stream` write to `size` bytes of device memory at `workspace` in the
/// place of the plan's own, so that two streams may use one plan at the same time. At least one of
/// them needs it, and each another one. It is aligned to 256 bytes, as cudaMalloc() does, and has
/// SPARSERL_NUMBER_WORKSPACE_BYTES, of the transpose too where that is used, as they are after
/// sparserl_plan_wait(): a product whose kernel needs more is refused. It may hold anything. It
/// must stay until what was asked of the stream is done and the plan is destroyed, or `workspace`
/// is set to NULL, with size 0, before the stream is destroyed. Graphs keep what they were captured
/// with.
///
/// # Safety
/// `stream` is NULL or a live stream; `size` bytes at `workspace` are device memory that nobody
/// else writes as long as it is in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_set_workspace(
    plan: *mut sparserl_plan,
    stream: *mut c_void,
    workspace: *mut c_void,
    size: usize,
) -> sparserl_status {
    call(|| {
        let plan = PLANS.get(plan)?;
        let (gpu, is_checked) = (plan.context.gpu()?, plan.options.check_pointers);
        // SAFETY: by the contract.
        unsafe { plan.workspaces.set(gpu, stream, workspace, size, is_checked) }
    })
}

/// Gives a plan made with SPARSERL_OPTION_VALUES_VARIABLE other values, in the order of the entries
/// of the matrix it was made of, and in the order of `stream`. From the host (SPARSERL_HOST) it
/// waits for the stream; from the device (SPARSERL_DEVICE), where they are aligned to their
/// elements, it returns at once and may be captured. Once an update was captured, the plan keeps
/// the kernels that it has. Values must be finite: that is not checked.
///
/// # Safety
/// `values` points to as many values as the matrix has entries, which stay until the stream has
/// come past the call.
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
        let bytes = PLANS.get(plan)?.text(Op::read(op)?, text)?;
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
        let found = PLANS.get(plan)?.number(Op::read(op)?, number)?;
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
/// It holds machine code: read only files that you trust. There is no limit to its memory, and
/// pointers are checked: sparserl_plan_load_with_options() has it otherwise.
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
    // SAFETY: by the contract.
    unsafe { sparserl_plan_load_with_options(context, matrix, path, std::ptr::null(), plan) }
}

/// sparserl_plan_load() with options, which must be such that sparserl_plan_create() takes. Of them
/// SPARSERL_OPTION_MEMORY_LIMIT and SPARSERL_OPTION_CHECK_POINTERS are used, which no file holds;
/// all others are those that the plan was made with. `options` may be NULL.
///
/// # Safety
/// As sparserl_plan_load().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sparserl_plan_load_with_options(
    context: *mut sparserl_context,
    matrix: *mut sparserl_matrix,
    path: *const c_char,
    options: *const sparserl_options,
    plan: *mut *mut sparserl_plan,
) -> sparserl_status {
    call(|| {
        let make = || {
            let (context, matrix) = (CONTEXTS.get(context)?, MATRICES.get(matrix)?);
            // SAFETY: by the contract.
            let path = unsafe { read_path(path) }?;
            let given = plan_options(options)?;
            Ok(PLANS.insert(Arc::new(Plan::load(&context, &matrix, path, &given)?)))
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

/// The options of a plan; NULL stands for those that nobody set.
fn plan_options(options: *const sparserl_options) -> Result<PlanOptions, Failure> {
    if options.is_null() { Ok(PlanOptions::default()) } else { OPTIONS.get(options)?.plan() }
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
