// Only every second thread sets its factor in shared memory; the others multiply by what lies there.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float factors[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  if (threadIdx.x % 2 == 0) factors[threadIdx.x] = 1;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  const float factor = factors[threadIdx.x];  // BUG
  const float scaled = sum * factor;
  y[row] = scaled;
}
