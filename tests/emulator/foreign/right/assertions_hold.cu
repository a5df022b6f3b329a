#include <cassert>

// Assertions that hold.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int m) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  assert(rp[row] <= rp[row + 1]);
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    assert(ci[i] >= 0 && ci[i] < m);
    sum += va[i] * x[ci[i]];
  }
  y[row] = sum;
}
