/* What products with a grid are to give, in each type. */
#ifndef GRID_PRODUCT_H
#define GRID_PRODUCT_H
#include "check.h"
#include "element.h"

/* 0.5 op(A) B + beta C, of dense matrices with so many columns, to be freed. The grid has other values. */
static inline double *grid_product(const struct grid *g, int type, size_t columns, int32_t op, const void *values,
                                   const void *b, double beta, const void *c) {
  const size_t rows = (size_t)g->csr.rows, count = rows * columns;
  double *d = (double *)malloc(count * sizeof *d);
  REQUIRE(d);
  for (size_t i = 0; i < count; ++i) d[i] = beta * element_get(type, c, i);
  for (size_t row = 0; row < rows; ++row)
    for (int32_t k = g->row_offsets[row]; k < g->row_offsets[row + 1]; ++k) {
      const size_t column = (size_t)g->column_indices[k], to = op ? column : row, from = op ? row : column;
      const double value = 0.5 * element_get(type, values, (size_t)k);
      for (size_t j = 0; j < columns; ++j) d[to * columns + j] += value * element_get(type, b, from * columns + j);
    }
  return d;
}

/* The grid in a type, with values that are small whole numbers, which are to be freed. */
static inline sparserl_matrix *grid_in(sparserl_context *context, const struct grid *g, int32_t type, void **values) {
  const size_t entries = (size_t)g->csr.nnz;
  sparserl_matrix *matrix = NULL;
  sparserl_csr csr = g->csr;
  *values = malloc(entries * element_size(type));
  REQUIRE(*values);
  element_fill(type, *values, entries, 3, -1);
  csr.values = *values;
  csr.value_type = type;
  OK(sparserl_matrix_create(context, &csr, &matrix));
  return matrix;
}
#endif
