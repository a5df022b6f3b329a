/* Workspaces of the caller's, on the driver without a GPU (driver.c). */
#include "driver.h"

#include <pthread.h>

static const double one = 1, zero = 0;
static stream_t streams[2];
static sparserl_plan *plan;
static double *x, *z;
static size_t needed;

/* Device memory, and an address in it as cudaMalloc aligns it, with room for so many bytes. */
struct aligned {
  void *memory;
  unsigned char *at;
};

static struct aligned aligned_memory(size_t bytes) {
  struct aligned made = {device_memory(bytes + 256), NULL};
  made.at = (unsigned char *)made.memory + (256 - (uintptr_t)made.memory % 256) % 256;
  memset(made.at, 0xff, bytes);
  return made;
}

static void product(stream_t stream, int32_t op) {
  OK(sparserl_execute_op(plan, op, stream, &one, x, &zero, NULL, z, NULL));
}

/* Each stream's products have its own workspace, whose counters are zero then. */
static void separate(void) {
  struct aligned spaces[2] = {aligned_memory(needed), aligned_memory(needed)};
  for (int i = 0; i < 2; ++i) {
    product(streams[i], SPARSERL_OP_NONE);
    REQUIRE(!driver_launched_with(spaces[i].at, needed));
    OK(sparserl_plan_set_workspace(plan, streams[i], spaces[i].at, needed));
  }
  for (int i = 0; i < 2; ++i) {
    product(streams[i], SPARSERL_OP_NONE);
    REQUIRE(driver_launched_with(spaces[i].at, needed) >= 2 && !driver_launched_with(spaces[1 - i].at, needed));
    REQUIRE(spaces[i].at[0] == 0 && spaces[i].at[needed - 1] == 0xff && spaces[1].at[0] == (i ? 0 : 0xff));
    /* What another kernel leaves there does not matter. */
    spaces[i].at[0] = 7;
    product(streams[i], SPARSERL_OP_NONE);
    REQUIRE(spaces[i].at[0] == 0);
    product(streams[i], SPARSERL_OP_TRANSPOSE);
    REQUIRE(!driver_launched_with(spaces[i].at, needed));
  }
  product(NULL, SPARSERL_OP_NONE);
  REQUIRE(!driver_launched_with(spaces[0].at, needed) && !driver_launched_with(spaces[1].at, needed));

  /* The default stream, on which nothing can be asked for while another is captured. */
  OK(sparserl_plan_set_workspace(plan, streams[0], NULL, 0));
  OK(sparserl_plan_set_workspace(plan, NULL, spaces[0].at, needed));
  product(NULL, SPARSERL_OP_NONE);
  REQUIRE(driver_launched_with(spaces[0].at, needed));
  driver_capture(streams[1], 1);
  FAILS(sparserl_execute(plan, NULL, &one, x, &zero, NULL, z), SPARSERL_CAPTURING, "cuStreamIsCapturing failed");
  product(streams[1], SPARSERL_OP_NONE);
  REQUIRE(driver_launched_with(spaces[1].at, needed));
  driver_capture(streams[1], 0);
  product(streams[0], SPARSERL_OP_NONE);
  REQUIRE(!driver_launched_with(spaces[0].at, needed));
  OK(sparserl_plan_set_workspace(plan, NULL, NULL, 0));
  OK(sparserl_plan_set_workspace(plan, streams[1], NULL, 0));
  for (int i = 0; i < 2; ++i) {
    product(streams[i], SPARSERL_OP_NONE);
    REQUIRE(!driver_launched_with(spaces[i].at, needed));
    device_free(spaces[i].memory);
  }
}

static void refused(void) {
  struct aligned space = aligned_memory(2 * needed);
  const stream_t stream = streams[0], elsewhere = driver_stream(1);
  char host[8];
  FAILS(sparserl_plan_set_workspace(NULL, stream, space.at, needed), SPARSERL_NULL_POINTER, "plan");
  FAILS(sparserl_plan_set_workspace(plan, stream, NULL, needed), SPARSERL_NULL_POINTER, "workspace is NULL");
  FAILS(sparserl_plan_set_workspace(plan, stream, space.at + 128, needed), SPARSERL_INVALID_ARGUMENT,
        "not aligned to 256 bytes");
  FAILS(sparserl_plan_set_workspace(plan, stream, space.at, 9 * needed), SPARSERL_INVALID_ARGUMENT,
        "bytes are needed");
  FAILS(sparserl_plan_set_workspace(plan, stream, (void *)((uintptr_t)host & ~(uintptr_t)255), 8), SPARSERL_INVALID_ARGUMENT,
        "workspace is no pointer to device memory");
  FAILS(sparserl_plan_set_workspace(plan, elsewhere, space.at, needed), SPARSERL_WRONG_DEVICE, "device 0");
  FAILS(sparserl_plan_set_workspace(plan, (void *)2, space.at, needed), SPARSERL_UNSUPPORTED,
        "give a stream that was created");
  product(stream, SPARSERL_OP_NONE);
  REQUIRE(!driver_launched_with(space.at, needed));

  OK(sparserl_plan_set_workspace(plan, stream, space.at, needed));
  FAILS(sparserl_plan_set_workspace(plan, streams[1], space.at + needed - 256, needed), SPARSERL_INVALID_ARGUMENT,
        "overlaps that of another stream");
  OK(sparserl_plan_set_workspace(plan, streams[1], space.at + needed, needed));
  OK(sparserl_plan_set_workspace(plan, streams[1], NULL, 0));
  OK(sparserl_plan_set_workspace(plan, stream, space.at, needed - 1));
  const long before = driver_launches();
  FAILS(sparserl_execute(plan, stream, &one, x, &zero, NULL, z), SPARSERL_INVALID_ARGUMENT,
        "and the plan's kernel needs");
  REQUIRE(driver_launches() == before);
  OK(sparserl_plan_set_workspace(plan, stream, NULL, 0));
  device_free(space.memory);
  free(elsewhere);
}

/* Workspaces come and go while others multiply. */
static void *work(void *unused) {
  driver_set_current(0);
  const stream_t stream = driver_stream(0);
  struct aligned space = aligned_memory(needed);
  for (int i = 0; i < 200; ++i) {
    OK(sparserl_plan_set_workspace(plan, stream, space.at, needed));
    product(stream, SPARSERL_OP_NONE);
    REQUIRE(space.at[0] == 0);
    space.at[0] = 1;
    OK(sparserl_plan_set_workspace(plan, stream, NULL, 0));
    product(stream, SPARSERL_OP_NONE);
    REQUIRE(space.at[0] == 1);
  }
  device_free(space.memory);
  free(stream);
  return unused;
}

int main(void) {
  struct grid g = make_arrow(20000, 20000);
  sparserl_context *context = open_by_cost_model(1);
  sparserl_matrix *matrix = NULL;
  sparserl_options *options = NULL;
  OK(sparserl_matrix_create(context, &g.csr, &matrix));
  OK(sparserl_options_create(&options));
  set_int(options, SPARSERL_OPTION_TRANSPOSE_TOO, 1);
  set_int(options, SPARSERL_OPTION_MEASURE, 0);
  set_calls(options, 100000000);
  OK(sparserl_plan_create(context, matrix, options, &plan));
  OK(sparserl_plan_wait(plan));
  needed = (size_t)number_of(plan, SPARSERL_OP_NONE, SPARSERL_NUMBER_WORKSPACE_BYTES);
  REQUIRE(needed >= 512 && needed % 256 == 0);
  REQUIRE(number_of(plan, SPARSERL_OP_TRANSPOSE, SPARSERL_NUMBER_WORKSPACE_BYTES) == 0);
  driver_set_current(0);
  x = (double *)device_memory(20000 * sizeof *x);
  z = (double *)device_memory(20000 * sizeof *z);
  for (int i = 0; i < 2; ++i) streams[i] = driver_stream(0);
  separate();
  refused();
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) REQUIRE(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (int i = 0; i < 8; ++i) REQUIRE(pthread_join(threads[i], NULL) == 0);
  OK(sparserl_plan_destroy(plan));
  device_free(x);
  device_free(z);
  OK(sparserl_options_destroy(options));
  OK(sparserl_matrix_destroy(matrix));
  OK(sparserl_context_destroy(context));
  REQUIRE(driver_taken() == 0);
  for (int i = 0; i < 2; ++i) free(streams[i]);
  free_grid(&g);
  return EXIT_SUCCESS;
}
