/* Products with dense matrices whose rows have gaps between them, and with column-major ones, on a GPU. All numbers are
 * so small that every order of additions gives the same result. The arguments are a type, f32, f64, f16 or bf16, and a
 * folder to write to. */
#include "check_cuda.h"
#include "grid_product.h"

static struct grid g;
static sparserl_context *context;
static cudaStream_t stream;

/* A matrix in a type, and how many columns the dense operands have, and how they lie. */
struct problem {
  int32_t type, dense;
  size_t columns;
  void *values;
  sparserl_matrix *matrix;
};

/* A dense matrix on the device, with gaps, and its elements as they lie. */
struct operand {
  int64_t ld;
  size_t length;
  void *device, *host;
};

enum { GAP = 13 };

static size_t rows(void) { return (size_t)g.csr.rows; }
static int is_by_columns(const struct problem *p) { return p->dense == SPARSERL_DENSE_COLUMN_MAJOR; }

static size_t place(const struct problem *p, int64_t ld, size_t row, size_t column) {
  return is_by_columns(p) ? column * (size_t)ld + row : row * (size_t)ld + column;
}

/* With a leading dimension that is larger than it has to be by some steps, by which rows of vectors stay aligned, or
 * by elements. */
static struct operand spread(const struct problem *p, const void *packed, size_t steps, int by_elements) {
  const size_t size = element_size(p->type), bytes = p->columns * size, divides = bytes & (~bytes + 1);
  const size_t step = is_by_columns(p) || by_elements ? 1 : (divides < 16 ? divides : 16) / size;
  struct operand made = {(int64_t)((is_by_columns(p) ? rows() : p->columns) + steps * step), 0, NULL, NULL};
  made.length = place(p, made.ld, rows() - 1, p->columns - 1) + 1;
  made.host = malloc(made.length * size);
  REQUIRE(made.host);
  element_fill(p->type, made.host, made.length, 1, GAP);
  for (size_t i = 0; i < rows() * p->columns; ++i)
    element_put(p->type, made.host, place(p, made.ld, i / p->columns, i % p->columns), element_get(p->type, packed, i));
  made.device = device_copy(made.host, made.length * size);
  return made;
}

static void let_go(struct operand *operand) {
  CUDA(cudaFree(operand->device));
  free(operand->host);
}

static void execute(const struct problem *p, sparserl_plan *plan, int32_t op, const struct operand *b, double beta,
                    const struct operand *c, const struct operand *d, const void *user) {
  const double wide[] = {0.5, beta};
  const float narrow[] = {0.5f, (float)beta};
  const int is_wide = p->type == SPARSERL_F64;
  OK(sparserl_execute_matrices(plan, op, stream, is_wide ? (const void *)wide : narrow, b->device, b->ld,
                               is_wide ? (const void *)(wide + 1) : narrow + 1, c->device, c->ld, d->device, d->ld,
                               user));
}

/* D is what is expected, and what lies between is what it was. */
static void same(const struct problem *p, struct operand *d, const double *expected, const char *what) {
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(d->host, d->device, d->length * element_size(p->type), cudaMemcpyDeviceToHost));
  for (size_t at = 0; at < d->length; ++at) {
    const size_t line = at / (size_t)d->ld, behind = at % (size_t)d->ld;
    const size_t row = is_by_columns(p) ? behind : line, column = is_by_columns(p) ? line : behind;
    const double wanted = row >= rows() || column >= p->columns ? GAP : expected[row * p->columns + column];
    if (element_get(p->type, d->host, at) == wanted) continue;
    fprintf(stderr, "%s, type %d, %zu columns that lie as %d: element %zu, %zu is %g, not %g\n", what, (int)p->type,
            p->columns, (int)p->dense, row, column, element_get(p->type, d->host, at), wanted);
    exit(EXIT_FAILURE);
  }
}

static void products(const struct problem *p, sparserl_plan *plan) {
  const size_t count = rows() * p->columns;
  void *x = malloc(count * element_size(p->type)), *y = malloc(count * element_size(p->type));
  REQUIRE(x && y);
  element_fill(p->type, x, count, 3, -1);
  element_fill(p->type, y, count, 5, -2);
  for (int way = 0; way < 24; ++way) {
    const int32_t op = way & 1;
    const int in_place = way >> 1 & 1, gaps = way >> 3, odd = gaps == 2;
    const double beta = way >> 2 & 1 ? 3 : 0;
    struct operand b = spread(p, x, gaps ? 1 : 0, odd), c = spread(p, y, gaps ? 3 : 0, odd), d = c;
    if (!in_place) d = spread(p, x, gaps ? 2 : 0, odd);
    double *expected = grid_product(&g, p->type, p->columns, op, p->values, x, beta, y);
    execute(p, plan, op, &b, beta, &c, &d, NULL);
    same(p, &d, expected, in_place ? "in place" : "apart");
    free(expected);
    let_go(&b);
    let_go(&c);
    if (!in_place) let_go(&d);
  }
  free(x);
  free(y);
}

static sparserl_plan *plan_of(const struct problem *p, const char *epilogue) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  const uint64_t columns = p->columns;
  OK(sparserl_options_create(&options));
  OK(sparserl_options_set(options, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns));
  set_int(options, SPARSERL_OPTION_DENSE, p->dense);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 1000000);
  if (epilogue) set_text(options, SPARSERL_OPTION_EPILOGUE, epilogue);
  OK(sparserl_plan_create(context, p->matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

/* A bias for each column, added within the kernel, captured into a graph and replayed. */
static void captured(const struct problem *p) {
  sparserl_plan *plan = plan_of(p, "column_bias");
  const size_t count = rows() * p->columns, size = element_size(p->type);
  void *x = malloc(count * size), *bias = malloc(p->columns * size);
  REQUIRE(x && bias);
  element_fill(p->type, x, count, 3, -1);
  element_fill(p->type, bias, p->columns, 7, -3);
  void *on_device = device_copy(bias, p->columns * size);
  const struct { const void *bias; } user = {on_device};
  struct operand b = spread(p, x, 3, 0), d = spread(p, x, 2, 1);
  double *expected = grid_product(&g, p->type, p->columns, 1, p->values, x, 0, x);
  for (size_t i = 0; i < count; ++i) expected[i] += element_get(p->type, bias, i % p->columns);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(sparserl_plan_wait(plan));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  execute(p, plan, 1, &b, 0, &d, &d, &user);
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(executable, stream));
  same(p, &d, expected, "captured");
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  OK(sparserl_plan_destroy(plan));
  let_go(&b);
  let_go(&d);
  CUDA(cudaFree(on_device));
  free(expected);
  free(bias);
  free(x);
}

/* Plain CSR, what takes its place, and what was saved. */
static void all(const struct problem *p, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/h.plan", folder);
  sparserl_plan *plan = plan_of(p, NULL), *loaded = NULL;
  products(p, plan);
  OK(sparserl_plan_wait(plan));
  products(p, plan);
  OK(sparserl_plan_save(plan, path));
  OK(sparserl_plan_load(context, p->matrix, path, &loaded));
  products(p, loaded);
  OK(sparserl_plan_destroy(loaded));
  OK(sparserl_plan_destroy(plan));
  captured(p);
}

static int32_t type_called(const char *name) {
  static const char *const names[] = {"f32", "f64", "f16", "bf16"};
  static const int32_t types[] = {SPARSERL_F32, SPARSERL_F64, SPARSERL_F16, SPARSERL_BF16};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (!strcmp(name, names[i])) return types[i];
  fprintf(stderr, "no type is called %s\n", name);
  exit(EXIT_FAILURE);
}

int main(int count, char **arguments) {
  REQUIRE(count == 3);
  g = make_grid(100);
  OK(sparserl_context_create(NULL, &context));
  CUDA(cudaStreamCreate(&stream));
  static const size_t columns[] = {1, 7, 32, 130};
  struct problem p = {type_called(arguments[1]), 0, 0, NULL, NULL};
  p.matrix = grid_in(context, &g, p.type, &p.values);
  for (p.dense = SPARSERL_DENSE_STRIDED; p.dense <= SPARSERL_DENSE_COLUMN_MAJOR; ++p.dense)
    for (size_t i = 0; i < sizeof columns / sizeof *columns; ++i) {
      p.columns = columns[i];
      all(&p, arguments[2]);
    }
  OK(sparserl_matrix_destroy(p.matrix));
  free(p.values);
  CUDA(cudaStreamDestroy(stream));
  OK(sparserl_context_destroy(context));
  free_grid(&g);
  return EXIT_SUCCESS;
}
