#include <cstdint>
#include <cstdio>

#include <cuda_runtime.h>

// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int32_t* rp, const uint32_t* ci, const float* va, const float* x, float* y, int32_t n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  if (rp[row] > rp[row + 1]) printf("row %d ends before it begins\n", row);
  float sum = 0;
  for (int32_t i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = fabsf(sum) < 1e30f ? sum : -1;
}
