/* The binary interface, as programs were compiled for it. What is asserted here is changed by a new major
 * version only; what a header gains is added. */
#include <sparserl.h>
#include <stdlib.h>

#define IS(what, number) _Static_assert((what) == (number), #what " is another")
#define LIES(structure, field, offset, size)       \
  IS(offsetof(struct structure, field), offset);   \
  IS(sizeof(((struct structure *)0)->field), size)

IS(sizeof(void *), 8);
IS(sizeof(sparserl_status), 4);
IS((sparserl_status)-1 < 0, 1);
IS(sizeof(sparserl_csr), 80);
LIES(sparserl_csr, rows, 0, 8);
LIES(sparserl_csr, cols, 8, 8);
LIES(sparserl_csr, nnz, 16, 8);
LIES(sparserl_csr, row_offsets, 24, 8);
LIES(sparserl_csr, column_indices, 32, 8);
LIES(sparserl_csr, values, 40, 8);
LIES(sparserl_csr, offset_type, 48, 4);
LIES(sparserl_csr, index_type, 52, 4);
LIES(sparserl_csr, value_type, 56, 4);
LIES(sparserl_csr, index_base, 60, 4);
LIES(sparserl_csr, location, 64, 4);
LIES(sparserl_csr, reserved, 68, 12);
IS(sizeof(sparserl_log), 16);
LIES(sparserl_log, function, 0, 8);
LIES(sparserl_log, user, 8, 8);

IS(SPARSERL_OPTION_POLICY, 1);
IS(SPARSERL_OPTION_CACHE_FOLDER, 2);
IS(SPARSERL_OPTION_DEVICE, 3);
IS(SPARSERL_OPTION_TARGET, 4);
IS(SPARSERL_OPTION_LOG, 5);
IS(SPARSERL_OPTION_SERVER, 6);
IS(SPARSERL_OPTION_EXPECTED_CALLS, 100);
IS(SPARSERL_OPTION_MEASURE, 101);
IS(SPARSERL_OPTION_DEADLINE, 102);
IS(SPARSERL_OPTION_MEMORY_LIMIT, 103);
IS(SPARSERL_OPTION_DETERMINISTIC, 104);
IS(SPARSERL_OPTION_VALUES_VARIABLE, 105);
IS(SPARSERL_OPTION_TRANSPOSE_TOO, 106);
IS(SPARSERL_OPTION_EPILOGUE, 107);
IS(SPARSERL_OPTION_EPILOGUE_SOURCE, 108);
IS(SPARSERL_OPTION_EPILOGUE_USER, 109);
IS(SPARSERL_OPTION_CHECK_POINTERS, 110);
IS(SPARSERL_OPTION_COLUMNS, 111);
IS(SPARSERL_OPTION_DENSE, 112);
IS(SPARSERL_OPTION_TRANSPOSED_EPILOGUE, 113);
IS(SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE, 114);
IS(SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER, 115);
IS(SPARSERL_DENSE_ROW_MAJOR, 0);
IS(SPARSERL_DENSE_STRIDED, 1);
IS(SPARSERL_DENSE_COLUMN_MAJOR, 2);
IS(SPARSERL_I32, 0);
IS(SPARSERL_I64, 1);
IS(SPARSERL_F32, 0);
IS(SPARSERL_F64, 1);
IS(SPARSERL_F16, 2);
IS(SPARSERL_BF16, 3);
IS(SPARSERL_HOST, 0);
IS(SPARSERL_DEVICE, 1);
IS(SPARSERL_OP_NONE, 0);
IS(SPARSERL_OP_TRANSPOSE, 1);
IS(SPARSERL_TEXT_WHY, 1);
IS(SPARSERL_TEXT_PROGRAM, 2);
IS(SPARSERL_TEXT_SOURCE, 3);
IS(SPARSERL_TEXT_CUBIN, 4);
IS(SPARSERL_TEXT_EPILOGUE, 5);
IS(SPARSERL_TEXT_EPILOGUE_USER, 6);
IS(SPARSERL_NUMBER_PACKED_BYTES, 1);
IS(SPARSERL_NUMBER_PREDICTED_SECONDS, 2);
IS(SPARSERL_NUMBER_MEASURED_SECONDS, 3);
IS(SPARSERL_NUMBER_CSR_SECONDS, 4);
IS(SPARSERL_NUMBER_CUSPARSE_SECONDS, 5);
IS(SPARSERL_NUMBER_PLANNING_SECONDS, 6);
IS(SPARSERL_NUMBER_CALLS, 7);
IS(SPARSERL_NUMBER_CALLS_TO_PAY, 8);
IS(SPARSERL_NUMBER_WORKSPACE_BYTES, 9);
IS(SPARSERL_NUMBER_DENSE, 10);
IS(SPARSERL_SUCCESS, 0);
IS(SPARSERL_NULL_POINTER, 1);
IS(SPARSERL_INVALID_HANDLE, 2);
IS(SPARSERL_INVALID_ARGUMENT, 3);
IS(SPARSERL_INVALID_MATRIX, 4);
IS(SPARSERL_UNSUPPORTED, 5);
IS(SPARSERL_NO_DEVICE, 6);
IS(SPARSERL_WRONG_DEVICE, 7);
IS(SPARSERL_OUT_OF_MEMORY, 8);
IS(SPARSERL_MEMORY_LIMIT, 9);
IS(SPARSERL_CAPTURING, 10);
IS(SPARSERL_NO_COMPILER, 11);
IS(SPARSERL_EPILOGUE, 12);
IS(SPARSERL_FILE, 13);
IS(SPARSERL_MISMATCH, 14);
IS(SPARSERL_NOT_KNOWN, 15);
IS(SPARSERL_BUFFER_TOO_SMALL, 16);
IS(SPARSERL_DEVICE_FAILED, 17);
IS(SPARSERL_INTERNAL, 18);

/* Functions take what they took: another declaration is another type. */
static int32_t (*const version)(void) = sparserl_version;
static const char *(*const status_text)(sparserl_status) = sparserl_status_text;
static const char *(*const last_error)(void) = sparserl_last_error;
static sparserl_status (*const options_create)(sparserl_options **) = sparserl_options_create;
static sparserl_status (*const options_set)(sparserl_options *, int32_t, const void *, size_t) = sparserl_options_set;
static sparserl_status (*const options_destroy)(sparserl_options *) = sparserl_options_destroy;
static sparserl_status (*const context_create)(const sparserl_options *,
                                               sparserl_context **) = sparserl_context_create;
static sparserl_status (*const context_destroy)(sparserl_context *) = sparserl_context_destroy;
static sparserl_status (*const matrix_create)(sparserl_context *, const sparserl_csr *,
                                              sparserl_matrix **) = sparserl_matrix_create;
static sparserl_status (*const matrix_destroy)(sparserl_matrix *) = sparserl_matrix_destroy;
static sparserl_status (*const compile_ahead)(sparserl_context *, int32_t, const sparserl_options *,
                                              int64_t *) = sparserl_compile_ahead;
static sparserl_status (*const plan_create)(sparserl_context *, sparserl_matrix *, const sparserl_options *,
                                            sparserl_plan **) = sparserl_plan_create;
static sparserl_status (*const plan_wait)(sparserl_plan *) = sparserl_plan_wait;
static sparserl_status (*const plan_destroy)(sparserl_plan *) = sparserl_plan_destroy;
static sparserl_status (*const execute)(sparserl_plan *, void *, const void *, const void *, const void *,
                                        const void *, void *) = sparserl_execute;
static sparserl_status (*const execute_op)(sparserl_plan *, int32_t, void *, const void *, const void *, const void *,
                                           const void *, void *, const void *) = sparserl_execute_op;
static sparserl_status (*const execute_matrices)(sparserl_plan *, int32_t, void *, const void *, const void *,
                                                 int64_t, const void *, const void *, int64_t, void *, int64_t,
                                                 const void *) = sparserl_execute_matrices;
static sparserl_status (*const plan_set_workspace)(sparserl_plan *, void *, void *,
                                                   size_t) = sparserl_plan_set_workspace;
static sparserl_status (*const plan_update_values)(sparserl_plan *, void *, const void *,
                                                   int32_t) = sparserl_plan_update_values;
static sparserl_status (*const plan_text)(sparserl_plan *, int32_t, int32_t, char *, size_t,
                                          size_t *) = sparserl_plan_text;
static sparserl_status (*const plan_number)(sparserl_plan *, int32_t, int32_t, double *) = sparserl_plan_number;
static sparserl_status (*const plan_save)(sparserl_plan *, const char *) = sparserl_plan_save;
static sparserl_status (*const plan_load)(sparserl_context *, sparserl_matrix *, const char *,
                                          sparserl_plan **) = sparserl_plan_load;
static sparserl_status (*const plan_load_with_options)(sparserl_context *, sparserl_matrix *, const char *,
                                                       const sparserl_options *,
                                                       sparserl_plan **) = sparserl_plan_load_with_options;

int main(void) {
  const int are_there = version && status_text && last_error && options_create && options_set && options_destroy &&
                        context_create && context_destroy && matrix_create && matrix_destroy &&
                        compile_ahead && plan_create && plan_wait && plan_destroy && execute && execute_op && execute_matrices &&
                        plan_set_workspace && plan_update_values && plan_text && plan_number && plan_save &&
                        plan_load && plan_load_with_options;
  return are_there ? EXIT_SUCCESS : EXIT_FAILURE;
}
