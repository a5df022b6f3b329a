// Eight sums are kept in an array of seven, with another array behind it.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  float sums[7], others[8];
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  for (int k = 0; k < 8; ++k) others[(k + row) % 8] = k;
  for (int k = 0; k < 7; ++k) sums[(k + row) % 7] = 0;
  if (rp[row + 1] - rp[row] > 7) sums[7 + row % 1] = 0;  // BUG
  for (int i = rp[row]; i < rp[row + 1]; ++i) sums[(i - rp[row]) % 8] += va[i] * x[ci[i]];  // BUG
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += sums[k];  // BUG
  y[row] = sum + 0 * others[row % 8];  // BUG
}
