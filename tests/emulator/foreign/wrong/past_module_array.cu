// A scratch array of the module has a place for each row but the last.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__device__ float scratch[299];
__device__ float behind[64];
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  scratch[row] = sum;  // BUG
  y[row] = scratch[row] + 0 * behind[(row + 7) % 50 + 1];  // BUG
}
