/* Products with dense matrices, and in each type, on the driver without a GPU (driver.c). The first argument
 * is a folder to write to. */
#include "driver.h"
#include "grid_product.h"

static struct grid g;
static sparserl_context *context;
static stream_t stream;

/* A matrix, its values, and the plan's dense operands, all in one type. */
struct problem {
  int32_t type;
  size_t columns;
  int is_spmm;
  void *values;
  sparserl_matrix *matrix;
};

static size_t sum_type(const struct problem *p) { return p->type == ELEMENT_F64 ? ELEMENT_F64 : ELEMENT_F32; }

static void *filled(int32_t type, size_t count, size_t modulus, double least) {
  void *memory = device_memory(count * element_size(type));
  element_fill(type, memory, count, modulus, least);
  return memory;
}

static sparserl_options *options_of(const struct problem *p, int32_t variable) {
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  const uint64_t columns = p->columns;
  if (p->is_spmm) OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  return options;
}

static sparserl_plan *plan_of(const struct problem *p, int32_t variable) {
  sparserl_plan *plan = NULL;
  sparserl_options *options = options_of(p, variable);
  OK(sparserl_plan_create(context, p->matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

/* In the types of sums. */
static const float f_half = 0.5f, f_three = 3, f_zero = 0;
static const double d_half = 0.5, d_three = 3, d_zero = 0;

static sparserl_status execute(const struct problem *p, sparserl_plan *plan, int32_t op, const void *beta, void *x,
                               void *y, void *z) {
  const void *alpha = sum_type(p) == ELEMENT_F64 ? (const void *)&d_half : (const void *)&f_half;
  const int64_t ld = (int64_t)p->columns;
  return p->is_spmm ? sparserl_execute_matrices(plan, op, stream, alpha, x, ld, beta, y, ld, z, ld, NULL)
                    : sparserl_execute_op(plan, op, stream, alpha, x, beta, y, z, NULL);
}

/* 0.5 op(A) B, and with 3 C besides, in place and elsewhere. */
static void products(const struct problem *p, sparserl_plan *plan, const void *values) {
  const size_t rows = (size_t)g.csr.rows, count = rows * p->columns;
  void *x = filled(p->type, count, 3, -1), *y = filled(p->type, count, 5, -2), *z = filled(p->type, count, 1, 7);
  const int is_double = sum_type(p) == ELEMENT_F64;
  driver_multiply_as(p->type, (unsigned)p->columns);
  for (int way = 0; way < 8; ++way) {
    const int32_t op = way & 1;
    const int in_place = way >> 1 & 1, adds = way >> 2;
    const void *beta = adds ? (is_double ? (const void *)&d_three : (const void *)&f_three)
                            : (is_double ? (const void *)&d_zero : (const void *)&f_zero);
    double *expected = grid_product(&g, p->type, p->columns, op, values, x, adds ? 3 : 0, y);
    memcpy(z, y, count * element_size(p->type));
    OK(execute(p, plan, op, beta, x, in_place ? z : y, z));
    for (size_t i = 0; i < count; ++i) REQUIRE(element_get(p->type, z, i) == expected[i]);
    free(expected);
  }
  device_free(x);
  device_free(y);
  device_free(z);
}

/* The right arguments get to the kernels, values that change and plans that are loaded among them. */
static void right(const struct problem *p, const char *folder) {
  sparserl_plan *plan = plan_of(p, 0), *loaded = NULL;
  char task[64], path[4096];
  static const char *const names[] = {"f32", "f64", "f16", "bf16"};
  if (p->is_spmm) snprintf(task, sizeof task, "spmm %zu %s", p->columns, names[p->type]);
  else snprintf(task, sizeof task, "spmv %s", names[p->type]);
  REQUIRE(text_has(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_PROGRAM, task));
  products(p, plan, p->values);
  OK(sparserl_plan_destroy(plan));
  plan = plan_of(p, 1);
  products(p, plan, p->values);
  void *values = filled(p->type, (size_t)g.csr.nnz, 4, -1);
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  products(p, plan, values);
  OK(sparserl_plan_update_values(plan, NULL, p->values, SPARSERL_HOST));
  products(p, plan, p->values);
  snprintf(path, sizeof path, "%s/f.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, p->matrix, path, &loaded));
  products(p, loaded, p->values);
  OK(sparserl_plan_update_values(loaded, stream, values, SPARSERL_DEVICE));
  products(p, loaded, values);
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  device_free(values);
}

/* Operands that kernels do not take are refused before anything is launched. */
static void refused(const struct problem *p) {
  const size_t bytes = (size_t)g.csr.rows * p->columns * element_size(p->type);
  char *x = (char *)device_memory(bytes), *y = (char *)device_memory(bytes), *z = (char *)device_memory(bytes + 16);
  sparserl_plan *plan = plan_of(p, 0);
  const int64_t ld = (int64_t)p->columns;
  const float a = 1, b = 1, none = 0;
  const long launches = driver_launches();
#define MATRICES(x, ldx, beta, y, ldy, z, ldz) \
  sparserl_execute_matrices(plan, 0, stream, &a, x, ldx, beta, y, ldy, z, ldz, NULL)
  FAILS(MATRICES(x, ld + 1, &b, y, ld, z, ld), SPARSERL_UNSUPPORTED, "ldb is 33: expected 32");
  FAILS(MATRICES(x, ld, &b, y, -1, z, ld), SPARSERL_UNSUPPORTED, "ldc is -1: expected 32");
  FAILS(MATRICES(x, ld, &b, y, ld, z, 0), SPARSERL_UNSUPPORTED, "ldd is 0: expected 32");
  FAILS(MATRICES(x, ld, &b, y, ld, z + 8, ld), SPARSERL_INVALID_ARGUMENT, "d is not aligned to 16 bytes");
  FAILS(MATRICES(x + 16, ld, &b, y, ld, z, ld), SPARSERL_INVALID_ARGUMENT, "b: ");
  FAILS(MATRICES(NULL, ld, &b, y, ld, z, ld), SPARSERL_NULL_POINTER, "b is NULL");
  FAILS(MATRICES(x, ld, &b, NULL, ld, z, ld), SPARSERL_NULL_POINTER, "c is NULL");
  FAILS(MATRICES(x, ld, &b, y, ld, NULL, ld), SPARSERL_NULL_POINTER, "d is NULL");
  FAILS(MATRICES(x, ld, &none, NULL, 0, x, ld), SPARSERL_INVALID_ARGUMENT, "b and d are the same");
  FAILS(sparserl_execute(plan, stream, &a, x, &none, NULL, z), SPARSERL_UNSUPPORTED,
        "call sparserl_execute_matrices()");
  REQUIRE(driver_launches() == launches);
  /* What is not read may be anything. */
  OK(MATRICES(x, ld, &none, NULL, 0, z, ld));
  driver_capture(stream, 1);
  OK(MATRICES(x, ld, &b, y, ld, z, ld));
  driver_capture(stream, 0);
  REQUIRE(driver_launches() == launches + 2 && number_of(plan, 0, SPARSERL_NUMBER_CALLS) == 2);
  OK(sparserl_plan_destroy(plan));
  const struct problem vectors = {p->type, 1, 0, p->values, p->matrix};
  plan = plan_of(&vectors, 0);
  FAILS(MATRICES(x, 1, &none, NULL, 1, z, 1), SPARSERL_UNSUPPORTED, "the plan is for vectors");
  OK(sparserl_plan_destroy(plan));
  device_free(x);
  device_free(y);
  device_free(z);
}

/* Better kernels take the place of plain CSR, for matrices too; all of them fit the driver. */
static void searched(const struct problem *p) {
  sparserl_options *options = options_of(p, 1);
  sparserl_plan *plan = NULL;
  set_calls(options, 100000000);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_text(options, SPARSERL_OPTION_EPILOGUE, p->is_spmm ? "column_bias" : "bias");
  OK(sparserl_plan_create(context, p->matrix, options, &plan));
  OK(sparserl_plan_wait(plan));
  REQUIRE(text_has(plan, 0, SPARSERL_TEXT_SOURCE, "epilogue(row"));
  const size_t bytes = (size_t)g.csr.rows * p->columns * element_size(p->type);
  void *x = device_memory(bytes), *z = device_memory(bytes);
  const struct { const void *bias; } user = {x};
  const float one = 1, zero = 0;
  const int64_t ld = (int64_t)p->columns;
  OK(p->is_spmm ? sparserl_execute_matrices(plan, 0, stream, &one, x, ld, &zero, NULL, ld, z, ld, &user)
                : sparserl_execute_op(plan, 0, stream, &one, x, &zero, NULL, z, &user));
  OK(sparserl_plan_update_values(plan, stream, p->values, SPARSERL_HOST));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  device_free(x);
  device_free(z);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  g = make_grid(12);
  context = open_by_cost_model(1);
  driver_set_current(0);
  stream = driver_stream(0);
  static const size_t columns[] = {1, 3, 32};
  for (int32_t type = ELEMENT_F32; type <= ELEMENT_BF16; ++type) {
    struct problem p = {type, 1, 0, NULL, NULL};
    p.matrix = grid_in(context, &g, type, &p.values);
    right(&p, arguments[1]);
    if (type == SPARSERL_BF16) searched(&p);
    p.is_spmm = 1;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) {
      p.columns = columns[i];
      right(&p, arguments[1]);
    }
    if (type == SPARSERL_F32) refused(&p);
    if (type != SPARSERL_F64) searched(&p);
    OK(sparserl_matrix_destroy(p.matrix));
    free(p.values);
  }
  OK(sparserl_context_destroy(context));
  REQUIRE(driver_taken() == 0 && driver_depth() == 1);
  free(stream);
  free_grid(&g);
  return EXIT_SUCCESS;
}
