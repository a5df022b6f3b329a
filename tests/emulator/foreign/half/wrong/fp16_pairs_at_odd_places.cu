#include <cuda_fp16.h>
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const half* values,
                     const half* x, half* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  int i = offsets[row];
  for (; i + 1 < offsets[row + 1]; i += 2) {
    const half2 pair = __ldg(reinterpret_cast<const half2*>(values + i));  // BUG: i may be odd
    sum += __low2float(pair) * float(x[columns[i]]) + __high2float(pair) * float(x[columns[i + 1]]);
  }
  if (i < offsets[row + 1]) sum += float(values[i]) * float(x[columns[i]]);
  y[row] = __float2half(alpha * sum + (beta != 0 ? beta * float(y[row]) : 0.f));
}
