/* A target of libFuzzer: calls as bytes say, on the driver without a GPU (driver.c). Each input has to give
 * back all that it took. SPARSERL_FUZZ_FOLDER names a folder to write to. */
#include "calls.h"

enum { MOST_CALLS = 60 };

struct bytes {
  const uint8_t *next;
  size_t left;
};

/* The last of all choices when the bytes have ended: to wait, which costs nothing. */
static uint32_t byte_below(void *state, uint32_t limit) {
  struct bytes *bytes = (struct bytes *)state;
  if (!bytes->left) return limit - 1;
  --bytes->left;
  return *bytes->next++ % limit;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *folder = getenv("SPARSERL_FUZZ_FOLDER");
  REQUIRE(folder);
  struct grid g = make_grid(6);
  sparserl_context *context = open_by_cost_model(1);
  driver_set_current(0);
  const stream_t stream = driver_stream(0);
  struct bytes bytes = {data, size};
  struct shared shared = {.grid = &g, .stream = stream, .context = context, .folder = folder};
  begin_calls(&shared);
  make_calls(&shared, (struct choice){byte_below, &bytes}, MOST_CALLS);
  end_calls(&shared);
  /* Waits for what is still searched for. */
  OK(sparserl_context_destroy(context));
  REQUIRE(driver_taken() == 0 && driver_depth() == 1);
  free(stream);
  free_grid(&g);
  return 0;
}
