// launch: spmv<<<num_rows / 256 + 1, 256>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
