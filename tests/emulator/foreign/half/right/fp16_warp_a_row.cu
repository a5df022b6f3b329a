#include "cuda_fp16.h"
// launch: spmv<<<ceil(num_rows * 32 / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const __half* values,
                     const __half* x, __half* y, float alpha, float beta) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float2 sum = make_float2(0, 0);
  // Two entries at a time, each lane pairs of its own.
  for (int i = offsets[row] + 2 * lane; i < offsets[row + 1]; i += 64) {
    const bool has_both = i + 1 < offsets[row + 1];
    const __half2 a = __halves2half2(values[i], has_both ? values[i + 1] : __float2half(0.f));
    const __half2 b = __halves2half2(x[columns[i]], has_both ? x[columns[i + 1]] : __half(0));
    const float2 f = __half22float2(a), g = __half22float2(b);
    sum.x = fmaf(f.x, g.x, sum.x);
    sum.y = fmaf(f.y, g.y, sum.y);
  }
  float total = sum.x + sum.y;
  for (int d = 16; d; d /= 2) total += __shfl_down_sync(0xffffffff, total, d);
  if (lane == 0) y[row] = __float2half_rn(alpha * total + (beta != 0 ? beta * float(y[row]) : 0.f));
}
