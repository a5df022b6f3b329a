/* y = A x: the whole of the API that most programs need.
 *   cc spmv.c $(pkg-config --cflags --libs sparserl) -lcudart -o spmv && ./spmv
 * Where there is no CUDA, -DWITHOUT_CUDA in place of -lcudart plans only. */
#include <sparserl.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef WITHOUT_CUDA
#include <cuda_runtime_api.h>
#endif

static void check(sparserl_status status) {
  if (status == SPARSERL_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", sparserl_status_text(status), sparserl_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  /* 1 0 2
   * 0 3 0
   * 4 5 6 */
  const int32_t row_offsets[] = {0, 2, 3, 6}, column_indices[] = {0, 2, 1, 0, 1, 2};
  const double values[] = {1, 2, 3, 4, 5, 6}, one = 1, zero = 0, x[] = {1, 10, 100};
  const sparserl_csr csr = {.rows = 3, .cols = 3, .nnz = 6, .row_offsets = row_offsets,
                            .column_indices = column_indices, .values = values,
                            .offset_type = SPARSERL_I32, .index_type = SPARSERL_I32,
                            .value_type = SPARSERL_F64, .location = SPARSERL_HOST};
  sparserl_context *context;
  sparserl_matrix *matrix;
  sparserl_plan *plan;
  check(sparserl_context_create(NULL, &context));
  check(sparserl_matrix_create(context, &csr, &matrix));
  check(sparserl_plan_create(context, matrix, NULL, &plan));

  char why[512];
  size_t length;
  check(sparserl_plan_text(plan, SPARSERL_OP_NONE, SPARSERL_TEXT_WHY, why, sizeof why, &length));
  printf("kernel: %s\n", why);
#ifdef WITHOUT_CUDA
  double y[3];
  if (sparserl_execute(plan, NULL, &one, x, &zero, NULL, y) == SPARSERL_NO_DEVICE)
    printf("%s\n", sparserl_last_error());
#else
  double y[3] = {0}, *device_x, *device_y;
  cudaMalloc((void **)&device_x, sizeof x);
  cudaMalloc((void **)&device_y, sizeof y);
  cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice);
  check(sparserl_execute(plan, NULL, &one, device_x, &zero, NULL, device_y));
  cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost);
  printf("y = %g %g %g, expected 201 30 654\n", y[0], y[1], y[2]);
  cudaFree(device_x);
  cudaFree(device_y);
#endif
  check(sparserl_plan_destroy(plan));
  check(sparserl_matrix_destroy(matrix));
  check(sparserl_context_destroy(context));
  return EXIT_SUCCESS;
}
