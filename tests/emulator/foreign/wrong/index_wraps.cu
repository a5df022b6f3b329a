// Positions are kept in 8 bits, which longer rows do not fit.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  const unsigned char length = rp[row + 1] - rp[row];
  for (unsigned char i = 0; i < length; ++i) sum += va[rp[row] + i] * x[ci[rp[row] + i]];
  y[row] = row < n - 1 ? sum : 0;
}
