/* Dense matrices with gaps between their rows, and column-major ones, on the driver without a GPU (driver.c). The
 * first argument is a folder to write to. */
#include "driver.h"
#include "grid_product.h"

static struct grid g;
static sparserl_context *context;
static stream_t stream;

/* A matrix in a type, and how the plan's dense operands lie. */
struct problem {
  int32_t type, dense;
  size_t columns;
  void *values;
  sparserl_matrix *matrix;
};

static size_t rows(void) { return (size_t)g.csr.rows; }

static int is_by_columns(const struct problem *p) { return p->dense == SPARSERL_DENSE_COLUMN_MAJOR; }

/* Elements of which leading dimensions are multiples where rows are aligned to vectors. */
static size_t step(const struct problem *p) {
  if (is_by_columns(p)) return 1;
  const size_t bytes = p->columns * element_size(p->type), divides = bytes & (~bytes + 1);
  return (divides < 16 ? divides : 16) / element_size(p->type);
}

/* The least leading dimension, and more by some steps. */
static int64_t leading_by(const struct problem *p, size_t more, size_t by) {
  return (int64_t)((is_by_columns(p) ? rows() : p->columns) + more * by);
}

static int64_t leading(const struct problem *p, size_t more) { return leading_by(p, more, step(p)); }

static size_t place(const struct problem *p, int64_t ld, size_t row, size_t column) {
  return is_by_columns(p) ? column * (size_t)ld + row : row * (size_t)ld + column;
}

static size_t length(const struct problem *p, int64_t ld) { return place(p, ld, rows() - 1, p->columns - 1) + 1; }

enum { GAP = 13 };

/* A matrix in device memory, with gaps: it fills its memory to the end. */
static void *spread(const struct problem *p, const void *packed, int64_t ld) {
  void *memory = device_memory(length(p, ld) * element_size(p->type));
  element_fill(p->type, memory, length(p, ld), 1, GAP);
  for (size_t i = 0; i < rows() * p->columns; ++i)
    element_put(p->type, memory, place(p, ld, i / p->columns, i % p->columns), element_get(p->type, packed, i));
  return memory;
}

static sparserl_plan *plan_of(const struct problem *p, int32_t variable, uint64_t calls, const char *epilogue) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  const uint64_t columns = p->columns;
  OK(sparserl_options_create(&options));
  set_calls(options, calls);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  set_int(options, SPARSERL_OPTION_DENSE, p->dense);
  OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  if (epilogue) set_text(options, SPARSERL_OPTION_EPILOGUE, epilogue);
  OK(sparserl_plan_create(context, p->matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

static sparserl_status execute(const struct problem *p, sparserl_plan *plan, int32_t op, double beta, const void *b,
                               int64_t ldb, const void *c, int64_t ldc, void *d, int64_t ldd) {
  const double wide[] = {0.5, beta};
  const float narrow[] = {0.5f, (float)beta};
  const int is_wide = p->type == SPARSERL_F64;
  return sparserl_execute_matrices(plan, op, stream, is_wide ? (const void *)wide : narrow, b, ldb,
                                   is_wide ? (const void *)(wide + 1) : narrow + 1, c, ldc, d, ldd, NULL);
}

/* 0.5 op(A) B, and with 3 C besides, in place and elsewhere, with gaps behind the rows of some. What is not D stays. */
static void products(const struct problem *p, sparserl_plan *plan, const void *values) {
  const size_t count = rows() * p->columns, size = element_size(p->type);
  void *x = malloc(count * size), *y = malloc(count * size);
  REQUIRE(x && y);
  element_fill(p->type, x, count, 3, -1);
  element_fill(p->type, y, count, 5, -2);
  driver_multiply_as(p->type, (unsigned)p->columns);
  for (int way = 0; way < 64; ++way) {
    const int32_t op = way & 1;
    const int in_place = way >> 1 & 1, more = way >> 3 & 3;
    /* Rows that are aligned to elements only, too. */
    const size_t by = way >> 5 ? 1 : step(p);
    const double beta = way >> 2 & 1 ? 3 : 0;
    const int64_t ldb = leading_by(p, more & 1 ? 1 : 0, by), ldc = leading_by(p, more & 2 ? 3 : 0, by);
    const int64_t ldd = in_place ? ldc : leading_by(p, more & 2 ? 2 : 0, by);
    void *b = spread(p, x, ldb), *c = spread(p, y, ldc), *d = in_place ? c : spread(p, x, ldd);
    double *expected = grid_product(&g, p->type, p->columns, op, values, x, beta, y);
    OK(execute(p, plan, op, beta, b, ldb, beta == 0 && !in_place ? NULL : c, ldc, d, ldd));
    for (size_t at = 0; at < length(p, ldd); ++at) {
      const size_t line = at / (size_t)ldd, behind = at % (size_t)ldd;
      const size_t row = is_by_columns(p) ? behind : line, column = is_by_columns(p) ? line : behind;
      const int is_gap = row >= rows() || column >= p->columns;
      const double wanted = is_gap ? GAP : expected[row * p->columns + column];
      REQUIRE(element_get(p->type, d, at) == wanted);
    }
    free(expected);
    device_free(b);
    device_free(c);
    if (!in_place) device_free(d);
  }
  free(x);
  free(y);
}

/* The right arguments get to the kernels, of plans whose values change and of those that are loaded, too. */
static void right(const struct problem *p, const char *folder) {
  char path[4096];
  sparserl_plan *plan = plan_of(p, 0, 0, NULL), *loaded = NULL;
  REQUIRE(number_of(plan, 0, SPARSERL_NUMBER_DENSE) == p->dense);
  products(p, plan, p->values);
  OK(sparserl_plan_destroy(plan));
  plan = plan_of(p, 1, 0, NULL);
  void *values = device_memory((size_t)g.csr.nnz * element_size(p->type));
  element_fill(p->type, values, (size_t)g.csr.nnz, 4, -1);
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  products(p, plan, values);
  snprintf(path, sizeof path, "%s/h.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_plan_load(context, p->matrix, path, &loaded));
  REQUIRE(number_of(loaded, 0, SPARSERL_NUMBER_DENSE) == p->dense);
  products(p, loaded, p->values);
  OK(sparserl_plan_update_values(loaded, stream, values, SPARSERL_DEVICE));
  products(p, loaded, values);
  OK(sparserl_plan_destroy(loaded));
  device_free(values);
}

/* Better kernels with a caller's function take such operands, too, and so do graphs. */
static void fused(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 1, 100000000, "column_bias");
  const size_t size = element_size(p->type);
  const int64_t ld = leading(p, 2);
  void *packed = calloc(rows() * p->columns, size), *bias = device_memory(p->columns * size);
  REQUIRE(packed);
  void *b = spread(p, packed, ld), *d = spread(p, packed, ld);
  const struct { const void *bias; } user = {bias};
  const double one[] = {1, 1};
  OK(sparserl_plan_wait(plan));
  driver_capture(stream, 1);
  OK(sparserl_execute_matrices(plan, 1, stream, one, b, ld, one, d, ld, d, ld, &user));
  driver_capture(stream, 0);
  OK(sparserl_plan_update_values(plan, stream, p->values, SPARSERL_HOST));
  FAILS(sparserl_execute_matrices(plan, 1, stream, one, b, ld, one, d, ld, d, ld, NULL), SPARSERL_NULL_POINTER,
        "user is NULL");
  OK(sparserl_plan_destroy(plan));
  device_free(b);
  device_free(d);
  device_free(bias);
  free(packed);
}

/* Operands that kernels do not take are refused before anything is launched. */
static void refused(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 0, 0, NULL);
  void *packed = calloc(rows() * p->columns, element_size(p->type));
  REQUIRE(packed && p->columns == 32 && p->type == SPARSERL_F32);
  char *x = (char *)spread(p, packed, 36), *y = (char *)spread(p, packed, 36), *z = (char *)spread(p, packed, 36);
  const long launches = driver_launches();
#define MATRICES(b, ldb, c, ldc, d, ldd) execute(p, plan, 0, 3, b, ldb, c, ldc, d, ldd)
  FAILS(MATRICES(x, 31, y, 36, z, 36), SPARSERL_INVALID_ARGUMENT, "ldb is 31: expected at least 32");
  FAILS(MATRICES(x, 36, y, -36, z, 36), SPARSERL_INVALID_ARGUMENT, "ldc is -36: expected at least 32");
  FAILS(MATRICES(x, 36, y, 36, z, (int64_t)1 << 32), SPARSERL_INVALID_ARGUMENT, "ldd is 4294967296: expected");
  FAILS(MATRICES(x + 2, 32, y, 36, z, 36), SPARSERL_INVALID_ARGUMENT, "b is not aligned to 4 bytes");
  FAILS(MATRICES(x, 40, y, 36, z, 36), SPARSERL_INVALID_ARGUMENT, "b: 23008 bytes are needed, and 20720 are left");
  FAILS(MATRICES(x, 36, y, 4294967292, z, 36), SPARSERL_INVALID_ARGUMENT, "c: ");
  FAILS(MATRICES(x, 36, z, 32, z, 36), SPARSERL_INVALID_ARGUMENT, "c and d are the same, and ldc is 32 and ldd is 36");
  FAILS(MATRICES(x, 36, y, 36, x, 36), SPARSERL_INVALID_ARGUMENT, "b and d are the same");
  REQUIRE(driver_launches() == launches);
  OK(MATRICES(x, 36, y, 36, z, 36));
  OK(MATRICES(x + 4, 32, y, 35, z, 34));
  OK(execute(p, plan, 0, 0, x, 36, NULL, -1, z, 32));
  REQUIRE(driver_launches() == launches + 3);
  OK(sparserl_plan_destroy(plan));
  device_free(x);
  device_free(y);
  device_free(z);
  free(packed);
}

/* So are column-major ones. */
static void refused_columns(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 0, 0, NULL);
  void *packed = calloc(rows() * p->columns, element_size(p->type));
  REQUIRE(packed && p->columns == 32 && p->type == SPARSERL_F32 && rows() == 144);
  char *x = (char *)spread(p, packed, 145), *y = (char *)spread(p, packed, 145), *z = (char *)spread(p, packed, 145);
  const long launches = driver_launches();
  FAILS(MATRICES(x, 143, y, 145, z, 145), SPARSERL_INVALID_ARGUMENT,
        "ldb is 143: expected at least 144, the rows of b, which is column-major");
  FAILS(MATRICES(x, 145, y, 32, z, 145), SPARSERL_INVALID_ARGUMENT, "ldc is 32: expected at least 144");
  FAILS(MATRICES(x, 145, y, 145, z, (int64_t)1 << 40), SPARSERL_INVALID_ARGUMENT, "ldd is 1099511627776: expected");
  FAILS(MATRICES(x + 2, 144, y, 145, z, 145), SPARSERL_INVALID_ARGUMENT, "b is not aligned to 4 bytes");
  FAILS(MATRICES(x, 146, y, 145, z, 145), SPARSERL_INVALID_ARGUMENT, "b: 18680 bytes are needed, and 18556 are left");
  REQUIRE(driver_launches() == launches);
  OK(MATRICES(x + 4, 144, y, 145, z, 145));
  REQUIRE(driver_launches() == launches + 4);
  OK(execute(p, plan, 0, 0, x, 145, NULL, -1, z, 144));
  REQUIRE(driver_launches() == launches + 7);
  OK(sparserl_plan_destroy(plan));
  device_free(x);
  device_free(y);
  device_free(z);
  free(packed);
}

/* Copies of operands are in the plan's workspace, or in the caller's, and count for the limit of memory. */
static void workspace(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 0, 0, NULL), *none = NULL;
  const size_t size = element_size(p->type), bytes = rows() * p->columns * size;
  const size_t needed = (size_t)number_of(plan, 0, SPARSERL_NUMBER_WORKSPACE_BYTES);
  REQUIRE(needed == 2 * ((bytes + 255) / 256 * 256));
  REQUIRE(needed == number_of(plan, 1, SPARSERL_NUMBER_WORKSPACE_BYTES));
  char *memory = (char *)device_memory(needed + 256), *space = memory + (256 - (uintptr_t)memory % 256) % 256;
  void *packed = calloc(rows() * p->columns, size);
  REQUIRE(packed);
  void *x = spread(p, packed, leading(p, 1)), *z = spread(p, packed, leading(p, 0));
#define PRODUCT() execute(p, plan, 1, 3, x, leading(p, 1), z, leading(p, 0), z, leading(p, 0))
  OK(sparserl_plan_set_workspace(plan, stream, space, needed - 1));
  const long launches = driver_launches();
  FAILS(PRODUCT(), SPARSERL_INVALID_ARGUMENT, "and the plan's kernel needs");
  REQUIRE(driver_launches() == launches);
  OK(sparserl_plan_set_workspace(plan, stream, space, needed));
  products(p, plan, p->values);
  memset(space, 0x7f, needed);
  OK(PRODUCT());
  /* The last launch copies from there. */
  REQUIRE(driver_launched_with(space, needed) == 1);
  OK(sparserl_plan_set_workspace(plan, stream, NULL, 0));
  OK(PRODUCT());
  REQUIRE(driver_launched_with(space, needed) == 0);
  driver_capture(stream, 1);
  OK(PRODUCT());
  driver_capture(stream, 0);
  const double packed_bytes = number_of(plan, 0, SPARSERL_NUMBER_PACKED_BYTES);
  OK(sparserl_plan_destroy(plan));

  sparserl_options *options = NULL;
  const uint64_t columns = p->columns;
  OK(sparserl_options_create(&options));
  set_calls(options, 0);
  set_int(options, SPARSERL_OPTION_DENSE, p->dense);
  OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  const uint64_t limits[] = {needed - 1, needed + 1, needed + (uint64_t)packed_bytes};
  for (int i = 0; i < 3; ++i) {
    OK(sparserl_options_set(options, SPARSERL_OPTION_MEMORY_LIMIT, &limits[i], sizeof limits[i]));
    if (i == 2) OK(sparserl_plan_create(context, p->matrix, options, &none));
    else FAILS(sparserl_plan_create(context, p->matrix, options, &none), SPARSERL_MEMORY_LIMIT, "device memory");
  }
  OK(sparserl_plan_destroy(none));
  OK(sparserl_options_destroy(options));
  device_free(memory);
  device_free(x);
  device_free(z);
  free(packed);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  g = make_grid(12);
  context = open_by_cost_model(1);
  driver_set_current(0);
  stream = driver_stream(0);
  static const size_t columns[] = {1, 3, 32};
  for (int32_t type = ELEMENT_F32; type <= ELEMENT_BF16; ++type) {
    struct problem p = {type, 0, 0, NULL, NULL};
    p.matrix = grid_in(context, &g, type, &p.values);
    for (p.dense = SPARSERL_DENSE_STRIDED; p.dense <= SPARSERL_DENSE_COLUMN_MAJOR; ++p.dense) {
      for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) {
        p.columns = columns[i];
        right(&p, arguments[1]);
      }
      fused(&p);
      if (is_by_columns(&p)) workspace(&p);
      if (type == SPARSERL_F32) (is_by_columns(&p) ? refused_columns : refused)(&p);
    }
    OK(sparserl_matrix_destroy(p.matrix));
    free(p.values);
  }
  OK(sparserl_context_destroy(context));
  REQUIRE(driver_taken() == 0 && driver_depth() == 1);
  free(stream);
  free_grid(&g);
  return EXIT_SUCCESS;
}
