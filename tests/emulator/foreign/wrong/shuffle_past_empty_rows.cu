// Lanes of empty rows go past the shuffles, which name them, and store a zero.
// launch: spmv<<<ceil(num_rows / 16), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 4, lane = threadIdx.x % 4;
  const int first = row < rows ? offsets[row] : 0, end = row < rows ? offsets[row + 1] : 0;
  float sum = 0;
  if (first != end) {
    for (int i = first + lane; i < end; i += 4) sum += values[i] * x[columns[i]];
    sum += __shfl_xor_sync(~0u, sum, 1);  // BUG
    sum += __shfl_xor_sync(~0u, sum, 2);  // BUG
  }
  if (lane == 0 && row < rows) y[row] = sum;
}
