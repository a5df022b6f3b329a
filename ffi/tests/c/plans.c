/* Plans without a GPU: made, asked about, saved, loaded. The first argument is a folder to write to. */
#include "check.h"

static int lines;

static void count_line(const char *line, void *user) {
  REQUIRE(line && *line && user == &lines);
  ++lines;
}

static void searched(sparserl_context *context, const struct grid *g, const char *folder) {
  sparserl_matrix *matrix = NULL, *other = NULL;
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL, *loaded = NULL;
  OK(sparserl_matrix_create(context, &g->csr, &matrix));
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_plan_wait(plan));
  for (int32_t op = SPARSERL_OP_NONE; op <= SPARSERL_OP_TRANSPOSE; ++op) {
    REQUIRE(text_has(plan, op, SPARSERL_TEXT_WHY, "emulated on "));
    REQUIRE(text_has(plan, op, SPARSERL_TEXT_PROGRAM, "spmv f64"));
    REQUIRE(text_has(plan, op, SPARSERL_TEXT_SOURCE, "__global__"));
    REQUIRE(number_of(plan, op, SPARSERL_NUMBER_PACKED_BYTES) > 0);
    REQUIRE(number_of(plan, op, SPARSERL_NUMBER_PREDICTED_SECONDS) > 0);
    REQUIRE(number_of(plan, op, SPARSERL_NUMBER_WORKSPACE_BYTES) >= 0);
  }
  size_t length = 0;
  OK(sparserl_plan_text(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_CUBIN, NULL, 0, &length));
  REQUIRE(length > 100);
  REQUIRE(number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_PLANNING_SECONDS) > 0);
  double value = 7;
  FAILS(sparserl_plan_number(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_MEASURED_SECONDS, &value),
        SPARSERL_NOT_KNOWN, "nothing was measured");
  REQUIRE(value == 7);

  const double one = 1, zero = 0;
  double x[1], z[1];
  FAILS(sparserl_execute(plan, NULL, &one, x, &zero, NULL, z), SPARSERL_NO_DEVICE,
        "nothing can be executed: the context was made without a device");

  char path[4096];
  snprintf(path, sizeof path, "%s/a.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, matrix, path, &loaded));
  char *source = text_of(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_SOURCE);
  REQUIRE(text_has(loaded, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_SOURCE, source));
  REQUIRE(text_has(loaded, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "emulated on "));
  free(source);
  /* Saving over a file is no problem. */
  OK(sparserl_plan_save(loaded, path));

  /* What it is not for. */
  struct grid small = make_grid(7);
  sparserl_plan *none = NULL;
  OK(sparserl_matrix_create(context, &small.csr, &other));
  FAILS(sparserl_plan_load(context, other, path, &none), SPARSERL_MISMATCH, "another pattern");
  sparserl_options *hopper = NULL;
  sparserl_context *elsewhere = NULL;
  OK(sparserl_options_create(&hopper));
  set_int(hopper, SPARSERL_OPTION_DEVICE, -1);
  set_text(hopper, SPARSERL_OPTION_POLICY, "cost");
  set_text(hopper, SPARSERL_OPTION_TARGET, "a100");
  const sparserl_log log = {count_line, &lines};
  OK(sparserl_options_set(hopper, SPARSERL_OPTION_LOG, &log, sizeof log));
  OK(sparserl_context_create(hopper, &elsewhere));
  FAILS(sparserl_plan_load(elsewhere, matrix, path, &none), SPARSERL_MISMATCH,
        "is a plan for sm_90, and the context's is sm_80");
  OK(sparserl_plan_create(elsewhere, matrix, NULL, &none));
  REQUIRE(lines == 1);
  OK(sparserl_plan_destroy(none));
  none = NULL;

  /* Damaged, of an earlier version, and no plan at all. */
  FILE *file = fopen(path, "r+b");
  REQUIRE(file && fseek(file, 200, SEEK_SET) == 0 && fputc('#', file) != EOF && fclose(file) == 0);
  FAILS(sparserl_plan_load(context, matrix, path, &none), SPARSERL_FILE, "is damaged");
  OK(sparserl_plan_save(loaded, path));
  file = fopen(path, "r+b");
  REQUIRE(file && fseek(file, (long)strlen("sparserl plan file "), SEEK_SET) == 0 && fputc('3', file) != EOF &&
          fclose(file) == 0);
  FAILS(sparserl_plan_load(context, matrix, path, &none), SPARSERL_FILE, "is a plan of another version: plan anew");
  snprintf(path, sizeof path, "%s/b.plan", folder);
  file = fopen(path, "wb");
  REQUIRE(file && fputs("hello", file) >= 0 && fclose(file) == 0);
  FAILS(sparserl_plan_load(context, matrix, path, &none), SPARSERL_FILE, "is no plan of SparseRL");
  snprintf(path, sizeof path, "%s/no/folder.plan", folder);
  FAILS(sparserl_plan_load(context, matrix, path, &none), SPARSERL_FILE, "cannot be read");
  FAILS(sparserl_plan_save(plan, path), SPARSERL_FILE, "cannot be written");
  REQUIRE(none == NULL);

  OK(sparserl_context_destroy(elsewhere));
  OK(sparserl_options_destroy(hopper));
  OK(sparserl_matrix_destroy(other));
  OK(sparserl_matrix_destroy(matrix));
  free_grid(&small);
  /* A plan needs nothing that it was made of. */
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "emulated on "));
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
}

/* No calls are expected, in every form that a matrix may have. */
static void at_once(sparserl_context *context, const struct grid *g) {
  const size_t rows = (size_t)g->csr.rows, nnz = (size_t)g->csr.nnz;
  int64_t *offsets = (int64_t *)malloc((rows + 1) * sizeof *offsets);
  int64_t *columns = (int64_t *)malloc(nnz * sizeof *columns);
  float *values = (float *)malloc(nnz * sizeof *values);
  REQUIRE(offsets && columns && values);
  for (size_t i = 0; i <= rows; ++i) offsets[i] = g->row_offsets[i] + 1;
  for (size_t i = 0; i < nnz; ++i) {
    columns[i] = g->column_indices[i] + 1;
    values[i] = (float)g->values[i];
  }
  sparserl_csr csr = g->csr;
  csr.row_offsets = offsets;
  csr.column_indices = columns;
  csr.values = values;
  csr.offset_type = csr.index_type = SPARSERL_I64;
  csr.value_type = SPARSERL_F32;
  csr.index_base = 1;
  sparserl_matrix *matrix = NULL;
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(context, &csr, &matrix));
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "no calls are expected"));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "keep csr index=u32"));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "spmv f32"));
  OK(sparserl_plan_destroy(plan));

  /* Values that may change are nowhere written into programs. */
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, 1);
  set_int(options, SPARSERL_OPTION_DETERMINISTIC, 1);
  set_calls(options, 1000000);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "spmv f32 variable"));
  OK(sparserl_plan_destroy(plan));

  /* For matrices a program is chosen and emulated like for vectors. */
  const uint64_t dense_columns = 8;
  OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &dense_columns, sizeof dense_columns));
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "spmm 8 f32 variable"));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "emulated on "));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(matrix));

  /* In half precision, too: these bits are a number in either type. */
  uint16_t *halves = (uint16_t *)malloc(nnz * sizeof *halves);
  REQUIRE(halves);
  for (size_t i = 0; i < nnz; ++i) halves[i] = 0x3e00;
  csr.values = halves;
  for (csr.value_type = SPARSERL_F16; csr.value_type <= SPARSERL_BF16; ++csr.value_type) {
    OK(sparserl_matrix_create(context, &csr, &matrix));
    OK(sparserl_plan_create(context, matrix, options, &plan));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM,
                     csr.value_type == SPARSERL_F16 ? "spmm 8 f16 variable" : "spmm 8 bf16 variable"));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "emulated on "));
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_matrix_destroy(matrix));
  }
  halves[0] = 0x7c00;
  csr.value_type = SPARSERL_F16;
  matrix = NULL;
  FAILS(sparserl_matrix_create(context, &csr, &matrix), SPARSERL_INVALID_MATRIX, "is not finite");
  REQUIRE(matrix == NULL);
  free(halves);
  OK(sparserl_options_destroy(options));

  /* A matrix without entries, or without anything: no program is faster than plain CSR. */
  sparserl_csr empty;
  memset(&empty, 0, sizeof empty);
  const int32_t zeros[4] = {0, 0, 0, 0};
  empty.rows = 3;
  empty.cols = 2;
  empty.row_offsets = zeros;
  for (; empty.rows >= 0; empty.rows -= 3) {
    OK(sparserl_matrix_create(context, &empty, &matrix));
    OK(sparserl_plan_create(context, matrix, NULL, &plan));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "plain CSR: the matrix has no entries"));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "keep csr"));
    double calls = 0;
    FAILS(sparserl_plan_number(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_CALLS_TO_PAY, &calls), SPARSERL_NOT_KNOWN,
          "saves nothing");
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_matrix_destroy(matrix));
  }
  free(offsets);
  free(columns);
  free(values);
}

/* Plain CSR of rows of very different lengths: by merge path, unless memory does not suffice for it. */
static void uneven(sparserl_context *context) {
  struct grid g = make_arrow(200, 20000);
  sparserl_matrix *matrix = NULL;
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "keep merge"));
  const double most = number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_PACKED_BYTES);
  OK(sparserl_plan_destroy(plan));
  plan = NULL;

  const uint64_t limit = (uint64_t)most - 1;
  OK(sparserl_options_set(options, SPARSERL_OPTION_MEMORY_LIMIT, &limit, sizeof limit));
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "keep csr"));
  REQUIRE(number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_PACKED_BYTES) < most);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(matrix));
  free_grid(&g);
}

/* A merge path whose sums between tiles take more than a workspace may have is not one to begin with. */
static void many_columns(sparserl_context *context) {
  struct grid g = make_arrow(800000, 800000);
  sparserl_options *options = NULL;
  sparserl_matrix *matrix = NULL;
  const uint64_t columns[] = {16384, 32768};
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  for (int i = 0; i < 2; ++i) {
    sparserl_plan *plan = NULL;
    OK(sparserl_options_create(&options));
    set_calls(options, 0);
    OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns[i], sizeof *columns));
    OK(sparserl_plan_create(context, matrix, options, &plan));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, i ? "keep csr" : "keep merge"));
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_options_destroy(options));
  }
  OK(sparserl_matrix_destroy(matrix));
  free_grid(&g);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2 && sparserl_version() >= 0);
  struct grid g = make_grid(30);
  sparserl_context *context = open_without_device();
  searched(context, &g, arguments[1]);
  at_once(context, &g);
  uneven(context);
  many_columns(context);
  OK(sparserl_context_destroy(context));
  free_grid(&g);
  return EXIT_SUCCESS;
}
