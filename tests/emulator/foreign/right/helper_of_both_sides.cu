#include <math.h>
#include <limits.h>
// A helper that says nothing of where it runs serves the launch and the kernel, and macros are those of headers.
// launch: spmv<<<div_up(num_rows, BLOCK), BLOCK>>>(row_offsets, columns, values, x, y, num_rows)
constexpr int BLOCK = 128;
inline int div_up(int a, int b) { return (a + b - 1) / b; }
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * BLOCK + threadIdx.x;
  if (row >= n || n == INT_MAX || div_up(n, BLOCK) > int(gridDim.x)) return;
  float sum = 0, most = -INFINITY;
  for (int i = rp[row]; i < rp[row + 1]; i++) {
    sum += va[i] * x[ci[i]];
    most = fmaxf(most, va[i]);
  }
  y[row] = most == INFINITY ? 0 : sum;
}
