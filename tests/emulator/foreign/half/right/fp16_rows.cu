#include <cuda_fp16.h>
// launch: spmv<<<ceil(num_rows / 128), 128>>>(num_rows, row_offsets, columns, values, x, y, alpha, beta)
__global__ void spmv(int rows, const int* offsets, const int* columns, const half* values,
                     const half* __restrict__ x, half* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i)
    sum += __half2float(values[i]) * __half2float(__ldg(x + columns[i]));
  sum *= alpha;
  if (beta != 0) sum += beta * float(y[row]);
  y[row] = __float2half(sum);
}
