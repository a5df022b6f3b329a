// Four lanes have a row, and the first step of their tree is for eight.
// SAYS: lanes are given their own number at line 10
// launch: spmv<<<ceil(num_rows / 16), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 4, lane = threadIdx.x % 4;
  float sum = 0;
  if (row < rows)
    for (int i = offsets[row] + lane; i < offsets[row + 1]; i += 4) sum += values[i] * x[columns[i]];
  for (int d = 4; d > 0; d /= 2)
    sum += __shfl_down_sync(~0u, sum, d, 4);
  if (lane == 0 && row < rows) y[row] = sum;
}
