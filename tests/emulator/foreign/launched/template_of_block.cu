// launch: spmv<96><<<(n + 95) / 96, 96>>>(row_offsets, columns, values, x, y, num_rows)
template <int kThreads>
__global__ void __launch_bounds__(kThreads) spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * kThreads + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
