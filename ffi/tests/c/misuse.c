/* Wrong use: each gets its status and a text, and nothing is lost. */
#include "check.h"

static sparserl_context *context;
static struct grid g;

/* A description of the grid with one thing changed is refused. */
#define REFUSED(change, status, words)                                        \
  do {                                                                        \
    sparserl_csr csr = g.csr;                                                 \
    sparserl_matrix *made = NULL;                                             \
    change;                                                                   \
    FAILS(sparserl_matrix_create(context, &csr, &made), status, words);       \
    REQUIRE(made == NULL);                                                    \
  } while (0)

static void matrices(void) {
  REFUSED(csr.row_offsets = NULL, SPARSERL_NULL_POINTER, "row_offsets is NULL");
  REFUSED(csr.column_indices = NULL, SPARSERL_NULL_POINTER, "column_indices is NULL");
  REFUSED(csr.values = NULL, SPARSERL_NULL_POINTER, "values is NULL");
  REFUSED(csr.rows = -1, SPARSERL_INVALID_ARGUMENT, "rows is -1");
  REFUSED(csr.cols = INT64_C(1) << 40, SPARSERL_INVALID_ARGUMENT, "cols is 1099511627776");
  REFUSED(csr.nnz = -5, SPARSERL_INVALID_ARGUMENT, "nnz is -5");
  REFUSED(csr.nnz -= 1, SPARSERL_INVALID_MATRIX, "row offsets end at 1920: expected 1919, since");
  REFUSED(csr.nnz += 1, SPARSERL_INVALID_MATRIX, "row offsets end at 1920");
  /* Nothing is read of arrays that are not as long. */
  REFUSED((csr.nnz = INT64_C(1) << 30, csr.column_indices = csr.values = &csr), SPARSERL_INVALID_MATRIX,
          "and nnz is 1073741824");
  REFUSED((csr.nnz = INT64_MAX, csr.column_indices = csr.values = &csr), SPARSERL_INVALID_MATRIX,
          "and nnz is 9223372036854775807");
  REFUSED(csr.index_base = 2, SPARSERL_INVALID_ARGUMENT, "index_base is 2");
  REFUSED(csr.index_base = 1, SPARSERL_INVALID_MATRIX, "row offsets begin at 0: expected 1, the index_base");
  REFUSED(csr.offset_type = 9, SPARSERL_INVALID_ARGUMENT, "offset_type is 9");
  REFUSED(csr.index_type = 9, SPARSERL_INVALID_ARGUMENT, "index_type is 9");
  REFUSED(csr.value_type = 9, SPARSERL_INVALID_ARGUMENT, "value_type is 9");
  REFUSED(csr.location = 2, SPARSERL_INVALID_ARGUMENT, "location is 2");
  REFUSED(csr.location = SPARSERL_DEVICE, SPARSERL_NO_DEVICE, "without a device");
  REFUSED(csr.reserved[1] = 1, SPARSERL_INVALID_ARGUMENT, "reserved");
  REFUSED(csr.cols = 3, SPARSERL_INVALID_MATRIX, "the matrix has 3 columns");

  int32_t *columns = g.column_indices;
  const int32_t kept = columns[1];
  columns[1] = columns[0];
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 0: column 0 repeats or is out of order");
  columns[1] = -3;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 0: column -3");
  columns[1] = INT32_MAX;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 0: column 2147483647");
  columns[1] = kept;
  const int32_t offset = g.row_offsets[2];
  g.row_offsets[2] = 0;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 1 starts at offset");
  g.row_offsets[2] = -7;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 1 starts at offset");
  g.row_offsets[2] = INT32_MAX;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "row 2 starts at offset 2147483647");
  g.row_offsets[2] = offset;
  const double value = g.values[3];
  g.values[3] = value / 0.0;
  REFUSED((void)0, SPARSERL_INVALID_MATRIX, "is not finite");
  g.values[3] = value;
}

/* Texts count from the base, as the arrays do. */
static void from_1(void) {
  int32_t offsets[] = {1, 3, 5}, columns[] = {1, 2, 1, 2};
  double values[] = {1, 2, 3, 4};
  sparserl_csr csr;
  sparserl_matrix *made = NULL;
  memset(&csr, 0, sizeof csr);
  csr.rows = csr.cols = 2;
  csr.nnz = 4;
  csr.row_offsets = offsets;
  csr.column_indices = columns;
  csr.values = values;
  csr.value_type = SPARSERL_F64;
  csr.index_base = 1;
#define IS_REFUSED(words) FAILS(sparserl_matrix_create(context, &csr, &made), SPARSERL_INVALID_MATRIX, words)
  columns[2] = 0;
  IS_REFUSED("row 2: column 0, but the matrix has 2 columns, from 1");
  columns[2] = 2;
  IS_REFUSED("row 2: column 2 repeats or is out of order");
  columns[2] = 1;
  values[3] /= 0.0;
  IS_REFUSED("row 2, column 2: value inf is not finite");
  values[3] = 4;
  offsets[1] = 6;
  IS_REFUSED("row 2 starts at offset 6 and ends at 5");
  offsets[1] = 3;
  offsets[2] = 6;
  IS_REFUSED("row offsets end at 6: expected 5, since they begin at 1 and nnz is 4");
  REQUIRE(made == NULL);
}

static void handles(void) {
  sparserl_matrix *matrix = NULL;
  sparserl_plan *plan = NULL;
  sparserl_options *options = NULL;
  FAILS(sparserl_matrix_create(NULL, &g.csr, &matrix), SPARSERL_NULL_POINTER, "context is NULL");
  FAILS(sparserl_matrix_create(context, NULL, &matrix), SPARSERL_NULL_POINTER, "csr is NULL");
  FAILS(sparserl_matrix_create(context, &g.csr, NULL), SPARSERL_NULL_POINTER, "matrix is NULL");
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  FAILS(sparserl_plan_create(context, NULL, options, &plan), SPARSERL_NULL_POINTER, "matrix is NULL");
  FAILS(sparserl_plan_create(context, matrix, options, NULL), SPARSERL_NULL_POINTER, "plan is NULL");
  FAILS(sparserl_plan_create(context, (sparserl_matrix *)(void *)context, options, &plan),
        SPARSERL_INVALID_HANDLE, "matrix: this is a handle of a context");
  FAILS(sparserl_plan_create(context, (sparserl_matrix *)(void *)&g, options, &plan),
        SPARSERL_INVALID_HANDLE, "matrix: this pointer is no handle");
  REQUIRE(plan == NULL);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_matrix_destroy(matrix));
  FAILS(sparserl_matrix_destroy(matrix), SPARSERL_INVALID_HANDLE, "matrix: this handle was destroyed");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_HANDLE, "destroyed");
  OK(sparserl_matrix_destroy(NULL));
  OK(sparserl_plan_destroy(NULL));
  OK(sparserl_options_destroy(NULL));
  OK(sparserl_context_destroy(NULL));

  size_t length = 77;
  char small[4] = "abc";
  const int32_t op = SPARSERL_OP_NONE;
  FAILS(sparserl_plan_text(plan, op, SPARSERL_TEXT_WHY, small, sizeof small, &length),
        SPARSERL_BUFFER_TOO_SMALL, "are needed");
  REQUIRE(strcmp(small, "abc") == 0 && length > 4 && length != 77);
  FAILS(sparserl_plan_text(plan, op, SPARSERL_TEXT_WHY, NULL, 9, &length), SPARSERL_NULL_POINTER,
        "buffer");
  FAILS(sparserl_plan_text(plan, op, SPARSERL_TEXT_WHY, NULL, 0, NULL), SPARSERL_NULL_POINTER, "length");
  FAILS(sparserl_plan_text(plan, op, 99, NULL, 0, &length), SPARSERL_INVALID_ARGUMENT, "no text 99");
  FAILS(sparserl_plan_text(plan, 7, SPARSERL_TEXT_WHY, NULL, 0, &length), SPARSERL_INVALID_ARGUMENT,
        "op is 7");
  FAILS(sparserl_plan_text(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_WHY, NULL, 0, &length),
        SPARSERL_UNSUPPORTED, "TRANSPOSE_TOO");
  double number = 3;
  FAILS(sparserl_plan_number(plan, op, 99, &number), SPARSERL_INVALID_ARGUMENT, "no number 99");
  FAILS(sparserl_plan_number(plan, op, SPARSERL_NUMBER_CALLS, NULL), SPARSERL_NULL_POINTER, "value");
  REQUIRE(number == 3);
  FAILS(sparserl_plan_save(plan, NULL), SPARSERL_NULL_POINTER, "path");
  FAILS(sparserl_plan_save(plan, ""), SPARSERL_INVALID_ARGUMENT, "path is empty");
  FAILS(sparserl_plan_update_values(plan, NULL, g.values, SPARSERL_HOST), SPARSERL_UNSUPPORTED,
        "VALUES_VARIABLE");
  OK(sparserl_plan_destroy(plan));
  FAILS(sparserl_plan_wait(plan), SPARSERL_INVALID_HANDLE, "plan: this handle was destroyed");
  const double one = 1;
  FAILS(sparserl_execute(plan, NULL, &one, &one, &one, &one, &number), SPARSERL_INVALID_HANDLE,
        "plan: this handle was destroyed");
  FAILS(sparserl_execute_matrices(plan, op, NULL, &one, &one, 1, &one, &one, 1, &number, 1, NULL),
        SPARSERL_INVALID_HANDLE, "plan: this handle was destroyed");
  OK(sparserl_options_destroy(options));
}

static void ahead(void) {
  sparserl_options *options = NULL;
  sparserl_context *gone = open_without_device();
  int64_t kernels = 7;
  OK(sparserl_context_destroy(gone));
  FAILS(sparserl_compile_ahead(NULL, SPARSERL_F64, NULL, &kernels), SPARSERL_NULL_POINTER, "context is NULL");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, NULL, NULL), SPARSERL_NULL_POINTER, "num_kernels is NULL");
  FAILS(sparserl_compile_ahead(gone, SPARSERL_F64, NULL, &kernels), SPARSERL_INVALID_HANDLE, "was destroyed");
  FAILS(sparserl_compile_ahead(context, 9, NULL, &kernels), SPARSERL_INVALID_ARGUMENT, "value_type is 9");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, (const sparserl_options *)(void *)context, &kernels),
        SPARSERL_INVALID_HANDLE, "options: this is a handle of a context");
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_EPILOGUE, "none of these");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, options, &kernels), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_EPILOGUE is none of these: expected one of relu");
  set_text(options, SPARSERL_OPTION_EPILOGUE, "");
  set_text(options, SPARSERL_OPTION_EPILOGUE_SOURCE, "no CUDA");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, options, &kernels), SPARSERL_EPILOGUE,
        "the epilogue is refused");
  set_text(options, SPARSERL_OPTION_EPILOGUE_SOURCE, "");
  set_text(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE, "no CUDA");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, options, &kernels), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE is for products with the transpose: set "
        "SPARSERL_OPTION_TRANSPOSE_TOO = 1");
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, options, &kernels), SPARSERL_EPILOGUE,
        "of products with the transpose, the epilogue is refused");
  set_text(options, SPARSERL_OPTION_POLICY, "cost");
  FAILS(sparserl_compile_ahead(context, SPARSERL_F64, options, &kernels), SPARSERL_INVALID_ARGUMENT,
        "is an option of a context");
  OK(sparserl_options_destroy(options));
  REQUIRE(kernels == 7);
}

static void options(void) {
  sparserl_options *options = NULL;
  sparserl_context *made = NULL;
  sparserl_matrix *matrix = NULL;
  sparserl_plan *plan = NULL;
  FAILS(sparserl_options_create(NULL), SPARSERL_NULL_POINTER, "options is NULL");
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  OK(sparserl_options_create(&options));
  FAILS(sparserl_options_set(options, 1234, "x", 1), SPARSERL_INVALID_ARGUMENT, "no option 1234");
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_POLICY, NULL, 0), SPARSERL_NULL_POINTER, "value");
  const uint64_t none = 0;
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &none, sizeof none), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_COLUMNS: expected 1 to 1048576");
  const int32_t wrong = 5, strided = SPARSERL_DENSE_STRIDED;
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_DENSE, &wrong, sizeof wrong), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_DENSE: expected SPARSERL_DENSE_ROW_MAJOR");
  OK(sparserl_options_set(options, SPARSERL_OPTION_DENSE, &strided, sizeof strided));
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "SPARSERL_OPTION_DENSE is for matrices: set SPARSERL_OPTION_COLUMNS");
  OK(sparserl_options_destroy(options));
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_TARGET, "banana");
  set_int(options, SPARSERL_OPTION_DEVICE, -1);
  FAILS(sparserl_context_create(options, &made), SPARSERL_INVALID_ARGUMENT, "unknown GPU `banana`");
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_INVALID_ARGUMENT,
        "is an option of a context");
  set_text(options, SPARSERL_OPTION_TARGET, "h100");
  set_text(options, SPARSERL_OPTION_SERVER, "/nowhere/sparserl-server");
  FAILS(sparserl_context_create(options, &made), SPARSERL_NO_COMPILER, "/nowhere/sparserl-server");
  set_text(options, SPARSERL_OPTION_SERVER, "/bin/true");
  FAILS(sparserl_context_create(options, &made), SPARSERL_NO_COMPILER, "");
  REQUIRE(made == NULL);
  OK(sparserl_options_destroy(options));

  /* A policy that is not there would be plain CSR for ever. */
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_DEVICE, -1);
  set_text(options, SPARSERL_OPTION_POLICY, "/nowhere/policy");
  FAILS(sparserl_context_create(options, &made), SPARSERL_FILE, "cannot read the policy `/nowhere/policy`");
  REQUIRE(made == NULL);
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_POLICY, "", 0), SPARSERL_INVALID_ARGUMENT, "found an empty text");
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_CACHE_FOLDER, "", 0), SPARSERL_INVALID_ARGUMENT, "a folder");
  FAILS(sparserl_options_set(options, SPARSERL_OPTION_SERVER, "", 0), SPARSERL_INVALID_ARGUMENT, "a program");
  OK(sparserl_options_destroy(options));

  OK(sparserl_options_create(&options));
  const uint64_t bytes = 1000;
  OK(sparserl_options_set(options, SPARSERL_OPTION_MEMORY_LIMIT, &bytes, sizeof bytes));
  FAILS(sparserl_plan_create(context, matrix, options, &plan), SPARSERL_MEMORY_LIMIT,
        "bytes of device memory, and may take 1000");
  const uint64_t enough = 1 << 30;
  OK(sparserl_options_set(options, SPARSERL_OPTION_MEMORY_LIMIT, &enough, sizeof enough));
  const double at_once = 0;
  OK(sparserl_options_set(options, SPARSERL_OPTION_DEADLINE, &at_once, sizeof at_once));
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "the deadline came"));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(matrix));
}

int main(void) {
  REQUIRE(*sparserl_last_error() == '\0');
  REQUIRE(strcmp(sparserl_status_text(SPARSERL_SUCCESS), "success") == 0);
  REQUIRE(strcmp(sparserl_status_text(-4), "unknown status") == 0);
  g = make_grid(20);
  context = open_without_device();
  matrices();
  from_1();
  handles();
  ahead();
  options();
  OK(sparserl_context_destroy(context));
  FAILS(sparserl_context_destroy(context), SPARSERL_INVALID_HANDLE, "context: this handle was destroyed");
  free_grid(&g);
  return EXIT_SUCCESS;
}
