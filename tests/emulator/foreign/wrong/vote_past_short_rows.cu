// Lanes whose row has ended leave the loop in which others vote, and store, although these name them.
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  unsigned all = 0;
  for (int i = offsets[row]; i < offsets[row + 1]; ++i) {
    all |= __ballot_sync(~0u, values[i] == values[i]);  // BUG
    sum += values[i] * x[columns[i]];
  }
  y[row] = all == 1 ? 2 * sum - sum : sum;
}
