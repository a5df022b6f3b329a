/* Any calls in any order, with handles that are live, dead, of another kind, or none. */
#ifndef CALLS_H
#define CALLS_H
#include "driver.h"

#include <math.h>
#include <stdatomic.h>

enum { KEPT = 24, MOST_COLUMNS = 4 };

/* What calls are made with; threads may share it. */
struct shared {
  const struct grid *grid;
  stream_t stream;
  /* One that is there from the beginning and is not destroyed, or NULL. */
  sparserl_context *context;
  /* Where files go. */
  const char *folder;
  /* Six contexts, options, matrices and plans, live or dead, which threads take from each other without any
   * order. */
  _Atomic(void *) handles[KEPT];
  sparserl_options *cost;
  double *x, *z, *terms;
  char *memory;
};

/* Chooses a number below a limit. */
struct choice {
  uint32_t (*below)(void *state, uint32_t limit);
  void *state;
};

/* Like dice; the state is a number. */
static inline uint32_t random_below(void *state, uint32_t limit) {
  uint32_t *number = (uint32_t *)state;
  *number = *number * 1664525u + 1013904223u;
  return (*number >> 8) % limit;
}

static inline void begin_calls(struct shared *shared) {
  for (int i = 0; i < KEPT; ++i) atomic_init(&shared->handles[i], i ? NULL : shared->context);
  OK(sparserl_options_create(&shared->cost));
  set_text(shared->cost, SPARSERL_OPTION_POLICY, "cost");
  const size_t bytes = (size_t)shared->grid->csr.nnz * sizeof(double) * MOST_COLUMNS;
  shared->x = (double *)device_memory(bytes);
  shared->z = (double *)device_memory(bytes);
  shared->terms = (double *)device_memory(bytes);
  shared->memory = (char *)device_memory(2048);
}

static inline void end_calls(struct shared *shared) {
  for (int i = 0; i < KEPT; ++i) {
    void *handle = atomic_load(&shared->handles[i]);
    (void)sparserl_plan_destroy((sparserl_plan *)handle);
    (void)sparserl_matrix_destroy((sparserl_matrix *)handle);
    (void)sparserl_options_destroy((sparserl_options *)handle);
    if (handle != (void *)shared->context) (void)sparserl_context_destroy((sparserl_context *)handle);
  }
  OK(sparserl_options_destroy(shared->cost));
  device_free(shared->x);
  device_free(shared->z);
  device_free(shared->terms);
  device_free(shared->memory);
}

static inline void *any_handle(struct shared *shared, uint32_t place) {
  return atomic_load_explicit(&shared->handles[place], memory_order_relaxed);
}

/* Makes so many. Whatever they are, each has a status, and where one fails nothing was made. */
static inline void make_calls(struct shared *shared, struct choice choice, int count) {
  const double one = 1, zero = 0, deadlines[] = {0, 0.5, 1e300, -1, NAN};
  const uint64_t limits[] = {0, 4096, UINT64_MAX};
  const char *const epilogues[] = {"relu", "bias",          "column_bias", "clamp", "axpy", "dot_terms",
                                   "none", "none of these", ""};
  const struct grid *g = shared->grid;
  const stream_t stream = shared->stream;
  double *x = shared->x, *z = shared->z, number;
  /* What any of the epilogues takes: vectors, and a number that may be any. */
  const struct {
    const double *first;
    double *second;
  } user = {x, shared->terms};
  char *space = shared->memory + (256 - (uintptr_t)shared->memory % 256) % 256;
  char path[4096], text[64];
  size_t length;
  snprintf(path, sizeof path, "%s/d.plan", shared->folder);
#define BELOW(limit) choice.below(choice.state, limit)
  for (int i = 0; i < count; ++i) {
    /* Mostly of the kind that the call wants: six places for each. */
    void *any[4];
    uint32_t place = 0;
    for (uint32_t kind = 0; kind < 4; ++kind)
      any[kind] = any_handle(shared, BELOW(12) ? 6 * kind + BELOW(6) : BELOW(KEPT));
    sparserl_context *c = (sparserl_context *)any[0];
    sparserl_options *o = (sparserl_options *)any[1];
    sparserl_matrix *m = (sparserl_matrix *)any[2];
    sparserl_plan *p = (sparserl_plan *)any[3];
    void *made = NULL;
    const uint64_t expected = BELOW(3) ? 0 : 100000000, columns = BELOW(MOST_COLUMNS + 1);
    const int64_t ld = (int64_t)BELOW(MOST_COLUMNS + 1);
    const int32_t flag = (int32_t)BELOW(2), op = (int32_t)BELOW(2), lie = (int32_t)BELOW(4), measure = (int32_t)BELOW(4) - 1;
    const double *beta = BELOW(2) ? &one : &zero;
    const void *block = BELOW(4) ? &user : NULL;
    const char *epilogue = epilogues[BELOW(9)];
    sparserl_status status = SPARSERL_SUCCESS;
    switch (BELOW(30)) {
      case 0:
        if (BELOW(20)) break;
        place = 1 + BELOW(5);
        status = sparserl_context_create(shared->cost, (sparserl_context **)&made);
        break;
      case 1: place = 6 + BELOW(6); status = sparserl_options_create((sparserl_options **)&made); break;
      case 2: status = sparserl_options_set(o, SPARSERL_OPTION_COLUMNS, &columns, sizeof columns); break;
      case 3: status = sparserl_options_set(o, SPARSERL_OPTION_EXPECTED_CALLS, &expected, sizeof expected); break;
      case 4: status = sparserl_options_set(o, SPARSERL_OPTION_VALUES_VARIABLE, &flag, sizeof flag); break;
      case 5: status = sparserl_options_set(o, SPARSERL_OPTION_TRANSPOSE_TOO, &flag, sizeof flag); break;
      case 6:
      case 7: place = 12 + BELOW(6); status = sparserl_matrix_create(c, &g->csr, (sparserl_matrix **)&made); break;
      case 8:
      case 9:
      case 10: place = 18 + BELOW(6); status = sparserl_plan_create(c, m, o, (sparserl_plan **)&made); break;
      case 11:
      case 12: status = sparserl_execute_op(p, op, stream, &one, x, beta, z, z, block); break;
      case 13:
      case 14: status = sparserl_execute_matrices(p, op, stream, &one, x, ld, beta, z, ld, z, ld, block); break;
      case 15: status = sparserl_plan_update_values(p, stream, BELOW(2) ? x : g->values, (int32_t)BELOW(3)); break;
      case 16: status = sparserl_plan_save(p, path); break;
      case 17:
        place = 18 + BELOW(6);
        status = BELOW(2) ? sparserl_plan_load(c, m, path, (sparserl_plan **)&made)
                          : sparserl_plan_load_with_options(c, m, path, o, (sparserl_plan **)&made);
        break;
      case 18: status = sparserl_plan_text(p, op, (int32_t)BELOW(8), text, sizeof text, &length); break;
      case 19: status = sparserl_plan_number(p, op, (int32_t)BELOW(11), &number); break;
      case 20: status = sparserl_options_set(o, SPARSERL_OPTION_DENSE, &lie, sizeof lie); break;
      case 21: status = sparserl_plan_set_workspace(p, stream, BELOW(2) ? space : NULL, BELOW(3) * 512); break;
      case 22:
        status = sparserl_options_set(o, BELOW(2) ? SPARSERL_OPTION_EPILOGUE : SPARSERL_OPTION_TRANSPOSED_EPILOGUE,
                                      epilogue, strlen(epilogue));
        break;
      case 23:
        status = BELOW(2) ? sparserl_options_set(o, SPARSERL_OPTION_DEADLINE, &deadlines[BELOW(5)], sizeof *deadlines)
                          : sparserl_options_set(o, SPARSERL_OPTION_MEMORY_LIMIT, &limits[BELOW(3)], sizeof *limits);
        break;
      case 24: status = sparserl_options_set(o, SPARSERL_OPTION_DETERMINISTIC, &flag, sizeof flag); break;
      case 25: status = sparserl_options_set(o, SPARSERL_OPTION_CHECK_POINTERS, &flag, sizeof flag); break;
      case 26: status = sparserl_options_set(o, SPARSERL_OPTION_MEASURE, &measure, sizeof measure); break;
      /* Any option, with any size. */
      case 27: status = sparserl_options_set(o, (int32_t)(99 + BELOW(19)), &expected, BELOW(9)); break;
      default:
        switch (BELOW(5)) {
          case 0: status = BELOW(20) || c == shared->context ? 0 : sparserl_context_destroy(c); break;
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
      void *old = atomic_exchange_explicit(&shared->handles[place], made, memory_order_relaxed);
      if (place < 6) (void)sparserl_context_destroy((sparserl_context *)old);
      else if (place < 12) (void)sparserl_options_destroy((sparserl_options *)old);
      else if (place < 18) (void)sparserl_matrix_destroy((sparserl_matrix *)old);
      else (void)sparserl_plan_destroy((sparserl_plan *)old);
    }
  }
#undef BELOW
}
#endif
