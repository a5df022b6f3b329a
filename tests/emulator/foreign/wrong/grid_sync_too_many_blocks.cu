// More blocks than a device has room for at once wait for each other.
// launch: spmv<<<10000, 1024>>>(row_offsets, columns, values, x, y, num_rows)
#include <cooperative_groups.h>
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int row = grid.thread_rank();
  if (row < rows) y[row] = 0;
  grid.sync();
  if (row < rows)
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) y[row] += values[i] * x[columns[i]];
}
