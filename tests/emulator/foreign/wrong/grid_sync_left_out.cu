// Rows are cleared by other blocks than those that add to them, and only every other block waits.
// launch: spmv<<<12, 64>>>(row_offsets, columns, values, x, y, num_rows, nnz)
#include <cooperative_groups.h>
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows,
                     int entries) {
  const auto grid = cooperative_groups::this_grid();
  const int first = grid.thread_rank(), all = grid.num_threads();
  for (int row = first; row < rows; row += all) y[row] = 0;  // BUG
  __syncthreads();
  for (int i = first; i < entries; i += all) {
    int row = 0;
    while (offsets[row + 1] <= i) ++row;
    atomicAdd(&y[row], values[i] * x[columns[i]]);  // BUG
  }
  grid.sync();
}
