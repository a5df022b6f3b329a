/* Better kernels that are found while something else goes on, on the driver without a GPU (driver.c): the search is
 * held when it has something to say, before its kernel takes a place. */
#include "driver.h"

#include <pthread.h>
#include <time.h>

static const double one = 1, zero = 0;
static struct grid g;
static stream_t stream;
static sparserl_context *context;
static sparserl_matrix *matrix;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_held, is_open;

/* Few long rows above rows of one entry: plain CSR by merge path has a workspace, and what is better has none. */
static struct grid make_uneven(void) {
  enum { SIDE = 20000, LONG = 10, EACH = 2000 };
  struct grid made = new_grid(SIDE, SIDE, LONG * EACH + SIDE - LONG);
  int32_t entry = 0;
  for (int32_t row = 0; row < SIDE; ++row) {
    made.row_offsets[row] = entry;
    for (int32_t k = 0; k < (row < LONG ? EACH : 1); ++k) {
      made.column_indices[entry] = row < LONG ? k * (SIDE / EACH) : row;
      made.values[entry++] = 1;
    }
  }
  made.row_offsets[SIDE] = entry;
  return made;
}

static void hold(const char *line, void *user) {
  (void)line;
  (void)user;
  pthread_mutex_lock(&lock);
  is_held = 1;
  pthread_cond_broadcast(&changed);
  while (!is_open) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void begin(void) { is_held = is_open = 0; }

static void wait_until_held(void) {
  pthread_mutex_lock(&lock);
  while (!is_held) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void let_go(void) {
  pthread_mutex_lock(&lock);
  is_open = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void open_context(void) {
  const sparserl_log log = {hold, NULL};
  sparserl_options *options = NULL;
  OK(sparserl_options_create(&options));
  set_text(options, SPARSERL_OPTION_POLICY, "cost");
  OK(sparserl_options_set(options, SPARSERL_OPTION_LOG, &log, sizeof log));
  OK(sparserl_context_create(options, &context));
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  OK(sparserl_options_destroy(options));
}

static sparserl_plan *plan_with(int32_t variable) {
  sparserl_options *options = NULL;
  sparserl_plan *plan = NULL;
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, variable);
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 100000000);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_options_destroy(options));
  return plan;
}

static double workspace_of(sparserl_plan *plan) {
  return number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_WORKSPACE_BYTES);
}

/* A workspace is needed as long as the kernel is in use that writes to it, whatever waits for new values. */
static void for_values(int is_captured) {
  begin();
  sparserl_plan *plan = plan_with(1);
  char *program = text_of(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM);
  const double needed = workspace_of(plan);
  REQUIRE(strstr(program, "keep merge") && needed > 0);
  double *values = (double *)device_memory((size_t)g.csr.nnz * sizeof *values);
  wait_until_held();
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  let_go();
  OK(sparserl_plan_wait(plan));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "chosen by the cost model"));
  REQUIRE(workspace_of(plan) == needed);
  if (is_captured) driver_capture(stream, 1);
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  if (is_captured) {
    driver_capture(stream, 0);
    /* The graph knows this kernel, which is the plan's from now on. */
    OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
    REQUIRE(workspace_of(plan) == needed);
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, program));
    REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "an update of values was captured"));
  } else {
    REQUIRE(workspace_of(plan) == 0);
  }
  OK(sparserl_plan_destroy(plan));
  device_free(values);
  free(program);
}

/* The same where the graph was captured before there was anything better. */
static void after_capture(void) {
  begin();
  sparserl_plan *plan = plan_with(1);
  char *program = text_of(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM);
  double *values = (double *)device_memory((size_t)g.csr.nnz * sizeof *values);
  wait_until_held();
  driver_capture(stream, 1);
  OK(sparserl_plan_update_values(plan, stream, values, SPARSERL_DEVICE));
  driver_capture(stream, 0);
  let_go();
  OK(sparserl_plan_wait(plan));
  REQUIRE(workspace_of(plan) > 0);
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM, program));
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "an update of values was captured"));
  OK(sparserl_plan_destroy(plan));
  device_free(values);
  free(program);
}

static void *close_context(void *unused) {
  driver_set_current(0);
  OK(sparserl_context_destroy(context));
  return unused;
}

/* Whoever destroys a context waits for what is at work, and for nothing further. */
static void closed(void) {
  begin();
  pthread_t closing;
  sparserl_plan *plan = plan_with(0);
  wait_until_held();
  REQUIRE(pthread_create(&closing, NULL, close_context, NULL) == 0);
  const struct timespec moment = {0, 100000000};
  sparserl_matrix *none = NULL;
  while (sparserl_matrix_create(context, &g.csr, &none) == SPARSERL_SUCCESS) OK(sparserl_matrix_destroy(none));
  REQUIRE(nanosleep(&moment, NULL) == 0);
  let_go();
  REQUIRE(pthread_join(closing, NULL) == 0);
  REQUIRE(text_has(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, "chosen by the cost model"));
  REQUIRE(text_has(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_TEXT_WHY, "plain CSR: the context was destroyed"));
  double *x = (double *)device_memory((size_t)g.csr.cols * sizeof *x);
  double *z = (double *)device_memory((size_t)g.csr.cols * sizeof *z);
  OK(sparserl_execute_op(plan, SPARSERL_OP_TRANSPOSE, stream, &one, x, &zero, NULL, z, NULL));
  /* The plan is the last that has the device. */
  device_free(x);
  device_free(z);
  OK(sparserl_plan_destroy(plan));
}

int main(void) {
  g = make_uneven();
  driver_set_current(0);
  stream = driver_stream(0);
  open_context();
  for_values(0);
  for_values(1);
  after_capture();
  closed();
  OK(sparserl_matrix_destroy(matrix));
  REQUIRE(driver_taken() == 0 && driver_depth() == 1);
  free(stream);
  free_grid(&g);
  return EXIT_SUCCESS;
}
