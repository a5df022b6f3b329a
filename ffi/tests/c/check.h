/* What the tests in C share. */
#ifndef CHECK_H
#define CHECK_H
#include <sparserl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a condition does not hold. */
#define REQUIRE(condition)                                                                     \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition,           \
              sparserl_last_error());                                                          \
      exit(EXIT_FAILURE);                                                                      \
    }                                                                                          \
  } while (0)

#define OK(call) REQUIRE((call) == SPARSERL_SUCCESS)

/* The call fails with a status, and its text, of one line, has these words. */
#define FAILS(call, expected, words)                                                           \
  do {                                                                                         \
    const sparserl_status found = (call);                                                      \
    const char *text = sparserl_last_error();                                                  \
    if (found != (expected) || !strstr(text, words) || strchr(text, '\n')) {                   \
      fprintf(stderr, "%s:%d: %s gives %d (%s: %s), not %s with: %s\n", __FILE__, __LINE__,    \
              #call, (int)found, sparserl_status_text(found), text, #expected, words);         \
      exit(EXIT_FAILURE);                                                                      \
    }                                                                                          \
  } while (0)

/* A matrix with 32-bit offsets from 0, and its arrays. */
struct grid {
  int32_t *row_offsets, *column_indices;
  double *values;
  sparserl_csr csr;
};

/* Arrays for so many rows and entries, to be filled. */
static inline struct grid new_grid(int32_t rows, int32_t cols, int32_t entries) {
  struct grid g;
  memset(&g, 0, sizeof g);
  g.row_offsets = (int32_t *)malloc(((size_t)rows + 1) * sizeof *g.row_offsets);
  g.column_indices = (int32_t *)malloc((size_t)entries * sizeof *g.column_indices);
  g.values = (double *)malloc((size_t)entries * sizeof *g.values);
  REQUIRE(g.row_offsets && g.column_indices && g.values);
  g.csr.rows = rows;
  g.csr.cols = cols;
  g.csr.nnz = entries;
  g.csr.row_offsets = g.row_offsets;
  g.csr.column_indices = g.column_indices;
  g.csr.values = g.values;
  g.csr.value_type = SPARSERL_F64;
  return g;
}

/* A 5-point stencil on a grid. */
static inline struct grid make_grid(int32_t side) {
  const int32_t rows = side * side;
  struct grid g = new_grid(rows, rows, 5 * rows);
  int32_t entry = 0;
  for (int32_t row = 0; row < rows; ++row) {
    const int32_t i = row / side, j = row % side;
    const int32_t columns[] = {row - side, row - 1, row, row + 1, row + side};
    const int there[] = {i > 0, j > 0, 1, j + 1 < side, i + 1 < side};
    g.row_offsets[row] = entry;
    for (int k = 0; k < 5; ++k) {
      if (!there[k]) continue;
      g.column_indices[entry] = columns[k];
      g.values[entry++] = k == 2 ? 4 + 1.0 / (1 + row) : -1;
    }
  }
  g.row_offsets[rows] = entry;
  g.csr.nnz = entry;
  return g;
}

/* A diagonal below a full first row, which several threads share; no fewer columns than rows. */
static inline struct grid make_arrow(int32_t rows, int32_t cols) {
  const int32_t entries = cols + rows - 1;
  struct grid g = new_grid(rows, cols, entries);
  for (int32_t i = 0; i < entries; ++i) {
    g.column_indices[i] = i < cols ? i : i - cols + 1;
    g.values[i] = 1 + i % 3;
  }
  g.row_offsets[0] = 0;
  for (int32_t row = 0; row < rows; ++row) g.row_offsets[row + 1] = cols + row;
  return g;
}

/* Rows of so many entries, in columns that follow no pattern but lie in order. */
static inline struct grid make_scattered(int32_t rows, int32_t cols, int32_t per_row) {
  struct grid g = new_grid(rows, cols, rows * per_row);
  const int32_t apart = cols / per_row;
  uint32_t drawn = 1;
  for (int32_t row = 0; row <= rows; ++row) g.row_offsets[row] = row * per_row;
  for (int32_t i = 0; i < rows * per_row; ++i) {
    drawn = drawn * 1664525u + 1013904223u;
    g.column_indices[i] = i % per_row * apart + (int32_t)((drawn >> 8) % (uint32_t)apart);
    g.values[i] = 1 + i % 3;
  }
  return g;
}

static inline void free_grid(struct grid *g) {
  free(g->row_offsets);
  free(g->column_indices);
  free(g->values);
}

static inline void set_text(sparserl_options *options, int32_t option, const char *text) {
  OK(sparserl_options_set(options, option, text, strlen(text)));
}

static inline void set_int(sparserl_options *options, int32_t option, int32_t value) {
  OK(sparserl_options_set(options, option, &value, sizeof value));
}

static inline void set_calls(sparserl_options *options, uint64_t calls) {
  OK(sparserl_options_set(options, SPARSERL_OPTION_EXPECTED_CALLS, &calls, sizeof calls));
}

/* A context that chooses by the cost model, on the first device or without one. */
static inline sparserl_context *open_by_cost_model(int has_device) {
  sparserl_options *options = NULL;
  sparserl_context *context = NULL;
  OK(sparserl_options_create(&options));
  if (!has_device) set_int(options, SPARSERL_OPTION_DEVICE, -1);
  set_text(options, SPARSERL_OPTION_POLICY, "cost");
  OK(sparserl_context_create(options, &context));
  OK(sparserl_options_destroy(options));
  return context;
}

static inline sparserl_context *open_without_device(void) { return open_by_cost_model(0); }

/* The text of a plan, to be freed. */
static inline char *text_of(sparserl_plan *plan, int32_t op, int32_t text) {
  size_t length = 0;
  OK(sparserl_plan_text(plan, op, text, NULL, 0, &length));
  char *buffer = (char *)malloc(length + 1);
  REQUIRE(buffer);
  OK(sparserl_plan_text(plan, op, text, buffer, length + 1, &length));
  return buffer;
}

static inline int text_has(sparserl_plan *plan, int32_t op, int32_t text, const char *words) {
  char *found = text_of(plan, op, text);
  const int has = strstr(found, words) != NULL;
  if (!has) fprintf(stderr, "no \"%s\" in: %s\n", words, found);
  free(found);
  return has;
}

static inline double number_of(sparserl_plan *plan, int32_t op, int32_t number) {
  double value = -1;
  OK(sparserl_plan_number(plan, op, number, &value));
  return value;
}
#endif
