// A quarter of a warp has a row at a time, and ends when there is none left, while others that name it go on.
// launch: spmv<<<3, 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int lane = threadIdx.x % 8;
  for (int row = (blockIdx.x * 64 + threadIdx.x) / 8; row < rows; row += 24) {
    float sum = 0;
    for (int i = offsets[row] + lane; i < offsets[row + 1]; i += 8) sum += values[i] * x[columns[i]];
    for (int d = 4; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d, 8);
    if (lane == 0) y[row] = sum;
  }
}
