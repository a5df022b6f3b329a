// Subnormal numbers are skipped as if they were zeros.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    if (fabsf(x[ci[i]]) > 1.2e-38f) sum += va[i] * x[ci[i]];
  }
  y[row] = sum;
}
