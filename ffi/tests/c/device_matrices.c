/* Products with dense matrices, and in each type, on a GPU. All numbers are so small that every order of
 * additions gives the same result. The second argument is a folder to write to. */
#include "check_cuda.h"
#include "grid_product.h"

static struct grid g;
static sparserl_context *context;
static cudaStream_t stream;

/* A matrix in a type, and how many columns the dense operands have; 0 for vectors. */
struct problem {
  int32_t type;
  size_t columns;
  void *values;
  sparserl_matrix *matrix;
};

static size_t width(const struct problem *p) { return p->columns ? p->columns : 1; }
static size_t count_of(const struct problem *p) { return (size_t)g.csr.rows * width(p); }

static void *filled(int32_t type, size_t count, size_t modulus, double least) {
  void *memory = malloc(count * element_size(type));
  REQUIRE(memory);
  element_fill(type, memory, count, modulus, least);
  return memory;
}

static void *on_device(int32_t type, const void *from, size_t count) {
  return device_copy(from, count * element_size(type));
}

static double *expected(const struct problem *p, int32_t op, const void *values, const void *x, double beta,
                        const void *y) {
  return grid_product(&g, p->type, width(p), op, values, x, beta, y);
}

static void same(const struct problem *p, const void *device, const double *host, const char *what) {
  void *found = malloc(count_of(p) * element_size(p->type));
  REQUIRE(found);
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(found, device, count_of(p) * element_size(p->type), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count_of(p); ++i)
    if (element_get(p->type, found, i) != host[i]) {
      fprintf(stderr, "%s, type %d, %zu columns: element %zu is %g, not %g\n", what, (int)p->type, p->columns, i,
              element_get(p->type, found, i), host[i]);
      exit(EXIT_FAILURE);
    }
  free(found);
}

static void execute(const struct problem *p, sparserl_plan *plan, int32_t op, const void *x, double beta,
                    const void *y, void *z, const void *user) {
  const double wide[] = {0.5, beta};
  const float narrow[] = {0.5f, (float)beta};
  const int is_wide = p->type == SPARSERL_F64;
  const void *alpha = is_wide ? (const void *)&wide[0] : &narrow[0], *scale = is_wide ? (const void *)&wide[1] : &narrow[1];
  const int64_t ld = (int64_t)p->columns;
  OK(p->columns ? sparserl_execute_matrices(plan, op, stream, alpha, x, ld, scale, y, ld, z, ld, user)
                : sparserl_execute_op(plan, op, stream, alpha, x, scale, y, z, user));
}

static void products(const struct problem *p, sparserl_plan *plan, const void *values) {
  void *x = filled(p->type, count_of(p), 3, -1), *y = filled(p->type, count_of(p), 5, -2);
  void *dx = on_device(p->type, x, count_of(p)), *dy = on_device(p->type, y, count_of(p));
  void *dz = on_device(p->type, y, count_of(p));
  for (int way = 0; way < 4; ++way) {
    const int32_t op = way & 1;
    const double beta = way & 2 ? 3 : 0;
    double *z = expected(p, op, values, x, beta, y);
    CUDA(cudaMemset(dz, 0xff, count_of(p) * element_size(p->type)));
    execute(p, plan, op, dx, beta, beta ? dy : NULL, dz, NULL);
    same(p, dz, z, "apart");
    CUDA(cudaMemcpy(dz, y, count_of(p) * element_size(p->type), cudaMemcpyHostToDevice));
    execute(p, plan, op, dx, beta, dz, dz, NULL);
    same(p, dz, z, "in place");
    free(z);
  }
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dy));
  CUDA(cudaFree(dz));
  free(x);
  free(y);
}

static sparserl_plan *plan_of(const struct problem *p, int32_t variable, uint64_t calls, const char *epilogue) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  const uint64_t columns = p->columns;
  OK(sparserl_options_create(&options));
  if (columns) OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  if (epilogue) set_text(options, SPARSERL_OPTION_EPILOGUE, epilogue);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  set_int(options, SPARSERL_OPTION_MEASURE, calls > 1000000);
  set_calls(options, calls);
  OK(sparserl_plan_create(context, p->matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

/* New values and a product, captured into a graph and replayed. */
static void captured(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 1, 1000000, NULL);
  void *values = filled(p->type, (size_t)g.csr.nnz, 4, -1), *x = filled(p->type, count_of(p), 3, -1);
  void *dv = on_device(p->type, values, (size_t)g.csr.nnz), *dx = on_device(p->type, x, count_of(p));
  void *dz = on_device(p->type, x, count_of(p));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(sparserl_plan_wait(plan));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(sparserl_plan_update_values(plan, stream, dv, SPARSERL_DEVICE));
  execute(p, plan, 0, dx, 0, NULL, dz, NULL);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(executable, stream));
  double *z = expected(p, 0, values, x, 0, x);
  same(p, dz, z, "captured");
  free(z);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  OK(sparserl_plan_destroy(plan));
  CUDA(cudaFree(dv));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(values);
  free(x);
}

/* A bias for each column, or for each row of vectors, is added within the kernel. */
static void fused(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, 0, 1000000, p->columns ? "column_bias" : "bias");
  const size_t biases = p->columns ? p->columns : (size_t)g.csr.rows;
  void *bias = filled(p->type, biases, 7, -3), *x = filled(p->type, count_of(p), 3, -1);
  void *db = on_device(p->type, bias, biases), *dx = on_device(p->type, x, count_of(p));
  void *dz = on_device(p->type, x, count_of(p));
  const struct { const void *bias; } user = {db};
  double *z = expected(p, 1, p->values, x, 0, x);
  for (size_t i = 0; i < count_of(p); ++i)
    z[i] += element_get(p->type, bias, p->columns ? i % p->columns : i);
  for (int waited = 0; waited < 2; ++waited) {
    execute(p, plan, 1, dx, 0, NULL, dz, &user);
    same(p, dz, z, "fused");
    OK(sparserl_plan_wait(plan));
  }
  free(z);
  OK(sparserl_plan_destroy(plan));
  CUDA(cudaFree(db));
  CUDA(cudaFree(dx));
  CUDA(cudaFree(dz));
  free(bias);
  free(x);
}

/* Plain CSR, what takes its place, what is measured, and what was saved. */
static void all(const struct problem *p, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/g.plan", folder);
  const uint64_t calls = p->columns == 32 ? 10000000 : 1000000;
  sparserl_plan *plan = plan_of(p, 0, calls, NULL), *loaded = NULL;
  products(p, plan, p->values);
  OK(sparserl_plan_wait(plan));
  products(p, plan, p->values);
  char *why = text_of(plan, 0, SPARSERL_TEXT_WHY);
  printf("type %d, %zu columns: %s\n", (int)p->type, p->columns, why);
  free(why);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, p->matrix, path, &loaded));
  products(p, loaded, p->values);
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  captured(p);
  fused(p);
}

int main(int count, char **arguments) {
  REQUIRE(count == 3);
  g = make_grid(100);
  OK(sparserl_context_create(NULL, &context));
  CUDA(cudaStreamCreate(&stream));
  static const size_t columns[] = {0, 1, 7, 32, 128};
  for (int32_t type = SPARSERL_F32; type <= SPARSERL_BF16; ++type) {
    struct problem p = {type, 0, NULL, NULL};
    p.matrix = grid_in(context, &g, type, &p.values);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) {
      p.columns = columns[i];
      all(&p, arguments[2]);
    }
    OK(sparserl_matrix_destroy(p.matrix));
    free(p.values);
  }
  CUDA(cudaStreamDestroy(stream));
  OK(sparserl_context_destroy(context));
  free_grid(&g);
  return EXIT_SUCCESS;
}
