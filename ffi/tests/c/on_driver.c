/* Execution without a GPU: what is asked of a driver (driver.c), and that all is given back. The
 * first argument is a folder to write to. */
#include "calls.h"

#include <pthread.h>

static struct grid g;
static sparserl_context *context;
static sparserl_matrix *matrix;
static stream_t stream, elsewhere;
static const double one = 1, zero = 0;

static sparserl_plan *plan_with(int32_t variable, uint64_t calls) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, calls);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

/* alpha op(A) x + beta y with these values of A, in every way to ask for it. */
static void products(sparserl_plan *plan, const double *values) {
  const size_t rows = (size_t)g.csr.rows, bytes = rows * sizeof(double);
  double *x = device_memory(bytes), *y = device_memory(bytes), *z = device_memory(bytes);
  double *expected = (double *)malloc(bytes);
  REQUIRE(expected);
  for (size_t i = 0; i < rows; ++i) {
    x[i] = 1 + (double)(i % 7);
    y[i] = (double)(i % 5) - 2;
  }
  for (int way = 0; way < 8; ++way) {
    const int32_t op = way & 1;
    const int in_place = way >> 1 & 1;
    const double alpha = 0.5, beta = way >> 2 ? 3 : 0;
    for (size_t i = 0; i < rows; ++i) expected[i] = beta * y[i];
    for (size_t i = 0; i < rows; ++i)
      for (int32_t k = g.row_offsets[i]; k < g.row_offsets[i + 1]; ++k) {
        const size_t j = (size_t)g.column_indices[k];
        expected[op ? j : i] += alpha * values[k] * x[op ? i : j];
      }
    for (size_t i = 0; i < rows; ++i) z[i] = in_place ? y[i] : 1e300;
    OK(sparserl_execute_op(plan, op, stream, &alpha, x, &beta, in_place ? z : y, z, NULL));
    for (size_t i = 0; i < rows; ++i) {
      const double off = z[i] - expected[i];
      REQUIRE(off < 1e-9 && off > -1e-9);
    }
  }
  free(expected);
  device_free(x);
  device_free(y);
  device_free(z);
}

/* The right arguments get to the kernels. */
static void right(const char *folder) {
  const size_t nnz = (size_t)g.csr.nnz;
  double *values = device_memory(nnz * sizeof(double));
  for (size_t i = 0; i < nnz; ++i) values[i] = (double)(i % 11) - 5;
  sparserl_plan *plan = plan_with(0, 0), *loaded = NULL;
  products(plan, g.values);
  OK(sparserl_plan_destroy(plan));
  plan = plan_with(1, 0);
  products(plan, g.values);
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  products(plan, values);
  OK(sparserl_plan_update_values(plan, NULL, g.values, SPARSERL_HOST));
  products(plan, g.values);
  char path[4096];
  snprintf(path, sizeof path, "%s/e.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, matrix, path, &loaded));
  products(loaded, g.values);
  OK(sparserl_plan_update_values(loaded, stream, values, SPARSERL_DEVICE));
  products(loaded, values);
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  device_free(values);
}

static void executed(void) {
  const size_t bytes = (size_t)g.csr.rows * sizeof(double);
  double *x = device_memory(bytes), *y = device_memory(bytes), *z = device_memory(bytes);
  double *few = device_memory(8), host[4] = {0};
  sparserl_plan *plan = plan_with(0, 100000000);
  const long before = driver_launches();
  for (int i = 0; i < 2; ++i) {
    OK(sparserl_execute(plan, stream, &one, x, &zero, NULL, z));
    OK(sparserl_execute(plan, stream, &one, x, &one, y, z));
    OK(sparserl_execute(plan, stream, &one, x, &one, z, z));
    OK(sparserl_execute_op(plan, SPARSERL_OP_TRANSPOSE, stream, &one, x, &one, y, z, NULL));
    OK(sparserl_execute(plan, NULL, &one, x, &zero, NULL, z));
    OK(sparserl_plan_wait(plan));
  }
  REQUIRE(driver_launches() == before + 10);
  REQUIRE(number_of(plan, 0, SPARSERL_NUMBER_CALLS) == 10);
  REQUIRE(text_has(plan, 0, SPARSERL_TEXT_WHY, "chosen by the cost model, not measured"));

  long launches = driver_launches();
  FAILS(sparserl_execute(plan, stream, &one, host, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT,
        "x is no pointer to device memory");
  FAILS(sparserl_execute(plan, stream, &one, few, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT,
        "x: 3200 bytes are needed, and 8 are left");
  FAILS(sparserl_execute(plan, stream, &one, x, &zero, NULL, (char *)z + 16), SPARSERL_INVALID_ARGUMENT,
        "z: 3200 bytes are needed, and 3184 are left");
  FAILS(sparserl_execute(plan, stream, &one, x, &one, NULL, z), SPARSERL_NULL_POINTER, "y is NULL");
  FAILS(sparserl_execute(plan, stream, &one, x, &one, host, z), SPARSERL_INVALID_ARGUMENT, "y is no");
  FAILS(sparserl_execute(plan, stream, NULL, x, &one, y, z), SPARSERL_NULL_POINTER, "alpha is NULL");
  FAILS(sparserl_execute(plan, stream, &one, x, NULL, y, z), SPARSERL_NULL_POINTER, "beta is NULL");
  FAILS(sparserl_execute(plan, stream, &one, NULL, &one, y, z), SPARSERL_NULL_POINTER, "x is NULL");
  FAILS(sparserl_execute(plan, stream, &one, x, &one, y, NULL), SPARSERL_NULL_POINTER, "z is NULL");
  FAILS(sparserl_execute(plan, stream, &one, z, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT, "x and z are the same");
  FAILS(sparserl_execute(plan, stream, &one, (char *)x + 4, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT,
        "x is not aligned to 8 bytes");
  FAILS(sparserl_execute(plan, stream, &one, x, &one, (char *)y + 4, z), SPARSERL_INVALID_ARGUMENT,
        "y is not aligned to 8 bytes");
  FAILS(sparserl_execute(plan, stream, &one, x, &zero, NULL, (char *)z + 1), SPARSERL_INVALID_ARGUMENT,
        "z is not aligned to 8 bytes");
  /* The result begins in an operand, or ends there. */
  double *both = device_memory(2 * bytes);
  const size_t count = bytes / sizeof *both;
  FAILS(sparserl_execute(plan, stream, &one, both, &zero, NULL, both + count - 1), SPARSERL_INVALID_ARGUMENT,
        "x and z overlap");
  FAILS(sparserl_execute(plan, stream, &one, both + count - 1, &zero, NULL, both), SPARSERL_INVALID_ARGUMENT,
        "x and z overlap");
  FAILS(sparserl_execute(plan, stream, &one, x, &one, both + 1, both), SPARSERL_INVALID_ARGUMENT,
        "y and z overlap: z may be y, and must not overlap it or x otherwise");
  REQUIRE(driver_launches() == launches);
  OK(sparserl_execute(plan, stream, &one, both + count, &one, both + count, both));
  OK(sparserl_execute(plan, stream, &one, x, &zero, both + 1, both));
  device_free(both);
  launches = driver_launches();
  FAILS(sparserl_execute_op(plan, 5, stream, &one, x, &zero, NULL, z, NULL), SPARSERL_INVALID_ARGUMENT,
        "op is 5");
  FAILS(sparserl_execute(plan, elsewhere, &one, x, &zero, NULL, z), SPARSERL_WRONG_DEVICE,
        "the stream is not one of device 0");
  driver_set_current(1);
  FAILS(sparserl_execute(plan, NULL, &one, x, &zero, NULL, z), SPARSERL_WRONG_DEVICE, "device 0");
  void *primary = NULL;
  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 1) == 0);
  double *other_device = device_memory(bytes);
  driver_set_current(0);
  FAILS(sparserl_execute(plan, NULL, &one, other_device, &zero, NULL, z), SPARSERL_WRONG_DEVICE,
        "x is memory of another device than the context's");
  driver_set_current(1);
  device_free(other_device);
  REQUIRE(cuDevicePrimaryCtxRelease_v2(1) == 0);
  REQUIRE(driver_launches() == launches);
  /* With a stream of its device it does not matter which is current, and nothing changes that. */
  OK(sparserl_execute(plan, stream, &one, x, &zero, NULL, z));
  REQUIRE(driver_depth() == 1 && driver_launches() == launches + 1);
  driver_set_current(0);

  /* While anybody captures, plans are made, searched for and executed. */
  driver_capture(stream, 1);
  OK(sparserl_execute(plan, stream, &one, x, &zero, NULL, z));
  sparserl_plan *meanwhile = plan_with(1, 100000000);
  OK(sparserl_plan_wait(meanwhile));
  OK(sparserl_execute(meanwhile, stream, &one, x, &zero, NULL, z));
  REQUIRE(text_has(meanwhile, 0, SPARSERL_TEXT_WHY, "chosen by the cost model"));
  OK(sparserl_plan_destroy(meanwhile));
  driver_capture(stream, 0);
  OK(sparserl_plan_destroy(plan));
  device_free(x);
  device_free(y);
  device_free(z);
  device_free(few);
}

static void updated(const char *folder) {
  const size_t bytes = (size_t)g.csr.nnz * sizeof(double);
  double *values = device_memory(bytes), *few = device_memory(8);
  sparserl_plan *plan = plan_with(1, 100000000), *loaded = NULL;
  OK(sparserl_plan_update_values(plan, stream, g.values, SPARSERL_HOST));
  OK(sparserl_plan_wait(plan));
  const long before = driver_launches();
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  REQUIRE(driver_launches() >= before + 2);
  FAILS(sparserl_plan_update_values(plan, stream, NULL, SPARSERL_HOST), SPARSERL_NULL_POINTER, "values");
  FAILS(sparserl_plan_update_values(plan, stream, few, SPARSERL_DEVICE), SPARSERL_INVALID_ARGUMENT,
        "values: ");
  FAILS(sparserl_plan_update_values(plan, stream, g.values, SPARSERL_DEVICE), SPARSERL_INVALID_ARGUMENT,
        "values is no pointer to device memory");
  FAILS(sparserl_plan_update_values(plan, stream, (char *)values + 4, SPARSERL_DEVICE), SPARSERL_INVALID_ARGUMENT,
        "values is not aligned to 8 bytes");
  FAILS(sparserl_plan_update_values(plan, stream, values, 3), SPARSERL_INVALID_ARGUMENT, "location is 3");
  FAILS(sparserl_plan_update_values(plan, elsewhere, values, SPARSERL_DEVICE), SPARSERL_WRONG_DEVICE, "");
  driver_capture(stream, 1);
  FAILS(sparserl_plan_update_values(plan, stream, g.values, SPARSERL_HOST), SPARSERL_CAPTURING,
        "give them in device memory");
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  FAILS(sparserl_plan_update_values(plan, NULL, values, SPARSERL_DEVICE), SPARSERL_CAPTURING, "failed: an error");
  driver_capture(stream, 0);
  char path[4096];
  snprintf(path, sizeof path, "%s/c.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, matrix, path, &loaded));
  OK(sparserl_plan_update_values(loaded, NULL, g.values, SPARSERL_HOST));
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  device_free(values);
  device_free(few);
}

/* What no file holds is said when a plan is loaded. */
static void loaded_with_options(const char *folder) {
  const size_t bytes = (size_t)g.csr.rows * sizeof(double);
  double *x = (double *)calloc(1, bytes), *z = (double *)calloc(1, bytes);
  REQUIRE(x && z);
  sparserl_plan *plan = plan_with(0, 0), *loaded = NULL;
  const double forward = number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_PACKED_BYTES);
  const double both = forward + number_of(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_NUMBER_PACKED_BYTES);
  char path[4096];
  snprintf(path, sizeof path, "%s/i.plan", folder);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_destroy(plan));
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  const long before = driver_taken();
  const uint64_t limits[] = {(uint64_t)forward - 1, (uint64_t)both - 1, (uint64_t)both};
  for (int i = 0; i < 3; ++i) {
    OK(sparserl_options_set(options, SPARSERL_OPTION_MEMORY_LIMIT, &limits[i], sizeof limits[i]));
    if (i == 2) continue;
    FAILS(sparserl_plan_load_with_options(context, matrix, path, options, &loaded), SPARSERL_MEMORY_LIMIT,
          "bytes of device memory, and may take");
    REQUIRE(loaded == NULL && driver_taken() == before);
  }
  OK(sparserl_plan_load_with_options(context, matrix, path, options, &loaded));
  FAILS(sparserl_execute(loaded, stream, &one, x, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT,
        "x is no pointer to device memory");
  OK(sparserl_plan_destroy(loaded));
  set_int(options, SPARSERL_OPTION_CHECK_POINTERS, 0);
  OK(sparserl_plan_load_with_options(context, matrix, path, options, &loaded));
  OK(sparserl_execute(loaded, stream, &one, x, &zero, NULL, z));
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_load_with_options(context, matrix, path, NULL, &loaded));
  OK(sparserl_plan_destroy(loaded));
  FAILS(sparserl_plan_load_with_options(context, matrix, path, (sparserl_options *)(void *)context, &loaded),
        SPARSERL_INVALID_HANDLE, "options: this is a handle of a context");
  OK(sparserl_options_destroy(options));
  free(x);
  free(z);
}

static void empty(void) {
  const int32_t offsets[] = {0, 0, 0, 0};
  sparserl_csr csr = g.csr;
  csr.rows = csr.cols = 3;
  csr.nnz = 0;
  csr.row_offsets = offsets;
  csr.column_indices = csr.values = NULL;
  sparserl_matrix *full = matrix;
  OK(sparserl_matrix_create(context, &csr, &matrix));
  sparserl_plan *plan = plan_with(1, 0);
  /* There are no values, wherever they would be. */
  OK(sparserl_plan_update_values(plan, stream, NULL, SPARSERL_HOST));
  OK(sparserl_plan_update_values(plan, stream, NULL, SPARSERL_DEVICE));
  FAILS(sparserl_plan_update_values(plan, stream, NULL, 3), SPARSERL_INVALID_ARGUMENT, "location is 3");
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(matrix));
  matrix = full;
}

/* A deadline has no say where nothing may depend on times. */
static void deterministic(void) {
  char *programs[2];
  for (int late = 0; late < 2; ++late) {
    const double no_time = 0;
    sparserl_options *options = NULL;
    sparserl_plan *plan = NULL;
    OK(sparserl_options_create(&options));
    set_int(options, SPARSERL_OPTION_DETERMINISTIC, 1);
    set_calls(options, 100000000);
    if (late) OK(sparserl_options_set(options, SPARSERL_OPTION_DEADLINE, &no_time, sizeof no_time));
    OK(sparserl_plan_create(context, matrix, options, &plan));
    programs[late] = text_of(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM);
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_options_destroy(options));
  }
  REQUIRE(strcmp(programs[0], programs[1]) == 0);
  REQUIRE(!strstr(programs[0], "block 256\nkeep csr"));
  free(programs[0]);
  free(programs[1]);
}

/* What was chosen for a pattern is remembered: plans of calls that do not pay for choosing have it, too. */
static void remembered(const char *folder) {
  char cache[4096];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  sparserl_options *options = NULL;
  sparserl_context *own = NULL;
  sparserl_matrix *same = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_POLICY, "cost");
  set_text(options, SPARSERL_OPTION_CACHE_FOLDER, cache);
  OK(sparserl_context_create(options, &own));
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_create(own, &g.csr, &same));
  const char *why[] = {"no calls are expected", "are too few", "chosen by the cost model", "chosen by the cost model"};
  uint64_t calls[] = {0, 0, 100000000, 0};
  char *programs[4];
  for (int i = 0; i < 4; ++i) {
    sparserl_plan *plan = NULL;
    OK(sparserl_options_create(&options));
    set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
    set_int(options, SPARSERL_OPTION_MEASURE, 0);
    set_calls(options, calls[i]);
    OK(sparserl_plan_create(own, same, options, &plan));
    OK(sparserl_plan_wait(plan));
    for (int32_t op = SPARSERL_OP_NONE; op <= SPARSERL_OP_TRANSPOSE; ++op)
      REQUIRE(text_has(plan, op, SPARSERL_TEXT_WHY, why[i]));
    /* A hundredth of a second is to be saved. */
    if (i == 0)
      calls[1] = calls[3] =
          (uint64_t)(0.01 / 0.3 / number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_PREDICTED_SECONDS));
    programs[i] = text_of(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_PROGRAM);
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_options_destroy(options));
  }
  REQUIRE(strcmp(programs[1], programs[0]) == 0);
  REQUIRE(strcmp(programs[2], programs[0]) != 0);
  REQUIRE(strcmp(programs[3], programs[2]) == 0);
  for (int i = 0; i < 4; ++i) free(programs[i]);
  OK(sparserl_matrix_destroy(same));
  OK(sparserl_context_destroy(own));
}

/* What was not measured takes the place of plain CSR only where the policy predicts it to be faster; both sides have
 * a predicted time. */
static void predicted(void) {
  struct grid arrow = make_arrow(2000, 2000);
  sparserl_context *learned = NULL;
  sparserl_matrix *own = NULL;
  OK(sparserl_context_create(NULL, &learned));
  OK(sparserl_matrix_create(learned, &arrow.csr, &own));
  double seconds[2][2];
  for (int is_searched = 0; is_searched < 2; ++is_searched) {
    sparserl_options *options = NULL;
    sparserl_plan *plan = NULL;
    OK(sparserl_options_create(&options));
    set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
    set_int(options, SPARSERL_OPTION_MEASURE, 0);
    set_calls(options, is_searched ? 100000000 : 0);
    OK(sparserl_plan_create(learned, own, options, &plan));
    OK(sparserl_plan_wait(plan));
    for (int32_t op = 0; op < 2; ++op)
      seconds[is_searched][op] = number_of(plan, op, SPARSERL_NUMBER_PREDICTED_SECONDS);
    OK(sparserl_plan_destroy(plan));
    OK(sparserl_options_destroy(options));
  }
  for (int op = 0; op < 2; ++op) REQUIRE(0 < seconds[1][op] && seconds[1][op] <= seconds[0][op]);
  OK(sparserl_matrix_destroy(own));
  OK(sparserl_context_destroy(learned));
  free_grid(&arrow);
}

/* Kernels that hold a part of x in more shared memory than they may have unasked, where no cache holds it. */
static void panels_and_bins(const char *folder) {
  struct grid scattered = make_scattered(200000, 200000, 4);
  driver_set_l2(64 << 10);
  sparserl_context *own = open_by_cost_model(1);
  sparserl_matrix *large = NULL;
  sparserl_options *options = NULL;
  sparserl_plan *plans[2] = {NULL, NULL};
  OK(sparserl_matrix_create(own, &scattered.csr, &large));
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 100000000);
  OK(sparserl_plan_create(own, large, options, &plans[0]));
  OK(sparserl_options_destroy(options));
  OK(sparserl_plan_wait(plans[0]));
  char path[4096];
  snprintf(path, sizeof path, "%s/bins.plan", folder);
  OK(sparserl_plan_save(plans[0], path));
  OK(sparserl_plan_load(own, large, path, &plans[1]));
  const size_t bytes = (size_t)scattered.csr.rows * sizeof(double);
  double *x = device_memory(bytes), *z = device_memory(bytes);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(text_has(plans[i], SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, "keep binned shared=3"));
    OK(sparserl_execute(plans[i], stream, &one, x, &zero, NULL, z));
    REQUIRE(driver_launched_with_shared() > 48 << 10);
    OK(sparserl_plan_destroy(plans[i]));
  }
  device_free(x);
  device_free(z);
  OK(sparserl_matrix_destroy(large));
  OK(sparserl_context_destroy(own));
  driver_set_l2(50 << 20);
  free_grid(&scattered);
}

static void from_device(void) {
  const size_t rows = (size_t)g.csr.rows, nnz = (size_t)g.csr.nnz;
  sparserl_csr csr = g.csr;
  int32_t *offsets = device_memory((rows + 1) * sizeof *offsets);
  int32_t *columns = device_memory(nnz * sizeof *columns);
  double *values = device_memory(nnz * sizeof *values);
  memcpy(offsets, g.row_offsets, (rows + 1) * sizeof *offsets);
  memcpy(columns, g.column_indices, nnz * sizeof *columns);
  memcpy(values, g.values, nnz * sizeof *values);
  csr.row_offsets = offsets;
  csr.column_indices = columns;
  csr.values = values;
  csr.location = SPARSERL_DEVICE;
  sparserl_matrix *copied = NULL, *none = NULL;
  OK(sparserl_matrix_create(context, &csr, &copied));
  OK(sparserl_matrix_destroy(copied));
  csr.column_indices = g.column_indices;
  FAILS(sparserl_matrix_create(context, &csr, &none), SPARSERL_INVALID_ARGUMENT,
        "column_indices is no pointer to device memory");
  csr.column_indices = columns + 1;
  FAILS(sparserl_matrix_create(context, &csr, &none), SPARSERL_INVALID_ARGUMENT, "column_indices: ");
  REQUIRE(none == NULL);
  device_free(offsets);
  device_free(columns);
  device_free(values);
}

/* Single precision: numbers of half the size. */
static void single(void) {
  const size_t rows = (size_t)g.csr.rows, nnz = (size_t)g.csr.nnz;
  float *values = (float *)malloc(nnz * sizeof *values);
  REQUIRE(values);
  for (size_t i = 0; i < nnz; ++i) values[i] = (float)g.values[i];
  sparserl_csr csr = g.csr;
  csr.values = values;
  csr.value_type = SPARSERL_F32;
  float *x = device_memory(rows * sizeof *x), *z = device_memory(rows * sizeof *z);
  const float alpha = 2, beta = 3;
  sparserl_matrix *own = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(context, &csr, &own));
  OK(sparserl_plan_create(context, own, NULL, &plan));
  OK(sparserl_execute(plan, stream, &alpha, x, &beta, z, z));
  OK(sparserl_plan_wait(plan));
  OK(sparserl_execute(plan, stream, &alpha, x, &beta, z, z));
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(own));
  device_free(x);
  device_free(z);
  free(values);
}

/* After a fault everything fails, and nothing crashes. */
static void broken(void) {
  const size_t bytes = (size_t)g.csr.rows * sizeof(double);
  double *x = device_memory(bytes), *z = device_memory(bytes);
  sparserl_plan *plan = plan_with(1, 0), *none = NULL;
  driver_break();
  FAILS(sparserl_execute(plan, stream, &one, x, &zero, NULL, z), SPARSERL_DEVICE_FAILED,
        "cuLaunchKernelEx failed: an error");
  FAILS(sparserl_plan_update_values(plan, stream, g.values, SPARSERL_HOST), SPARSERL_DEVICE_FAILED, "failed");
  FAILS(sparserl_plan_create(context, matrix, NULL, &none), SPARSERL_DEVICE_FAILED, "failed");
  REQUIRE(none == NULL);
  OK(sparserl_plan_destroy(plan));
}

/* Memory that ends in the middle of a plan. */
static void exhausted(void) {
  const long before = driver_taken();
  sparserl_plan *plan = NULL;
  driver_set_memory(3000);
  FAILS(sparserl_plan_create(context, matrix, NULL, &plan), SPARSERL_OUT_OF_MEMORY, "bytes of memory left");
  REQUIRE(plan == NULL && driver_taken() == before);
  driver_set_memory((size_t)1 << 40);
}

enum { THREADS = 100, ROUNDS = 4 };
static sparserl_plan *shared[ROUNDS];

/* Threads make plans of their own and use plans that others destroy meanwhile. */
static void *work(void *number) {
  const size_t bytes = (size_t)g.csr.rows * sizeof(double), own = (size_t)(uintptr_t)number;
  driver_set_current(0);
  double *x = device_memory(bytes), *z = device_memory(bytes);
  for (size_t round = 0; round < ROUNDS; ++round) {
    sparserl_plan *plan = NULL;
    if (own % 10 == round) plan = plan_with(0, own % 20 == round ? 0 : 100000000);
    for (int i = 0; i < 20; ++i) {
      if (plan) OK(sparserl_execute(plan, stream, &one, x, &zero, NULL, z));
      const sparserl_status status = sparserl_execute(shared[round], stream, &one, x, &zero, NULL, z);
      REQUIRE(status == SPARSERL_SUCCESS ||
              (status == SPARSERL_INVALID_HANDLE && strstr(sparserl_last_error(), "was destroyed")));
    }
    if (own == 7 * round) OK(sparserl_plan_destroy(shared[round]));
    OK(sparserl_plan_destroy(plan));
  }
  REQUIRE(driver_depth() == 1);
  device_free(x);
  device_free(z);
  return NULL;
}

static void threads(void) {
  pthread_t all[THREADS];
  for (size_t i = 0; i < ROUNDS; ++i) shared[i] = plan_with(0, 100000000);
  for (size_t i = 0; i < THREADS; ++i)
    REQUIRE(pthread_create(&all[i], NULL, work, (void *)(uintptr_t)i) == 0);
  for (size_t i = 0; i < THREADS; ++i) REQUIRE(pthread_join(all[i], NULL) == 0);
}

static void sequences(const char *folder) {
  uint32_t state = 7;
  struct shared shared = {.grid = &g, .stream = stream, .folder = folder};
  begin_calls(&shared);
  make_calls(&shared, (struct choice){random_below, &state}, 3000);
  end_calls(&shared);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  g = make_grid(20);
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_POLICY, "cost");
  OK(sparserl_context_create(options, &context));
  set_text(options, SPARSERL_OPTION_TARGET, "sm_70");
  sparserl_context *none = NULL;
  FAILS(sparserl_context_create(options, &none), SPARSERL_WRONG_DEVICE, "No GPU 0 is sm_90, not sm_70");
  set_int(options, SPARSERL_OPTION_DEVICE, 2);
  FAILS(sparserl_context_create(options, &none), SPARSERL_NO_DEVICE, "no CUDA device 2: the driver sees 2");
  OK(sparserl_options_destroy(options));
  REQUIRE(driver_depth() == 0);
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  driver_set_current(0);
  stream = driver_stream(0);
  elsewhere = driver_stream(1);
  right(arguments[1]);
  executed();
  updated(arguments[1]);
  loaded_with_options(arguments[1]);
  empty();
  deterministic();
  remembered(arguments[1]);
  predicted();
  panels_and_bins(arguments[1]);
  from_device();
  single();
  exhausted();
  threads();
  sequences(arguments[1]);
  OK(sparserl_context_destroy(context));
  /* All memory, modules and streams are given back. */
  REQUIRE(driver_taken() == 0);
  REQUIRE(driver_depth() == 1);
  context = open_by_cost_model(1);
  broken();
  OK(sparserl_context_destroy(context));
  OK(sparserl_matrix_destroy(matrix));
  free(stream);
  free(elsewhere);
  free_grid(&g);
  return EXIT_SUCCESS;
}
