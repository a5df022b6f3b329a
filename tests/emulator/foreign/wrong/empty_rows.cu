// Sums begin with the first entry, which an empty row does not have.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ volatile float sums[64];
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    const float p = va[i] * x[ci[i]];
    if (i == rp[row]) sums[threadIdx.x] = p; else sums[threadIdx.x] += p;
  }
  y[row] = sums[threadIdx.x];  // BUG
}
