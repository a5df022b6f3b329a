// launch: spmv<<<(m + 127) / 128, 128>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int m, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
