#include <cuda_fp16.h>
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const half* values,
                     const half* x, half* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; i += 2) {
    const half2 a = __halves2half2(values[i], values[i + 1]);  // BUG: the last row's may be odd
    const float2 f = __half22float2(a);
    sum += f.x * float(x[columns[i]]);
    if (i + 1 < offsets[row + 1]) sum += f.y * float(x[columns[i + 1]]);
  }
  y[row] = __float2half(alpha * sum + (beta != 0 ? beta * float(y[row]) : 0.f));
}
