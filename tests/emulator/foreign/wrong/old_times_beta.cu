// What y held is multiplied by beta even where beta is 0, which a NaN survives.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, float alpha,
                     float beta) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = alpha * sum + beta * y[row];  // BUG
}
