#include <cuda_fp16.h>
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const half* values,
                     const half* x, half* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  half sum = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum = __hfma(values[i], x[columns[i]], sum);
  y[row] = __float2half(alpha * float(sum) + (beta != 0 ? beta * float(y[row]) : 0.f));
}
