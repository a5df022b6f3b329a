/* Any calls in any order, with handles that are live, dead, of another kind, or none. */
#ifndef CALLS_H
#define CALLS_H
#include "driver.h"

struct calls {
  /* Chooses a number below a limit. */
  uint32_t (*below)(void *state, uint32_t limit);
  void *state;
  const struct grid *grid;
  stream_t stream;
  /* One that is there from the beginning and is not destroyed, or NULL. */
  sparserl_context *context;
  /* Where files go. */
  const char *folder;
};

enum { KEPT = 24 };

static inline void destroy_all(void **handles, const struct calls *calls) {
  for (int i = 0; i < KEPT; ++i) {
    (void)sparserl_plan_destroy((sparserl_plan *)handles[i]);
    (void)sparserl_matrix_destroy((sparserl_matrix *)handles[i]);
    (void)sparserl_options_destroy((sparserl_options *)handles[i]);
    if (handles[i] != (void *)calls->context) (void)sparserl_context_destroy((sparserl_context *)handles[i]);
  }
}

/* Makes so many. Whatever they are, each has a status, and where one fails nothing was made. */
static inline void make_calls(const struct calls *calls, int count) {
  const double one = 1, zero = 0;
  const struct grid *g = calls->grid;
  const stream_t stream = calls->stream;
  void *handles[KEPT] = {calls->context};
  sparserl_options *cost = NULL;
  OK(sparserl_options_create(&cost));
  set_text(cost, SPARSERL_OPTION_POLICY, "cost");
  enum { MOST_COLUMNS = 4 };
  const size_t bytes = (size_t)g->csr.nnz * sizeof(double) * MOST_COLUMNS;
  double *x = (double *)device_memory(bytes), *z = (double *)device_memory(bytes), number;
  char *memory = (char *)device_memory(2048), *space = memory + (256 - (uintptr_t)memory % 256) % 256;
  char path[4096], text[64];
  size_t length;
  snprintf(path, sizeof path, "%s/d.plan", calls->folder);
#define BELOW(limit) calls->below(calls->state, limit)
  for (int i = 0; i < count; ++i) {
    /* Mostly of the kind that the call wants: six places for each. */
    void *any[4], **place = NULL;
    for (uint32_t kind = 0; kind < 4; ++kind)
      any[kind] = BELOW(12) ? handles[6 * kind + BELOW(6)] : handles[BELOW(KEPT)];
    sparserl_context *c = (sparserl_context *)any[0];
    sparserl_options *o = (sparserl_options *)any[1];
    sparserl_matrix *m = (sparserl_matrix *)any[2];
    sparserl_plan *p = (sparserl_plan *)any[3];
    void *made = NULL;
    const uint64_t expected = BELOW(3) ? 0 : 100000000, columns = BELOW(MOST_COLUMNS + 1);
    const int64_t ld = (int64_t)BELOW(MOST_COLUMNS + 1);
    const int32_t flag = (int32_t)BELOW(2), op = (int32_t)BELOW(2);
    const double *beta = BELOW(2) ? &one : &zero;
    sparserl_status status = SPARSERL_SUCCESS;
    switch (BELOW(23)) {
      case 0:
        if (BELOW(20)) break;
        place = &handles[1 + BELOW(5)];
        status = sparserl_context_create(cost, (sparserl_context **)&made);
        break;
      case 1: place = &handles[6 + BELOW(6)]; status = sparserl_options_create((sparserl_options **)&made); break;
      case 2: status = sparserl_options_set(o, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns); break;
      case 3: status = sparserl_options_set(o, SPARSERL_OPTION_EXPECTED_CALLS, &expected, sizeof expected); break;
      case 4: status = sparserl_options_set(o, SPARSERL_OPTION_VALUES_VARIABLE, &flag, sizeof flag); break;
      case 5: status = sparserl_options_set(o, SPARSERL_OPTION_TRANSPOSE_TOO, &flag, sizeof flag); break;
      case 6:
      case 7: place = &handles[12 + BELOW(6)]; status = sparserl_matrix_create(c, &g->csr, (sparserl_matrix **)&made); break;
      case 8:
      case 9:
      case 10: place = &handles[18 + BELOW(6)]; status = sparserl_plan_create(c, m, o, (sparserl_plan **)&made); break;
      case 11:
      case 12: status = sparserl_execute_op(p, op, stream, &one, x, beta, z, z, NULL); break;
      case 13:
      case 14: status = sparserl_execute_matrices(p, op, stream, &one, x, ld, beta, z, ld, z, ld, NULL); break;
      case 15: status = sparserl_plan_update_values(p, stream, BELOW(2) ? x : g->values, (int32_t)BELOW(3)); break;
      case 16: status = sparserl_plan_save(p, path); break;
      case 17: place = &handles[18 + BELOW(6)]; status = sparserl_plan_load(c, m, path, (sparserl_plan **)&made); break;
      case 18: status = sparserl_plan_text(p, op, (int32_t)BELOW(6), text, sizeof text, &length); break;
      case 19: status = sparserl_plan_number(p, op, (int32_t)BELOW(10), &number); break;
      case 20: status = sparserl_plan_set_workspace(p, stream, BELOW(2) ? space : NULL, BELOW(3) * 512); break;
      default:
        switch (BELOW(5)) {
          case 0: status = BELOW(20) || c == calls->context ? 0 : sparserl_context_destroy(c); break;
          case 1: status = sparserl_options_destroy(o); break;
          case 2: status = sparserl_matrix_destroy(m); break;
          case 3: status = sparserl_plan_destroy(p); break;
          default: status = sparserl_plan_wait(p);
        }
    }
    REQUIRE(status >= 0 && status < SPARSERL_INTERNAL);
    REQUIRE(status == SPARSERL_SUCCESS || made == NULL);
    if (made) {
      /* What is forgotten here is destroyed, mostly; dead handles stay to be tried. */
      if (place < handles + 6) (void)sparserl_context_destroy((sparserl_context *)*place);
      else if (place < handles + 12) (void)sparserl_options_destroy((sparserl_options *)*place);
      else if (place < handles + 18) (void)sparserl_matrix_destroy((sparserl_matrix *)*place);
      else (void)sparserl_plan_destroy((sparserl_plan *)*place);
      *place = made;
    }
  }
#undef BELOW
  destroy_all(handles, calls);
  OK(sparserl_options_destroy(cost));
  device_free(x);
  device_free(z);
  device_free(memory);
}
#endif
