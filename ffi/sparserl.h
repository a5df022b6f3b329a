// SparseRL: kernels for sparse matrices, made for one matrix each.
//
// context -> matrix -> plan -> execute. Handles are opaque, and using one after it was destroyed is
// an error like any other; only what pointers point to is trusted. Every function may be called
// from every thread. Functions return a status; where it is not SPARSERL_SUCCESS nothing was
// written, and sparserl_last_error() says why in one line. Statuses, options, types and keys keep
// their numbers, and functions their parameters, in all versions with the same major number.
//
// A process that was forked from one with a context has no threads to work for it: calls there
// wait for ever. Threads that call need a stack of 256 KiB.
//
// With SPARSERL_VERBOSE=1 a line is printed for each plan when the program ends.
//
// Written by cbindgen from ffi/src/types.rs and ffi/src/api.rs; do not edit.


#ifndef SPARSERL_H
#define SPARSERL_H

#include <stddef.h>
#include <stdint.h>

// Text: "learned" (default), "cost", or the folder of an exported policy. For contexts.
#define SPARSERL_OPTION_POLICY 1

// Text: folder for compiled kernels, for what was chosen and for epilogues that were found right,
// instead of the user's cache folder. For contexts.
#define SPARSERL_OPTION_CACHE_FOLDER 2

// int32_t: number of the device, or -1 for none; by default the first, if there is one. For
// contexts.
#define SPARSERL_OPTION_DEVICE 3

// Text: the GPU to plan for where there is none: "h200" (default), "sm_90", ... For contexts.
#define SPARSERL_OPTION_TARGET 4

// sparserl_log: where messages go. For contexts.
#define SPARSERL_OPTION_LOG 5

// Text: the program sparserl-server, where it is not installed beside the library. For contexts.
#define SPARSERL_OPTION_SERVER 6

// uint64_t: products that are expected; they decide what planning may cost. 0 is plain CSR at
// once, and nothing else. Default 100000. Kernels are chosen by their times in a chain of
// products, with a warm cache. What was chosen for a pattern is remembered, so that later plans of
// fewer calls have it, and have it sooner. For plans, like all that follow.
#define SPARSERL_OPTION_EXPECTED_CALLS 100

// int32_t: 1 measures programs on the GPU, 0 never does, -1 (default) where the expected calls are
// worth it.
#define SPARSERL_OPTION_MEASURE 101

// double: seconds after which nothing better is searched for.
#define SPARSERL_OPTION_DEADLINE 102

// uint64_t: bytes of device memory that the plan may take: for packed matrices with their
// workspaces, and where values may change for the maps that say where they go, of all its kernels,
// and for copies of column-major operands. Machine code is not counted, nor what measuring takes
// for a while.
#define SPARSERL_OPTION_MEMORY_LIMIT 103

// int32_t: 1 gives the same bits in every run: no kernel is swapped, and nothing depends on
// times. Planning then waits for the policy.
#define SPARSERL_OPTION_DETERMINISTIC 104

// int32_t: 1 if values will change by sparserl_plan_update_values().
#define SPARSERL_OPTION_VALUES_VARIABLE 105

// int32_t: 1 makes kernels for A and for its transpose.
#define SPARSERL_OPTION_TRANSPOSE_TOO 106

// Text: an epilogue that is ready, applied to v = alpha op(A) x + beta y before it is stored, in
// products with A, and with the transpose unless that has one of its own
// (SPARSERL_OPTION_TRANSPOSED_EPILOGUE):
// "relu": max(v, 0). "bias": v + bias[row], user { const T *bias; }.
// "column_bias", of matrices: v + bias[column], user { const T *bias; }.
// "clamp": v between bounds, user { const T *lower, *upper; }.
// "axpy": v + factor * vector, user { const T *vector; S factor; }.
// "dot_terms": v, and terms = v * vector, which are the terms of their dot product and are not
// added up: that takes a reduction behind it, user { const T *vector; S *terms; }.
// "none": v, as without this option. An empty text, here and of the options below, is no name: it
// takes back what was set before.
// T is the type of the dense operands and S that of sums; bounds, vectors and terms have an
// element for each of the result's, in its order.
#define SPARSERL_OPTION_EPILOGUE 107

// Text: an epilogue in CUDA C, which is fused into the kernel:
// __device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user)
// or, with SPARSERL_OPTION_COLUMNS,
// __device__ Scalar epilogue(unsigned row, unsigned column, Scalar product, Scalar old,
//                            const User& user)
// where Scalar is the type of sums, product is alpha op(A) x and old is beta y (0 if beta is 0).
// It is emulated before it is used, and refused where it reads or writes outside of the declared
// arrays, reads what nobody wrote, races or does not end. That is tried in its kernel on some rows
// of the matrix, or of another one by sparserl_compile_ahead(), counted from 0, with arrays for so
// many; and by itself, with arrays of their full length, at up to 8192 places of the result by
// their true numbers: all places of a small one, else both ends, the middle, around powers of two
// and around the numbers that the text names, and others drawn at random from all parts. Products
// and old elements there are of all magnitudes, infinite and NaN too. What goes wrong at other
// places only is not found, nor what depends on what the user block and its arrays hold (numbers
// in [-1, 1) here): on a GPU that ends the CUDA context, or writes to other memory of the process.
// An index that is computed from products or from elements of arrays is therefore the text's to
// bound.
#define SPARSERL_OPTION_EPILOGUE_SOURCE 108

// Text: the members of User, in order: "const Scalar a[rows]; const Scalar b[columns]; Scalar c;
// Scalar d[rows];". The user block is the C struct { const S *a, *b; S c; S *d; }; rows and
// columns are those of op(A). Arrays that are not const are written, each element for its own row.
// "const Scalar e[1];" is a number in device memory, *user.e, which may change from one replay of
// a CUDA graph to the next. Of matrices there are arrays [N] and [rows][N], too, and N is a
// constant in the text. Arrays of Dense instead of Scalar have the type of the dense operands,
// which becomes Scalar by itself; in half precision Dense::nearest(v) makes one of a Scalar.
// Arrays that are written must not overlap other arrays or operands.
#define SPARSERL_OPTION_EPILOGUE_USER 109

// int32_t: 0 takes dense operands, new values, workspaces and the arrays of an epilogue's user
// block as they are given; 1 (default) asks the driver whether they are device memory that is
// large enough.
#define SPARSERL_OPTION_CHECK_POINTERS 110

// uint64_t: columns of the dense operands, 1 to 1048576: the plan is for products with matrices
// (SpMM), by sparserl_execute_matrices(). Without it, for products with vectors.
#define SPARSERL_OPTION_COLUMNS 111

// int32_t: how B, C and D of sparserl_execute_matrices() lie: SPARSERL_DENSE_ROW_MAJOR (default),
// SPARSERL_DENSE_STRIDED or SPARSERL_DENSE_COLUMN_MAJOR. With SPARSERL_OPTION_COLUMNS only. Arrays
// of an epilogue lie as they do without it.
#define SPARSERL_OPTION_DENSE 112

// Text: SPARSERL_OPTION_EPILOGUE for products with the transpose alone. Where neither this option
// nor one of the next two is set, these products have the epilogue of products with A. Where one
// is, they have what these three say, which may be "none", and products with A what the three
// without TRANSPOSED say, which is none where those are not set. Each product is given the user
// block of its own epilogue. With SPARSERL_OPTION_TRANSPOSE_TOO only.
#define SPARSERL_OPTION_TRANSPOSED_EPILOGUE 113

// Text: SPARSERL_OPTION_EPILOGUE_SOURCE for products with the transpose alone, as above.
#define SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE 114

// Text: SPARSERL_OPTION_EPILOGUE_USER for products with the transpose alone, as above; rows and
// columns are those of op(A), here of the transpose.
#define SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER 115

// Row-major, without gaps between rows: leading dimensions are SPARSERL_OPTION_COLUMNS.
#define SPARSERL_DENSE_ROW_MAJOR 0

// Row-major, with any leading dimensions. The plan has kernels for them besides, which are used
// where one is not SPARSERL_OPTION_COLUMNS, or where a row is not as aligned as without this.
#define SPARSERL_DENSE_STRIDED 1

// Column-major, with leading dimensions of at least the rows, as BLAS has it. Each product copies
// B, and C where beta is not 0, to rows before it, and D to columns behind it: its workspace holds
// the copies.
#define SPARSERL_DENSE_COLUMN_MAJOR 2

// 32-bit signed integers.
#define SPARSERL_I32 0

// 64-bit signed integers.
#define SPARSERL_I64 1

// IEEE 754 binary32.
#define SPARSERL_F32 0

// IEEE 754 binary64.
#define SPARSERL_F64 1

// IEEE 754 binary16. Sums are in SPARSERL_F32.
#define SPARSERL_F16 2

// bfloat16, the upper half of SPARSERL_F32. Sums are in SPARSERL_F32.
#define SPARSERL_BF16 3

// Memory of the host.
#define SPARSERL_HOST 0

// Memory of the context's device.
#define SPARSERL_DEVICE 1

// The product with A.
#define SPARSERL_OP_NONE 0

// The product with the transpose of A.
#define SPARSERL_OP_TRANSPOSE 1

// Why the plan has the kernel that it has, in a sentence.
#define SPARSERL_TEXT_WHY 1

// The program in the kernel language.
#define SPARSERL_TEXT_PROGRAM 2

// The kernel in CUDA C++.
#define SPARSERL_TEXT_SOURCE 3

// The kernel in machine code: bytes of a cubin.
#define SPARSERL_TEXT_CUBIN 4

// The epilogue of products with op(A): the name of one that is ready, or the text in CUDA C; empty
// where there is none.
#define SPARSERL_TEXT_EPILOGUE 5

// What that epilogue takes, as SPARSERL_OPTION_EPILOGUE_USER declares it; empty where that is
// nothing.
#define SPARSERL_TEXT_EPILOGUE_USER 6

// Bytes of the packed matrix with its workspace.
#define SPARSERL_NUMBER_PACKED_BYTES 1

// Seconds of a product that are predicted: by the cost model, and of a program that was chosen and
// not measured by its gain over plain CSR, as the policy predicts it.
#define SPARSERL_NUMBER_PREDICTED_SECONDS 2

// Seconds of a product as measured, in a chain of them.
#define SPARSERL_NUMBER_MEASURED_SECONDS 3

// Seconds of a product by plain CSR, measured in turn with the kernel, in a chain of them.
#define SPARSERL_NUMBER_CSR_SECONDS 4

// Seconds of a product by cuSPARSE's fastest algorithm, measured in turn with the kernel, in a
// chain of them.
#define SPARSERL_NUMBER_CUSPARSE_SECONDS 5

// Seconds that planning took, in the background too.
#define SPARSERL_NUMBER_PLANNING_SECONDS 6

// Products that were asked for; replays of graphs are not seen.
#define SPARSERL_NUMBER_CALLS 7

// Products after which planning has paid, against plain CSR, by what was measured, else predicted.
#define SPARSERL_NUMBER_CALLS_TO_PAY 8

// Bytes of workspace that a product writes to meanwhile, copies of column-major operands among it:
// the most of the kernel in use and of a better one that waits for new values. Where it is 0,
// products of one plan may overlap; else by sparserl_plan_set_workspace().
#define SPARSERL_NUMBER_WORKSPACE_BYTES 9

// How the plan's dense operands lie: SPARSERL_DENSE_ROW_MAJOR, ...
#define SPARSERL_NUMBER_DENSE 10

// A policy, compilers and a GPU, shared by plans.
typedef struct sparserl_context sparserl_context;

// A matrix, copied.
typedef struct sparserl_matrix sparserl_matrix;

// Options of a context or of a plan.
typedef struct sparserl_options sparserl_options;

// The kernels of a matrix.
typedef struct sparserl_plan sparserl_plan;

// What a call returns: SPARSERL_SUCCESS or why not. sparserl_last_error() says more.
typedef int32_t sparserl_status;

// A matrix in CSR. Columns increase within each row. Zero it before it is filled in.
typedef struct sparserl_csr {
  // Rows, below 2^32 - 1.
  int64_t rows;
  // Columns, below 2^32 - 1.
  int64_t cols;
  // Stored entries.
  int64_t nnz;
  // rows + 1 of them.
  const void *row_offsets;
  // nnz of them.
  const void *column_indices;
  // nnz of them, all finite.
  const void *values;
  // SPARSERL_I32 or SPARSERL_I64.
  int32_t offset_type;
  // SPARSERL_I32 or SPARSERL_I64.
  int32_t index_type;
  // SPARSERL_F32, SPARSERL_F64, SPARSERL_F16 or SPARSERL_BF16; the dense operands have it, too.
  int32_t value_type;
  // What the first row offset and the first column are: 0 or 1.
  int32_t index_base;
  // SPARSERL_HOST or SPARSERL_DEVICE, for all three arrays. What was asked of any stream for
  // arrays on a device must be done.
  int32_t location;
  // 0.
  int32_t reserved[3];
} sparserl_csr;

// Receives a line of text. It may be called from any thread until the context is destroyed, and
// must not wait for a plan or destroy anything.
typedef struct sparserl_log {
  // The function, or NULL for none.
  void (*function)(const char *line, void *user);
  // What it is given.
  void *user;
} sparserl_log;

// It did what it was asked to.
#define SPARSERL_SUCCESS 0

// A pointer is NULL that must not be.
#define SPARSERL_NULL_POINTER 1

// A handle was destroyed, is of another kind, or is none at all.
#define SPARSERL_INVALID_HANDLE 2

// A number, text or pointer is not one of those that are allowed.
#define SPARSERL_INVALID_ARGUMENT 3

// The arrays are no CSR matrix: row offsets that fall or do not end as nnz says, a column out of
// range, unsorted or repeated, a value not finite.
#define SPARSERL_INVALID_MATRIX 4

// There are no kernels for what is asked for, or the plan was not made for it.
#define SPARSERL_UNSUPPORTED 5

// There is no GPU: plans are made, checked and saved, and cannot be executed.
#define SPARSERL_NO_DEVICE 6

// The stream, or what is asked for, is of another device than the context's.
#define SPARSERL_WRONG_DEVICE 7

// The device's memory does not suffice.
#define SPARSERL_OUT_OF_MEMORY 8

// The plan needs more than SPARSERL_OPTION_MEMORY_LIMIT.
#define SPARSERL_MEMORY_LIMIT 9

// The stream is being captured, and what is asked for cannot be; or it is the default stream,
// which waits for others, while one of them is captured.
#define SPARSERL_CAPTURING 10

// Nothing can be compiled: NVRTC or the program sparserl-server is missing.
#define SPARSERL_NO_COMPILER 11

// The epilogue does not compile, or does what it must not.
#define SPARSERL_EPILOGUE 12

// A file cannot be read or written, or is damaged.
#define SPARSERL_FILE 13

// A saved plan is for another pattern, type, GPU or version.
#define SPARSERL_MISMATCH 14

// What is asked for is not known, or not yet.
#define SPARSERL_NOT_KNOWN 15

// The buffer is too small: the length and a NUL have to fit. Only the length was written.
#define SPARSERL_BUFFER_TOO_SMALL 16

// CUDA's driver reports an error, perhaps of an earlier call of somebody else.
#define SPARSERL_DEVICE_FAILED 17

// A defect of SparseRL.
#define SPARSERL_INTERNAL 18

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, as MAJOR * 1000000 + MINOR * 1000 + PATCH.
int32_t sparserl_version(void);

// A status in words; never NULL.
const char *sparserl_status_text(sparserl_status status);

// What went wrong in the last call of this thread that failed, in one line; empty before one did.
// It stays until the next call of this thread fails.
const char *sparserl_last_error(void);

// Makes options without any set.
sparserl_status sparserl_options_create(struct sparserl_options **options);

// Sets an option to the `size` bytes at `value`: a number of the type that the option says, or a
// text of that length. What is refused changes nothing.
sparserl_status sparserl_options_set(struct sparserl_options *options,
                                     int32_t option,
                                     const void *value,
                                     size_t size);

// Destroys options. What was made with them stays as it is. NULL is ignored.
sparserl_status sparserl_options_destroy(struct sparserl_options *options);

// Makes a context. Without a GPU it plans for SPARSERL_OPTION_TARGET, checks kernels by emulation,
// and executes nothing. `options` may be NULL.
sparserl_status sparserl_context_create(const struct sparserl_options *options,
                                        struct sparserl_context **context);

// Destroys a context. What is searched for in the background ends with the kernels that are being
// made or measured, which may take seconds, and goes no further: call sparserl_plan_wait() before
// for the best. So does sparserl_compile_ahead() in another thread. Its plans go on. NULL is
// ignored.
sparserl_status sparserl_context_destroy(struct sparserl_context *context);

// Copies a matrix and checks it. The arrays are not needed any more when this returns.
sparserl_status sparserl_matrix_create(struct sparserl_context *context,
                                       const struct sparserl_csr *csr,
                                       struct sparserl_matrix **matrix);

// Destroys a matrix. Plans of it go on. NULL is ignored.
sparserl_status sparserl_matrix_destroy(struct sparserl_matrix *matrix);

// Compiles, into the cache folder, every kernel that sparserl_plan_create() may begin with for
// matrices of `value_type` (SPARSERL_F32, ...) with these options, whatever the matrix, and puts
// their number into `num_kernels`, those that were there among it: plans of this context, and of
// later ones with that folder, do not wait for a compiler then. For installers and prologues of
// jobs, also where there is no GPU, for SPARSERL_OPTION_TARGET. It uses all cores for seconds, and
// for tenths of a second when all is there. Of the options those count that say what is computed:
// SPARSERL_OPTION_VALUES_VARIABLE, the epilogues', with SPARSERL_OPTION_TRANSPOSE_TOO for those of
// the transpose, SPARSERL_OPTION_COLUMNS and SPARSERL_OPTION_DENSE; a transposed matrix has the
// same kernels, unless it has another epilogue. Epilogues are tried in all of them, too; one in
// CUDA C is tried by itself, and compiled for that once more, by the first plan for each size of a
// matrix. Better kernels than these are compiled in the background, as ever. What is compiled
// counts where the same compiler would be taken, on a machine with a GPU the newest NVRTC whose
// machine code its driver loads. SPARSERL_FILE is returned where there is no cache folder or it
// cannot be written. `options` may be NULL.
sparserl_status sparserl_compile_ahead(struct sparserl_context *context,
                                       int32_t value_type,
                                       const struct sparserl_options *options,
                                       int64_t *num_kernels);

// Makes a plan. With a GPU this returns as soon as there is a kernel for plain CSR (by rows, or by
// merge path where they are of very different lengths), compiled, and its epilogue checked, once
// for each context: tenths of a second when it is compiled for the first time, none of them after
// sparserl_compile_ahead(). A better one takes its place when it has been found in the background
// (never with SPARSERL_OPTION_DETERMINISTIC; with SPARSERL_OPTION_VALUES_VARIABLE, once values
// were updated, at the next update). Without a GPU this returns when all is done. `options` may be
// NULL.
sparserl_status sparserl_plan_create(struct sparserl_context *context,
                                     struct sparserl_matrix *matrix,
                                     const struct sparserl_options *options,
                                     struct sparserl_plan **plan);

// Waits until nothing better is searched for any more.
sparserl_status sparserl_plan_wait(struct sparserl_plan *plan);

// Destroys a plan, whose launches must be done, as must be graphs that were captured of it. What
// is searched for in the background is given up. NULL is ignored.
sparserl_status sparserl_plan_destroy(struct sparserl_plan *plan);

// z = alpha A x + beta y, or what the plan's epilogue makes of it, in the order of `stream` (a
// CUstream or cudaStream_t). The vectors have the matrix's type, and are aligned to their
// elements; alpha and beta have the type of sums, which is float where the matrix is in half
// precision. It returns at once, allocates nothing, and may be captured into a graph, which keeps
// the kernel that the plan had then. z may be y; it must not overlap y otherwise, and x not at
// all. y is not read where beta is 0, and may be NULL then. Products of one plan must not run on
// the device at the same time, unless each has a workspace of its own
// (sparserl_plan_set_workspace()), or SPARSERL_NUMBER_WORKSPACE_BYTES is 0 and stays so, as it
// does after sparserl_plan_wait().
sparserl_status sparserl_execute(struct sparserl_plan *plan,
                                 void *stream,
                                 const void *alpha,
                                 const void *x,
                                 const void *beta,
                                 const void *y,
                                 void *z);

// sparserl_execute() with A or its transpose (SPARSERL_OP_NONE, SPARSERL_OP_TRANSPOSE), and with
// the user block of that product's epilogue, which is read before this returns; NULL where it has
// none.
sparserl_status sparserl_execute_op(struct sparserl_plan *plan,
                                    int32_t op,
                                    void *stream,
                                    const void *alpha,
                                    const void *x,
                                    const void *beta,
                                    const void *y,
                                    void *z,
                                    const void *user);

// D = alpha op(A) B + beta C, or what the plan's epilogue makes of it, for plans made with
// SPARSERL_OPTION_COLUMNS = N: all else is as for sparserl_execute_op(). B, C and D have N
// columns; B has as many rows as op(A) has columns, C and D as many as op(A) has rows. They lie as
// SPARSERL_OPTION_DENSE says. Row-major, `ldb`, `ldc` and `ldd` are the elements from the
// beginning of a row to that of the next: N, or with SPARSERL_DENSE_STRIDED any number from N to
// 2^32 - 1. Every row is aligned to 16 bytes, or to the largest power of 2 that divides the bytes
// of N elements, where that is less: the matrices are, and the bytes of leading dimensions are
// multiples of it. With SPARSERL_DENSE_STRIDED they need be aligned to their elements only; where
// a row is not aligned as said, elements are loaded and stored one by one, which is slower. With
// SPARSERL_DENSE_COLUMN_MAJOR they are the elements from the beginning of a column to that of the
// next, from the matrix's rows to 2^32 - 1, and matrices are aligned to their elements. D may be
// C, with the same leading dimension; otherwise no element of D is one of B or C. What lies
// between rows, or columns, is neither used nor written.
sparserl_status sparserl_execute_matrices(struct sparserl_plan *plan,
                                          int32_t op,
                                          void *stream,
                                          const void *alpha,
                                          const void *b,
                                          int64_t ldb,
                                          const void *beta,
                                          const void *c,
                                          int64_t ldc,
                                          void *d,
                                          int64_t ldd,
                                          const void *user);

// Lets products of a plan on `stream` write to `size` bytes of device memory at `workspace` in the
// place of the plan's own, so that two streams may use one plan at the same time. At least one of
// them needs it, and each another one. It is aligned to 256 bytes, as cudaMalloc() does, and has
// SPARSERL_NUMBER_WORKSPACE_BYTES, of the transpose too where that is used, as they are after
// sparserl_plan_wait(): a product whose kernel needs more is refused. It may hold anything. It
// must stay until what was asked of the stream is done and the plan is destroyed, or `workspace`
// is set to NULL, with size 0, before the stream is destroyed. Graphs keep what they were captured
// with.
sparserl_status sparserl_plan_set_workspace(struct sparserl_plan *plan,
                                            void *stream,
                                            void *workspace,
                                            size_t size);

// Gives a plan made with SPARSERL_OPTION_VALUES_VARIABLE other values, in the order of the entries
// of the matrix it was made of, and in the order of `stream`. From the host (SPARSERL_HOST) it
// waits for the stream; from the device (SPARSERL_DEVICE), where they are aligned to their
// elements, it returns at once and may be captured. Once an update was captured, the plan keeps
// the kernels that it has. Values must be finite: that is not checked.
sparserl_status sparserl_plan_update_values(struct sparserl_plan *plan,
                                            void *stream,
                                            const void *values,
                                            int32_t location);

// Copies a text of a plan (SPARSERL_TEXT_WHY, ...) with a NUL at its end, and puts its length
// without the NUL into `length`. With `buffer` NULL and `size` 0 it only tells the length.
sparserl_status sparserl_plan_text(struct sparserl_plan *plan,
                                   int32_t op,
                                   int32_t text,
                                   char *buffer,
                                   size_t size,
                                   size_t *length);

// Puts a number of a plan (SPARSERL_NUMBER_PACKED_BYTES, ...) into `value`.
sparserl_status sparserl_plan_number(struct sparserl_plan *plan,
                                     int32_t op,
                                     int32_t number,
                                     double *value);

// Writes a plan to a file, once nothing is searched for any more. The file appears whole or not at
// all. It holds no matrix.
sparserl_status sparserl_plan_save(struct sparserl_plan *plan, const char *path);

// Reads a plan from a file, for a matrix of the same pattern and a GPU of the same architecture.
// It holds machine code: read only files that you trust. There is no limit to its memory, and
// pointers are checked: sparserl_plan_load_with_options() has it otherwise.
sparserl_status sparserl_plan_load(struct sparserl_context *context,
                                   struct sparserl_matrix *matrix,
                                   const char *path,
                                   struct sparserl_plan **plan);

// sparserl_plan_load() with options, which must be such that sparserl_plan_create() takes. Of them
// SPARSERL_OPTION_MEMORY_LIMIT and SPARSERL_OPTION_CHECK_POINTERS are used, which no file holds;
// all others are those that the plan was made with. `options` may be NULL.
sparserl_status sparserl_plan_load_with_options(struct sparserl_context *context,
                                                struct sparserl_matrix *matrix,
                                                const char *path,
                                                const struct sparserl_options *options,
                                                struct sparserl_plan **plan);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SPARSERL_H */
