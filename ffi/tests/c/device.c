/* The product on a GPU, in all its forms. The first argument says which part to run. */
#define _POSIX_C_SOURCE 200809L
#include "check_cuda.h"
#include <math.h>
#include <pthread.h>
#include <time.h>

static struct grid g;
static sparserl_context *context;
static sparserl_matrix *matrix;
static cudaStream_t stream;

static double *vector(size_t count, double seed) {
  double *made = (double *)malloc(count * sizeof *made);
  REQUIRE(made);
  for (size_t i = 0; i < count; ++i) made[i] = sin(seed + 0.37 * (double)i);
  return made;
}

static double *on_device(const double *from, size_t count) {
  return (double *)device_copy(from, count * sizeof *from);
}

/* alpha op(A) x + beta y with these values of A. */
static double *expected(int32_t op, const double *values, double alpha, const double *x, double beta,
                        const double *y) {
  const size_t rows = (size_t)g.csr.rows;
  double *z = (double *)calloc(rows, sizeof *z);
  REQUIRE(z);
  for (size_t row = 0; row < rows; ++row)
    for (int32_t k = g.row_offsets[row]; k < g.row_offsets[row + 1]; ++k) {
      const size_t column = (size_t)g.column_indices[k];
      if (op == SPARSERL_OP_NONE)
        z[row] += alpha * values[k] * x[column];
      else
        z[column] += alpha * values[k] * x[row];
    }
  for (size_t row = 0; row < rows; ++row)
    if (beta != 0) z[row] += beta * y[row];
  return z;
}

static void same(const double *device, const double *host, const char *what) {
  const size_t rows = (size_t)g.csr.rows;
  double *found = (double *)malloc(rows * sizeof *found);
  REQUIRE(found);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(found, device, rows * sizeof *found, cudaMemcpyDeviceToHost));
  for (size_t row = 0; row < rows; ++row)
    if (!(fabs(found[row] - host[row]) <= 1e-12 * (1 + fabs(host[row])))) {
      fprintf(stderr, "%s: row %zu is %.17g, not %.17g\n", what, row, found[row], host[row]);
      exit(EXIT_FAILURE);
    }
  free(found);
}

/* Every op, apart and in place, with and without beta. */
static void products(sparserl_plan *plan, const double *values, int32_t ops) {
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *y = vector(rows, 2);
  double *dx = on_device(x, rows), *dy = on_device(y, rows), *dz = on_device(y, rows);
  static const double alphas[] = {1, -0.5}, betas[] = {0, 2.25};
  for (int32_t op = 0; op < ops; ++op)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        double *z = expected(op, values, alphas[i], x, betas[j], y);
        CUDA(cudaMemset(dz, 0xff, rows * sizeof *dz));
        OK(sparserl_execute_op(plan, op, stream, &alphas[i], dx, &betas[j], j ? dy : NULL, dz, NULL));
        same(dz, z, "apart");
        same(dy, y, "the old vector");
        CUDA(cudaMemcpy(dz, y, rows * sizeof *dz, cudaMemcpyHostToDevice));
        OK(sparserl_execute_op(plan, op, stream, &alphas[i], dx, &betas[j], dz, dz, NULL));
        same(dz, z, "in place");
        free(z);
      }
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dy));
  CUDA(cudaFree(dz));
  free(x);
  free(y);
}

static sparserl_plan *plan_with(int32_t variable, int32_t measure, uint64_t calls) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  set_int(options, SPARSERL_OPTION_MEASURE, measure);
  set_calls(options, calls);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

static void swapped(void) {
  sparserl_plan *plan = plan_with(0, 1, 1000000);
  double value;
  /* Nothing was waited for. */
  REQUIRE(sparserl_plan_number(plan, 0, SPARSERL_NUMBER_PLANNING_SECONDS, &value) == SPARSERL_NOT_KNOWN);
  products(plan, g.values, 2);
  OK(sparserl_plan_wait(plan));
  products(plan, g.values, 2);
  char *why = text_of(plan, 0, SPARSERL_TEXT_WHY);
  printf("%s\n", why);
  REQUIRE(strstr(why, "programs measured on "));
  free(why);
  REQUIRE(number_of(plan, 0, SPARSERL_NUMBER_CALLS) == 32);
  OK(sparserl_plan_destroy(plan));

  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_DETERMINISTIC, 1);
  set_calls(options, UINT64_MAX);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  REQUIRE(text_has(plan, 0, SPARSERL_TEXT_WHY, "not measured"));
  products(plan, g.values, 1);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
}

static void from_device(void) {
  const size_t rows = (size_t)g.csr.rows, nnz = (size_t)g.csr.nnz;
  int32_t *offsets = (int32_t *)device_copy(g.row_offsets, (rows + 1) * sizeof *offsets);
  int32_t *columns = (int32_t *)device_copy(g.column_indices, nnz * sizeof *columns);
  sparserl_csr csr = g.csr;
  csr.row_offsets = offsets;
  csr.column_indices = columns;
  csr.values = on_device(g.values, nnz);
  csr.location = SPARSERL_DEVICE;
  sparserl_matrix *copied = NULL, *none = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(context, &csr, &copied));
  sparserl_csr wrong = csr;
  wrong.row_offsets = g.row_offsets;
  FAILS(sparserl_matrix_create(context, &wrong, &none), SPARSERL_INVALID_ARGUMENT,
        "row_offsets is no pointer to device memory");
  CUDA(cudaFree(offsets));
  CUDA(cudaFree(columns));
  CUDA(cudaFree((void *)csr.values));
  OK(sparserl_plan_create(context, copied, NULL, &plan));
  products(plan, g.values, 1);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(copied));
}

static void values(void) {
  const size_t nnz = (size_t)g.csr.nnz;
  sparserl_plan *plan = plan_with(1, 0, 10000000);
  double *other = vector(nnz, 5), *third = vector(nnz, 9);
  products(plan, g.values, 2);
  OK(sparserl_plan_update_values(plan, stream, other, SPARSERL_HOST));
  products(plan, other, 2);
  OK(sparserl_plan_wait(plan));
  products(plan, other, 2);
  double *device = on_device(third, nnz);
  OK(sparserl_plan_update_values(plan, stream, device, SPARSERL_DEVICE));
  products(plan, third, 2);

  /* In a graph: values, then a product; and values from outside of it. */
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *dx = on_device(x, rows), *dz = on_device(x, rows);
  const double one = 1, zero = 0;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  FAILS(sparserl_plan_update_values(plan, stream, other, SPARSERL_HOST), SPARSERL_CAPTURING, "captured");
  OK(sparserl_execute(plan, stream, &one, dx, &zero, NULL, dz));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&replay, graph, 0));
  for (int i = 0; i < 2; ++i) {
    const double *now = i ? other : third;
    if (i) OK(sparserl_plan_update_values(plan, stream, other, SPARSERL_HOST));
    CUDA(cudaGraphLaunch(replay, stream));
    double *z = expected(0, now, 1, x, 0, x);
    same(dz, z, "replayed");
    free(z);
  }
  CUDA(cudaGraphExecDestroy(replay));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaFree(device));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(x);
  free(other);
  free(third);
  OK(sparserl_plan_destroy(plan));
}

/* A capture goes on while a plan is made, searched for and swapped. */
static void captured(void) {
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *dx = on_device(x, rows), *dz = on_device(x, rows);
  const double one = 1, zero = 0;
  sparserl_plan *plan = plan_with(0, 0, 10000000);
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(sparserl_execute(plan, stream, &one, dx, &zero, NULL, dz));
  sparserl_plan *meanwhile = plan_with(0, 0, 10000000);
  OK(sparserl_plan_wait(plan));
  OK(sparserl_plan_wait(meanwhile));
  OK(sparserl_execute(plan, stream, &one, dx, &one, dz, dz));
  CUDA(cudaStreamEndCapture(stream, &graph));
  /* Each call is its kernel and nothing else, so that it costs a graph what a bare launch does. */
  cudaGraphNode_t nodes[2];
  size_t count = 0;
  CUDA(cudaGraphGetNodes(graph, NULL, &count));
  REQUIRE(count == 2);
  CUDA(cudaGraphGetNodes(graph, nodes, &count));
  for (size_t i = 0; i < count; ++i) {
    enum cudaGraphNodeType type;
    CUDA(cudaGraphNodeGetType(nodes[i], &type));
    REQUIRE(type == cudaGraphNodeTypeKernel);
  }
  CUDA(cudaGraphInstantiate(&replay, graph, 0));
  CUDA(cudaGraphLaunch(replay, stream));
  double *z = expected(0, g.values, 2, x, 0, x);
  same(dz, z, "captured");
  free(z);
  CUDA(cudaGraphExecDestroy(replay));
  CUDA(cudaGraphDestroy(graph));
  OK(sparserl_plan_destroy(meanwhile));
  OK(sparserl_plan_destroy(plan));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(x);
}

static void misuse(void) {
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *dx = on_device(x, rows), *dz = on_device(x, rows), *few = on_device(x, 1);
  const double one = 1, zero = 0;
  sparserl_plan *plan = plan_with(0, 0, 0);
  FAILS(sparserl_execute(plan, stream, &one, x, &zero, NULL, dz), SPARSERL_INVALID_ARGUMENT,
        "x is no pointer to device memory");
  FAILS(sparserl_execute(plan, stream, &one, few, &zero, NULL, dz), SPARSERL_INVALID_ARGUMENT,
        "x: 80000 bytes are needed");
  FAILS(sparserl_execute(plan, stream, &one, dx, &one, dz, x), SPARSERL_INVALID_ARGUMENT,
        "z is no pointer to device memory");
  FAILS(sparserl_execute(plan, stream, &one, dx, &one, NULL, dz), SPARSERL_NULL_POINTER, "y is NULL");
  FAILS(sparserl_execute(plan, stream, &one, dx, &zero, NULL, NULL), SPARSERL_NULL_POINTER, "z is NULL");
  FAILS(sparserl_execute(plan, stream, NULL, dx, &zero, NULL, dz), SPARSERL_NULL_POINTER, "alpha is NULL");
  FAILS(sparserl_execute(plan, stream, &one, dx, NULL, NULL, dz), SPARSERL_NULL_POINTER, "beta is NULL");
  FAILS(sparserl_execute(plan, stream, &one, dz, &zero, NULL, dz), SPARSERL_INVALID_ARGUMENT,
        "x and z are the same");
  /* Nothing of that left anything behind. */
  products(plan, g.values, 2);
  OK(sparserl_plan_destroy(plan));

  sparserl_options *options = NULL;
  sparserl_context *none = NULL;
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_DEVICE, 1000);
  FAILS(sparserl_context_create(options, &none), SPARSERL_NO_DEVICE, "no CUDA device 1000");
  set_int(options, SPARSERL_OPTION_DEVICE, 0);
  set_text(options, SPARSERL_OPTION_TARGET, "sm_70");
  FAILS(sparserl_context_create(options, &none), SPARSERL_WRONG_DEVICE, "not sm_70");
  OK(sparserl_options_destroy(options));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  CUDA(cudaFree(few));
  free(x);
}

static void clamped(void) {
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *low = vector(rows, 3), *high = vector(rows, 3);
  for (size_t i = 0; i < rows; ++i) high[i] += 0.5;
  struct {
    const double *lower, *upper;
  } user = {on_device(low, rows), on_device(high, rows)};
  double *dx = on_device(x, rows), *dz = on_device(x, rows);
  const double alpha = 0.75, beta = 0.5;
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_EPILOGUE, "clamp");
  set_calls(options, 10000000);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  FAILS(sparserl_execute(plan, stream, &alpha, dx, &beta, dz, dz), SPARSERL_NULL_POINTER, "user is NULL");
  for (int i = 0; i < 2; ++i) {
    CUDA(cudaMemcpy(dz, x, rows * sizeof *dz, cudaMemcpyHostToDevice));
    OK(sparserl_execute_op(plan, 0, stream, &alpha, dx, &beta, dz, dz, &user));
    double *z = expected(0, g.values, alpha, x, beta, x);
    for (size_t row = 0; row < rows; ++row) z[row] = fmin(fmax(z[row], low[row]), high[row]);
    same(dz, z, "clamped");
    free(z);
    OK(sparserl_plan_wait(plan));
  }
  OK(sparserl_plan_destroy(plan));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  CUDA(cudaFree((void *)user.lower));
  CUDA(cudaFree((void *)user.upper));
  free(x);
  free(low);
  free(high);
}

/* Each product has its own epilogue: of A bounds, of the transpose a step that is told, and twice its result beside
 * it. */
static void of_sides(const char *folder) {
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *low = vector(rows, 3), *high = vector(rows, 3), step = 0.25;
  for (size_t i = 0; i < rows; ++i) high[i] += 0.5;
  const struct {
    const double *lower, *upper;
  } bounds = {on_device(low, rows), on_device(high, rows)};
  const struct {
    const double *step;
    double scale, *twice;
  } moved = {on_device(&step, 1), -3, on_device(x, rows)};
  double *dx = on_device(x, rows), *dz = on_device(x, rows);
  const double alpha = 0.75, beta = 0.5;
  sparserl_options *options = NULL;
  sparserl_plan *plans[2] = {NULL, NULL};
  char path[4096];
  snprintf(path, sizeof path, "%s/sides.plan", folder);
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_text(options, SPARSERL_OPTION_EPILOGUE, "clamp");
  set_text(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE,
           "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) {\n"
           "  const Scalar v = old + *user.step * user.scale * product;\n"
           "  user.twice[row] = 2 * v;\n"
           "  return v;\n}");
  set_text(options, SPARSERL_OPTION_TRANSPOSED_EPILOGUE_USER, "const Scalar step[1]; Scalar scale; Scalar twice[rows]");
  set_calls(options, 10000000);
  OK(sparserl_plan_create(context, matrix, options, &plans[0]));
  OK(sparserl_options_destroy(options));
  for (int i = 0; i < 3; ++i) {
    if (i == 1) OK(sparserl_plan_wait(plans[0]));
    if (i == 2) {
      OK(sparserl_plan_save(plans[0], path));
      OK(sparserl_plan_load(context, matrix, path, &plans[1]));
    }
    CUDA(cudaMemcpy(dz, x, rows * sizeof *dz, cudaMemcpyHostToDevice));
    OK(sparserl_execute_op(plans[i == 2], SPARSERL_OP_NONE, stream, &alpha, dx, &beta, dz, dz, &bounds));
    double *z = expected(0, g.values, alpha, x, beta, x);
    for (size_t row = 0; row < rows; ++row) z[row] = fmin(fmax(z[row], low[row]), high[row]);
    same(dz, z, "clamped, of A");
    free(z);
    CUDA(cudaMemcpy(dz, x, rows * sizeof *dz, cudaMemcpyHostToDevice));
    OK(sparserl_execute_op(plans[i == 2], SPARSERL_OP_TRANSPOSE, stream, &alpha, dx, &beta, dz, dz, &moved));
    z = expected(1, g.values, alpha * step * moved.scale, x, beta, x);
    same(dz, z, "moved, of the transpose");
    for (size_t row = 0; row < rows; ++row) z[row] *= 2;
    same(moved.twice, z, "twice what is moved");
    free(z);
  }
  for (int i = 0; i < 2; ++i) OK(sparserl_plan_destroy(plans[i]));
  const void *const taken[] = {bounds.lower, bounds.upper, moved.step, moved.twice, dx, dz};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i) CUDA(cudaFree((void *)taken[i]));
  free(x);
  free(low);
  free(high);
}

static void single(void) {
  const size_t rows = (size_t)g.csr.rows, nnz = (size_t)g.csr.nnz;
  float *values = (float *)malloc(nnz * sizeof *values), *x = (float *)malloc(rows * sizeof *x);
  float *found = (float *)malloc(rows * sizeof *found);
  REQUIRE(values && x && found);
  for (size_t i = 0; i < nnz; ++i) values[i] = (float)g.values[i];
  for (size_t i = 0; i < rows; ++i) x[i] = (float)sin((double)i);
  float *dx = NULL, *dz = NULL;
  CUDA(cudaMalloc((void **)&dx, rows * sizeof *dx));
  CUDA(cudaMalloc((void **)&dz, rows * sizeof *dz));
  CUDA(cudaMemcpy(dx, x, rows * sizeof *dx, cudaMemcpyHostToDevice));
  sparserl_csr csr = g.csr;
  csr.values = values;
  csr.value_type = SPARSERL_F32;
  const float alpha = 0.5f, beta = 2;
  sparserl_matrix *own = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(context, &csr, &own));
  OK(sparserl_plan_create(context, own, NULL, &plan));
  for (int i = 0; i < 2; ++i) {
    OK(sparserl_execute(plan, stream, &alpha, dx, &beta, dx, dz));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(found, dz, rows * sizeof *found, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < rows; ++row) {
      double sum = (double)beta * (double)x[row];
      for (int32_t k = g.row_offsets[row]; k < g.row_offsets[row + 1]; ++k)
        sum += (double)alpha * (double)values[k] * (double)x[g.column_indices[k]];
      REQUIRE(fabs((double)found[row] - sum) <= 1e-5 * (1 + fabs(sum)));
    }
    OK(sparserl_plan_wait(plan));
  }
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_matrix_destroy(own));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(values);
  free(x);
  free(found);
}

/* Saved, and loaded again: the same kernel. */
static void loaded(const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/device.plan", folder);
  sparserl_plan *plan = plan_with(1, 0, 10000000), *again = NULL;
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, matrix, path, &again));
  products(again, g.values, 2);
  double *other = vector((size_t)g.csr.nnz, 4);
  OK(sparserl_plan_update_values(again, stream, other, SPARSERL_HOST));
  products(again, other, 2);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_plan_destroy(again));
  free(other);
}

/* Threads that plan and multiply at once. */
static void *work(void *unused) {
  const size_t rows = (size_t)g.csr.rows;
  cudaStream_t own;
  CUDA(cudaStreamCreate(&own));
  double *x = vector(rows, 1), *dx = on_device(x, rows), *dz = on_device(x, rows);
  double *found = (double *)malloc(rows * sizeof *found);
  double *z = expected(0, g.values, 1, x, 0, x);
  const double one = 1, zero = 0;
  REQUIRE(found);
  for (int round = 0; round < 3; ++round) {
    sparserl_plan *plan = plan_with(0, 0, round ? 10000000 : 0);
    for (int i = 0; i < 200; ++i) OK(sparserl_execute(plan, own, &one, dx, &zero, NULL, dz));
    CUDA(cudaStreamSynchronize(own));
    CUDA(cudaMemcpy(found, dz, rows * sizeof *found, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < rows; ++row) REQUIRE(fabs(found[row] - z[row]) <= 1e-12 * (1 + fabs(z[row])));
    OK(sparserl_plan_destroy(plan));
  }
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  CUDA(cudaStreamDestroy(own));
  free(x);
  free(z);
  free(found);
  return unused;
}

static void threads(void) {
  pthread_t others[16];
  for (size_t i = 0; i < 16; ++i) REQUIRE(pthread_create(&others[i], NULL, work, NULL) == 0);
  for (size_t i = 0; i < 16; ++i) REQUIRE(pthread_join(others[i], NULL) == 0);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Two streams at once, by a kernel that needs workspace. */
static void workspace(void) {
  free_grid(&g);
  g = make_arrow(20000, 20000);
  const size_t rows = (size_t)g.csr.rows;
  sparserl_context *own = open_by_cost_model(1);
  sparserl_matrix *arrow = NULL;
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_matrix_create(own, &g.csr, &arrow));
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 100000000);
  OK(sparserl_plan_create(own, arrow, options, &plan));
  OK(sparserl_plan_wait(plan));
  const size_t needed = (size_t)number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_WORKSPACE_BYTES);
  REQUIRE(needed > 0);
  enum { STREAMS = 2, ROUNDS = 500 };
  cudaStream_t streams[STREAMS];
  void *spaces[STREAMS];
  double *x[STREAMS], *dx[STREAMS], *dz[STREAMS], *sums = (double *)calloc(rows, sizeof *sums);
  REQUIRE(sums);
  for (int i = 0; i < STREAMS; ++i) {
    CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CUDA(cudaMalloc(&spaces[i], needed));
    CUDA(cudaMemset(spaces[i], 0xff, needed));
    OK(sparserl_plan_set_workspace(plan, streams[i], spaces[i], needed));
    x[i] = vector(rows, 3 * i);
    dx[i] = on_device(x[i], rows);
    dz[i] = on_device(sums, rows);
  }
  const double one = 1;
  CUDA(cudaDeviceSynchronize());
  for (int round = 0; round < ROUNDS; ++round)
    for (int i = 0; i < STREAMS; ++i) OK(sparserl_execute(plan, streams[i], &one, dx[i], &one, dz[i], dz[i]));
  for (int i = 0; i < STREAMS; ++i) {
    CUDA(cudaStreamSynchronize(streams[i]));
    double *wanted = expected(SPARSERL_OP_NONE, g.values, ROUNDS, x[i], 0, NULL);
    /* Sums of sums, within what rounding makes of 20,000 terms. */
    CUDA(cudaMemcpy(sums, dz[i], rows * sizeof *sums, cudaMemcpyDeviceToHost));
    for (size_t row = 0; row < rows; ++row) REQUIRE(fabs(sums[row] - wanted[row]) <= 1e-7);
    free(wanted);
    free(x[i]);
    CUDA(cudaFree(dx[i]));
    CUDA(cudaFree(dz[i]));
    OK(sparserl_plan_set_workspace(plan, streams[i], NULL, 0));
    CUDA(cudaFree(spaces[i]));
    CUDA(cudaStreamDestroy(streams[i]));
  }
  free(sums);
  OK(sparserl_plan_destroy(plan));
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(arrow));
  OK(sparserl_context_destroy(own));
}

/* What a call costs the host: nothing is asserted that a busy machine could break. */
static void overhead(void) {
  enum { CALLS = 20000, BATCH = 500 };
  const size_t rows = (size_t)g.csr.rows;
  double *x = vector(rows, 1), *dx = on_device(x, rows), *dz = on_device(x, rows);
  const double one = 1, zero = 0;
  for (int32_t checks = 1; checks >= 0; --checks) {
    sparserl_options *options = NULL;
    sparserl_plan *plan = NULL;
    OK(sparserl_options_create(&options));
    set_int(options, SPARSERL_OPTION_CHECK_POINTERS, checks);
    set_calls(options, 0);
    OK(sparserl_plan_create(context, matrix, options, &plan));
    OK(sparserl_options_destroy(options));
    double seconds = 0;
    for (int i = 0; i < CALLS; i += BATCH) {
      const double start = now();
      for (int j = 0; j < BATCH; ++j) OK(sparserl_execute(plan, stream, &one, dx, &zero, NULL, dz));
      seconds += now() - start;
      CUDA(cudaStreamSynchronize(stream));
    }
    printf("a call %s checks of pointers: %.2f us on the host\n", checks ? "with" : "without",
           1e6 * seconds / CALLS);
    OK(sparserl_plan_destroy(plan));
  }
  sparserl_plan *plan = plan_with(1, 0, 0);
  double *values_on_device = on_device(g.values, (size_t)g.csr.nnz);
  cudaEvent_t events[2];
  for (int i = 0; i < 2; ++i) CUDA(cudaEventCreate(&events[i]));
  for (int part = 0; part < 2; ++part) {
    for (int i = -10; i < 100; ++i) {
      if (i == 0) CUDA(cudaEventRecord(events[0], stream));
      if (part)
        OK(sparserl_plan_update_values(plan, stream, values_on_device, SPARSERL_DEVICE));
      else
        OK(sparserl_execute(plan, stream, &one, dx, &zero, NULL, dz));
    }
    CUDA(cudaEventRecord(events[1], stream));
    CUDA(cudaEventSynchronize(events[1]));
    float milliseconds = 0;
    CUDA(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
    printf("%s: %.2f us on the device\n", part ? "new values, for A and its transpose" : "a product",
           10 * milliseconds);
  }
  for (int i = 0; i < 2; ++i) CUDA(cudaEventDestroy(events[i]));
  CUDA(cudaFree(values_on_device));
  OK(sparserl_plan_destroy(plan));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(x);
}

int main(int count, char **arguments) {
  REQUIRE(count == 3);
  const char *part = arguments[1];
  g = make_grid(100);
  OK(sparserl_context_create(NULL, &context));
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  CUDA(cudaStreamCreate(&stream));
  if (strcmp(part, "swapped") == 0) swapped();
  else if (strcmp(part, "from_device") == 0) from_device();
  else if (strcmp(part, "values") == 0) values();
  else if (strcmp(part, "captured") == 0) captured();
  else if (strcmp(part, "misuse") == 0) misuse();
  else if (strcmp(part, "clamped") == 0) clamped();
  else if (strcmp(part, "of_sides") == 0) of_sides(arguments[2]);
  else if (strcmp(part, "single") == 0) single();
  else if (strcmp(part, "loaded") == 0) loaded(arguments[2]);
  else if (strcmp(part, "threads") == 0) threads();
  else if (strcmp(part, "workspace") == 0) workspace();
  else if (strcmp(part, "overhead") == 0) overhead();
  else REQUIRE(!"there is such a part");
  CUDA(cudaStreamDestroy(stream));
  OK(sparserl_matrix_destroy(matrix));
  OK(sparserl_context_destroy(context));
  free_grid(&g);
  return EXIT_SUCCESS;
}
