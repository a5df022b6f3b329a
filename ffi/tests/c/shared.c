/* Threads that use, replace and destroy the same handles, on the driver without a GPU (driver.c). The first argument
 * is a folder to write to. */
#include "calls.h"

#include <pthread.h>

enum { THREADS = 8, CALLS = 300, USES = 300, PLANS = 4, SPACE = 1 << 20 };
static const double one = 1, zero = 0;
static struct shared shared;
static sparserl_plan *plan;
static struct grid arrow;
static double *x, *z;
/* Workspaces, which must stay as long as the plans. */
static char *spaces[THREADS];

static void with_threads(void *work(void *number)) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; ++i) REQUIRE(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i) == 0);
  for (size_t i = 0; i < THREADS; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
}

/* Any calls in any order. */
static void *call(void *number) {
  uint32_t state = (uint32_t)(uintptr_t)number;
  driver_set_current(0);
  make_calls(&shared, (struct choice){random_below, &state}, CALLS);
  REQUIRE(driver_depth() == 1);
  return NULL;
}

static sparserl_status use_once(uint32_t *state, char *space) {
  const stream_t stream = shared.stream;
  const int32_t op = (int32_t)random_below(state, 2);
  char text[4096], path[4096];
  double number;
  size_t length;
  switch (random_below(state, 10)) {
    case 0: return sparserl_plan_update_values(plan, stream, x, SPARSERL_DEVICE);
    case 1: return sparserl_plan_update_values(plan, stream, arrow.values, SPARSERL_HOST);
    case 2: return sparserl_plan_text(plan, op, SPARSERL_TEXT_WHY, text, sizeof text, &length);
    case 3: return sparserl_plan_number(plan, op, 1 + (int32_t)random_below(state, 9), &number);
    case 4: return sparserl_plan_set_workspace(plan, stream, space, SPACE);
    case 5: return sparserl_plan_set_workspace(plan, stream, NULL, 0);
    case 6:
      if (random_below(state, 50)) return SPARSERL_SUCCESS;
      snprintf(path, sizeof path, "%s/g.plan", shared.folder);
      return sparserl_plan_save(plan, path);
    default: return sparserl_execute_op(plan, op, stream, &one, x, &zero, NULL, z, NULL);
  }
}

static int is_used(uint32_t *state, char *space) {
  const sparserl_status status = use_once(state, space);
  if (status == SPARSERL_INVALID_HANDLE) REQUIRE(strstr(sparserl_last_error(), "was destroyed"));
  else REQUIRE(status == SPARSERL_SUCCESS || status == SPARSERL_NOT_KNOWN || status == SPARSERL_UNSUPPORTED);
  return status != SPARSERL_INVALID_HANDLE;
}

/* One plan, from before its better kernel takes the place of the first until the first thread destroys it. */
static void *use(void *number) {
  uint32_t state = (uint32_t)(uintptr_t)number;
  driver_set_current(0);
  char *space = spaces[(uintptr_t)number];
  space += (256 - (uintptr_t)space % 256) % 256;
  if (number) {
    while (is_used(&state, space)) continue;
  } else {
    OK(sparserl_plan_wait(plan));
    for (int i = 0; i < USES; ++i) REQUIRE(is_used(&state, space));
    const double bytes = number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_WORKSPACE_BYTES);
    REQUIRE(bytes > 0 && bytes <= SPACE);
    OK(sparserl_plan_destroy(plan));
  }
  REQUIRE(driver_depth() == 1);
  return NULL;
}

static void used_while_searched(void) {
  sparserl_matrix *matrix = NULL;
  sparserl_options *options = NULL;
  arrow = make_arrow(20000, 20000);
  x = (double *)device_memory((size_t)arrow.csr.nnz * sizeof *x);
  z = (double *)device_memory((size_t)arrow.csr.rows * sizeof *z);
  for (int i = 0; i < THREADS; ++i) spaces[i] = (char *)device_memory(SPACE + 256);
  OK(sparserl_matrix_create(shared.context, &arrow.csr, &matrix));
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 100000000);
  for (int i = 0; i < PLANS; ++i) {
    set_int(options, SPARSERL_OPTION_VALUES_VARIABLE, i % 2 == 0);
    OK(sparserl_plan_create(shared.context, matrix, options, &plan));
    with_threads(use);
  }
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(matrix));
  for (int i = 0; i < THREADS; ++i) device_free(spaces[i]);
  device_free(x);
  device_free(z);
  free_grid(&arrow);
}

int main(int count, char **arguments) {
  REQUIRE(count == 2);
  struct grid g = make_grid(12);
  driver_set_current(0);
  shared.grid = &g;
  shared.stream = driver_stream(0);
  shared.context = open_by_cost_model(1);
  shared.folder = arguments[1];
  begin_calls(&shared);
  with_threads(call);
  end_calls(&shared);
  used_while_searched();
  OK(sparserl_context_destroy(shared.context));
  REQUIRE(driver_taken() == 0 && driver_depth() == 1);
  free(shared.stream);
  free_grid(&g);
  return EXIT_SUCCESS;
}
