//! The statuses, options, types and keys of `sparserl.h`. Their numbers never change.
#![allow(non_camel_case_types, reason = "the names of C")]
#![allow(rustdoc::broken_intra_doc_links, reason = "brackets are those of C")]

use std::ffi::{c_char, c_void};

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
/// The arrays are no CSR matrix: row offsets that fall or do not end as nnz says, a column out of
/// range, unsorted or repeated, a value not finite.
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
/// The stream is being captured, and what is asked for cannot be; or it is the default stream,
/// which waits for others, while one of them is captured.
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
/// The buffer is too small: the length and a NUL have to fit. Only the length was written.
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
/// Text: folder for compiled kernels, for what was chosen and for epilogues that were found right,
/// instead of the user's cache folder. For contexts.
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
/// once, and nothing else. Default 100000. Kernels are chosen by their times in a chain of
/// products, with a warm cache. What was chosen for a pattern is remembered, so that later plans of
/// fewer calls have it, and have it sooner. For plans, like all that follow.
pub const SPARSERL_OPTION_EXPECTED_CALLS: i32 = 100;
/// int32_t: 1 measures programs on the GPU, 0 never does, -1 (default) where the expected calls are
/// worth it.
pub const SPARSERL_OPTION_MEASURE: i32 = 101;
/// double: seconds after which nothing better is searched for.
pub const SPARSERL_OPTION_DEADLINE: i32 = 102;
/// uint64_t: bytes of device memory that the plan may take: for packed matrices with their
/// workspaces, and where values may change for the maps that say where they go, of all its kernels,
/// and for copies of column-major operands. Machine code is not counted, nor what measuring takes
/// for a while.
pub const SPARSERL_OPTION_MEMORY_LIMIT: i32 = 103;
/// int32_t: 1 gives the same bits in every run: no kernel is swapped, and nothing depends on
/// times. Planning then waits for the policy.
pub const SPARSERL_OPTION_DETERMINISTIC: i32 = 104;
/// int32_t: 1 if values will change by sparserl_plan_update_values().
pub const SPARSERL_OPTION_VALUES_VARIABLE: i32 = 105;
/// int32_t: 1 makes kernels for A and for its transpose.
pub const SPARSERL_OPTION_TRANSPOSE_TOO: i32 = 106;
/// Text: an epilogue that is ready, applied to v = alpha op(A) x + beta y before it is stored, in
/// products with A, and with the transpose unless that has one of its own
/// (SPARSERL_OPTION_TRANSPOSED_EPILOGUE):
/// "relu": max(v, 0). "bias": v + bias[row], user { const T *bias; }.
/// "column_bias", of matrices: v + bias[column], user { const T *bias; }.
/// "clamp": v between bounds, user { const T *lower, *upper; }.
/// "axpy": v + factor * vector, user { const T *vector; S factor; }.
/// "dot_terms": v, and terms = v * vector, which are the terms of their dot product and are not
/// added up: that takes a reduction behind it, user { const T *vector; S *terms; }.
/// "none": v, as without this option. An empty text, here and of the options below, is no name: it
/// takes back what was set before.
/// T is the type of the dense operands and S that of sums; bounds, vectors and terms have an
/// element for each of the result's, in its order.
pub const SPARSERL_OPTION_EPILOGUE: i32 = 107;
/// Text: an epilogue in CUDA C, which is fused into the kernel:
/// __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user)
/// or, with SPARSERL_OPTION_COLUMNS,
/// __device__ Scalar epilogue(unsigned row, unsigned column, Scalar product, Scalar old,
///                            const User& user)
/// where Scalar is the type of sums, product is alpha op(A) x and old is beta y (0 if beta is 0).
/// It is emulated before it is used, and refused where it reads or writes outside of the declared
/// arrays, reads what nobody wrote, races or does not end. That is tried in its kernel on some rows
/// of the matrix, or of another one by sparserl_compile_ahead(), counted from 0, with arrays for so
/// many; and by itself, with arrays of their full length, at up to 8192 places of the result by
/// their true numbers: all places of a small one, else both ends, the middle, around powers of two
/// and around the numbers that the text names, and others drawn at random from all parts. Products
/// and old elements there are of all magnitudes, infinite and NaN too. What goes wrong at other
/// places only is not found, nor what depends on what the user block and its arrays hold (numbers
/// in [-1, 1) here): on a GPU that ends the CUDA context, or writes to other memory of the process.
/// An index that is computed from products or from elements of arrays is therefore the text's to
/// bound.
pub const SPARSERL_OPTION_EPILOGUE_SOURCE: i32 = 108;
/// Text: the members of User, in order: "const Scalar a[rows]; const Scalar b[columns]; Scalar c;
/// Scalar d[rows];". The user block is the C struct { const S *a, *b; S c; S *d; }; rows and
/// columns are those of op(A). Arrays that are not const are written, each element for its own row.
/// "const Scalar e[1];" is a number in device memory, *user.e, which may change from one replay of
/// a CUDA graph to the next. Of matrices there are arrays [N] and [rows][N], too, and N is a
/// constant in the text. Arrays of Dense instead of Scalar have the type of the dense operands,
/// which becomes Scalar by itself; in half precision Dense::nearest(v) makes one of a Scalar.
/// Arrays that are written must not overlap other arrays or operands.
pub const SPARSERL_OPTION_EPILOGUE_USER: i32 = 109;
/// int32_t: 0 takes dense operands, new values, workspaces and the arrays of an epilogue's user
/// block as they are given; 1 (default) asks the driver whether they are device memory that is
/// large enough.
pub const SPARSERL_OPTION_CHECK_POINTERS: i32 = 110;
/// uint64_t: columns of the dense operands, 1 to 1048576: the plan is for products with matrices
/// (SpMM), by sparserl_execute_matrices(). Without it, for products with vectors.
pub const SPARSERL_OPTION_COLUMNS: i32 = 111;
/// int32_t: how B, C and D of sparserl_execute_matrices() lie: SPARSERL_DENSE_ROW_MAJOR (default),
/// SPARSERL_DENSE_STRIDED or SPARSERL_DENSE_COLUMN_MAJOR. With SPARSERL_OPTION_COLUMNS only. Arrays
/// of an epilogue lie as they do without it.
pub const SPARSERL_OPTION_DENSE: i32 = 112;
/// Text: SPARSERL_OPTION_EPILOGUE for products with the transpose alone. Where neither this option
/// nor one of the next two is set, these products have the epilogue of products with A. Where one
/// is, they have what these three say, which may be "none", and products with A what the three
/// without TRANSPOSED say, which is none where those are not set. Each product is given the user
/// block of its own epilogue. With SPARSERL_OPTION_TRANSPOSE_TOO only.
pub const SPARSERL_OPTION_TRANSPOSED_EPILOGUE: i32 = 113;
/// Text: SPARSERL_OPTION_EPILOGUE_SOURCE for products with the transpose alone, as above.
pub const SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE: i32 = 114;
/// Text: SPARSERL_OPTION_EPILOGUE_USER for products with the transpose alone, as above; rows and
/// columns are those of op(A), here of the transpose.
pub const SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER: i32 = 115;

/// Row-major, without gaps between rows: leading dimensions are SPARSERL_OPTION_COLUMNS.
pub const SPARSERL_DENSE_ROW_MAJOR: i32 = 0;
/// Row-major, with any leading dimensions. The plan has kernels for them besides, which are used
/// where one is not SPARSERL_OPTION_COLUMNS, or where a row is not as aligned as without this.
pub const SPARSERL_DENSE_STRIDED: i32 = 1;
/// Column-major, with leading dimensions of at least the rows, as BLAS has it. Each product copies
/// B, and C where beta is not 0, to rows before it, and D to columns behind it: its workspace holds
/// the copies.
pub const SPARSERL_DENSE_COLUMN_MAJOR: i32 = 2;

/// Receives a line of text. It may be called from any thread until the context is destroyed, and
/// must not wait for a plan or destroy anything.
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
/// IEEE 754 binary16. Sums are in SPARSERL_F32.
pub const SPARSERL_F16: i32 = 2;
/// bfloat16, the upper half of SPARSERL_F32. Sums are in SPARSERL_F32.
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
    /// SPARSERL_F32, SPARSERL_F64, SPARSERL_F16 or SPARSERL_BF16; the dense operands have it, too.
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
/// The epilogue of products with op(A): the name of one that is ready, or the text in CUDA C; empty
/// where there is none.
pub const SPARSERL_TEXT_EPILOGUE: i32 = 5;
/// What that epilogue takes, as SPARSERL_OPTION_EPILOGUE_USER declares it; empty where that is
/// nothing.
pub const SPARSERL_TEXT_EPILOGUE_USER: i32 = 6;

/// Bytes of the packed matrix with its workspace.
pub const SPARSERL_NUMBER_PACKED_BYTES: i32 = 1;
/// Seconds of a product that are predicted: by the cost model, and of a program that was chosen and
/// not measured by its gain over plain CSR, as the policy predicts it.
pub const SPARSERL_NUMBER_PREDICTED_SECONDS: i32 = 2;
/// Seconds of a product as measured, in a chain of them.
pub const SPARSERL_NUMBER_MEASURED_SECONDS: i32 = 3;
/// Seconds of a product by plain CSR, measured in turn with the kernel, in a chain of them.
pub const SPARSERL_NUMBER_CSR_SECONDS: i32 = 4;
/// Seconds of a product by cuSPARSE's fastest algorithm, measured in turn with the kernel, in a
/// chain of them.
pub const SPARSERL_NUMBER_CUSPARSE_SECONDS: i32 = 5;
/// Seconds that planning took, in the background too.
pub const SPARSERL_NUMBER_PLANNING_SECONDS: i32 = 6;
/// Products that were asked for; replays of graphs are not seen.
pub const SPARSERL_NUMBER_CALLS: i32 = 7;
/// Products after which planning has paid, against plain CSR, by what was measured, else predicted.
pub const SPARSERL_NUMBER_CALLS_TO_PAY: i32 = 8;
/// Bytes of workspace that a product writes to meanwhile, copies of column-major operands among it:
/// the most of the kernel in use and of a better one that waits for new values. Where it is 0,
/// products of one plan may overlap; else by sparserl_plan_set_workspace().
pub const SPARSERL_NUMBER_WORKSPACE_BYTES: i32 = 9;
/// How the plan's dense operands lie: SPARSERL_DENSE_ROW_MAJOR, ...
pub const SPARSERL_NUMBER_DENSE: i32 = 10;
