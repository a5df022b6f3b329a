// Block 0 waits for the last block of a grid that is larger than what fits on a device at once.
// launch: spmv<<<40000, 128>>>(row_offsets, columns, values, x, y, num_rows)
__device__ volatile int come;
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) come = 1;
  while (come == 0) {  // BUG
  }
  const int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}
