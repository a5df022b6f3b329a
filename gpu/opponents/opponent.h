/* What a shared library offers so that kernels can be measured against it: `bench --opponent LIB.so`.
 *
 * The library is loaded into the process that judges kernels, after a CUDA context was made current there. Its results
 * are verified as those of kernels are: a wrong one is reported in place of times. A library that takes the process down
 * is reported by name, and the rest of the case is measured without it. Preparing is timed, on the host's
 * clock and with all work on the device waited for, and reported as analysis; enqueuing is what is compared.
 *
 * All six functions are looked up by name. They are called from one thread.
 */
#ifndef SPARSERL_OPPONENT_H
#define SPARSERL_OPPONENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number that sparserl_opponent_interface() gives. It changes when anything here does. */
#define SPARSERL_OPPONENT_INTERFACE 1

/* Results of sparserl_opponent_prepare() other than these are errors of the library's own. */
#define SPARSERL_OPPONENT_READY 0
/* The operation, the element type or the matrix is none for the library: it is left out of this comparison. */
#define SPARSERL_OPPONENT_NOT_APPLICABLE 1

/* output = A * input. Arrays are on the device unless their name says otherwise; all but `output` are only read, and
 * all outlive the plan. `input` is cols x columns and `output` rows x columns, both row-major without padding. Before a
 * product, `output` holds anything, NaN included. */
typedef struct sparserl_opponent_product {
  int32_t rows, cols, nonzeros;
  /* 0 for y = A x; else the columns of B and C in C = A B. */
  int32_t columns;
  /* Bits of an element: 32 for float, 64 for double. A, input and output have the same type. */
  int32_t element_bits;
  /* rows + 1 offsets, counted from 0; columns increase within a row. */
  const int32_t *row_offsets;
  const int32_t *column_indices;
  const void *values;
  const void *input;
  void *output;
  /* The same offsets in the host's memory, only during sparserl_opponent_prepare(): for what depends on the lengths of
   * the rows, such as their order. */
  const int32_t *host_row_offsets;
} sparserl_opponent_product;

/* SPARSERL_OPPONENT_INTERFACE, as the library was compiled with it. */
int32_t sparserl_opponent_interface(void);

/* What reports call the library, and its version; the strings stay. */
const char *sparserl_opponent_name(void);
const char *sparserl_opponent_version(void);

/* Makes a product ready. On success, `*plan` is what the other functions take and `*buffer_bytes` the bytes of device
 * memory that it needs besides the arrays above. `stream` is a cudaStream_t. */
int32_t sparserl_opponent_prepare(const sparserl_opponent_product *product, void *stream, void **plan,
                                  uint64_t *buffer_bytes);

/* Enqueues the product on the stream; 0, or a cudaError_t. It is captured into graphs, and so must neither wait nor
 * take memory. */
int32_t sparserl_opponent_enqueue(void *plan, void *stream);

/* Releases a plan. */
void sparserl_opponent_release(void *plan);

#ifdef __cplusplus
}
#endif

#endif
