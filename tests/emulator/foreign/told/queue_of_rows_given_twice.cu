// Warps take two rows at a time, but the queue goes on by one, so that rows are added to twice.
// SAYS: whose turn it is, is decided at line 11
// launch: spmv<<<8, 32>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
#include <cooperative_groups.h>
__device__ int next;
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows,
                     float alpha, float beta) {
  for (;;) {
    int first = 0;
    if (threadIdx.x == 0)
      first = atomicAdd(&next, 1);
    first = __shfl_sync(~0u, first, 0);
    if (first >= rows) break;
    for (int row = first; row < min(first + 2, rows); ++row) {
      float sum = 0;
      for (int i = offsets[row] + threadIdx.x; i < offsets[row + 1]; i += 32) sum += values[i] * x[columns[i]];
      for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
      if (threadIdx.x == 0) y[row] = alpha * sum + (beta == 0 ? 0 : beta * y[row]);
    }
  }
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) next = 0;
}
