// Sums are kept in an array of four by the entry's number modulo five, with another array behind it.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sums[4] = {}, others[8] = {};
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    sums[(i - rp[row]) % 5] += va[i] * x[ci[i]];  // BUG
    others[i * 7 % 8] += 0;
  }
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum += sums[k];
  for (int k = 0; k < 8; ++k) sum += others[k];
  y[row] = sum;
}
