/* What a library leaves behind that was closed while it had threads. The first argument is the library. */
#include <dlfcn.h>
#include <sparserl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUIRE(condition)                                               \
  do {                                                                   \
    if (!(condition)) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      exit(EXIT_FAILURE);                                                \
    }                                                                    \
  } while (0)

/* A function by its name, as POSIX has it: conversions of objects to functions are none of C's. */
static void find(void *library, const char *name, void *function, size_t size) {
  void *symbol = dlsym(library, name);
  REQUIRE(symbol && size == sizeof symbol);
  memcpy(function, &symbol, size);
}

enum { ROWS = 100000 };

int main(int count, char **arguments) {
  sparserl_status (*set)(sparserl_options *, int32_t, const void *, size_t);
  sparserl_status (*options_create)(sparserl_options **);
  sparserl_status (*context_create)(const sparserl_options *, sparserl_context **);
  sparserl_status (*matrix_create)(sparserl_context *, const sparserl_csr *, sparserl_matrix **);
  REQUIRE(count == 2);
  /* Loaders keep a library whose threads have something to destroy when they end: this one stays without, too. */
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library && dlclose(library) == 0);
  library = dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library);
#define FIND(name, function) find(library, name, &function, sizeof function)
  FIND("sparserl_options_create", options_create);
  FIND("sparserl_options_set", set);
  FIND("sparserl_context_create", context_create);
  FIND("sparserl_matrix_create", matrix_create);
  sparserl_options *options = NULL;
  sparserl_context *context = NULL;
  sparserl_matrix *matrix = NULL;
  const int32_t none = -1;
  REQUIRE(options_create(&options) == SPARSERL_SUCCESS);
  REQUIRE(set(options, SPARSERL_OPTION_DEVICE, &none, sizeof none) == SPARSERL_SUCCESS);
  REQUIRE(context_create(options, &context) == SPARSERL_SUCCESS);
  /* Several threads copy it, and wait for more. */
  static int32_t offsets[ROWS + 1], columns[ROWS];
  static double values[ROWS];
  for (int32_t i = 0; i < ROWS; ++i) offsets[i + 1] = (columns[i] = i) + 1;
  sparserl_csr csr;
  memset(&csr, 0, sizeof csr);
  csr.rows = csr.cols = csr.nnz = ROWS;
  csr.row_offsets = offsets;
  csr.column_indices = columns;
  csr.values = values;
  csr.value_type = SPARSERL_F64;
  REQUIRE(matrix_create(context, &csr, &matrix) == SPARSERL_SUCCESS);
  REQUIRE(dlclose(library) == 0);
  const struct timespec while_they_run = {0, 200000000};
  REQUIRE(nanosleep(&while_they_run, NULL) == 0);
  /* It is still there, with what it knew. */
  REQUIRE(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == library);
  FIND("sparserl_matrix_create", matrix_create);
  REQUIRE(matrix_create(context, &csr, &matrix) == SPARSERL_SUCCESS);
  return EXIT_SUCCESS;
}
